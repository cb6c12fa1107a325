"""The columns of converted folders: merged over all files, and widened where types differ."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from deltaic import DeltaTable
from deltaic.exceptions import DeltaError
from tests.support import log
from tests.support.table_builder import in_order, rows_of

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


def write(spark: SparkSession, path: str, *queries: str) -> None:
    """Write one file for each query, in this order of their names."""
    for number, query in enumerate(queries):
        folder = f"{path}-{number}"
        spark.sql(f"SELECT {query}").coalesce(1).write.parquet(folder)
        (file,) = Path(folder).glob("*.parquet")
        Path(path).mkdir(exist_ok=True)
        file.rename(Path(path, f"{number}.parquet"))


def convert(spark: SparkSession, path: str) -> DeltaTable:
    return DeltaTable.convertToDelta(spark, f"parquet.`{path}`")


def refused(spark: SparkSession, path: str) -> DeltaError:
    with pytest.raises(DeltaError) as raised:
        convert(spark, path)
    assert not Path(path, "_delta_log").exists()
    return raised.value


def features(path: str) -> set[str]:
    (protocol,) = log.actions(path, 0, "protocol")
    return set(protocol.get("writerFeatures", []))


def test_columns_of_all_files_are_merged_and_missing_ones_are_null(
    spark: SparkSession, table: str
) -> None:
    write(
        spark,
        table,
        "1 AS a, named_struct('x', 1) AS s",
        "'b' AS b, named_struct('y', 'y', 'x', 2) AS s, 2 AS a",
        "array(named_struct('k', 1)) AS l, 3 AS a",
        "array(named_struct('m', 2, 'k', 3)) AS l, map('k', named_struct('v', 1)) AS m",
    )
    df = convert(spark, table).toDF()
    assert df.schema.simpleString() == (
        "struct<a:int,s:struct<x:int,y:string>,b:string,l:array<struct<k:int,m:int>>,"
        "m:map<string,struct<v:int>>>"
    )
    assert in_order(tuple(row) for row in df.select("a", "s.x", "s.y", "b").collect()) == in_order(
        [(1, 1, None, None), (2, 2, "y", "b"), (3, None, None, None), (None, None, None, None)]
    )
    assert "typeWidening" not in features(table)
    nulls = [log.statistics(add)["nullCount"] for add in log.active_files(table)]
    assert [n["b"] for n in nulls] == [1, 0, 1, 1]
    assert [n["s"] for n in nulls] == [
        {"x": 0, "y": 1},
        {"x": 0, "y": 0},
        {"x": 1, "y": 1},
        {"x": 1, "y": 1},
    ]


#: Values of a column in several files, and its type.
WIDENED = {
    "integers": (["CAST(1 AS TINYINT)", "CAST(300 AS SMALLINT)", "70000"], "int"),
    "long": (["CAST(5000000000 AS BIGINT)", "7"], "bigint"),
    "double": (["CAST(0.1 AS FLOAT)", "CAST(0.1 AS DOUBLE)"], "double"),
    "double of integers": (["3", "CAST(0.5 AS DOUBLE)", "CAST(-0.0 AS FLOAT)"], "double"),
    "decimals": (["CAST(1.25 AS DECIMAL(5,2))", "CAST(1.5 AS DECIMAL(10,2))"], "decimal(10,2)"),
    "scales": (
        ["CAST(1.25 AS DECIMAL(5,2))", "CAST(12345678.1 AS DECIMAL(9,1))"],
        "decimal(10,2)",
    ),
    "decimal of integers": (["5", "CAST(1.25 AS DECIMAL(5,2))"], "decimal(12,2)"),
    "date": (["DATE'2024-01-31'", "TIMESTAMP_NTZ'2024-02-01 10:11:12'"], "timestamp_ntz"),
}


@pytest.mark.parametrize("kind", WIDENED)
def test_types_that_differ_are_widened(spark: SparkSession, table: str, kind: str) -> None:
    values, expected = WIDENED[kind]
    write(spark, table, *(f"{n} AS id, {value} AS v" for n, value in enumerate(values)))
    df = convert(spark, table).toDF()
    assert df.schema["v"].dataType.simpleString() == expected
    wide = spark.sql(
        " UNION ALL ".join(f"SELECT {n}, CAST({v} AS {expected})" for n, v in enumerate(values))
    )
    rows = in_order(tuple(row) for row in wide.collect())
    assert rows_of(spark, table) == rows
    assert "typeWidening" in features(table)
    for id, value in rows:
        found = df.where(df.v == value)
        assert (id, value) in {tuple(row) for row in found.collect()}, "no file is skipped"


def test_nested_types_are_widened_at_their_paths(spark: SparkSession, table: str) -> None:
    write(
        spark,
        table,
        "array(1) AS l, map('k', array(1)) AS m, named_struct('x', 1) AS s",
        "array(5000000000) AS l, map('k', array(5000000000)) AS m, "
        "named_struct('x', 5000000000) AS s",
    )
    convert(spark, table)
    assert rows_of(spark, table) == in_order(
        [
            ([1], {"k": [1]}, (1,)),
            ([5000000000], {"k": [5000000000]}, (5000000000,)),
        ]
    )
    schema = log.last_actions(table, "metaData")[-1]["schemaString"]
    assert '"fieldPath":"element"' in schema and '"fieldPath":"value.element"' in schema


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("1", "'x'"),
        ("CAST(1 AS BIGINT)", "CAST(1 AS DOUBLE)"),
        ("named_struct('a', 1)", "1"),
        ("array(1)", "array('x')"),
        ("DATE'2024-01-01'", "TIMESTAMP'2024-01-01 00:00:00'"),
        ("CAST(1 AS DECIMAL(38,0))", "CAST(1 AS DECIMAL(38,10))"),
        ("true", "1"),
    ],
)
def test_types_that_no_reader_widens_are_refused_with_both_files(
    spark: SparkSession, table: str, one: str, other: str
) -> None:
    write(spark, table, f"{one} AS v", "1 AS x", f"{other} AS v")
    problem = refused(spark, table)
    assert problem.condition == "DELTAIC_CONVERT_TYPES_DIFFER"
    assert problem.parameters["column"].split(".")[0] == "v"
    assert problem.parameters["file"].endswith("0.parquet")
    assert problem.parameters["otherFile"].endswith("2.parquet")


def test_types_that_need_features_enable_them(spark: SparkSession, table: str) -> None:
    write(
        spark,
        table,
        "1 AS id, TIMESTAMP_NTZ'2024-01-31 10:11:12' AS t, parse_json('{\"a\": 1}') AS v",
    )
    df = convert(spark, table).toDF()
    assert df.schema.simpleString() == "struct<id:int,t:timestamp_ntz,v:variant>"
    assert {"timestampNtz", "variantType"} <= features(table)
    assert df.selectExpr("variant_get(v, '$.a', 'int') AS a").collect() == [(1,)]


def test_comments_and_lengths_of_strings_are_kept_and_nothing_else_of_the_columns(
    spark: SparkSession, table: str
) -> None:
    source = f"{table}-source"
    spark.sql(
        f"CREATE TABLE delta.`{source}` (id BIGINT GENERATED ALWAYS AS IDENTITY, "
        "c STRING COMMENT 'words', v VARCHAR(5), d INT DEFAULT 7) USING delta "
        "TBLPROPERTIES ('delta.feature.allowColumnDefaults' = 'supported')"
    )
    spark.sql(f"INSERT INTO delta.`{source}` (c, v) VALUES ('c', 'v')")
    spark.read.format("delta").load(source).write.parquet(table)
    df = convert(spark, table).toDF()
    assert df.schema["c"].metadata == {"comment": "words"}
    assert rows_of(spark, table) == [(1, "c", "v", 7)]
    assert not {"identityColumns", "allowColumnDefaults"} & features(table)


def test_schema_that_was_copied_from_another_file_is_ignored(
    spark: SparkSession, table: str
) -> None:
    write(spark, f"{table}-source", "1 AS id, 'x' AS v")
    read = pq.read_table(f"{table}-source/0.parquet")
    changed = pa.table({"id": pa.array([1.5]), "w": pa.array(["y"])})
    Path(table).mkdir()
    pq.write_table(changed.replace_schema_metadata(read.schema.metadata), f"{table}/0.parquet")
    df = convert(spark, table).toDF()
    assert df.schema.simpleString() == "struct<id:double,w:string>"
    assert rows_of(spark, table) == [(1.5, "y")]


@pytest.mark.parametrize("kind", [pa.time64("us"), pa.timestamp("ns")])
def test_type_that_delta_tables_do_not_have_is_refused(
    spark: SparkSession, table: str, kind: Any
) -> None:
    Path(table).mkdir()
    values = pa.array([1], pa.int64()).cast(kind)
    pq.write_table(pa.table({"id": [1], "t": values}), f"{table}/0.parquet", version="2.6")
    problem = refused(spark, table)
    assert problem.condition in ("DELTAIC_UNSUPPORTED_TYPE", "DELTAIC_CONVERT_FILE_INVALID")
    assert "t" in str(problem)


def test_columns_are_nullable(spark: SparkSession, table: str) -> None:
    Path(table).mkdir()
    required = pa.schema([pa.field("id", pa.int64(), nullable=False)])
    pq.write_table(pa.table({"id": [1]}, schema=required), f"{table}/0.parquet")
    df = convert(spark, table).toDF()
    assert df.schema["id"].nullable
    assert "invariants" not in features(table)
