"""Values of every type, names and partitions of every spelling come back as they were written."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from pyspark.ml.linalg import Vectors, VectorUDT
from pyspark.sql import functions as F

from deltaic.exceptions import InvalidArgumentError
from tests.support import log
from tests.support.plans import scanned_files
from tests.support.session_settings import session_settings
from tests.support.table_builder import (
    TableWithOracle,
    assert_same_rows,
    build_with_oracle,
    rows_of,
)

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

#: Values of each type as SQL; null comes on top of them.
VALUES = {
    "BOOLEAN": ["true", "false"],
    "TINYINT": ["-128Y", "0Y", "127Y"],
    "SMALLINT": ["-32768S", "7S", "32767S"],
    "INT": ["-2147483648", "0", "2147483647"],
    "BIGINT": ["-9223372036854775808L", "-1L", "9223372036854775807L"],
    "FLOAT": ["CAST('-Infinity' AS FLOAT)", "-0.0F", "0.1F", "CAST('NaN' AS FLOAT)"],
    "DOUBLE": ["4.9E-324D", "-1.7976931348623157E308D", "0.1D", "CAST('NaN' AS DOUBLE)"],
    "DECIMAL(5,2)": ["-999.99BD", "0.01BD", "999.99BD"],
    "DECIMAL(18,0)": ["-999999999999999999BD", "1BD"],
    "DECIMAL(38,18)": ["-99999999999999999999.999999999999999999BD", "0.000000000000000001BD"],
    "STRING": ["'text'", "'ä€𝄞 🙂'", "repeat('long ', 100)", r"'quote\'\"\\ \n\t'", "'\\u0000'"],
    "BINARY": ["X'00'", "X'FFFE'", "X'C3A4'"],
    "DATE": ["DATE'0001-01-01'", "DATE'1582-10-15'", "DATE'9999-12-31'"],
    "TIMESTAMP": [
        "TIMESTAMP'0001-06-01 00:00:00'",
        "TIMESTAMP'1969-12-31 23:59:59.999999'",
        "TIMESTAMP'2024-03-31 02:30:00.000001'",
        "TIMESTAMP'9999-12-31 23:59:59.999999'",
    ],
    "TIMESTAMP_NTZ": [
        "TIMESTAMP_NTZ'0001-01-01 00:00:00'",
        "TIMESTAMP_NTZ'2024-03-31 02:30:00.000001'",
        "TIMESTAMP_NTZ'9999-12-31 23:59:59.999999'",
    ],
    "VARCHAR(10)": ["'short'", "'ten chars!'"],
    "CHAR(5)": ["'ab'", "'abcde'"],
    "STRUCT<a: INT, b: STRUCT<c: STRING>>": [
        "named_struct('a', 1, 'b', named_struct('c', 'deep'))",
        "named_struct('a', NULL, 'b', NULL)",
    ],
    "ARRAY<INT>": ["array()", "array(1, NULL, 3)"],
    "ARRAY<STRUCT<x: DATE>>": ["array(named_struct('x', DATE'2024-01-01'))", "array(NULL)"],
    "MAP<STRING, ARRAY<INT>>": ["map()", "map('k', array(1), 'l', NULL)"],
}

NESTED = ("STRUCT", "ARRAY", "MAP")
PRIMITIVES = [kind for kind in VALUES if not kind.startswith(NESTED)]


@pytest.mark.parametrize("kind", VALUES)
def test_values_come_back_and_are_found_again_by_equality(
    spark: SparkSession, table: str, kind: str
):
    values = [*VALUES[kind], "NULL"]
    name = f"delta.`{table}`"
    spark.sql(f"CREATE TABLE {name} (n INT, v {kind}) USING delta")
    selects = [f"SELECT {n} AS n, {value} AS v" for n, value in enumerate(values)]
    spark.sql(f"INSERT INTO {name} " + " UNION ALL ".join(selects))
    # A file of its own for each value: its bounds are the value, or none.
    for select in selects:
        spark.sql(f"INSERT INTO {name} {select}")
    expected = spark.sql(" UNION ALL ".join(selects)).selectExpr("n", f"CAST(v AS {stored(kind)})")
    if kind.startswith("CHAR"):
        expected = expected.selectExpr("n", "rpad(v, 5, ' ') AS v")
    rows = expected.collect()
    assert_same_rows(spark.table(name).collect(), [*rows, *rows])
    if kind.startswith("MAP"):
        return
    for n, value in enumerate(values):
        found = spark.sql(f"SELECT n FROM {name} WHERE v <=> CAST({value} AS {stored(kind)})")
        if not kind.startswith("CHAR"):
            assert {row.n for row in found.collect()} == {n}


def stored(kind: str) -> str:
    return "STRING" if "CHAR" in kind else kind


@pytest.mark.parametrize("kind", PRIMITIVES)
def test_values_as_partitions_come_back_and_prune(spark: SparkSession, table: str, kind: str):
    # Binary partition values travel as text, so bytes that are none cannot be written.
    values = [v for v in VALUES[kind] if v != "X'FFFE'"]
    name = f"delta.`{table}`"
    spark.sql(f"CREATE TABLE {name} (n INT, v {kind}) USING delta PARTITIONED BY (v)")
    selects = [f"SELECT {n} AS n, {value} AS v" for n, value in enumerate([*values, "NULL"])]
    spark.sql(f"INSERT INTO {name} " + " UNION ALL ".join(selects))
    expected = spark.sql(" UNION ALL ".join(selects)).selectExpr("n", f"CAST(v AS {stored(kind)})")
    if kind.startswith("CHAR"):
        expected = expected.selectExpr("n", "rpad(v, 5, ' ') AS v")
    assert_same_rows(spark.table(name).collect(), expected.collect())
    assert len(scanned_files(spark.table(name))) == len(values) + 1
    for n, value in enumerate([*values, "NULL"]):
        condition = f"v <=> CAST({value} AS {kind})" if "CHAR" not in kind else f"v <=> {value}"
        found = spark.sql(f"SELECT n FROM {name} WHERE {condition}")
        assert [row.n for row in found.collect()] == [n]
        assert len(scanned_files(found)) == 1


ODD_STRINGS = [
    " leading and trailing ", "a/b\\c", "x=y", "50%", "%41", "a%2Fb", "colon:", "hash#", "quo'te",
    'dq"', "ä€𝄞", "🙂", "tab\tline\n", "..", ".", "?*[]{}", "null", "NULL",
    "__HIVE_DEFAULT_PARTITION", "x" * 200, "+", "&", ";,", "~^|<>!@$`",
]  # fmt: skip


def test_partition_strings_of_every_spelling_come_back_and_prune(
    spark: SparkSession, tmp_path: Path
):
    rows = spark.createDataFrame(
        [(n, value) for n, value in enumerate([*ODD_STRINGS, None])], "n INT, p STRING"
    )
    table = build_with_oracle(
        spark, str(tmp_path / "t"), rows, partition_by=("p",), deletion_vectors=True
    )
    table.append(rows)
    table.assert_same_content()
    for n, value in enumerate(ODD_STRINGS):
        found = table.df().where(F.col("p") == value)
        assert [row.n for row in found.collect()] == [n, n]
        assert len(scanned_files(found)) == 2
    table.delete("p LIKE '%\\%%' OR p IS NULL OR p = 'x=y'")
    table.assert_same_content()


def test_empty_string_as_partition_value_is_null(spark: SparkSession, table: str):
    """Protocol § Partition Value Serialization: an empty string stands for null."""
    spark.sql("SELECT 1 AS n, '' AS p").write.format("delta").partitionBy("p").save(table)
    assert [tuple(r) for r in spark.read.format("delta").load(table).collect()] == [(1, None)]


ODD_NAMES = [
    "dotted.name", "Ünïcode", "emoji🙂", "per%cent", "quo'te", 'dq"', "hash#", "back`tick",
    "colon:", "plus+", "a-b", "CamelCase", "select", "a/b", "back\\slash", "[x]", "_", "1st",
]  # fmt: skip


def quoted(name: str) -> str:
    return "`" + name.replace("`", "``") + "`"


@pytest.mark.parametrize("name", ODD_NAMES)
def test_column_names_of_every_spelling_work_as_data_as_field_and_as_partition(
    spark: SparkSession, tmp_path: Path, name: str
):
    column = quoted(name)
    rows = spark.range(0, 30, 1, 2).selectExpr(
        f"id AS {column}", f"named_struct('f', id, 'g', struct(id % 2 AS {column})) AS st"
    )
    data = build_with_oracle(spark, str(tmp_path / "data"), rows, deletion_vectors=True)
    partitions = build_with_oracle(
        spark, str(tmp_path / "parts"), rows, partition_by=(name,), deletion_vectors=True
    )
    for table in (data, partitions):
        table.delete(f"{column} = 3 OR {column} > 25 AND st.g.{column} = 1")
        answer = table.assert_same_answer(
            f"SELECT {column}, st.g.{column} AS g FROM {{t}} WHERE {column} BETWEEN 2 AND 9"
        )
        assert len(answer) == 7
    assert len(scanned_files(partitions.df().where(f"{column} = 7"))) == 1
    assert len(scanned_files(data.df().where(f"{column} < 7"))) == 1
    statistics = log.statistics(log.active_files(data.path)[0])
    assert name in statistics["minValues"]
    assert name in statistics["minValues"]["st"]["g"]


@pytest.mark.parametrize("name", ["a b", "a,b", "a;b", "a=b", "a(b)", "tab\t", "new\nline"])
def test_column_name_that_parquet_readers_cannot_take_is_refused(
    spark: SparkSession, table: str, name: str
):
    with pytest.raises(Exception, match="DELTAIC_INVALID_COLUMN_NAME"):
        spark.range(2).toDF(name).write.format("delta").save(table)
    assert not Path(table, "_delta_log").exists()


@pytest.mark.parametrize("writing", ["UTC", "America/Los_Angeles", "Asia/Kolkata"])
@pytest.mark.parametrize("reading", ["UTC", "Europe/Berlin"])
def test_timestamp_partitions_are_the_same_instants_in_every_session_zone(
    spark: SparkSession, tmp_path: Path, writing: str, reading: str
):
    strings = ["2024-03-31 02:30:00.000001+00:00", "1969-12-31 23:59:59.5+00:00"]
    with session_settings(spark, {"spark.sql.session.timeZone": writing}):
        rows = spark.createDataFrame(list(enumerate(strings)), "n INT, t STRING").selectExpr(
            "n",
            "CAST(t AS TIMESTAMP) AS ts",
            "unix_micros(CAST(t AS TIMESTAMP)) AS micros",
            "date_trunc('DAY', CAST(t AS TIMESTAMP)) AS day",
        )
        path = str(tmp_path / "t")
        rows.write.format("delta").partitionBy("ts", "day").save(path)
    spelled = {add["partitionValues"]["ts"] for add in log.actions(path, 0, "add")}
    assert spelled == {"2024-03-31T02:30:00.000001Z", "1969-12-31T23:59:59.500000Z"}
    with session_settings(spark, {"spark.sql.session.timeZone": reading}):
        df = spark.read.format("delta").load(path)
        assert df.where("unix_micros(ts) <> micros").count() == 0
        for n, text in enumerate(strings):
            found = df.where(f"ts = TIMESTAMP'{text}'")
            assert [row.n for row in found.collect()] == [n]
            assert len(scanned_files(found)) == 1


@pytest.mark.parametrize("zone", ["UTC", "Asia/Kolkata"])
def test_timestamps_in_files_skip_and_compare_in_every_session_zone(
    spark: SparkSession, table: str, zone: str
):
    rows = spark.range(0, 48, 1, 4).selectExpr("id", "timestamp_seconds(id * 1800) AS ts")
    rows.write.format("delta").save(table)
    with session_settings(spark, {"spark.sql.session.timeZone": zone}):
        df = spark.read.format("delta").load(table)
        found = df.where("ts >= TIMESTAMP'1970-01-01 18:00:00+00:00'")
        assert sorted(row.id for row in found.collect()) == list(range(36, 48))
        assert len(scanned_files(found)) == 1


def test_column_comments_and_nullability_are_kept(spark: SparkSession, table: str):
    name = f"delta.`{table}`"
    spark.sql(f"CREATE TABLE {name} (a INT NOT NULL COMMENT 'first', b INT) USING delta")
    fields = {f["name"]: f for f in json.loads(log.metadata(table)["schemaString"])["fields"]}
    assert fields["a"]["nullable"] is False
    assert fields["a"]["metadata"]["comment"] == "first"
    before = log.contents(table)
    with pytest.raises(Exception, match=r"NOT_NULL|DELTAIC_NOT_NULL_VIOLATED"):
        spark.sql(f"INSERT INTO {name} SELECT IF(id = 7, NULL, 1), 2 FROM range(10)")
    assert log.contents(table) == before


def test_strings_are_padded_compared_and_length_checked(spark: SparkSession, table: str):
    columns = "id INT, c CHAR(4), v VARCHAR(3), g INT GENERATED ALWAYS AS (length(c))"
    spark.sql(f"CREATE TABLE delta.`{table}` ({columns}) USING delta")
    fields = json.loads(log.metadata(table)["schemaString"])["fields"]
    assert [field["type"] for field in fields] == ["integer", "string", "string", "integer"]
    for statement in (
        "INSERT INTO {t} (id, c, v) VALUES (1, 'a', 'x'), (2, 'b', 'y'), (3, 'c', 'z')",
        "UPDATE {t} SET c = 'zz' WHERE c = 'a'",
        "MERGE INTO {t} t USING "
        "(SELECT * FROM VALUES (2, 'B', 'w'), (4, 'n', 'm') AS v(id, c, v)) s "
        "ON t.id = s.id WHEN MATCHED THEN UPDATE SET c = s.c, v = s.v "
        "WHEN NOT MATCHED THEN INSERT (id, c, v) VALUES (s.id, s.c, s.v)",
    ):
        spark.sql(statement.format(t=f"delta.`{table}`"))
    strings = [("zz  ", "x"), ("B   ", "w"), ("c   ", "z"), ("n   ", "m")]
    assert rows_of(spark, table) == [(n, *text, 4) for n, text in enumerate(strings, start=1)]
    before = log.contents(table)
    for statement in (
        "INSERT INTO {t} (v) VALUES ('four')",
        "UPDATE {t} SET v = 'four' WHERE id = 1",
        "UPDATE {t} SET c = 'more than four'",
        "MERGE INTO {t} t USING (SELECT 1 AS id, 'four' AS v) s ON t.id = s.id "
        "WHEN MATCHED THEN UPDATE SET v = s.v",
    ):
        with pytest.raises(Exception, match="EXCEED_LIMIT_LENGTH"):
            spark.sql(statement.format(t=f"delta.`{table}`"))
    assert log.contents(table) == before


def test_nested_strings_are_padded_and_length_checked_at_every_depth(
    spark: SparkSession, table: str
) -> None:
    name, parts = f"delta.`{table}`", "s STRUCT<a: VARCHAR(3), `b.c`: INT>, l ARRAY<CHAR(3)>"
    for statement in ("CREATE TABLE", "REPLACE TABLE"):
        spark.sql(
            f"{statement} {name} (id INT, {parts}, m MAP<STRING, VARCHAR(3)>) USING delta"
            " TBLPROPERTIES ('delta.columnMapping.mode' = 'name')"
        )
    fields = json.loads(log.metadata(table)["schemaString"])["fields"]
    assert "char" not in json.dumps([field["type"] for field in fields])
    limits = [field["metadata"].get("__CHAR_VARCHAR_TYPE_STRING") for field in fields]
    assert limits == [
        None,
        "STRUCT<a: VARCHAR(3), `b.c`: INT>",
        "array<char(3)>",
        "map<string,varchar(3)>",
    ]
    good = {
        "s": "named_struct('a', 'abc', 'b.c', 1)",
        "l": "array('x', NULL)",
        "m": "map('long key', 'abc')",
    }
    bad = {
        "s": "named_struct('a', 'four', 'b.c', 1)",
        "l": "array('four')",
        "m": "map('k', 'four')",
    }
    spark.sql(f"INSERT INTO {name} SELECT 1, {', '.join(good.values())}")
    assert rows_of(spark, table) == [(1, ("abc", 1), ["x  ", None], {"long key": "abc"})]
    for column, value in bad.items():
        values = {**good, column: value}.values()
        for statement in (
            f"INSERT INTO {name} SELECT 2, {', '.join(values)}",
            f"UPDATE {name} SET {column} = {value}",
            f"MERGE INTO {name} t USING (SELECT 1 AS id) s ON t.id = s.id"
            f" WHEN MATCHED THEN UPDATE SET {column} = {value}",
        ):
            with pytest.raises(Exception, match="EXCEED_LIMIT_LENGTH"):
                spark.sql(statement)
    match = r"DELTAIC_CANNOT_ALTER_COLUMN.*STRUCT<a: VARCHAR"
    with pytest.raises(InvalidArgumentError, match=match):
        spark.sql(f"ALTER TABLE {name} ADD COLUMN s.d INT")
    with pytest.raises(InvalidArgumentError, match="REPLACE COLUMNS"):
        spark.sql(f"ALTER TABLE {name} ALTER COLUMN s.a TYPE STRING")
    spark.sql(f"ALTER TABLE {name} RENAME COLUMN s TO r")
    with pytest.raises(Exception, match="EXCEED_LIMIT_LENGTH"):
        spark.sql(f"UPDATE {name} SET r.a = 'four'")
    assert rows_of(spark, table) == [(1, ("abc", 1), ["x  ", None], {"long key": "abc"})]


def test_wide_table_is_written_and_read(spark: SparkSession, table: str):
    columns = [f"id * {n} AS c{n}" for n in range(150)]
    target: TableWithOracle = build_with_oracle(
        spark, table, spark.range(50).selectExpr("id", *columns), deletion_vectors=True
    )
    target.delete("c10 = 100")
    target.assert_same_content()


@pytest.mark.parametrize(
    "name",
    ["__deltaic_row_index", "__DELTAIC_file_path", "__deltaic_new", "_tmp_metadata_row_index"],
)
def test_column_with_a_name_of_the_engine_is_refused_and_nothing_is_written(
    spark: SparkSession, table: str, name: str
):
    with pytest.raises(Exception, match="DELTAIC_RESERVED_COLUMN_NAME"):
        spark.range(3).selectExpr("id", f"id AS `{name}`").write.format("delta").save(table)
    with pytest.raises(Exception, match="DELTAIC_RESERVED_COLUMN_NAME"):
        spark.sql(f"CREATE TABLE delta.`{table}` (`{name}` BIGINT) USING delta")
    assert not Path(table).exists() or log.contents(table) == {}


@pytest.mark.parametrize("kind", ["DOUBLE", "FLOAT"])
def test_both_zeros_are_found_by_either(spark: SparkSession, table: str, kind: str):
    rows = spark.range(0, 100, 1, 1).selectExpr(
        "id", f"CAST(IF(id % 2 = 0, -0.0D, 1.0D) AS {kind}) AS d"
    )
    rows.write.format("delta").save(table)
    df = spark.read.format("delta").load(table)
    for condition in ("d = 0", "d = -0.0D", "d IN (0, 7)", "d <=> 0", "d <= 0", "d >= 0 AND d < 1"):
        assert df.where(condition).count() == 50, condition
    spark.sql(f"DELETE FROM delta.`{table}` WHERE d = 0")
    assert spark.read.format("delta").load(table).count() == 50


def test_vectors_of_a_user_defined_type_are_written_changed_and_evolved(
    spark: SparkSession, table: str
):
    vectors = [Vectors.dense(1.0, 2.0), Vectors.sparse(3, [1], [5.0]), None]
    df = spark.createDataFrame(list(enumerate(vectors)), ["id", "v"])
    df.write.format("delta").save(table)
    (metadata,) = log.actions(table, 0, "metaData")
    stored = json.loads(metadata["schemaString"])["fields"][1]["type"]
    assert stored == json.loads(VectorUDT().json())
    name = f"delta.`{table}`"
    spark.sql(f"INSERT INTO {name} SELECT id + 10, v FROM {name}")
    spark.sql(f"ALTER TABLE {name} SET TBLPROPERTIES ('mine' = '1')")
    spark.sql(f"DELETE FROM {name} WHERE id = 0 OR v IS NULL")
    spark.sql(f"UPDATE {name} SET id = 2 WHERE id = 11")
    more = df.where("id = 0").withColumn("more", F.lit("x"))
    more.write.format("delta").mode("append").option("mergeSchema", "true").save(table)
    found = spark.table(name).orderBy("id")
    assert found.schema["v"].dataType == VectorUDT()
    dense, sparse, _ = vectors
    expected = [(0, dense, "x"), (1, sparse, None), (2, sparse, None), (10, dense, None)]
    assert [tuple(row) for row in found.collect()] == expected
    assert spark.sql(f"DESCRIBE DETAIL {name}").collect()[0].tableFeatures == [
        "appendOnly",
        "invariants",
    ]
