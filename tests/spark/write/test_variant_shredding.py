"""Shredded variants: fields that many rows have are columns of the files."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pyarrow.parquet as pq
import pytest

from tests.support import log
from tests.support.table_builder import in_order

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

SHREDDED = "'delta.enableVariantShredding' = 'true'"

#: Objects with mixed types and missing fields, nulls of both kinds, arrays, numbers.
VALUES = """CASE
    WHEN id % 10 = 0 THEN NULL
    WHEN id % 10 = 1 THEN parse_json('null')
    WHEN id % 10 = 2 THEN parse_json('{}')
    WHEN id % 10 = 3 THEN parse_json('{"l": [1, {"a": 2}, null]}')
    WHEN id % 10 = 4 THEN parse_json('{"a": "text", "z": 1}')
    ELSE parse_json(concat('{"a": ', id, ', "b": {"c": "ü', id % 7, '"}, "d": ', id / 3, '}'))
END"""
READ = ["id", "to_json(v)", "try_variant_get(v, '$.a', 'bigint')", "v:b.c::string", "v IS NULL"]


def columns_of(table: str) -> list[set[str]]:
    """Return the columns in each data file, with dots."""
    files = [log.data_path(table, add) for add in log.active_files(table)]
    schemas = [pq.ParquetFile(path).schema for path in files]
    return [{schema.column(i).path for i in range(len(schema))} for schema in schemas]


def create(spark: SparkSession, table: str, columns: str, *properties: str, rest: str = "") -> None:
    listed = ", ".join((SHREDDED, *properties))
    spark.sql(
        f"CREATE TABLE delta.`{table}` ({columns}) USING delta {rest} TBLPROPERTIES ({listed})"
    )


def fill(spark: SparkSession, table: str, rows: int = 100, files: int = 1) -> None:
    df = spark.range(0, rows, 1, files).selectExpr("id", f"{VALUES} AS v")
    df.write.format("delta").mode("append").save(table)


def rows_in(spark: SparkSession, table: str) -> list[Any]:
    rows = spark.read.format("delta").load(table).selectExpr(*READ).collect()
    return in_order(tuple(row) for row in rows)


def expected(spark: SparkSession, rows: int = 100) -> list[Any]:
    df = spark.range(rows).selectExpr("id", f"{VALUES} AS v").selectExpr(*READ)
    return in_order(tuple(row) for row in df.collect())


@pytest.mark.parametrize("rows", [1, 100, 10_000])
def test_rows_are_those_that_were_written(spark: SparkSession, table: str, rows: int) -> None:
    create(spark, table, "id BIGINT, v VARIANT")
    fill(spark, table, rows)
    (protocol,) = log.actions(table, 0, "protocol")
    assert {"variantType", "variantShredding"} <= set(protocol["readerFeatures"])
    assert {"variantType", "variantShredding"} <= set(protocol["writerFeatures"])
    assert rows_in(spark, table) == expected(spark, rows)
    (columns,) = columns_of(table)
    if rows > 1:
        assert {
            "v.metadata", "v.value", "v.typed_value.b.typed_value.c.typed_value",
            "v.typed_value.d.typed_value",
        } <= columns  # fmt: skip
    (add,) = log.active_files(table)
    assert log.statistics(add)["nullCount"]["v"] == -(-rows // 10)


def test_the_property_decides_for_new_files(spark: SparkSession, table: str) -> None:
    """A writer must not shred without it (the RFC of variantShredding, § Writer Requirements)."""
    spark.sql(f"CREATE TABLE delta.`{table}` (id BIGINT, v VARIANT) USING delta")
    fill(spark, table)
    assert columns_of(table) == [{"id", "v.metadata", "v.value"}]
    spark.sql(f"ALTER TABLE delta.`{table}` SET TBLPROPERTIES ({SHREDDED})")
    fill(spark, table)
    assert sorted(map(len, columns_of(table)))[0] == 3 < sorted(map(len, columns_of(table)))[1]
    name = "'delta.enableVariantShredding'"
    spark.sql(f"ALTER TABLE delta.`{table}` SET TBLPROPERTIES ({name} = 'false')")
    spark.sql(f"OPTIMIZE delta.`{table}`")
    assert columns_of(table) == [{"id", "v.metadata", "v.value"}]
    assert rows_in(spark, table) == in_order(expected(spark) * 2)


def test_files_of_every_statement_are_shredded(spark: SparkSession, table: str) -> None:
    create(spark, table, "id BIGINT, v VARIANT", "'delta.enableDeletionVectors' = 'false'")
    name = f"delta.`{table}`"
    fill(spark, table, files=4)
    spark.sql(f"OPTIMIZE {name}")
    assert len(columns_of(table)) == 1
    spark.sql(f"DELETE FROM {name} WHERE id >= 50")
    spark.sql(f"UPDATE {name} SET v = parse_json('{{\"a\": 1}}') WHERE id = 10")
    spark.sql(
        f"MERGE INTO {name} t USING (SELECT id, v FROM {name} WHERE id < 20) s ON t.id = s.id "
        "WHEN MATCHED THEN UPDATE SET v = s.v"
    )
    for columns in columns_of(table):
        assert "v.typed_value.a.typed_value" in columns or "v.typed_value.a.value" in columns
    found = dict(rows_in(spark, table)[n][:2] for n in range(50))
    assert found == {row[0]: row[1] for row in expected(spark, 50)} | {10: '{"a":1}'}


def test_variants_in_structs_are_shredded_and_those_in_arrays_and_maps_are_not(
    spark: SparkSession, table: str
) -> None:
    columns = "id BIGINT, s STRUCT<n: INT, v: VARIANT>, l ARRAY<VARIANT>, m MAP<STRING, VARIANT>"
    create(spark, table, columns)
    rows = ("id", "named_struct('n', 1, 'v', v) AS s", "array(v) AS l", "map('k', v) AS m")
    source = spark.range(0, 100, 1, 1).selectExpr("id", f"{VALUES} AS v").selectExpr(*rows)
    source.write.format("delta").mode("append").save(table)
    (columns_in_file,) = columns_of(table)
    assert "s.v.typed_value.b.typed_value.c.typed_value" in columns_in_file
    assert not any("typed_value" in c for c in columns_in_file if c.startswith(("l.", "m.")))
    read = ["id", "to_json(s.v)", "to_json(l[0])", "to_json(m['k'])"]
    found = spark.read.format("delta").load(table).selectExpr(*read).collect()
    assert in_order(map(tuple, found)) == in_order(map(tuple, source.selectExpr(*read).collect()))


def test_partitions_column_mapping_and_row_ids(spark: SparkSession, table: str) -> None:
    create(
        spark,
        table,
        "id BIGINT, v VARIANT, p INT",
        "'delta.columnMapping.mode' = 'name'",
        "'delta.enableRowTracking' = 'true'",
        rest="PARTITIONED BY (p)",
    )
    name = f"delta.`{table}`"
    rows = spark.range(0, 300, 1, 2).selectExpr("id", f"{VALUES} AS v", "CAST(id % 3 AS INT) AS p")
    rows.write.format("delta").mode("append").save(table)
    spark.sql(f"ALTER TABLE {name} RENAME COLUMN v TO w")
    ids = {
        row.id: row.n
        for row in spark.sql(f"SELECT id, _metadata.row_id AS n FROM {name}").collect()
    }
    spark.sql(f"OPTIMIZE {name}")
    after = spark.sql(f"SELECT id, _metadata.row_id AS n, to_json(w) AS j FROM {name}").collect()
    assert {row.id: row.n for row in after} == ids
    values = {row[0]: row[1] for row in expected(spark, 300)}
    assert {row.id: row.j for row in after} == values
    assert all(any("typed_value" in c for c in columns) for columns in columns_of(table))


def test_one_large_bin_that_several_tasks_write(spark: SparkSession, table: str) -> None:
    create(spark, table, "id BIGINT, v VARIANT")
    fill(spark, table, rows=20_000, files=8)
    spark.sql(f"OPTIMIZE delta.`{table}`")
    assert len(log.active_files(table)) == 1
    assert rows_in(spark, table) == expected(spark, 20_000)


def test_variants_of_several_types_are_not_shredded(spark: SparkSession, table: str) -> None:
    """Spark infers no columns then."""
    create(spark, table, "id BIGINT, v VARIANT")
    texts = ['"text"', "12.5", "[1, null]", '{"a": 1}', "true"]
    values = ", ".join(f"({n}L, parse_json('{text}'))" for n, text in enumerate(texts))
    spark.sql(f"INSERT INTO delta.`{table}` SELECT /*+ COALESCE(1) */ * FROM VALUES {values}")
    rows = spark.sql(f"SELECT to_json(v) FROM delta.`{table}` ORDER BY id").collect()
    assert [row[0] for row in rows] == [text.replace(" ", "") for text in texts]
    assert columns_of(table) == [{"id", "v.metadata", "v.value"}]


def test_an_empty_write_and_a_column_of_nulls(spark: SparkSession, table: str) -> None:
    create(spark, table, "id BIGINT, v VARIANT")
    fill(spark, table, rows=0)
    spark.sql(f"INSERT INTO delta.`{table}` VALUES (1, NULL), (2, NULL)")
    assert [tuple(row)[:2] for row in rows_in(spark, table)] == [(1, None), (2, None)]
