"""One-row appends to a table whose small files are compacted after commits."""

from __future__ import annotations

from functools import partial
from typing import ClassVar

from bench.engines import SUBJECT
from bench.lab import Lab, collect, stopwatch
from bench.scenarios import small_table
from bench.scenarios.scenario import Measure, Measurement, Scenario
from bench.settings import Settings


def _count(settings: Settings) -> int:
    return 60 if settings.quick else 1000


class AutoCompaction(Scenario):
    """Commit after commit, and what is left to read; each engine at its defaults otherwise."""

    name: ClassVar[str] = "auto-compaction"
    rounds: ClassVar[int] = 1
    warmup_rounds: ClassVar[int] = 0
    by_name_only: ClassVar[bool] = True

    def measures(self, settings: Settings) -> tuple[Measure, ...]:
        """Return a row for all appends, and one for a query of the table that they leave."""
        count = _count(settings)
        return (
            Measure("appends", f"{count} one-row appends with auto compaction"),
            Measure("read", f"read the table that {count} appends with auto compaction leave"),
        )

    def prepare(self, lab: Lab) -> None:
        """Do nothing: each repetition creates its own table."""

    def measure(self, lab: Lab, repetition: int) -> Measurement:
        """Append row after row; then read all of them, as soon as the last compaction has ended."""
        if not lab.engine.is_delta:
            return Measurement(timings={}, answers={})
        path = lab.scratch(f"auto-compaction-{repetition}")
        lab.create(path, small_table.SCHEMA)
        on = "SET TBLPROPERTIES ('delta.autoOptimize.autoCompact' = 'true')"
        lab.spark.sql(f"ALTER TABLE {lab.sql_name(path)} {on}")

        def append(row_id: int) -> None:
            lab.append(small_table.rows(lab.spark, row_id, row_id + 1, 1), path)

        def append_all() -> list[float]:
            return [stopwatch(partial(append, row_id))[0] for row_id in range(_count(lab.settings))]

        seconds, laps = lab.timed(append_all)
        if lab.engine.name == SUBJECT:
            jvm = lab.spark.sparkContext._jvm
            assert jvm is not None
            assert jvm.io.deltaic.spark.PythonApi.awaitMaintenance(60_000)
        read_s, answer = lab.timed(
            lambda: collect(
                lab.read(path, small_table.SCHEMA).selectExpr(
                    "count(*)", "sum(id)", "sum(length(name))"
                )
            )
        )
        files = lab.read(path, small_table.SCHEMA).select("_metadata.file_path").distinct()
        files_left = files.count()
        lab.storage.delete(path)
        return Measurement(
            timings={"appends": seconds, "read": read_s},
            answers={"read": answer},
            laps={"appends": laps},
            metrics={"files_left": files_left},
        )
