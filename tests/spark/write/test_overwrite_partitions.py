"""An overwrite of partitions replaces these partitions, whole and alone."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from tests.support import log
from tests.support.session_settings import session_settings
from tests.support.table_builder import rows_of

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

# The partition column's type, two values of it as SQL, and which of them is overwritten.
PARTITIONS = [
    ("int", "1", "2"),
    ("date", "DATE'2024-02-29'", "DATE'1969-12-31'"),
    ("timestamp", "TIMESTAMP'2024-01-01 00:00:00'", "TIMESTAMP'2024-01-01 00:00:00.000001'"),
    ("string", "'a/b=c %é'", "'a'"),
    ("decimal(10,2)", "1.50", "-1.50"),
    ("boolean", "true", "false"),
]


@pytest.mark.parametrize(("kind", "replaced", "kept"), PARTITIONS, ids=[p[0] for p in PARTITIONS])
@pytest.mark.parametrize("mode", ["static", "dynamic"])
def test_only_the_named_partition_is_replaced(
    kind: str, replaced: str, kept: str, mode: str, spark: SparkSession, table: str
) -> None:
    name = f"delta.`{table}`"
    spark.sql(f"CREATE TABLE {name} (v INT, p {kind}) USING delta PARTITIONED BY (p)")
    spark.sql(f"INSERT INTO {name} VALUES (1, {replaced}), (2, {kept}), (3, NULL)")
    if mode == "static":
        spark.sql(f"INSERT OVERWRITE {name} PARTITION (p = {replaced}) SELECT 10")
    else:
        spark.conf.set("spark.sql.sources.partitionOverwriteMode", "dynamic")
        try:
            spark.sql(f"INSERT OVERWRITE {name} SELECT 10, CAST({replaced} AS {kind})")
        finally:
            spark.conf.unset("spark.sql.sources.partitionOverwriteMode")
    assert sorted(row.v for row in spark.table(name).collect()) == [2, 3, 10]


def test_the_null_partition_can_be_replaced(spark: SparkSession, table: str) -> None:
    rows = spark.sql("SELECT * FROM VALUES (1, 'a'), (2, CAST(NULL AS STRING)) AS r(v, p)")
    rows.write.format("delta").partitionBy("p").save(table)
    nulls = spark.sql("SELECT 20 AS v, CAST(NULL AS STRING) AS p")
    nulls.write.format("delta").mode("overwrite").option("partitionOverwriteMode", "dynamic").save(
        table
    )
    assert sorted(row.v for row in spark.read.format("delta").load(table).collect()) == [1, 20]


def test_partition_of_fixed_length_can_be_replaced_by_rows_with_more_columns(
    spark: SparkSession, table: str
) -> None:
    name = f"delta.`{table}`"
    spark.sql(f"CREATE TABLE {name} (id INT, c CHAR(4)) USING delta PARTITIONED BY (c)")
    spark.sql(f"INSERT INTO {name} VALUES (1, 'a'), (2, 'b')")
    rows = "SELECT 3 AS id, 4 AS more"
    with session_settings(spark, {"spark.databricks.delta.schema.autoMerge.enabled": "true"}):
        spark.sql(f"INSERT OVERWRITE {name} PARTITION (c = 'a') BY NAME {rows}")
    assert rows_of(spark, table) == [(2, "b   ", None), (3, "a   ", 4)]


def test_partition_values_are_compared_by_value_not_by_spelling(
    spark: SparkSession, table: str
) -> None:
    """Older writers spell a timestamp without a zone; it is the same partition all the same."""
    name = f"delta.`{table}`"
    spark.sql(f"CREATE TABLE {name} (v INT, p TIMESTAMP) USING delta PARTITIONED BY (p)")
    spark.sql(f"INSERT INTO {name} VALUES (1, TIMESTAMP'2024-01-01 00:00:00')")
    commit = Path(table) / "_delta_log" / f"{1:020}.json"
    lines = [json.loads(line) for line in commit.read_text().splitlines()]
    for line in lines:
        if "add" in line:
            line["add"]["partitionValues"]["p"] = "2024-01-01 00:00:00"
    commit.write_text("\n".join(map(json.dumps, lines)) + "\n")
    spark.sql(f"INSERT OVERWRITE {name} PARTITION (p = '2024-01-01 00:00:00') SELECT 10")
    assert [row.v for row in spark.table(name).collect()] == [10]


def test_an_overwrite_without_partitions_replaces_everything(
    spark: SparkSession, table: str
) -> None:
    spark.range(5).write.format("delta").save(table)
    spark.range(7, 9).write.format("delta").mode("overwrite").option(
        "partitionOverwriteMode", "dynamic"
    ).save(table)
    assert sorted(row.id for row in spark.read.format("delta").load(table).collect()) == [7, 8]


def test_overwriting_a_table_with_its_own_rows_keeps_them(spark: SparkSession, table: str) -> None:
    name = f"delta.`{table}`"
    spark.range(100).write.format("delta").save(table)
    spark.sql(f"INSERT OVERWRITE {name} SELECT id + 1 FROM {name} WHERE id % 2 = 0")
    assert sorted(row.id for row in spark.table(name).collect()) == list(range(1, 100, 2))


def test_overwrite_of_single_partitions_cannot_replace_the_columns(
    spark: SparkSession, table: str
) -> None:
    spark.range(4).selectExpr("id", "id % 2 AS p").write.format("delta").partitionBy("p").save(
        table
    )
    before = log.contents(table)
    writer = spark.range(4).selectExpr("id", "id % 2 AS q").write.format("delta").mode("overwrite")
    writer = writer.option("overwriteSchema", "true").option("partitionOverwriteMode", "dynamic")
    with pytest.raises(Exception, match="overwriteSchema=true with partitionOverwriteMode=dynamic"):
        writer.partitionBy("q").save(table)
    assert log.contents(table) == before


@pytest.mark.parametrize("partition_by", [[], ["p"]], ids=str)
def test_columns_are_replaced_where_no_partitions_are_to_be_whatever_the_session_says(
    spark: SparkSession, table: str, partition_by: list[str]
) -> None:
    before = spark.range(4).selectExpr("id", "id % 2 AS p")
    before.write.format("delta").partitionBy(*partition_by).save(table)
    writer = spark.range(7, 9).selectExpr("id AS n").write.format("delta").mode("overwrite")
    with session_settings(spark, {"spark.sql.sources.partitionOverwriteMode": "dynamic"}):
        writer.option("overwriteSchema", "true").save(table)
    assert log.metadata(table)["partitionColumns"] == []
    found = spark.read.format("delta").load(table)
    assert (found.columns, sorted(row.n for row in found.collect())) == (["n"], [7, 8])


def test_dataframe_of_a_table_whose_partitioning_was_replaced_says_so(
    spark: SparkSession, table: str
) -> None:
    rows = spark.range(4).selectExpr("id", "id % 2 AS p")
    rows.write.format("delta").save(table)
    df = spark.read.format("delta").load(table)
    writer = rows.write.format("delta").mode("overwrite").option("overwriteSchema", "true")
    writer.partitionBy("p").save(table)
    with pytest.raises(Exception, match="DELTAIC_SCHEMA_CHANGED"):
        df.collect()


def test_overwrite_of_a_table_by_its_own_rows_keeps_them(spark: SparkSession, table: str) -> None:
    spark.range(10).write.format("delta").save(table)
    own = spark.read.format("delta").load(table)
    own.where("id IN (SELECT id FROM delta.`" + table + "` WHERE id > 6)").write.format(
        "delta"
    ).mode("overwrite").save(table)
    assert sorted(row.id for row in spark.read.format("delta").load(table).collect()) == [7, 8, 9]
    assert log.versions(table) == [0, 1]
