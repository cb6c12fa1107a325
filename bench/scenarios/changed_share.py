"""DELETE and UPDATE of one row in a hundred of lineitem, at random or in one run, with vectors."""

from __future__ import annotations

from abc import abstractmethod
from typing import ClassVar

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from bench import lineitem
from bench.lab import Answer, Lab
from bench.scenarios.changes import Changes, changed_rows
from bench.scenarios.scenario import Measure, Measurement, Scenario
from bench.settings import Settings

_WHICH = {"random": "at random", "range": "one run"}


class _ChangedShare(Scenario):
    """One statement on a table whose snapshot is cached, so that opening it is not measured."""

    rounds: ClassVar[int] = 5
    needs_lineitem: ClassVar[bool] = True
    verb: ClassVar[str]

    def __init__(self) -> None:
        self._truth: dict[str, Answer] = {}

    @abstractmethod
    def statement(self, table: str, condition: str) -> str:
        """Return the statement that changes the rows of a condition."""

    @abstractmethod
    def changed(self, rows: DataFrame, condition: str) -> DataFrame:
        """Return the rows as they must be after the statement."""

    def measures(self, settings: Settings) -> tuple[Measure, ...]:
        """Return a row per kind of condition."""
        floor = f"count of the rows to {self.verb.lower()}"
        return tuple(
            Measure(key, f"{self.verb} of 1 % of the rows, {which}", floor=floor)
            for key, which in _WHICH.items()
        )

    def prepare(self, lab: Lab) -> None:
        """Load the table to clone; compute the expected result with plain Parquet."""
        path = lineitem.prepare(lab)
        if not lab.engine.is_delta:
            rows = lab.read(path, lineitem.SCHEMA)
            for key in _WHICH:
                condition = _condition(lab.settings, key)
                self._truth[key] = lineitem.content(self.changed(rows, condition))

    def measure(self, lab: Lab, repetition: int) -> Measurement:
        """Change a fresh clone per condition, and read its content."""
        if not lab.engine.is_delta:
            return self._measure_floor(lab)
        changes = Changes(lab)
        for key in _WHICH:
            path = lineitem.clone(lab, f"{self.name}-{key}-{repetition}")
            condition = _condition(lab.settings, key)
            changes.run(key, path, self.statement(lab.sql_name(path), condition))
            changes.answers[key] = lineitem.content(lab.read(path, lineitem.SCHEMA))
            lab.storage.delete(path)
        return changes.measurement()

    def _measure_floor(self, lab: Lab) -> Measurement:
        timings: dict[str, float] = {}
        answers = dict(self._truth)
        whole = lab.read(lineitem.whole(lab), lineitem.SCHEMA)
        for key in _WHICH:
            found = whole.where(_condition(lab.settings, key))
            timings[key], count = lab.timed(found.count)
            answers[changed_rows(key)] = [[str(count)]]
        return Measurement(timings=timings, answers=answers)


class DeleteShare(_ChangedShare):
    """DELETE of 1 % of a table whose snapshot is cached, so that opening it is not measured."""

    name: ClassVar[str] = "delete"
    verb: ClassVar[str] = "DELETE"

    def statement(self, table: str, condition: str) -> str:
        """Return the DELETE."""
        return f"DELETE FROM {table} WHERE {condition}"

    def changed(self, rows: DataFrame, condition: str) -> DataFrame:
        """Remove the rows."""
        return rows.where(f"NOT ({condition})")


class UpdateShare(_ChangedShare):
    """UPDATE of 1 % of a table whose snapshot is cached, so that opening it is not measured."""

    name: ClassVar[str] = "update"
    verb: ClassVar[str] = "UPDATE"

    def statement(self, table: str, condition: str) -> str:
        """Return the UPDATE of two columns."""
        assignments = ", ".join(f"{column} = {new}" for column, new in lineitem.UPDATED.items())
        return f"UPDATE {table} SET {assignments} WHERE {condition}"

    def changed(self, rows: DataFrame, condition: str) -> DataFrame:
        """Set the two columns where the statement does."""
        return rows.withColumns(
            {
                column: F.expr(f"IF({condition}, {new}, {column})")
                for column, new in lineitem.UPDATED.items()
            }
        )


def _condition(settings: Settings, key: str) -> str:
    return lineitem.RANDOM_ROWS if key == "random" else lineitem.contiguous_rows(settings)
