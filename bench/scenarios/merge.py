"""MERGE of 20,000 rows into lineitem, half of them new: random keys, or one range of keys."""

from __future__ import annotations

from collections.abc import Callable
from typing import ClassVar

from pyspark.sql import DataFrame

from bench import lineitem, lineitem_changes
from bench.lab import Answer, Lab
from bench.scenarios.changes import Changes, changed_rows
from bench.scenarios.scenario import Measure, Measurement, Scenario
from bench.settings import Settings

_SOURCES: dict[str, tuple[str, Callable[[Lab], DataFrame]]] = {
    "random": ("MERGE of 20,000 rows, random keys", lineitem_changes.random_upsert),
    "clustered": ("MERGE of 20,000 rows, one run of keys", lineitem_changes.clustered_upsert),
}


class MergeUpsert(Scenario):
    """An upsert by both columns of the key into a table whose snapshot is cached."""

    name: ClassVar[str] = "merge"
    rounds: ClassVar[int] = 5
    needs_lineitem: ClassVar[bool] = True

    def __init__(self) -> None:
        self._truth: dict[str, Answer] = {}

    def measures(self, settings: Settings) -> tuple[Measure, ...]:
        """Return a row per source."""
        floor = "count of the rows that match the source"
        return tuple(Measure(key, title, floor=floor) for key, (title, _) in _SOURCES.items())

    def prepare(self, lab: Lab) -> None:
        """Load the table to clone and the sources; compute the results with plain Parquet."""
        path = lineitem.prepare(lab)
        for key, (_, source) in _SOURCES.items():
            changes = source(lab)
            if not lab.engine.is_delta:
                rows = lab.read(path, lineitem.SCHEMA)
                truth = lineitem.content(lineitem_changes.upserted(rows, changes))
                self._truth |= {key: truth, changed_rows(key): [[str(changes.count())]]}

    def measure(self, lab: Lab, repetition: int) -> Measurement:
        """Merge each source into a fresh clone, and read its content."""
        if not lab.engine.is_delta:
            return self._measure_floor(lab)
        changes = Changes(lab)
        for key, (_, source) in _SOURCES.items():
            path = lineitem.clone(lab, f"merge-{key}-{repetition}")
            source(lab).createOrReplaceTempView("changes")
            statement = lineitem_changes.UPSERT.format(table=lab.sql_name(path), source="changes")
            changes.run(key, path, statement)
            changes.answers[key] = lineitem.content(lab.read(path, lineitem.SCHEMA))
            lab.storage.delete(path)
        return changes.measurement()

    def _measure_floor(self, lab: Lab) -> Measurement:
        timings: dict[str, float] = {}
        whole = lab.read(lineitem.whole(lab), lineitem.SCHEMA)
        for key, (_, source) in _SOURCES.items():
            matching = whole.join(source(lab), ["l_orderkey", "l_linenumber"], "left_semi")
            timings[key], _ = lab.timed(matching.count)
        return Measurement(timings=timings, answers=dict(self._truth))
