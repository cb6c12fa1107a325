"""CONVERT TO DELTA beside delta-spark's: the same table, which both peers read."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from tests.support import delta_rs, log
from tests.support.session_settings import session_settings
from tests.support.table_builder import in_order, rows_of

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from tests.support.spark_process import SparkProcess

#: Columns of `range(0, 60)`, the directories they are partitioned by, and how these are stated.
FOLDERS: dict[str, tuple[list[str], list[str], str]] = {
    "unpartitioned": (["id", "concat('n ', id) AS s", "id / 4 AS d"], [], ""),
    "types": (
        [
            "id",
            "CAST(id AS TINYINT) AS b",
            "CAST(id AS DECIMAL(10, 2)) / 8 AS amount",
            "date_add(DATE'2024-01-01', CAST(id AS INT)) AS day",
            "timestamp_seconds(id * 1000) AS t",
            "TIMESTAMP_NTZ'2024-01-01 00:00:00' AS n",
            "named_struct('x', id, 'y', array(id)) AS st",
            "map('k', id) AS m",
            "CAST(CAST(id AS STRING) AS BINARY) AS bin",
            "id % 2 = 0 AS flag",
            "CAST(NULL AS STRING) AS nothing",
        ],
        [],
        "",
    ),
    "nested": (
        ["id", "CAST(2020 + id % 2 AS INT) AS y", "CAST(id % 3 AS INT) AS m"],
        ["y", "m"],
        "y INT, m INT",
    ),
    "nulls": (["id", "IF(id % 2 = 0, NULL, 'x') AS p"], ["p"], "p STRING"),
    "escapes": (
        [
            "id",
            "element_at(array('a b', 'x/y', '50%', 'k=v', 'ü:€', 'a%20b'), "
            "CAST(id % 6 + 1 AS INT)) AS p",
        ],
        ["p"],
        "p STRING",
    ),
    "dates": (
        [
            "id",
            "date_add(DATE'2024-01-01', CAST(id % 2 AS INT)) AS d",
            "TIMESTAMP'2024-01-31 10:11:12' AS t",
        ],
        ["d", "t"],
        "d DATE, t TIMESTAMP",
    ),
    "decimals": (
        ["id", "CAST(id % 3 AS DECIMAL(5, 2)) AS p"],
        ["p"],
        "p DECIMAL(5,2)",
    ),
    "case": (
        ["id", "id AS MixedCase", "CAST(id % 2 AS INT) AS PartCol"],
        ["PartCol"],
        "PartCol INT",
    ),
}

#: Its SQL does not parse a column of type TIMESTAMP.
THEIRS = """
from delta.tables import DeltaTable

