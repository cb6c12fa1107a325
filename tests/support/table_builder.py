"""Builds the tables of tests, which specify the rows of each file.

`build_table` takes rows as Python values. `build_with_oracle` takes a DataFrame and returns a
`TableWithOracle`, which holds the same rows outside of Delta: each change made to the table through
it is also made to ``live``, a DataFrame that plain Spark computes from the source rows. So no part
of Deltaic is involved in the result that a test expects::

    table = build_with_oracle(spark, path, spark.range(90), files=3, deletion_vectors=True)
    table.delete("id % 2 = 0")
    table.assert_same_answer("SELECT count(*), max(id) FROM {t}")
"""

from __future__ import annotations

import itertools
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import reduce
from typing import TYPE_CHECKING, Any

from pyspark.sql import functions as F

from tests.support.session_settings import session_settings

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

Row = tuple[Any, ...]

#: Table property that lets DELETE, UPDATE and MERGE write deletion vectors.
DELETION_VECTORS = "delta.enableDeletionVectors"

_view_numbers = itertools.count()

_MERGES_UNIONS = "spark.sql.unionOutputPartitioning"


def build_table(
    spark: SparkSession,
    path: str,
    schema: str,
    files: Sequence[Sequence[Row]],
    *,
    deletion_vectors: bool = True,
    partition_by: Sequence[str] = (),
    properties: Mapping[str, str] | None = None,
) -> None:
    """Create a table in one commit with one data file for each item of `files`.

    Parameters
    ----------
    schema
        The columns, as DDL.
    files
        The rows of each file; of a partitioned table, of each file before it is split by partition.
    """
    df = reduce(
        lambda left, right: left.union(right),
        [one_file(spark, schema, rows) for rows in files],
    )
    writer = df.write.format("delta").mode("errorifexists").partitionBy(*partition_by)
    settings = {DELETION_VECTORS: str(deletion_vectors).lower(), **(properties or {})}
    for name, value in settings.items():
        writer = writer.option(name, value)
    with _every_part_of_a_union_is_a_task(spark):
        writer.save(path)


def append_file(spark: SparkSession, path: str, schema: str, rows: Sequence[Row]) -> None:
    """Append rows as one data file."""
    one_file(spark, schema, rows).write.format("delta").mode("append").save(path)


def build_three_versions(spark: SparkSession, table: str, schema: str, **options: Any) -> None:
    """Version 0 has two files of four rows, version 1 deletes a row of each, version 2 adds one.

    Deletion vectors are in files. `schema` has an INT ``id`` and a string.
    """
    files = [[(n, "a") for n in range(4)], [(n, "b") for n in range(4, 8)]]
    build_table(spark, table, schema, files, **options)
    with session_settings(spark, {"spark.deltaic.deletionVectors.maxInlineBytes": "0"}):
        spark.sql(f"DELETE FROM delta.`{table}` WHERE id IN (1, 5)")
    append_file(spark, table, schema, [(8, "c")])


def one_file(spark: SparkSession, schema: str, rows: Sequence[Row]) -> DataFrame:
    return spark.createDataFrame(list(rows), schema).coalesce(1)


@contextmanager
def _every_part_of_a_union_is_a_task(spark: SparkSession) -> Iterator[None]:
    """Keep Spark from reading the parts together, which it does if each is one partition."""
    spark.conf.set(_MERGES_UNIONS, "false")
    try:
        yield
    finally:
        spark.conf.unset(_MERGES_UNIONS)


def rows_of(spark: SparkSession, path: str, version: int | None = None) -> list[Row]:
    """Return the rows of a table, sorted; of its newest version unless another is named."""
    reader = spark.read.format("delta")
    if version is not None:
        reader = reader.option("versionAsOf", version)
    return in_order(tuple(row) for row in reader.load(path).collect())


def in_order(rows: Any) -> list[Row]:
    """Sort rows of any types, nulls among them: the order only has to be the same both times."""
    return sorted(rows, key=repr)


def build_with_oracle(
    spark: SparkSession,
    path: str,
    rows: DataFrame,
    *,
    files: int | None = None,
    deletion_vectors: bool = False,
    partition_by: Sequence[str] = (),
    options: Mapping[str, str] | None = None,
) -> TableWithOracle:
    """Create a table from a DataFrame whose rows are the same each time it is computed.

    Parameters
    ----------
    files
        Write this many files, ranges of the first column; by default one for each task of `rows`.
        Spark finds the bounds by a sample, which differs from run to run once a task has more than
        a few hundred rows.
    options
        Options of the writer; those whose names begin with ``delta.`` are table properties.
    """
    laid_out = rows if files is None else rows.repartitionByRange(files, rows.columns[0])
    writer = laid_out.write.format("delta").partitionBy(*partition_by)
    settings = {DELETION_VECTORS: "true"} if deletion_vectors else {}
    writer.options(**settings, **(options or {})).save(path)
    return TableWithOracle(spark, path, rows)


class TableWithOracle:
    """A table, and its rows as they should be.

    Attributes
    ----------
    live
        The rows the table should hold, as a DataFrame that never reads the table.
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

    def df(self) -> DataFrame:
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
            # A cached plan would also be used for equal plans elsewhere; local rows cannot.
            rows = self.live.collect()
            df = self.spark.createDataFrame(rows, self.live.schema)
            df.createOrReplaceTempView(self._view)
        return self._view

    def assert_same_answer(self, query: str) -> list[Any]:
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


#: What the fixture ``build`` is: `build_with_oracle` for one session and path.
BuildWithOracle = Callable[..., TableWithOracle]


def assert_same_rows(ours: Iterable[Any], theirs: Iterable[Any]) -> None:
    """Compare rows as bags: each value as often as on the other side, in any order."""
    mine, expected = Counter(map(row_key, ours)), Counter(map(row_key, theirs))
    missing, surplus = expected - mine, mine - expected
    assert not missing and not surplus, (
        f"{missing.total()} rows missing, such as {list(missing)[:3]}; "
        f"{surplus.total()} too many, such as {list(surplus)[:3]}"
    )


def row_key(value: Any) -> str:
    """Return a string that is equal for equal values, NaN and the order within maps included."""
    if isinstance(value, dict):
        return (
            "{" + ", ".join(sorted(f"{row_key(k)}: {row_key(v)}" for k, v in value.items())) + "}"
        )
    if isinstance(value, list | tuple):
        return "(" + ", ".join(map(row_key, value)) + ")"
    if isinstance(value, bytearray):
        return repr(bytes(value))
    return repr(value)
