"""One-row appends to a table whose small files are compacted after commits."""

from __future__ import annotations

from functools import partial
from typing import ClassVar

from bench.engines import SUBJECT
from bench.lab import Lab, collect, stopwatch
from bench.scenarios import small_table
from bench.scenarios.scenario import OWN_BASELINE, Measure, Measurement, Scenario, Target
from bench.settings import Settings

#: How much longer a commit may take because files are compacted after it, in the background.
MAX_COST_S = 0.020


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
        cost = Target(OWN_BASELINE, times=1.0, free_s=MAX_COST_S * count)
        return (
            Measure("plain", f"{count} one-row appends without auto compaction"),
            Measure(
                "appends",
                f"{count} one-row appends with auto compaction",
                baseline="plain",
                targets=(cost,),
            ),
            Measure("read", f"read the table that {count} appends with auto compaction leave"),
        )

    def prepare(self, lab: Lab) -> None:
        """Do nothing: each repetition creates its own table."""

    def measure(self, lab: Lab, repetition: int) -> Measurement:
        """Append row after row; then read all of them, as soon as the last compaction has ended."""
        if not lab.engine.is_delta:
            return Measurement(timings={}, answers={})
        path = lab.scratch(f"auto-compaction-{repetition}")
        plain = lab.scratch(f"plain-appends-{repetition}")
        for created in (path, plain):
            lab.create(created, small_table.SCHEMA)
        on = "SET TBLPROPERTIES ('delta.autoOptimize.autoCompact' = 'true')"
        lab.spark.sql(f"ALTER TABLE {lab.sql_name(path)} {on}")

        count = _count(lab.settings)

        def append(table: str, first: int, last: int) -> list[float]:
            return [
                stopwatch(
                    partial(lab.append, small_table.rows(lab.spark, row_id, row_id + 1, 1), table)
                )[0]
                for row_id in range(first, last)
            ]

        # Before and after, since a session gets faster for a long time.
        _, without = lab.timed(lambda: append(plain, 0, count // 2))
        _, laps = lab.timed(lambda: append(path, 0, count))
        if lab.engine.name == SUBJECT:
            jvm = lab.spark.sparkContext._jvm
            assert jvm is not None
            assert jvm.io.deltaic.spark.PythonApi.awaitMaintenance(60_000)
        without += append(plain, count // 2, count)
        read_s, answer = lab.timed(
            lambda: collect(
                lab.read(path, small_table.SCHEMA).selectExpr(
                    "count(*)", "sum(id)", "sum(length(name))"
                )
            )
        )
        files = lab.read(path, small_table.SCHEMA).select("_metadata.file_path").distinct()
        files_left = files.count()
        for created in (path, plain):
            lab.storage.delete(created)
        return Measurement(
            timings={"plain": sum(without), "appends": sum(laps), "read": read_s},
            answers={"read": answer},
            laps={"plain": without, "appends": laps},
            metrics={"files_left": files_left},
        )