DeltaTable.convertToDelta(spark, f"parquet.`{path}`", *([by] if by else []))
"""
READ = """
df = spark.read.format("delta").load(path)
history = spark.sql(f"DESCRIBE HISTORY delta.`{path}`").collect()
detail = spark.sql(f"DESCRIBE DETAIL delta.`{path}`").first()
result = [
    df.schema.simpleString(),
    sorted(repr(tuple(row)) for row in df.collect()),
    list(detail.partitionColumns),
    history[-1].operation,
    dict(history[-1].operationMetrics),
    dict(history[-1].operationParameters),
]
"""


def folder(spark: SparkSession, path: str, kind: str) -> str:
    """Write a folder and a copy of it; return how its partition columns are stated."""
    columns, by, stated = FOLDERS[kind]
    spark.range(0, 60, 1, 2).selectExpr(*columns).write.partitionBy(*by).parquet(path)
    shutil.copytree(path, f"{path}-theirs")
    return stated


def convert(spark: SparkSession, path: str, by: str) -> None:
    stated = f"PARTITIONED BY ({by})" if by else ""
    spark.sql(f"CONVERT TO DELTA parquet.`{path}` {stated}")


def seen_by(delta_spark: SparkProcess, path: str) -> list[Any]:
    found: list[Any] = delta_spark.run(READ, path=path)
    return found


@pytest.mark.parametrize("inferred", [False, True])
@pytest.mark.parametrize("kind", FOLDERS)
def test_table_is_that_of_delta_spark(
    spark: SparkSession, delta_spark: SparkProcess, table: str, kind: str, inferred: bool
) -> None:
    by = folder(spark, table, kind)
    if inferred and (not by or kind == "decimals"):
        pytest.skip("nothing to infer, or as another type")
    convert(spark, table, "" if inferred else by)
    delta_spark.run(THEIRS, path=f"{table}-theirs", by=by)
    ours, theirs = seen_by(delta_spark, table), seen_by(delta_spark, f"{table}-theirs")
    assert ours[:5] == theirs[:5]
    assert ours[5] | {"partitionedBy": ""} == theirs[5] | {"partitionedBy": ""}
    if not inferred:
        assert ours[5] == theirs[5]
    assert rows_of(spark, table) == rows_of(spark, f"{table}-theirs")
    names = [
        {Path(add["path"]).name for add in log.active_files(t)} for t in (table, f"{table}-theirs")
    ]
    assert names[0] == names[1]
    in_rust = delta_rs.in_order(spark.read.format("delta").load(table).collect())
    assert delta_rs.by_query(table) == in_rust


@pytest.mark.parametrize("kind", ["types", "nested"])
def test_bounds_enclose_those_of_delta_spark_and_are_its_own_where_footers_have_them(
    spark: SparkSession, delta_spark: SparkProcess, table: str, kind: str
) -> None:
    with session_settings(spark, {"spark.sql.parquet.outputTimestampType": "TIMESTAMP_MICROS"}):
        by = folder(spark, table, kind)
    convert(spark, table, by)
    delta_spark.run(THEIRS, path=f"{table}-theirs", by=by)
    found = [
        {Path(add["path"]).name: log.statistics(add) for add in log.active_files(t)}
        for t in (table, f"{table}-theirs")
    ]
    for name, theirs in found[1].items():
        ours = found[0][name]
        assert ours["numRecords"] == theirs["numRecords"]
        assert ours["nullCount"] == theirs["nullCount"]
        for bounds in ("minValues", "maxValues"):
            assert ours[bounds] == theirs[bounds], bounds


def test_peers_read_widened_columns(
    spark: SparkSession, delta_spark: SparkProcess, table: str
) -> None:
    queries = [
        "SELECT 1 AS id, CAST(0.1 AS FLOAT) AS d, array(1) AS l, DATE'2024-01-31' AS t",
        "SELECT 5000000000 AS id, CAST(0.5 AS DOUBLE) AS d, array(5000000000) AS l, "
        "TIMESTAMP_NTZ'2024-02-01 10:00:00' AS t",
    ]
    for query in queries:
        spark.sql(query).coalesce(1).write.mode("append").parquet(table)
    spark.sql(f"CONVERT TO DELTA parquet.`{table}`")
    expected = in_order(repr(row) for row in rows_of(spark, table))
    schema, rows, *_ = seen_by(delta_spark, table)
    assert schema == "struct<id:bigint,d:double,l:array<bigint>,t:timestamp_ntz>"
    assert rows == expected
    selected = delta_spark.run(
        "df = spark.read.format('delta').load(path)\n"
        "result = [df.where('id = 1').count(), df.where('d > 0.1').count(), "
        "df.where('d <= 0.1').count()]",
        path=table,
    )
    assert selected == [1, 2, 0]


def test_each_engine_goes_on_from_the_others_table(
    spark: SparkSession, delta_spark: SparkProcess, table: str
) -> None:
    by = folder(spark, table, "nested")
    convert(spark, table, by)
    delta_spark.run(THEIRS, path=f"{table}-theirs", by=by)
    assert (
        delta_spark.run(
            "result = spark.sql(f'CONVERT TO DELTA delta.`{path}`').collect()", path=table
        )
        == []
    )
    statements = [
        "DELETE FROM delta.`{t}` WHERE id < 10",
        "INSERT INTO delta.`{t}` VALUES (99,1,1)",
    ]
    for statement in statements:
        delta_spark.run("spark.sql(sql)", sql=statement.format(t=table))
        spark.sql(statement.format(t=f"{table}-theirs"))
    assert rows_of(spark, table) == rows_of(spark, f"{table}-theirs")
    assert log.versions(table) == log.versions(f"{table}-theirs") == [0, 1, 2]
