"""VACUUM of a table with very many files, half of which no version needs."""

from __future__ import annotations

import json
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import ClassVar

from bench import table_log
from bench.lab import Lab
from bench.scenarios.many_files import ManyFiles
from bench.scenarios.scenario import Measure, Measurement, Target
from bench.settings import Settings

#: Both engines know the setting by this name.
_RETENTION_CHECK = "spark.databricks.delta.retentionDurationCheck.enabled"
#: What makes VACUUM of delta-spark faster: threads delete, and few tasks list the directories.
_TUNED = {
    "spark.databricks.delta.vacuum.parallelDelete.enabled": "true",
    "spark.sql.sources.parallelPartitionDiscovery.parallelism": "2",
}


class Vacuum(ManyFiles):
    """VACUUM after a DELETE of half of the files, which exist but are empty."""

    kind: ClassVar[str]
    quick_files: ClassVar[int] = 400

    def measures(self, settings: Settings) -> tuple[Measure, ...]:
        """Return the one row."""
        title = f"VACUUM {self.kind}: delete half of {self.files(settings):,} files"
        return (Measure("vacuum", title, targets=(Target("delta", 0.2),)),)

    def measure_clone(self, lab: Lab, path: str) -> Measurement:
        """Delete the files, which caches the snapshot, and vacuum the table."""
        files = range(self.files(lab.settings))
        lab.storage.touch(path, map(table_log.checkpointed_path, files))
        # LITE begins after the commits of the last VACUUM, since the log has not all commits.
        lab.storage.write_text(
            f"{path}/_delta_log/_last_vacuum_info",
            json.dumps({"latestCommitVersionOutsideOfRetentionWindow": table_log.NEWEST_VERSION}),
        )
        table = lab.sql_name(path)
        first = self.first_deleted_day(lab.settings)
        lab.spark.sql(f"DELETE FROM {table} WHERE day >= '{first}'").collect()
        # Times of files may be in whole seconds.
        time.sleep(1.5)
        statement = f"VACUUM {table} {self.kind} RETAIN 0 HOURS"
        with _settings(lab):
            seconds, _ = lab.timed(lambda: lab.spark.sql(statement).collect())
        left = lab.storage.data_files(f"{path}/day=*")
        return Measurement(timings={"vacuum": seconds}, answers={"left": [[str(left)]]})


class VacuumFull(Vacuum):
    """VACUUM FULL, which lists the directory of the table."""

    name: ClassVar[str] = "vacuum-full"
    kind: ClassVar[str] = "FULL"


class VacuumLite(Vacuum):
    """VACUUM LITE, which reads the log."""

    name: ClassVar[str] = "vacuum-lite"
    kind: ClassVar[str] = "LITE"


@contextmanager
def _settings(lab: Lab) -> Iterator[None]:
    """Let VACUUM delete files that were removed just now."""
    settings = {_RETENTION_CHECK: "false"} | (_TUNED if lab.engine.name == "delta-tuned" else {})
    for name, value in settings.items():
        lab.spark.conf.set(name, value)
    try:
        yield
    finally:
        for name in settings:
            lab.spark.conf.unset(name)
