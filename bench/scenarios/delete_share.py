"""DELETE of one row in a hundred of lineitem, at random or in one run, with deletion vectors."""

from __future__ import annotations

from functools import partial
from typing import ClassVar

from bench import lineitem
from bench.lab import Answer, Lab, collect
from bench.scenarios.scenario import Measure, Measurement, Scenario
from bench.settings import Settings

_TITLES = {
    "random": "DELETE of 1 % of the rows, at random",
    "range": "DELETE of 1 % of the rows, one run",
}


class DeleteShare(Scenario):
    """One statement on a table that the session knows, so that opening it is not measured."""

    name: ClassVar[str] = "delete"
    rounds: ClassVar[int] = 5
    needs_lineitem: ClassVar[bool] = True

    def __init__(self) -> None:
        self._truth: dict[str, Answer] = {}

    def measures(self, settings: Settings) -> tuple[Measure, ...]:
        """Return a row per kind of predicate."""
        return tuple(
            Measure(key, title, floor="count of the rows to delete")
            for key, title in _TITLES.items()
        )

    def prepare(self, lab: Lab) -> None:
        """Load the table that is cloned; let Parquet find what must be left."""
        path = lineitem.prepare(lab)
        if not lab.engine.is_delta:
            for key in _TITLES:
                self._truth[key] = _left(lab, path, f"NOT ({_predicate(lab.settings, key)})")

    def measure(self, lab: Lab, repetition: int) -> Measurement:
        """Delete from a fresh clone per predicate, and check what is left."""
        if not lab.engine.is_delta:
            return self._measure_floor(lab)
        timings: dict[str, float] = {}
        answers: dict[str, Answer] = {}
        metrics: dict[str, float] = {}
        for key in _TITLES:
            path = lab.scratch(f"delete-{key}-{repetition}")
            lab.storage.clone(_whole(lab), path)
            lab.read(path, lineitem.SCHEMA).where("l_orderkey < 0").count()
            before = lab.storage.size(path)
            statement = f"DELETE FROM {lab.sql_name(path)} WHERE {_predicate(lab.settings, key)}"
            timings[key], _ = lab.timed(partial(lab.spark.sql, statement))
            after = lab.storage.size(path)
            metrics[f"{key}_written_files"] = after.files - before.files
            metrics[f"{key}_written_bytes"] = after.size_bytes - before.size_bytes
            answers[key] = _left(lab, path, "true")
            lab.storage.delete(path)
        return Measurement(timings=timings, answers=answers, metrics=metrics)

    def _measure_floor(self, lab: Lab) -> Measurement:
        timings: dict[str, float] = {}
        for key in _TITLES:
            found = lab.read(_whole(lab), lineitem.SCHEMA).where(_predicate(lab.settings, key))
            timings[key], _ = lab.timed(found.count)
        return Measurement(timings=timings, answers=dict(self._truth))


def _whole(lab: Lab) -> str:
    return lab.prepared_path(lineitem.table_name(lab.settings))


def _predicate(settings: Settings, key: str) -> str:
    return lineitem.RANDOM_ROWS if key == "random" else lineitem.contiguous_rows(settings)


def _left(lab: Lab, path: str, condition: str) -> Answer:
    return collect(
        lab.read(path, lineitem.SCHEMA)
        .where(condition)
        .selectExpr("count(*)", "sum(l_orderkey)", "sum(l_linenumber)", "sum(l_extendedprice)")
    )
