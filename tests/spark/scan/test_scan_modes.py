"""The same answers in every way in which Spark can run a plan.

Each query runs over the table and, under the same settings, over the rows kept outside of it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from tests.support.plans import deletion_filters, only_scan
from tests.support.session_settings import session_settings
from tests.support.table_builder import BuildWithOracle, TableWithOracle, assert_same_rows

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

MODES = {
    "default": {},
    "no adaptive execution": {"spark.sql.adaptive.enabled": "false"},
    "off-heap vectors": {"spark.sql.columnVector.offheap.enabled": "true"},
    "row-based reader": {"spark.sql.parquet.enableVectorizedReader": "false"},
    "row-based nested columns": {"spark.sql.parquet.enableNestedColumnVectorizedReader": "false"},
    "no whole-stage codegen": {"spark.sql.codegen.wholeStage": "false"},
    "interpreted": {
        "spark.sql.codegen.wholeStage": "false",
        "spark.sql.codegen.factoryMode": "NO_CODEGEN",
    },
    "small splits": {
        "spark.sql.files.maxPartitionBytes": "15000",
        "spark.sql.files.openCostInBytes": "0",
    },
    "small splits, row-based reader": {
        "spark.sql.files.maxPartitionBytes": "15000",
        "spark.sql.files.openCostInBytes": "0",
        "spark.sql.parquet.enableVectorizedReader": "false",
    },
    "small batches": {"spark.sql.parquet.columnarReaderBatchSize": "7"},
    "no filter push-down": {"spark.sql.parquet.filterPushdown": "false"},
    "sort-merge joins": {
        "spark.sql.autoBroadcastJoinThreshold": "-1",
        "spark.sql.adaptive.autoBroadcastJoinThreshold": "-1",
    },
}

#: All at once, so that one job per mode covers many plans.
SUMMARY = (
    "SELECT count(*), sum(id), count(s), min(amount), max(d), sum(st.a), max(st.b.c), sum(arr[1])"
    " FROM {t}"
)


@pytest.mark.parametrize("mode", MODES)
def test_aggregates_are_those_of_the_live_rows(
    spark: SparkSession, readings: TableWithOracle, mode: str
):
    readings.oracle()
    with session_settings(spark, MODES[mode]):
        readings.assert_same_answer(SUMMARY)
        readings.assert_same_answer("SELECT count(*), max(id) FROM {t}")


@pytest.mark.protocol("deletion-vectors-4", "dv-proposal-sketch-1")
@pytest.mark.parametrize("mode", MODES)
def test_rows_are_the_live_rows(spark: SparkSession, readings: TableWithOracle, mode: str):
    readings.oracle()
    with session_settings(spark, MODES[mode]):
        # Around the edges of what was deleted, through pushed filters and pruned columns.
        readings.assert_same_answer(
            "SELECT id, s, st.b.e, m FROM {t}"
            " WHERE id BETWEEN 480 AND 520 OR id BETWEEN 1690 AND 3300 OR id = 8000"
        )


@pytest.mark.parametrize("mode", ["row-based reader", "no whole-stage codegen", "interpreted"])
def test_mode_without_generated_code_or_columns_still_has_the_deletion_filter(
    spark: SparkSession, readings: TableWithOracle, mode: str
):
    with session_settings(spark, MODES[mode]):
        df = readings.df().select("id")
        df.collect()
        (deleted,) = deletion_filters(df)
        assert deleted.in_codegen is (mode == "row-based reader")
        assert not only_scan(df).supportsColumnar()


QUERIES = {
    "self-join": "SELECT a.id, b.id FROM {t} a JOIN {t} b ON a.id = b.id + 1200",
    "self-join with filters": (
        "SELECT a.id, b.s FROM {t} a JOIN {t} b ON a.k = b.k AND a.id = b.id"
        " WHERE a.id < 2000 AND b.id > 400"
    ),
    "outer join": ("SELECT r.id, t.id FROM range(0, 4000, 13) r LEFT JOIN {t} t ON r.id = t.id"),
    "full outer self-join": (
        "SELECT a.id, b.id FROM (SELECT id FROM {t} WHERE id < 4000) a FULL OUTER JOIN"
        " (SELECT id FROM {t} WHERE k = 2) b ON a.id = b.id"
    ),
    "anti join": "SELECT r.id FROM range(4000) r WHERE NOT EXISTS"
    " (SELECT 1 FROM {t} t WHERE t.id = r.id)",
    "IN": "SELECT id FROM {t} WHERE id IN (SELECT id + 10 FROM {t} WHERE k = 5)",
    "NOT IN": "SELECT id FROM {t} WHERE id < 3500 AND id NOT IN"
    " (SELECT id FROM {t} WHERE st.a > 2)",
    "EXISTS": "SELECT id FROM {t} a WHERE EXISTS"
    " (SELECT 1 FROM {t} b WHERE b.id = a.id * 2 AND b.k = 1)",
    "scalar subquery": "SELECT id, (SELECT max(id) FROM {t} WHERE id < 6000) FROM {t}"
    " WHERE id = (SELECT min(id) FROM {t} WHERE id > 500)",
    "correlated scalar subquery": "SELECT k, (SELECT count(*) FROM {t} b WHERE b.k = a.k)"
    " FROM (SELECT DISTINCT k FROM {t}) a",
    "union": "SELECT id FROM {t} WHERE k = 0 UNION ALL SELECT id FROM {t} WHERE id < 1800",
    "intersect": "SELECT k FROM {t} WHERE id < 2000 INTERSECT SELECT st.a FROM {t}",
    "distinct": "SELECT DISTINCT s FROM {t}",
    "order and limit": "SELECT id FROM {t} WHERE id > 495 ORDER BY id LIMIT 20",
    "offset": "SELECT id FROM {t} ORDER BY id LIMIT 5 OFFSET 498",
    "limit beyond the end": "SELECT id FROM {t} WHERE id BETWEEN 3000 AND 5999 LIMIT 100000",
    "window": "SELECT id, lag(id) OVER (PARTITION BY k ORDER BY id) FROM {t} WHERE id < 4000",
    "window over all": "SELECT id, sum(k) OVER (ORDER BY id) FROM {t} WHERE id < 2500",
    "grouping sets": "SELECT k, st.a, count(*) FROM {t} GROUP BY CUBE (k, st.a)",
    "having": "SELECT s, count(*) n FROM {t} GROUP BY s HAVING n > 12",
    "explode": "SELECT id, x FROM {t} LATERAL VIEW explode(arr) AS x WHERE id < 2000",
    "common table expression": "WITH c AS (SELECT id, k FROM {t} WHERE id < 3100)"
    " SELECT a.id FROM c a JOIN c b ON a.id = b.id WHERE b.k = 4",
}


@pytest.mark.protocol("reader-deletion-vectors-1")
@pytest.mark.parametrize("adaptive", ["true", "false"])
@pytest.mark.parametrize("query", QUERIES)
def test_query_answers_as_over_plain_rows(
    spark: SparkSession, readings: TableWithOracle, query: str, adaptive: str
):
    with session_settings(spark, {"spark.sql.adaptive.enabled": adaptive}):
        assert readings.assert_same_answer(QUERIES[query])


@pytest.mark.parametrize("count", [1, 50, 499, 501, 3_000])
def test_limit_counts_live_rows_only(spark: SparkSession, readings: TableWithOracle, count: int):
    live = {row.id for row in readings.live.select("id").collect()}
    taken = [row.id for row in readings.df().select("id").limit(count).collect()]
    assert len(taken) == len(set(taken)) == count
    assert set(taken) <= live


def test_cached_dataframe_holds_live_rows_only(spark: SparkSession, readings: TableWithOracle):
    cached = readings.df().select("id", "k").cache()
    try:
        expected = readings.live.select("id", "k").collect()
        assert cached.count() == len(expected)
        assert_same_rows(cached.collect(), expected)
        assert_same_rows(
            cached.where("id < 600").collect(),
            readings.live.select("id", "k").where("id < 600").collect(),
        )
    finally:
        cached.unpersist(blocking=True)


def test_cached_table_answers_sql_and_a_delete_after_caching_is_seen(
    spark: SparkSession, build: BuildWithOracle
):
    table = build(spark.range(100).selectExpr("id", "id % 3 AS k"), deletion_vectors=True)
    table.delete("k = 1")
    spark.sql(f"CACHE TABLE cached_table AS SELECT * FROM {table.sql_name}")
    try:
        assert spark.table("cached_table").count() == 67
        table.delete("k = 2")
        table.assert_same_content()
    finally:
        spark.sql("UNCACHE TABLE IF EXISTS cached_table")


def test_dataframe_made_before_a_delete_sees_it(spark: SparkSession, build: BuildWithOracle):
    table = build(spark.range(10).toDF("id"), deletion_vectors=True)
    df = table.df()
    table.delete("id < 3")
    assert [row.id for row in df.orderBy("id").collect()] == list(range(3, 10))


def test_write_from_a_dataframe_with_deleted_rows_copies_live_rows_only(
    spark: SparkSession, readings: TableWithOracle, tmp_path
):
    copy = str(tmp_path / "copy")
    readings.df().write.parquet(copy)
    assert_same_rows(spark.read.parquet(copy).collect(), readings.live.collect())
