"""The same queries on the same table by delta-spark and by Deltaic."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Sequence

    from pyspark.sql import SparkSession

    from tests.support.spark_process import SparkProcess

#: Code for the other process: runs ``statements``.
RUN = """
for statement in statements:
    spark.sql(statement)
result = None
"""

#: Code for the other process: the rows of each of ``queries`` on the table at ``path``, as text.
READ_QUERIES = """
result = [
    sorted(map(repr, spark.sql(query.replace("{t}", f"delta.`{path}`")).collect()))
    for query in queries
]
"""


def our_rows(spark: SparkSession, path: str, query: str) -> list[str]:
    """Return the rows of a query with ``{t}`` for the table; a row's text holds its columns."""
    df = spark.sql(query.replace("{t}", f"delta.`{path}`"))
    return sorted(map(repr, df.collect()))


def assert_same_reads(
    spark: SparkSession, peer: SparkProcess, path: str, queries: Sequence[str]
) -> list[list[str]]:
    """Compare the rows of all queries; return them."""
    theirs: list[list[str]] = peer.run(READ_QUERIES, path=path, queries=list(queries))
    for query, expected in zip(queries, theirs, strict=True):
        assert our_rows(spark, path, query) == expected, query
    return theirs
