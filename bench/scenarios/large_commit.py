"""One commit that adds very many files."""

from __future__ import annotations

from functools import partial
from typing import ClassVar

from bench import table_log
from bench.lab import Answer, Lab, collect
from bench.scenarios.scenario import Measure, Measurement, Scenario
from bench.settings import Settings


def _files(settings: Settings) -> int:
    return 100 if settings.quick else 100_000


class LargeCommit(Scenario):
    """Row tracking backfill of an existing table: every file is added again, no data is read."""

    name: ClassVar[str] = "large-commit"
    rounds: ClassVar[int] = 3

    def measures(self, settings: Settings) -> tuple[Measure, ...]:
        """Return the one row."""
        return (Measure("row-ids", f"give row IDs to {_files(settings):,} files, in one commit"),)

    def prepare(self, lab: Lab) -> None:
        """Write the log, which is one of those of `open-files`."""
        if lab.engine.is_delta:
            table_log.prepare_checkpointed(lab, _files(lab.settings))

    def measure(self, lab: Lab, repetition: int) -> Measurement:
        """Enable row tracking on a clone whose snapshot is cached."""
        if not lab.engine.is_delta:
            return Measurement(timings={}, answers={})
        files = _files(lab.settings)
        path = lab.scratch(f"large-commit-{repetition}")
        lab.storage.clone(lab.prepared_path(table_log.prepared_name(files)), path)
        table_log.plan(lab, path, files // 2)
        statement = (
            f"ALTER TABLE {lab.sql_name(path)} "
            "SET TBLPROPERTIES ('delta.enableRowTracking' = 'true')"
        )
        seconds, _ = lab.timed(partial(lab.spark.sql, statement))
        answer = _row_ids(lab, path)
        lab.storage.delete(path)
        return Measurement(timings={"row-ids": seconds}, answers={"numbered": answer})


def _row_ids(lab: Lab, path: str) -> Answer:
    """Return the number of files with row IDs in the log, and the highest base row ID."""
    entries = lab.spark.read.json(f"{path}/_delta_log/*.json").where("add.baseRowId IS NOT NULL")
    return collect(entries.selectExpr("count(*)", "max(add.baseRowId)"))
