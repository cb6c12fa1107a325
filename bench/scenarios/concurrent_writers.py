"""Eight concurrent writers of one table, each with rows of its own: how many conflict."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import ClassVar

from bench.lab import Answer, Lab, collect
from bench.scenarios.scenario import Measure, Measurement, Scenario
from bench.settings import Settings

_MERGERS = 4
_APPENDERS = 4
_SPAN = 1_000_000
_EXISTING = 1_000
_ROWS = 20
_LEVELS = ("Serializable", "WriteSerializable")

#: How often a statement is tried, and how long a race may take: with delta-spark, most writers
#: lose, and eight of them do not finish within 12 minutes.
_MAX_TRIES = 10
_PATIENCE_S = 50.0


class ConcurrentWriters(Scenario):
    """Four writers MERGE keys of their own, half of them new, four append.

    A writer that loses to another retries a bounded number of times. If no writer of an engine
    gives up, its table must have the same rows as that of all others. Otherwise, only the numbers
    of conflicts and of statements given up are reported.
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
        """Do nothing."""

    def measure(self, lab: Lab, repetition: int) -> Measurement:
        """Run the writers at each level; delta-spark refuses to set WriteSerializable."""
        truth = _truth(lab.settings)
        if not lab.engine.is_delta:
            return Measurement(timings={}, answers=dict.fromkeys(_LEVELS, truth))
        timings: dict[str, float] = {}
        answers: dict[str, Answer] = {}
        metrics: dict[str, float] = {}
        for level in _LEVELS if lab.engine.tables == "deltaic" else _LEVELS[:1]:
            path = lab.scratch(f"{self.name}-{level}-{repetition}")
            _create(lab, path, level)
            seconds, race = lab.timed(partial(_race, lab, path))
            metrics[f"conflicts_{level}"] = race.conflicts
            metrics[f"given_up_{level}"] = race.given_up
            metrics[f"seconds_{level}"] = seconds
            if race.given_up and lab.engine.tables == "deltaic":
                raise TimeoutError(f"{race.given_up} statements lost ten races each, {level}")
            if not race.given_up:
                timings[level] = seconds
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
    existing = lab.spark.range(0, _MERGERS * _EXISTING, 1, 1)
    rows = existing.selectExpr(f"id % {_MERGERS} * {_SPAN} + id DIV {_MERGERS} AS id", "0L AS v")
    lab.append(rows, path)


@dataclass(slots=True)
class _Race:
    """The outcome of the statements of one or all writers.

    Attributes
    ----------
    deadline_s
        When statements are no longer tried, by the monotonic clock; None for never.
    conflicts
        How many attempts conflicted with another commit.
    given_up
        How many statements were given up, or not tried at all.
    """

    deadline_s: float | None
    conflicts: int = 0
    given_up: int = 0

    def run(self, statement: Callable[[], object]) -> None:
        """Run a statement until it does not conflict, or give it up."""
        for _ in range(_MAX_TRIES):
            if self.deadline_s is not None and time.monotonic() > self.deadline_s:
                break
            try:
                statement()
                return
            except Exception as problem:
                if not any(word in str(problem) for word in ("CONCURRENT", "Concurrent")):
                    raise
                self.conflicts += 1
        self.given_up += 1


def _race(lab: Lab, path: str) -> _Race:
    """Run all writers and return the outcome of their statements."""
    patience_s = None if lab.engine.tables == "deltaic" else _PATIENCE_S
    deadline_s = None if patience_s is None else time.monotonic() + patience_s
    races = [_Race(deadline_s) for _ in range(_MERGERS + _APPENDERS)]
    problems: list[BaseException] = []
    start = threading.Barrier(len(races))

    def write(writer: int) -> None:
        try:
            start.wait()
            statement = _merge if writer < _MERGERS else _append
            for turn in range(_turns(lab.settings)):
                races[writer].run(partial(statement, lab, path, writer, turn))
        except BaseException as problem:
            problems.append(problem)

    threads = [threading.Thread(target=write, args=(n,)) for n in range(len(races))]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    if problems:
        raise problems[0]
    return _Race(
        deadline_s,
        sum(race.conflicts for race in races),
        sum(race.given_up for race in races),
    )


def _merge(lab: Lab, path: str, writer: int, turn: int) -> None:
    """Update existing keys, and insert as many: their ranges overlap with those of others."""
    first = writer * _SPAN
    existing, new = first + turn * _ROWS, first + _EXISTING + turn * _ROWS
    lab.spark.sql(
        f"MERGE INTO {lab.sql_name(path)} t USING (SELECT explode(concat("
        f"sequence({existing}L, {existing + _ROWS - 1}L), "
        f"sequence({new}L, {new + _ROWS - 1}L))) AS id) s"
        " ON t.id = s.id WHEN MATCHED THEN UPDATE SET v = t.v + 1"
        " WHEN NOT MATCHED THEN INSERT (id, v) VALUES (s.id, 100)"
    )


def _append(lab: Lab, path: str, writer: int, turn: int) -> None:
    """Append rows with ids around those of the MERGEs, so that no file can be skipped by bounds."""
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
        ids += range(first, first + _EXISTING)
        for turn in turns:
            new = first + _EXISTING + turn * _ROWS
            ids += range(new, new + _ROWS)
            values += _ROWS * (1 + 100)
    for writer in range(_MERGERS, _MERGERS + _APPENDERS):
        for turn in turns:
            above = (writer + 1) * _SPAN - 1 - turn * _ROWS
            ids += [*range(above - _ROWS + 1, above + 1), -above]
            values += 7 * (_ROWS + 1)
    return [[str(len(ids)), str(sum(ids)), str(values)]]
