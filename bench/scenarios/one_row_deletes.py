"""One-row DELETEs that write deletion vectors, one commit each."""

from __future__ import annotations

from functools import partial
from typing import ClassVar

from bench.lab import Lab, collect, stopwatch
from bench.scenarios import small_table
from bench.scenarios.scenario import Measure, Measurement, Scenario
from bench.settings import Settings

# Ids far apart, so that the deletes touch nearly all files and one of them twice.
_STRIDE = 37_411


def _ids(settings: Settings) -> list[int]:
    count = 3 if settings.quick else 10
    return [step * _STRIDE % small_table.ROWS for step in range(count)]


class OneRowDeletes(Scenario):
    """Delete by key, again and again, in a session that knows the table."""

    name: ClassVar[str] = "one-row-deletes"
    rounds: ClassVar[int] = 5

    def measures(self, settings: Settings) -> tuple[Measure, ...]:
        """Return one row, for all deletes together."""
        return (Measure("deletes", f"{len(_ids(settings))} one-row DELETEs"),)

    def prepare(self, lab: Lab) -> None:
        """Make the small table that is cloned."""
        small_table.prepare(lab)

    def measure(self, lab: Lab, repetition: int) -> Measurement:
        """Delete from a clone; plain Parquet only says what must be left."""
        ids = _ids(lab.settings)
        if not lab.engine.is_delta:
            left = lab.read(lab.prepared_path(small_table.NAME), small_table.SCHEMA)
            listed = ", ".join(map(str, ids))
            answer = collect(
                left.where(f"id NOT IN ({listed})").selectExpr("count(*)", "sum(id)", "sum(amount)")
            )
            return Measurement(timings={}, answers={"deletes": answer})

        path = lab.scratch(f"one-row-deletes-{repetition}")
        lab.storage.clone(lab.prepared_path(small_table.NAME), path)
        small_table.query(lab, path)
        before = lab.storage.size(path)
        table = lab.sql_name(path)
        statements = [f"DELETE FROM {table} WHERE id = {row_id}" for row_id in ids]
        seconds, laps = lab.timed(
            lambda: [stopwatch(partial(lab.spark.sql, text))[0] for text in statements]
        )
        after = lab.storage.size(path)
        answer = collect(
            lab.read(path, small_table.SCHEMA).selectExpr("count(*)", "sum(id)", "sum(amount)")
        )
        lab.storage.delete(path)
        return Measurement(
            timings={"deletes": seconds},
            answers={"deletes": answer},
            laps={"deletes": laps},
            metrics={
                "written_files": after.files - before.files,
                "written_bytes": after.size_bytes - before.size_bytes,
            },
        )
