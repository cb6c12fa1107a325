"""One commit that adds very many files."""

from __future__ import annotations

from functools import partial
from typing import ClassVar

from bench import table_log
from bench.lab import Answer, Lab, collect
from bench.scenarios.many_files import ManyFiles
from bench.scenarios.scenario import Measure, Measurement
from bench.settings import Settings


class LargeCommit(ManyFiles):
    """Row tracking backfill of an existing table: every file is added again, no data is read."""

    name: ClassVar[str] = "large-commit"

    def measures(self, settings: Settings) -> tuple[Measure, ...]:
        """Return the one row."""
        return (
            Measure("row-ids", f"give row IDs to {self.files(settings):,} files, in one commit"),
        )

    def measure_clone(self, lab: Lab, path: str) -> Measurement:
        """Enable row tracking once the snapshot is cached."""
        table_log.plan(lab, path, self.files(lab.settings) // 2)
        statement = (
            f"ALTER TABLE {lab.sql_name(path)} "
            "SET TBLPROPERTIES ('delta.enableRowTracking' = 'true')"
        )
        seconds, _ = lab.timed(partial(lab.spark.sql, statement))
        answer = _row_ids(lab, path)
        return Measurement(timings={"row-ids": seconds}, answers={"numbered": answer})


def _row_ids(lab: Lab, path: str) -> Answer:
    """Return the number of files with row IDs in the log, and the highest base row ID."""
    entries = lab.spark.read.json(f"{path}/_delta_log/*.json").where("add.baseRowId IS NOT NULL")
    return collect(entries.selectExpr("count(*)", "max(add.baseRowId)"))
