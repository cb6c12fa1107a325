"""One-row DELETEs and UPDATEs that write deletion vectors, one commit each."""

from __future__ import annotations

from abc import abstractmethod
from functools import partial
from typing import ClassVar

from pyspark.sql import DataFrame

from bench.lab import Answer, Lab, collect, stopwatch
from bench.scenarios import small_table
from bench.scenarios.scenario import Measure, Measurement, Scenario
from bench.settings import Settings

# Ids far apart, so that the statements touch nearly all files and one of them twice.
_STRIDE = 37_411


def _ids(settings: Settings) -> list[int]:
    count = 3 if settings.quick else 10
    return [step * _STRIDE % small_table.ROWS for step in range(count)]


class _OneRowChanges(Scenario):
    """Repeated changes by key of a table whose snapshot is cached."""

    rounds: ClassVar[int] = 5
    verb: ClassVar[str]

    @abstractmethod
    def statement(self, table: str, row_id: int) -> str:
        """Return the statement that changes one row."""

    @abstractmethod
    def changed(self, rows: DataFrame, ids: str) -> DataFrame:
        """Return the rows as they must be after the statements; `ids` is a list in SQL."""

    def measures(self, settings: Settings) -> tuple[Measure, ...]:
        """Return one row, for all statements together."""
        return (Measure("changes", f"{len(_ids(settings))} one-row {self.verb}s"),)

    def prepare(self, lab: Lab) -> None:
        """Create the small table to clone."""
        small_table.prepare(lab)

    def measure(self, lab: Lab, repetition: int) -> Measurement:
        """Change a clone; plain Parquet only computes the expected result."""
        ids = _ids(lab.settings)
        if not lab.engine.is_delta:
            rows = lab.read(lab.prepared_path(small_table.NAME), small_table.SCHEMA)
            truth = _content(self.changed(rows, ", ".join(map(str, ids))))
            return Measurement(timings={}, answers={"changes": truth})

        path = lab.scratch(f"{self.name}-{repetition}")
        lab.storage.clone(lab.prepared_path(small_table.NAME), path)
        small_table.query(lab, path)
        before = lab.storage.size(path)
        statements = [self.statement(lab.sql_name(path), row_id) for row_id in ids]
        seconds, laps = lab.timed(
            lambda: [stopwatch(partial(lab.spark.sql, sql))[0] for sql in statements]
        )
        after = lab.storage.size(path)
        written = after.size_bytes - before.size_bytes
        answer = _content(lab.read(path, small_table.SCHEMA))
        lab.storage.delete(path)
        return Measurement(
            timings={"changes": seconds},
            answers={"changes": answer},
            laps={"changes": laps},
            metrics={
                "written_files": after.files - before.files,
                "written_bytes": written,
                "written_bytes_per_changed_row": written / len(ids),
            },
        )


class OneRowDeletes(_OneRowChanges):
    """Repeated DELETEs by key from a table whose snapshot is cached."""

    name: ClassVar[str] = "one-row-deletes"
    verb: ClassVar[str] = "DELETE"

    def statement(self, table: str, row_id: int) -> str:
        """Return the DELETE of one row."""
        return f"DELETE FROM {table} WHERE id = {row_id}"

    def changed(self, rows: DataFrame, ids: str) -> DataFrame:
        """Remove the rows."""
        return rows.where(f"id NOT IN ({ids})")


class OneRowUpdates(_OneRowChanges):
    """Repeated UPDATEs by key of a table whose snapshot is cached."""

    name: ClassVar[str] = "one-row-updates"
    verb: ClassVar[str] = "UPDATE"

    def statement(self, table: str, row_id: int) -> str:
        """Return the UPDATE of one row."""
        return f"UPDATE {table} SET amount = amount + 1 WHERE id = {row_id}"

    def changed(self, rows: DataFrame, ids: str) -> DataFrame:
        """Add 1 where the statements do."""
        return rows.selectExpr("id", f"IF(id IN ({ids}), amount + 1, amount) AS amount")


def _content(rows: DataFrame) -> Answer:
    return collect(rows.selectExpr("count(*)", "sum(id)", "sum(amount)"))
