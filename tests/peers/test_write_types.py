"""Variants and widened columns, written by Deltaic and read by delta-spark."""

from __future__ import annotations

import pytest
from pyspark.sql import SparkSession

from tests.support import log
from tests.support.spark_process import SparkProcess

READ = """
frame = spark.read.format("delta").load(path).selectExpr(*columns)
result = sorted(map(repr, frame.collect()))
"""
RUN = """
for statement in statements:
    spark.sql(statement)
result = None
"""


def same(
    spark: SparkSession, delta_spark: SparkProcess, table: str, columns: list[str]
) -> list[str]:
    frame = spark.read.format("delta").load(table).selectExpr(*columns)
    mine = sorted(map(repr, frame.collect()))
    assert delta_spark.run(READ, path=table, columns=columns) == mine
    return mine


def test_variants_are_written_as_delta_spark_reads_them(
    spark: SparkSession, delta_spark: SparkProcess, table: str
) -> None:
    name = f"delta.`{table}`"
    spark.sql(f"CREATE TABLE {name} (id INT, v VARIANT, s STRUCT<w: VARIANT>) USING delta")
    (protocol,) = log.actions(table, 0, "protocol")
    assert "variantType" in protocol["readerFeatures"]
    spark.sql(
        f"""INSERT INTO {name} SELECT 1, parse_json('{{"a": [1, 2.5, "x"]}}'), NULL
        UNION ALL SELECT 2, NULL, named_struct('w', parse_json('7'))"""
    )
    spark.sql(f"UPDATE {name} SET v = parse_json('null') WHERE id = 2")
    columns = ["id", "to_json(v) v", "to_json(s.w) w", "v IS NULL n"]
    assert len(same(spark, delta_spark, table, columns)) == 2
    with pytest.raises(Exception, match="PARTITION"):
        spark.sql(
            f"CREATE TABLE delta.`{table}2` (id INT, v VARIANT) USING delta PARTITIONED BY (v)"
        )


def test_widened_columns_are_written_and_keep_their_history(
    spark: SparkSession, delta_spark: SparkProcess, table: str
) -> None:
    name = f"delta.`{table}`"
    delta_spark.run(
        RUN,
        statements=[
            f"CREATE TABLE {name} (id SMALLINT, v FLOAT) USING delta TBLPROPERTIES "
            "('delta.enableTypeWidening' = 'true', 'delta.enableDeletionVectors' = 'true')",
            f"INSERT INTO {name} VALUES (1, 1.5), (2, 2.5)",
            f"ALTER TABLE {name} ALTER COLUMN id TYPE BIGINT",
            f"ALTER TABLE {name} ALTER COLUMN v TYPE DOUBLE",
        ],
    )
    before = log.metadata(table)["schemaString"]
    spark.sql(f"INSERT INTO {name} VALUES (5000000000, 0.1)")
    spark.sql(f"UPDATE {name} SET v = v + 0.1 WHERE id = 1")
    spark.sql(f"ALTER TABLE {name} SET TBLPROPERTIES ('mine' = '1')")
    assert log.metadata(table)["schemaString"] == before
    assert len(same(spark, delta_spark, table, ["id", "v"])) == 3
