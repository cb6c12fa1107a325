"""Eight concurrent writers of one table, each with rows of its own: how many conflict."""

from __future__ import annotations

import threading
from collections.abc import Callable
from functools import partial
from typing import ClassVar

from bench.lab import Answer, Lab, collect
from bench.scenarios.scenario import Measure, Measurement, Scenario
from bench.settings import Settings

_MERGERS = 4
_APPENDERS = 4
_SPAN = 1_000_000
_KNOWN = 1_000
_ROWS = 20
_LEVELS = ("Serializable", "WriteSerializable")


class ConcurrentWriters(Scenario):
    """Four writers MERGE keys of their own, half of them new, four append.

    A writer that loses to another tries again, so that all engines end with the same rows.
    """

    name: ClassVar[str] = "concurrent-writers"
    rounds: ClassVar[int] = 3
    warmup_rounds: ClassVar[int] = 0

    def measures(self, settings: Settings) -> tuple[Measure, ...]:
        """Return one row for each isolation level."""
        commits = (_MERGERS + _APPENDERS) * _turns(settings)
        return tuple(
            Measure(level, f"{commits} commits of 8 writers, {level}") for level in _LEVELS
        )

    def prepare(self, lab: Lab) -> None:
        """Need nothing."""

    def measure(self, lab: Lab, repetition: int) -> Measurement:
        """Let the writers race at each level; delta-spark refuses to set WriteSerializable."""
        truth = _truth(lab.settings)
        if not lab.engine.is_delta:
            return Measurement(timings={}, answers=dict.fromkeys(_LEVELS, truth))
        timings: dict[str, float] = {}
        answers: dict[str, Answer] = {}
        metrics: dict[str, float] = {}
        for level in _LEVELS if lab.engine.tables == "deltaic" else _LEVELS[:1]:
            path = lab.scratch(f"{self.name}-{level}-{repetition}")
            _create(lab, path, level)
            timings[level], conflicts = lab.timed(partial(_race, lab, path))
            metrics[f"conflicts_{level}"] = conflicts
            rows = lab.read(path, "id BIGINT, v BIGINT")
            answers[level] = collect(rows.selectExpr("count(*)", "sum(id)", "sum(v)"))
            lab.storage.delete(path)
        return Measurement(timings=timings, answers=answers, metrics=metrics)


def _turns(settings: Settings) -> int:
    return 2 if settings.quick else 8


def _create(lab: Lab, path: str, level: str) -> None:
    lab.create(path, "id BIGINT, v BIGINT")
    if level != _LEVELS[0]:
        lab.spark.sql(
            f"ALTER TABLE {lab.sql_name(path)}"
            f" SET TBLPROPERTIES ('delta.isolationLevel' = '{level}')"
        )
    known = lab.spark.range(0, _MERGERS * _KNOWN, 1, 1)
    rows = known.selectExpr(f"id % {_MERGERS} * {_SPAN} + id DIV {_MERGERS} AS id", "0L AS v")
    lab.append(rows, path)


def _race(lab: Lab, path: str) -> int:
    """Run all writers and return how many statements another commit refused."""
    conflicts = [0] * (_MERGERS + _APPENDERS)
    problems: list[BaseException] = []
    start = threading.Barrier(len(conflicts))

    def write(writer: int) -> None:
        try:
            start.wait()
            statement = _merge if writer < _MERGERS else _append
            for turn in range(_turns(lab.settings)):
                conflicts[writer] += _until_done(partial(statement, lab, path, writer, turn))
        except BaseException as problem:
            problems.append(problem)

    threads = [threading.Thread(target=write, args=(n,)) for n in range(len(conflicts))]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    if problems:
        raise problems[0]
    return sum(conflicts)


def _until_done(statement: Callable[[], object]) -> int:
    """Run a statement again until nobody is in its way; return how often somebody was."""
    for conflicts in range(1_000):
        try:
            statement()
            return conflicts
        except Exception as problem:
            if not any(word in str(problem) for word in ("CONCURRENT", "Concurrent")):
                raise
    raise TimeoutError("the statement loses every race")


def _merge(lab: Lab, path: str, writer: int, turn: int) -> None:
    """Change keys that are there, and insert as many: the keys lie between those of others."""
    first = writer * _SPAN
    known, new = first + turn * _ROWS, first + _KNOWN + turn * _ROWS
    lab.spark.sql(
        f"MERGE INTO {lab.sql_name(path)} t USING (SELECT explode(concat("
        f"sequence({known}L, {known + _ROWS - 1}L), sequence({new}L, {new + _ROWS - 1}L))) AS id) s"
        " ON t.id = s.id WHEN MATCHED THEN UPDATE SET v = t.v + 1"
        " WHEN NOT MATCHED THEN INSERT (id, v) VALUES (s.id, 100)"
    )


def _append(lab: Lab, path: str, writer: int, turn: int) -> None:
    """Append rows with ids around those that are merged, which tells files apart by no bounds."""
    above = (writer + 1) * _SPAN - 1 - turn * _ROWS
    rows = lab.spark.range(above - _ROWS + 1, above + 1, 1, 1)
    outermost = lab.spark.range(-above, -above + 1, 1, 1)
    lab.append(rows.union(outermost).coalesce(1).selectExpr("id", "7L AS v"), path)


def _truth(settings: Settings) -> Answer:
    turns = range(_turns(settings))
    ids: list[int] = []
    values = 0
    for writer in range(_MERGERS):
        first = writer * _SPAN
        ids += range(first, first + _KNOWN)
        for turn in turns:
            new = first + _KNOWN + turn * _ROWS
            ids += range(new, new + _ROWS)
            values += _ROWS * (1 + 100)
    for writer in range(_MERGERS, _MERGERS + _APPENDERS):
        for turn in turns:
            above = (writer + 1) * _SPAN - 1 - turn * _ROWS
            ids += [*range(above - _ROWS + 1, above + 1), -above]
            values += 7 * (_ROWS + 1)
    return [[str(len(ids)), str(sum(ids)), str(values)]]
