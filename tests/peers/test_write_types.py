"""Variants and widened columns, written by Deltaic and read by delta-spark."""

from __future__ import annotations

import pyarrow.parquet as pq
import pytest
from pyspark.sql import SparkSession

from tests.support import log
from tests.support.spark_process import SparkProcess

READ = """
df = spark.read.format("delta").load(path).selectExpr(*columns)
result = sorted(map(repr, df.collect()))
"""
RUN = """
for statement in statements:
    spark.sql(statement)
result = None
"""


def same(
    spark: SparkSession, delta_spark: SparkProcess, table: str, columns: list[str]
) -> list[str]:
    df = spark.read.format("delta").load(table).selectExpr(*columns)
    mine = sorted(map(repr, df.collect()))
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


def test_shredded_variants_are_written_as_delta_spark_reads_them(
    spark: SparkSession, delta_spark: SparkProcess, table: str
) -> None:
    name = f"delta.`{table}`"
    spark.sql(
        f"CREATE TABLE {name} (id BIGINT, v VARIANT) USING delta "
        "TBLPROPERTIES ('delta.enableVariantShredding' = 'true')"
    )
    value = """parse_json(concat('{"a": ', id, ', "b": {"c": "x', id, '"}, "l": [1, null]}'))"""
    rows = f"IF(id % 5 = 0, NULL, IF(id % 5 = 1, parse_json('{{}}'), {value}))"
    spark.sql(f"INSERT INTO {name} SELECT id, {rows} FROM range(200)")
    paths = [log.data_path(table, add) for add in log.active_files(table)]
    names = str([pq.read_schema(path).field("v").type for path in paths])
    assert "typed_value" in names
    columns = ["id", "to_json(v) j", "try_variant_get(v, '$.a', 'bigint') a", "v:b.c::string c"]
    # Interpreted, as the peer runs for the tests, Spark cannot cast fields of shredded variants.
    delta_spark.run(RUN, statements=["SET spark.sql.codegen.factoryMode = FALLBACK"])
    assert len(same(spark, delta_spark, table, columns)) == 200
    update = f"UPDATE {name} SET v = parse_json('7') WHERE id = 3"
    delta_spark.run(RUN, statements=[update, f"OPTIMIZE {name}"])
    assert len(same(spark, delta_spark, table, columns)) == 200
    delta_spark.run(RUN, statements=["RESET spark.sql.codegen.factoryMode"])
    files = [str(path) for path in paths]
    read = spark.read.schema("id BIGINT, v VARIANT").parquet(*files).where("v:b.c::string = 'x8'")
    assert [row.id for row in read.collect()] == [8]


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


def test_types_are_widened_as_delta_spark_would(
    spark: SparkSession, delta_spark: SparkProcess, table: str
) -> None:
    name = f"delta.`{table}`"
    spark.sql(
        f"CREATE TABLE {name} (a TINYINT, f FLOAT, s STRUCT<x: SMALLINT>, l ARRAY<INT>, "
        "n DECIMAL(6, 2), d DATE) USING delta TBLPROPERTIES ('delta.enableTypeWidening' = 'true')"
    )
    row = "1, 1.5, named_struct('x', 2), array(3), 4.25, DATE'2024-02-03'"
    spark.sql(f"INSERT INTO {name} VALUES ({row})")
    for column, data_type in (
        ("a", "SMALLINT"),
        ("a", "BIGINT"),
        ("f", "DOUBLE"),
        ("s.x", "INT"),
        ("l.element", "BIGINT"),
        ("n", "DECIMAL(12, 4)"),
    ):
        spark.sql(f"ALTER TABLE {name} ALTER COLUMN {column} TYPE {data_type}")
    big = "5000000000, 0.1D, named_struct('x', 100000), array(5000000000), 12345678.1234"
    spark.sql(f"INSERT INTO {name} VALUES ({big}, DATE'2025-01-01')")
    assert len(same(spark, delta_spark, table, ["*"])) == 2
    delta_spark.run(RUN, statements=[f"INSERT INTO {name} SELECT * FROM {name} WHERE a > 1"])
    assert len(same(spark, delta_spark, table, ["*"])) == 3


@pytest.mark.parametrize("data_type", ["INT", "STRING", "DECIMAL(5, 0)"])
def test_narrower_type_is_refused(spark: SparkSession, table: str, data_type: str) -> None:
    name = f"delta.`{table}`"
    widening = "TBLPROPERTIES ('delta.enableTypeWidening' = 'true')"
    spark.sql(f"CREATE TABLE {name} (a BIGINT) USING delta {widening}")
    with pytest.raises(Exception, match=r"DELTAIC_UNSUPPORTED_COLUMN_CHANGE|NOT_SUPPORTED_CHANGE"):
        spark.sql(f"ALTER TABLE {name} ALTER COLUMN a TYPE {data_type}")


def test_type_that_a_condition_references_is_kept(spark: SparkSession, table: str) -> None:
    name = f"delta.`{table}`"
    spark.sql(f"CREATE TABLE {name} (a INT CHECK (a > 0), b INT) USING delta")
    with pytest.raises(Exception, match="TypeWidening is not true"):
        spark.sql(f"ALTER TABLE {name} ALTER COLUMN b TYPE BIGINT")
    spark.sql(f"ALTER TABLE {name} SET TBLPROPERTIES ('delta.enableTypeWidening' = 'true')")
    with pytest.raises(Exception, match="a > 0"):
        spark.sql(f"ALTER TABLE {name} ALTER COLUMN a TYPE BIGINT")
    spark.sql(f"ALTER TABLE {name} ALTER COLUMN b TYPE BIGINT")


@pytest.mark.protocol("default-columns-3")
def test_default_is_set_and_dropped_later(
    spark: SparkSession, delta_spark: SparkProcess, table: str
) -> None:
    name = f"delta.`{table}`"
    spark.sql(f"CREATE TABLE {name} (a INT, b INT) USING delta")
    spark.sql(f"ALTER TABLE {name} ALTER COLUMN b SET DEFAULT 42")
    spark.sql(f"INSERT INTO {name} (a) VALUES (1)")
    delta_spark.run(RUN, statements=[f"INSERT INTO {name} VALUES (2, DEFAULT)"])
    spark.sql(f"ALTER TABLE {name} ALTER COLUMN b DROP DEFAULT")
    spark.sql(f"INSERT INTO {name} (a) VALUES (3)")
    assert same(spark, delta_spark, table, ["a", "b"]) == [
        "Row(a=1, b=42)",
        "Row(a=2, b=42)",
        "Row(a=3, b=None)",
    ]
