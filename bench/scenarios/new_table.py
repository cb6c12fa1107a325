"""The first query on a table that a warm session has not read before."""

from __future__ import annotations

from typing import ClassVar

from bench.lab import Lab
from bench.scenarios import small_table
from bench.scenarios.scenario import Measure, Measurement, Scenario
from bench.settings import Settings


class NewTable(Scenario):
    """Opening a table after classes are loaded: log, planning, scan."""

    name: ClassVar[str] = "new-table"
    rounds: ClassVar[int] = 9
    warmup_rounds: ClassVar[int] = 3

    def measures(self, settings: Settings) -> tuple[Measure, ...]:
        """Return the one row."""
        return (Measure("first", "first query of a table, warm session, 10 files"),)

    def prepare(self, lab: Lab) -> None:
        """Create the small table to clone."""
        small_table.prepare(lab)

    def measure(self, lab: Lab, repetition: int) -> Measurement:
        """Query a clone at a path that this session has not read before."""
        path = lab.scratch(f"new-table-{repetition}")
        lab.storage.clone(lab.prepared_path(small_table.NAME), path)
        seconds, answer = lab.timed(lambda: small_table.query(lab, path))
        lab.storage.delete(path)
        return Measurement(timings={"first": seconds}, answers={"first": answer})
