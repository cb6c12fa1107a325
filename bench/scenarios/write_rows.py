"""Writing lineitem, 10 million rows of 16 columns, from Parquet files."""

from __future__ import annotations

from functools import partial
from typing import ClassVar

from bench import lineitem
from bench.lab import Lab, collect
from bench.scenarios.scenario import Measure, Measurement, Scenario
from bench.settings import Settings


class WriteRows(Scenario):
    """One append to an empty table: the overhead of commit and statistics over plain Parquet."""

    name: ClassVar[str] = "write"
    rounds: ClassVar[int] = 5
    needs_lineitem: ClassVar[bool] = True

    def measures(self, settings: Settings) -> tuple[Measure, ...]:
        """Return the one row."""
        return (Measure("write", "write lineitem, 16 columns"),)

    def prepare(self, lab: Lab) -> None:
        """Do nothing: the rows are read from the generated files."""

    def measure(self, lab: Lab, repetition: int) -> Measurement:
        """Append all rows to a new table."""
        path = lab.scratch(f"write-{repetition}")
        lab.create(path, lineitem.SCHEMA)
        seconds, _ = lab.timed(partial(lineitem.append, lab, path))
        answer = collect(
            lab.read(path, lineitem.SCHEMA).selectExpr("count(*)", "sum(l_orderkey)", "max(l_tax)")
        )
        size = lab.storage.size(path)
        lab.storage.delete(path)
        return Measurement(
            timings={"write": seconds},
            answers={"write": answer},
            metrics={"files": size.files, "size_bytes": size.size_bytes},
        )
