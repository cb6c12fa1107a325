"""Tables for tests, each with the same rows kept outside of Delta for comparison.

`TableBuilder` says how a table is laid out, `BuiltTable` is the result. Whatever is done to the
table through it is also done to ``live``, a data frame that plain Spark computes from the source
rows: no part of Deltaic is involved in the answer that a test expects::

    table = TableBuilder(spark, path).deletion_vectors().files(3).write(spark.range(90).toDF("id"))
    table.delete("id % 2 = 0")
    table.assert_same_answer("SELECT count(*), max(id) FROM {t}")
"""

from __future__ import annotations

import itertools
from collections import Counter
from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

from pyspark.sql import Row
from pyspark.sql import functions as F  # noqa: N812

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

DELETION_VECTORS = "delta.enableDeletionVectors"

_view_numbers = itertools.count()


class TableBuilder:
    """Layout of a table to be written."""

    def __init__(self, spark: SparkSession, path: str) -> None:
        self._spark = spark
        self._path = path
        self._partition_by: tuple[str, ...] = ()
        self._files: int | None = None
        self._options: dict[str, str] = {}

    def partitioned_by(self, *columns: str) -> TableBuilder:
        self._partition_by = columns
        return self

    def deletion_vectors(self) -> TableBuilder:
        return self.option(DELETION_VECTORS, "true")

    def option(self, name: str, value: str) -> TableBuilder:
        """Set a writer option; one whose name begins with ``delta.`` is a table property."""
        self._options[name] = value
        return self

    def files(self, count: int) -> TableBuilder:
        """Write this many files, ranges of the first column one after the other."""
        self._files = count
        return self

    def write(self, rows: DataFrame) -> BuiltTable:
        laid_out = rows
        if self._files is not None:
            laid_out = rows.repartitionByRange(self._files, rows.columns[0])
        writer = laid_out.write.format("delta").options(**self._options)
        if self._partition_by:
            writer = writer.partitionBy(*self._partition_by)
        writer.save(self._path)
        return BuiltTable(self._spark, self._path, rows)


class BuiltTable:
    """A table, and its rows as they should be.

    Attributes
    ----------
    live
        The rows the table should hold, as a frame that never touches the table.
    """

    def __init__(self, spark: SparkSession, path: str, live: DataFrame) -> None:
        self.spark = spark
        self.path = path
        self.live = live
        self._view: str | None = None

    @property
    def sql_name(self) -> str:
        """The table as SQL text names it."""
        return f"delta.`{self.path}`"

    def frame(self) -> DataFrame:
        return self.spark.read.format("delta").load(self.path)

    def append(self, rows: DataFrame) -> None:
        rows.write.format("delta").mode("append").save(self.path)
        self._now(self.live.unionByName(rows))

    def delete(self, condition: str) -> None:
        """Delete by SQL; of the expected rows go those for which the condition is true."""
        self.spark.sql(f"DELETE FROM {self.sql_name} WHERE {condition}")
        self._now(self.live.where(~F.coalesce(F.expr(condition), F.lit(False))))

    def oracle(self) -> str:
        """Return the name of a view of the expected rows, computed once and held in memory."""
        if self._view is None:
            self._view = f"expected_rows_{next(_view_numbers)}"
            # A cached plan would also answer for equal plans elsewhere; rows from outside cannot.
            rows = self.live.collect()
            frame = self.spark.createDataFrame(rows, self.live.schema)
            frame.createOrReplaceTempView(self._view)
        return self._view

    def assert_same_answer(self, query: str) -> list[Row]:
        """Run a query with ``{t}`` for the table on both sides; return the table's answer."""
        ours = self.spark.sql(query.format(t=self.sql_name)).collect()
        theirs = self.spark.sql(query.format(t=self.oracle())).collect()
        assert_same_rows(ours, theirs)
        return ours

    def assert_same_content(self) -> None:
        """Compare all rows."""
        self.assert_same_answer("SELECT * FROM {t}")

    def _now(self, live: DataFrame) -> None:
        self.live = live
        self._view = None


def assert_same_rows(ours: Iterable[Any], theirs: Iterable[Any]) -> None:
    """Compare rows as bags: each value as often as on the other side, in any order."""
    mine, expected = Counter(map(_key, ours)), Counter(map(_key, theirs))
    missing, surplus = expected - mine, mine - expected
    assert not missing and not surplus, (
        f"{missing.total()} rows missing, such as {list(missing)[:3]}; "
        f"{surplus.total()} too many, such as {list(surplus)[:3]}"
    )


def _key(value: Any) -> str:
    """Return a text that is equal for equal values, NaN and the order within maps included."""
    if isinstance(value, dict):
        return "{" + ", ".join(sorted(f"{_key(k)}: {_key(v)}" for k, v in value.items())) + "}"
    if isinstance(value, list | tuple):
        return "(" + ", ".join(map(_key, value)) + ")"
    if isinstance(value, bytearray):
        return repr(bytes(value))
    return repr(value)
