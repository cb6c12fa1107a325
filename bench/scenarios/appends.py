"""One-row appends, one commit each."""

from __future__ import annotations

from functools import partial
from typing import ClassVar

from bench.lab import Lab, collect, stopwatch
from bench.scenarios import small_table
from bench.scenarios.scenario import Measure, Measurement, Scenario
from bench.settings import Settings


def _count(settings: Settings) -> int:
    return 5 if settings.quick else 30


class Appends(Scenario):
    """Commit after commit on a table that starts empty, checkpoints included."""

    name: ClassVar[str] = "appends"
    rounds: ClassVar[int] = 5

    def measures(self, settings: Settings) -> tuple[Measure, ...]:
        """Return one row, for all appends together."""
        return (Measure("appends", f"{_count(settings)} one-row appends"),)

    def prepare(self, lab: Lab) -> None:
        """Do nothing: each repetition creates its own table."""

    def measure(self, lab: Lab, repetition: int) -> Measurement:
        """Append row after row; then read all of them."""
        path = lab.scratch(f"appends-{repetition}")
        lab.create(path, small_table.SCHEMA)

        def append(row_id: int) -> None:
            lab.append(small_table.rows(lab.spark, row_id, row_id + 1, 1), path)

        def append_all() -> list[float]:
            return [stopwatch(partial(append, row_id))[0] for row_id in range(_count(lab.settings))]

        seconds, laps = lab.timed(append_all)
        answer = collect(
            lab.read(path, small_table.SCHEMA).selectExpr("count(*)", "sum(id)", "max(name)")
        )
        size = lab.storage.size(path)
        lab.storage.delete(path)
        return Measurement(
            timings={"appends": seconds},
            answers={"appends": answer},
            laps={"appends": laps},
            metrics={"files": size.files, "size_bytes": size.size_bytes},
        )
