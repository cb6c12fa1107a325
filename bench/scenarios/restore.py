"""RESTORE of a table with very many files."""

from __future__ import annotations

from typing import ClassVar

from bench import table_log
from bench.lab import Answer, Lab, collect
from bench.scenarios.many_files import ManyFiles
from bench.scenarios.scenario import Measure, Measurement, Target
from bench.settings import Settings


class Restore(ManyFiles):
    """RESTORE of the version before a DELETE of half of the files, which exist but are empty."""

    name: ClassVar[str] = "restore"

    def measures(self, settings: Settings) -> tuple[Measure, ...]:
        """Return the one row."""
        title = f"restore half of {self.files(settings):,} files"
        return (Measure("restore", title, targets=(Target("delta", 0.2),)),)

    def measure_clone(self, lab: Lab, path: str) -> Measurement:
        """Delete the files, which caches the snapshot, and restore them."""
        files = self.files(lab.settings)
        first = self.first_deleted_day(lab.settings)
        deleted = (f for f in range(files) if table_log.day(f) >= first)
        lab.storage.touch(path, map(table_log.checkpointed_path, deleted))
        table = lab.sql_name(path)
        lab.spark.sql(f"DELETE FROM {table} WHERE day >= '{first}'").collect()
        statement = f"RESTORE TABLE {table} TO VERSION AS OF {table_log.NEWEST_VERSION}"
        seconds, _ = lab.timed(lambda: lab.spark.sql(statement).collect())
        answer = _restored(lab, path)
        return Measurement(timings={"restore": seconds}, answers={"restored": answer})


def _restored(lab: Lab, path: str) -> Answer:
    """Return the number of files that the last commit adds, and the least and greatest of them."""
    restored = f"{path}/_delta_log/{table_log.NEWEST_VERSION + 2:020d}.json"
    entries = lab.spark.read.json(restored).where("add IS NOT NULL")
    return collect(entries.selectExpr("count(*)", "min(add.path)", "max(add.path)"))
