"""Scans of lineitem after ten MERGEs of 20,000 rows each."""

from __future__ import annotations

from functools import partial, reduce
from typing import ClassVar

from bench import lineitem, lineitem_changes
from bench.lab import Answer, Lab
from bench.scenarios import scan
from bench.scenarios.scenario import Measure, Measurement, Scenario
from bench.settings import Settings
from bench.turns import turns


def _merged(settings: Settings) -> str:
    return lineitem.table_name(settings, "merged")


class ScanAfterMerges(Scenario):
    """Each engine reads the table after its own ten random upserts, in a warm session."""

    name: ClassVar[str] = "scan-after-merges"
    rounds: ClassVar[int] = 5
    warmup_rounds: ClassVar[int] = 2
    needs_lineitem: ClassVar[bool] = True

    def __init__(self) -> None:
        self._truth: dict[str, Answer] = {}

    def measures(self, settings: Settings) -> tuple[Measure, ...]:
        """Return a row per query."""
        return tuple(
            Measure(
                query,
                f"scan, {len(columns) - 1} columns, after ten MERGEs",
                floor="scan with no row deleted",
            )
            for query, columns in scan.QUERIES.items()
        )

    def prepare(self, lab: Lab) -> None:
        """Merge ten times into a clone, once for each build; or compute the expected answers."""
        path = lineitem.prepare(lab)
        upserts = [
            lineitem_changes.random_upsert(lab, number)
            for number in range(lineitem_changes.RANDOM_UPSERTS)
        ]
        if not lab.engine.is_delta:
            rows = lab.read(path, lineitem.SCHEMA)
            merged = reduce(lineitem_changes.upserted, upserts, rows)
            self._truth = {query: scan.answer(merged, query) for query in scan.QUERIES}
            return

        def merge(target: str) -> None:
            lab.storage.clone(path, target)
            for upsert in upserts:
                upsert.createOrReplaceTempView("changes")
                table = lab.sql_name(target)
                lab.spark.sql(lineitem_changes.UPSERT.format(table=table, source="changes"))

        lab.prepared(_merged(lab.settings), merge)

    def measure(self, lab: Lab, repetition: int) -> Measurement:
        """Run each query three times, and report the median."""
        table = _merged(lab.settings) if lab.engine.is_delta else None
        path = lineitem.whole(lab) if table is None else lab.prepared_path(table)
        timings: dict[str, float] = {}
        answers: dict[str, Answer] = {}
        scan.run(lab, path, "light")
        for query in turns(list(scan.QUERIES), repetition):
            timings[query], found = lab.timed_often(partial(scan.run, lab, path, query))
            answers[query] = self._truth.get(query, found)
        size = lab.storage.size(path)
        return Measurement(
            timings=timings,
            answers=answers,
            metrics={"table_files": size.files, "table_bytes": size.size_bytes},
        )
