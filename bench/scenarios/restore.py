"""RESTORE of a table with very many files."""

from __future__ import annotations

from typing import ClassVar

from bench import table_log
from bench.lab import Answer, Lab, collect
from bench.scenarios.scenario import Measure, Measurement, Scenario
from bench.settings import Settings


def _files(settings: Settings) -> int:
    return 100 if settings.quick else 100_000


def _first_deleted(settings: Settings) -> str:
    """Return the first of the deleted days, which have half of the files."""
    return table_log.day(min(_files(settings), table_log.DAYS) // 2)


class Restore(Scenario):
    """RESTORE of the version before a DELETE of half of the files, which exist but are empty."""

    name: ClassVar[str] = "restore"
    rounds: ClassVar[int] = 3

    def measures(self, settings: Settings) -> tuple[Measure, ...]:
        """Return the one row."""
        return (Measure("restore", f"restore half of {_files(settings):,} files"),)

    def prepare(self, lab: Lab) -> None:
        """Write the log, which is one of those of `open-files`."""
        if lab.engine.is_delta:
            table_log.prepare_checkpointed(lab, _files(lab.settings))

    def measure(self, lab: Lab, repetition: int) -> Measurement:
        """Delete the files and restore them, in a clone whose snapshot is cached."""
        if not lab.engine.is_delta:
            return Measurement(timings={}, answers={})
        files = _files(lab.settings)
        path = lab.scratch(f"restore-{repetition}")
        lab.storage.clone(lab.prepared_path(table_log.prepared_name(files)), path)
        first = _first_deleted(lab.settings)
        deleted = (f for f in range(files) if table_log.day(f) >= first)
        lab.storage.touch(path, map(table_log.checkpointed_path, deleted))
        table = lab.sql_name(path)
        lab.spark.sql(f"DELETE FROM {table} WHERE day >= '{first}'").collect()
        statement = f"RESTORE TABLE {table} TO VERSION AS OF {table_log.NEWEST_VERSION}"
        seconds, _ = lab.timed(lambda: lab.spark.sql(statement).collect())
        answer = _restored(lab, path)
        lab.storage.delete(path)
        return Measurement(timings={"restore": seconds}, answers={"restored": answer})


def _restored(lab: Lab, path: str) -> Answer:
    """Return the number of files that the last commit adds, and the least and greatest of them."""
    restored = f"{path}/_delta_log/{table_log.NEWEST_VERSION + 2:020d}.json"
    entries = lab.spark.read.json(restored).where("add IS NOT NULL")
    return collect(entries.selectExpr("count(*)", "min(add.path)", "max(add.path)"))
