"""Builds the tables of tests: which rows are in which file is theirs to say."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import reduce
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

Row = tuple[Any, ...]

#: Table property that lets DELETE, UPDATE and MERGE write deletion vectors.
DELETION_VECTORS = "delta.enableDeletionVectors"

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
    frame = reduce(
        lambda left, right: left.union(right),
        [one_file(spark, schema, rows) for rows in files],
    )
    writer = frame.write.format("delta").mode("errorifexists").partitionBy(*partition_by)
    settings = {DELETION_VECTORS: str(deletion_vectors).lower(), **(properties or {})}
    for name, value in settings.items():
        writer = writer.option(name, value)
    with _every_part_of_a_union_is_a_task(spark):
        writer.save(path)


def append_file(spark: SparkSession, path: str, schema: str, rows: Sequence[Row]) -> None:
    """Append rows as one data file."""
    one_file(spark, schema, rows).write.format("delta").mode("append").save(path)


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
