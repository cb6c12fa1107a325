"""Scalar subqueries over the same rows of a table, which Spark computes in one scan."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from tests.support.plans import scans
from tests.support.session_settings import session_settings
from tests.support.table_builder import BuildWithOracle, TableWithOracle

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

#: One scan each, as a query over the same rows in Parquet files has.
MERGED = [
    "SELECT (SELECT count(*) FROM {t} WHERE k < 3), (SELECT avg(amount) FROM {t} WHERE k < 3),"
    " (SELECT max(d) FROM {t} WHERE k < 3)",
    "SELECT (SELECT min(d) FROM {t}) AS first, (SELECT sum(k) FROM {t}) AS total",
    "SELECT (SELECT sum(id) FROM {t} WHERE d > DATE'2024-02-01' AND k = 1),"
    " (SELECT max(length(s)) FROM {t} WHERE k = 1 AND d > DATE'2024-02-01')",
    "SELECT CASE WHEN (SELECT count(*) FROM {t} WHERE k = 1) > 10"
    " THEN (SELECT avg(id) FROM {t} WHERE k = 1) ELSE"
    " (SELECT max(amount) FROM {t} WHERE k = 1) END",
    "SELECT (SELECT max(amount + k) FROM {t} WHERE id % 3 = 0), (SELECT sum(length(s)) FROM {t}"
    " WHERE id % 3 = 0)",
    # Neither can be a hash aggregate.
    "SELECT (SELECT max(s) FROM {t} WHERE k < 3), (SELECT min(s || id) FROM {t} WHERE k < 3),"
    " (SELECT min(s || d) FROM {t} WHERE k < 3)",
]

#: Each with its scans and with the columns that they read.
NOT_MERGED = [
    (
        "SELECT (SELECT max(d) FROM {t} WHERE k < 3), (SELECT sum(length(s)) FROM {t} WHERE k < 4)",
        {"d k", "k s"},
    ),
    # Spark merges no aggregates of which only one can be a hash aggregate.
    (
        "SELECT (SELECT max(d) FROM {t} WHERE k < 3), (SELECT max(s) FROM {t} WHERE k < 3)",
        {"d k", "k s"},
    ),
    (
        "SELECT * FROM (SELECT k, sum(amount) FROM {t} GROUP BY k),"
        " (SELECT max(d) FROM {t}), (SELECT d, max(s) FROM {t} GROUP BY d)",
        {"amount k", "d", "d s"},
    ),
    # Nor does it for Parquet files: each relation has the fields of its own query.
    (
        "SELECT (SELECT sum(st.a) FROM {t} WHERE k > 1), (SELECT max(st.b.e) FROM {t} WHERE k > 1)",
        {"k st"},
    ),
    # What IN becomes is no scalar subquery.
    (
        "SELECT count(*) FROM {t} WHERE d IN (SELECT max(d) FROM {t} WHERE k < 3)"
        " AND id > (SELECT avg(id) FROM {t} WHERE k < 3)",
        {"d id", "d k", "id k"},
    ),
    # Between pruning their columns and merging them, Spark runs no rule of an extension.
    (
        "SELECT * FROM (SELECT sum(id) AS a FROM {t} WHERE k = 1),"
        " (SELECT max(d) AS b FROM {t} WHERE k = 1)",
        {"id k", "d k"},
    ),
]


@pytest.mark.parametrize("query", MERGED)
def test_subqueries_over_the_same_rows_share_a_scan(readings: TableWithOracle, query: str):
    readings.assert_same_answer(query)
    assert len(_columns_of_scans(readings, query)) == 1


@pytest.mark.parametrize(("query", "columns"), NOT_MERGED)
def test_scans_of_other_aggregates_keep_their_columns(
    readings: TableWithOracle, query: str, columns: set[str]
):
    readings.assert_same_answer(query)
    assert set(_columns_of_scans(readings, query)) == columns


def test_partition_columns_that_only_one_subquery_reads_do_not_matter(
    build: BuildWithOracle, spark: SparkSession
):
    rows = spark.range(500).selectExpr("id", "id % 7 AS k", "id * 3 AS x")
    table = build(rows, partition_by=["k"], files=2, deletion_vectors=True)
    table.delete("id % 10 = 3")
    query = "SELECT (SELECT sum(id) FROM {t} WHERE k = 1), (SELECT max(x + k) FROM {t} WHERE k = 1)"
    table.assert_same_answer(query)
    assert _columns_of_scans(table, query) == ["id k x"]


def test_scans_keep_their_columns_where_subqueries_are_not_reused(
    spark: SparkSession, readings: TableWithOracle
):
    with session_settings(spark, {"spark.sql.execution.reuseSubquery": "false"}):
        readings.assert_same_answer(MERGED[1])
        assert set(_columns_of_scans(readings, MERGED[1])) == {"d", "k"}


def test_versions_of_a_table_are_scanned_apart(spark: SparkSession, readings: TableWithOracle):
    query = (
        "SELECT (SELECT count(id) FROM {t} WHERE k < 3), (SELECT max(d) FROM {t} WHERE k < 3),"
        " (SELECT min(amount) FROM {t} VERSION AS OF 0 WHERE k < 3)"
    )
    assert len(_columns_of_scans(readings, query)) == 2


def _columns_of_scans(table: TableWithOracle, query: str) -> list[str]:
    """Return the table's columns that each scan of the plan reads, in order of their names."""
    df: DataFrame = table.spark.sql(query.format(t=table.sql_name))
    df.collect()
    found = {scan.id(): list(scan.scan().readSchema().fieldNames()) for scan in scans(df)}
    return [" ".join(sorted(n for n in names if "__" not in n)) for names in found.values()]
