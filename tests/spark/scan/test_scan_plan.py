"""What the plan of a scan looks like: columns, filters, and the deletion-vector filter."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from tests.support.plans import (
    deletion_filters,
    only_scan,
    plan_nodes,
    scanned_columns,
    scanned_rows,
    scanned_splits,
)
from tests.support.session_settings import session_settings
from tests.support.table_builder import BuildWithOracle, TableWithOracle

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


@pytest.mark.parametrize("adaptive", ["true", "false"])
@pytest.mark.parametrize(
    "query",
    [
        "SELECT * FROM {t}",
        "SELECT count(*), sum(k) FROM {t}",
        "SELECT k, sum(id) FROM {t} WHERE id > 100 GROUP BY k",
        "SELECT upper(s) FROM {t} WHERE st.a = 1",
    ],
)
def test_deletion_filter_runs_in_generated_code_over_a_columnar_scan(
    spark: SparkSession, readings: TableWithOracle, query: str, adaptive: str
):
    # Without the fallback, code that does not compile is an error.
    strict = {
        "spark.sql.adaptive.enabled": adaptive,
        "spark.sql.codegen.factoryMode": "CODEGEN_ONLY",
        "spark.sql.codegen.fallback": "false",
    }
    with session_settings(spark, strict):
        df = spark.sql(query.format(t=readings.sql_name))
        df.collect()
        (deleted,) = deletion_filters(df)
        assert deleted.in_codegen
        assert deleted.text.replace("isnotnull", "").count("NOT deltaic_is_deleted(") == 1
        assert only_scan(df).supportsColumnar()


@pytest.mark.protocol("dv-step-2-reading-the-current-state-2")
def test_deletion_filter_is_directly_above_the_scan_and_user_filters_above_it(
    readings: TableWithOracle,
):
    nodes = [n.kind for n in plan_nodes(readings.df().where("id > 100").select("k"))]
    assert nodes == [
        "ProjectExec",
        "FilterExec",
        "FilterExec",
        "ColumnarToRowExec",
        "BatchScanExec",
    ]


@pytest.mark.parametrize(
    "condition",
    ["id >= 9000", "id > 8999 AND k = 1"],
)
def test_scan_of_files_without_vectors_has_neither_filter_nor_row_index(
    readings: TableWithOracle, condition: str
):
    df = readings.df().where(condition)
    assert deletion_filters(df) == []
    assert "__deltaic" not in scanned_columns(df)
    assert only_scan(df).supportsColumnar()


def test_scan_of_a_table_that_never_had_vectors_has_no_filter(
    spark: SparkSession, build: BuildWithOracle
):
    table = build(spark.range(100))
    assert deletion_filters(table.df()) == []
    assert scanned_columns(table.df()) == "struct<id:bigint>"


ROW = "__deltaic_row_index:bigint,__deltaic_deletion_vector:string"


@pytest.mark.parametrize(
    ("query", "columns"),
    [
        ("SELECT 1 FROM {t}", f"struct<{ROW}>"),
        ("SELECT k FROM {t}", f"struct<k:int,{ROW}>"),
        ("SELECT k FROM {t} WHERE id > 5", f"struct<id:bigint,k:int,{ROW}>"),
        ("SELECT st.b.e FROM {t}", f"struct<st:struct<b:struct<e:double>>,{ROW}>"),
        ("SELECT st.a FROM {t} WHERE st.b.c = '7'", None),
        ("SELECT k FROM {t} WHERE id >= 9000", "struct<id:bigint,k:int>"),
        ("SELECT count(*) FROM {t} WHERE id >= 9000", "struct<id:bigint>"),
    ],
)
def test_scan_reads_only_the_columns_and_struct_fields_asked_for(
    spark: SparkSession, readings: TableWithOracle, query: str, columns: str | None
):
    expected = columns or f"struct<st:struct<a:int,b:struct<c:string>>,{ROW}>"
    assert scanned_columns(spark.sql(query.format(t=readings.sql_name))) == expected
    readings.assert_same_answer(query)


@pytest.mark.parametrize(
    "condition",
    ["id = 10", "id BETWEEN 10 AND 20", "amount < 2", "st.b.c = '32'", "s IS NULL AND id < 20"],
)
def test_filter_reaches_parquet_and_skips_row_groups_of_the_files_read(
    spark: SparkSession, readings: TableWithOracle, condition: str
):
    query = f"SELECT * FROM {{t}} WHERE {condition}"
    pushed = scanned_rows(spark.sql(query.format(t=readings.sql_name)))
    with session_settings(spark, {"spark.sql.parquet.filterPushdown": "false"}):
        unpushed = scanned_rows(spark.sql(query.format(t=readings.sql_name)))
    assert 0 < pushed < unpushed
    readings.assert_same_answer(query)


def test_files_are_split_below_their_size_and_every_row_is_read_once(
    spark: SparkSession, readings: TableWithOracle
):
    small = {
        "spark.sql.files.maxPartitionBytes": "20000",
        "spark.sql.files.openCostInBytes": "0",
    }
    with session_settings(spark, small):
        splits = scanned_splits(readings.df())
        assert len(splits) > 2 * len({path for path, _, _ in splits})
        readings.assert_same_content()
        readings.assert_same_answer("SELECT count(*), sum(id) FROM {t}")


def test_small_files_share_a_task(spark: SparkSession, build: BuildWithOracle):
    table = build(spark.range(800).toDF("id"), files=8)
    assert len(scanned_splits(table.df())) == 8
    with session_settings(spark, {"spark.sql.files.openCostInBytes": "0"}):
        assert table.df().rdd.getNumPartitions() < 8
    table.assert_same_content()


@pytest.mark.parametrize("adaptive", ["true", "false"])
def test_scans_whose_filters_name_different_columns_are_not_taken_for_one(
    spark: SparkSession, table: str, adaptive: str
) -> None:
    spark.sql(
        f"CREATE TABLE delta.`{table}` (x INT, p INT, q INT) USING delta PARTITIONED BY (p, q)"
    )
    spark.sql(f"INSERT INTO delta.`{table}` VALUES (1, 1, 2), (10, 2, 1)")
    each = f"SELECT {{f}}(x) AS n FROM delta.`{table}` WHERE {{c}} = 1 OR {{d}} = 2 AND {{d}} = 3"
    p, q = each.format(f="sum", c="p", d="q"), each.format(f="sum", c="q", d="p")
    grouped = f"SELECT x % 1 AS k, sum(x) AS n FROM delta.`{table}` WHERE {{c}} = 1 GROUP BY k"
    joined = f"({grouped.format(c='p')}) a JOIN ({grouped.format(c='q')}) b ON a.k = b.k"
    with session_settings(spark, {"spark.sql.adaptive.enabled": adaptive}):
        assert spark.sql(f"SELECT ({p}), ({q})").first() == (1, 10)
        assert spark.sql(f"SELECT a.n, b.n FROM {joined}").first() == (1, 10)
