"""Writes that add columns: from DataFrames, from SQL, by option and by session."""

from __future__ import annotations

from collections.abc import Callable
from decimal import Decimal
from typing import TYPE_CHECKING

import pytest
from pyspark.sql import functions as F

from tests.support import log
from tests.support.interleave import committed_meanwhile
from tests.support.session_settings import session_settings
from tests.support.table_builder import rows_of

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


AUTO_MERGE = "spark.databricks.delta.schema.autoMerge.enabled"
Write = Callable[["SparkSession", str, str], None]


def save(spark: SparkSession, table: str, query: str) -> None:
    writer = spark.sql(query).write.format("delta").mode("append").option("mergeSchema", "true")
    writer.save(table)


def write_to(spark: SparkSession, table: str, query: str) -> None:
    spark.sql(query).writeTo(f"delta.`{table}`").option("mergeSchema", "true").append()


def insert(spark: SparkSession, table: str, query: str) -> None:
    spark.sql(f"INSERT WITH SCHEMA EVOLUTION INTO delta.`{table}` BY NAME {query}")


def insert_in_session(spark: SparkSession, table: str, query: str) -> None:
    with session_settings(spark, {AUTO_MERGE: "true"}):
        spark.sql(f"INSERT INTO delta.`{table}` BY NAME {query}")


WRITES = pytest.mark.parametrize("write", [save, write_to, insert, insert_in_session])

BEFORE = (
    "SELECT 1 AS id, named_struct('a', 1, 'b', 2) AS st, array(named_struct('a', 1)) AS arr,"
    " map('k', named_struct('a', 1)) AS m"
)
#: With columns in another order and spelling, without one the table has, and with new ones.
AFTER = (
    "SELECT 'x' AS new, map('k', named_struct('z', 7, 'a', 5)) AS M,"
    " array(named_struct('y', 6L, 'a', 4)) AS arr, named_struct('c', 8, 'a', 3) AS st, 2 AS ID"
)


@WRITES
def test_new_columns_and_fields_are_added_with_the_rows_in_one_commit(
    spark: SparkSession, table: str, write: Write
) -> None:
    writer = spark.sql(BEFORE).write.format("delta")
    writer.option("delta.columnMapping.mode", "name").save(table)
    df = spark.read.format("delta").load(table)
    write(spark, table, AFTER)
    assert log.versions(table) == [0, 1]
    assert len(log.actions(table, 1, "metaData")) == 1
    assert spark.read.format("delta").load(table).dtypes == [
        ("id", "int"),
        ("st", "struct<a:int,b:int,c:int>"),
        ("arr", "array<struct<a:int,y:bigint>>"),
        ("m", "map<string,struct<a:int,z:int>>"),
        ("new", "string"),
    ]
    (old, new) = spark.read.format("delta").load(table).orderBy("id").collect()
    assert old.asDict(recursive=True) == {
        "id": 1,
        "st": {"a": 1, "b": 2, "c": None},
        "arr": [{"a": 1, "y": None}],
        "m": {"k": {"a": 1, "z": None}},
        "new": None,
    }
    assert new.asDict(recursive=True) == {
        "id": 2,
        "st": {"a": 3, "b": None, "c": 8},
        "arr": [{"a": 4, "y": 6}],
        "m": {"k": {"a": 5, "z": 7}},
        "new": "x",
    }
    assert df.columns == ["id", "st", "arr", "m"]


@pytest.mark.protocol("consistency-between-table-metadata-and-data-files-1")
@pytest.mark.parametrize(
    "write",
    [
        lambda spark, t, query: spark.sql(query).write.format("delta").mode("append").save(t),
        lambda spark, t, query: spark.sql(query).writeTo(f"delta.`{t}`").append(),
        lambda spark, t, query: spark.sql(f"INSERT INTO delta.`{t}` BY NAME {query}"),
    ],
    ids=["save", "writeTo", "insert"],
)
def test_rows_with_more_columns_are_refused_by_name_with_the_option_that_adds_them(
    spark: SparkSession, table: str, write: Write
) -> None:
    spark.sql(BEFORE).write.format("delta").save(table)
    before = log.contents(table)
    with pytest.raises(Exception, match="DELTAIC_SCHEMA_MISMATCH") as caught:
        write(spark, table, AFTER)
    for name in ("st.c", "arr.element.y", "m.value.z", "new", "mergeSchema=true"):
        assert name in str(caught.value)
    assert log.contents(table) == before


def test_fields_that_rows_of_a_dataframe_lack_are_null(spark: SparkSession, table: str) -> None:
    spark.sql(BEFORE).write.format("delta").save(table)
    less = spark.sql("SELECT named_struct('a', 3) AS st, 2 AS id")
    less.write.format("delta").mode("append").save(table)
    less.writeTo(f"delta.`{table}`").append()
    rows = spark.read.format("delta").load(table).where("id = 2").collect()
    assert [tuple(row) for row in rows] == [(2, (3, None), None, None)] * 2


def test_columns_by_position_are_added_under_the_names_of_the_query(
    spark: SparkSession, table: str
) -> None:
    name = f"delta.`{table}`"
    spark.sql(
        f"CREATE TABLE {name} (a INT, p INT, s STRUCT<x: INT>) USING delta PARTITIONED BY (p)"
    )
    spark.sql(
        f"INSERT WITH SCHEMA EVOLUTION INTO {name} PARTITION (p = 1)"
        " SELECT 1, named_struct('q', 2, 'r', 3), 4 AS more"
    )
    spark.sql(f"INSERT WITH SCHEMA EVOLUTION INTO {name} (more, a, other) VALUES (1, 2, 3)")
    assert spark.table(name).columns == ["a", "p", "s", "more", "other"]
    assert rows_of(spark, table) == [(1, 1, (2, 3), 4, None), (2, None, None, 1, 3)]
    with pytest.raises(Exception, match="DELTAIC_SCHEMA_MISMATCH"):
        spark.sql(f"INSERT INTO {name} SELECT 1, 2, named_struct('x', 3, 'r', 1), 4, 5, 6 AS sixth")


@pytest.mark.parametrize(
    ("more", "named"),
    [("named_struct('x', 3), 4 AS A", "a, A"), ("named_struct('x', 3, 'X', 4)", r"s\.x, s\.X")],
)
def test_column_by_position_under_the_name_of_another_is_refused(
    spark: SparkSession, table: str, more: str, named: str
) -> None:
    name = f"delta.`{table}`"
    spark.sql(
        f"CREATE TABLE {name} (a INT, p INT, s STRUCT<x: INT>) USING delta PARTITIONED BY (p)"
    )
    with pytest.raises(Exception, match=f"DELTAIC_DUPLICATE_COLUMNS.*{named}"):
        spark.sql(f"INSERT WITH SCHEMA EVOLUTION INTO {name} SELECT 1, 2, {more}")
    assert log.versions(table) == [0]


def test_write_option_takes_precedence_over_the_session(spark: SparkSession, table: str) -> None:
    spark.range(3).write.format("delta").save(table)
    more = spark.range(2).withColumn("n", F.lit(1)).write.format("delta").mode("append")
    with session_settings(spark, {AUTO_MERGE: "true"}):
        with pytest.raises(Exception, match="DELTAIC_SCHEMA_MISMATCH"):
            more.option("mergeSchema", "false").save(table)
        spark.sql(f"INSERT INTO delta.`{table}` SELECT 7S")
    assert log.metadata(table) == log.actions(table, 0, "metaData")[0]


def test_overwrites_keep_columns_that_the_rows_lack_and_add_others(
    spark: SparkSession, table: str
) -> None:
    name = f"delta.`{table}`"
    spark.range(4).selectExpr("id", "id % 2 AS p").write.format("delta").partitionBy("p").save(
        table
    )
    one = spark.sql("SELECT 10L AS id, 1L AS p, 'x' AS x")
    writer = one.write.format("delta").mode("overwrite").option("mergeSchema", "true")
    writer.option("partitionOverwriteMode", "dynamic").save(table)
    assert rows_of(spark, table) == [(0, 0, None), (10, 1, "x"), (2, 0, None)]
    two = spark.sql("SELECT 20L AS id, 1L AS p, 'y' AS y")
    two.writeTo(name).option("mergeSchema", "true").overwrite(F.col("id") >= 2)
    assert rows_of(spark, table) == [(0, 0, None, None), (20, 1, None, "y")]
    spark.sql(f"INSERT WITH SCHEMA EVOLUTION OVERWRITE {name} BY NAME SELECT 5L AS id, 1 AS z")
    assert rows_of(spark, table) == [(5, None, None, None, 1)]


def test_types_are_widened_where_type_widening_is_enabled_and_else_rows_are_cast(
    spark: SparkSession, table: str
) -> None:
    name = f"delta.`{table}`"
    spark.sql(f"CREATE TABLE {name} (n SMALLINT, d DECIMAL(4, 1), m MAP<STRING, INT>) USING delta")
    wide = "SELECT 70000 AS n, 1234567.25BD AS d, map('k', 5000000000L) AS m"
    spark.sql(f"INSERT INTO {name} VALUES (1, 1.5, map('k', 1))")
    before = log.contents(table)
    with pytest.raises(Exception, match=r"Column d .*enableTypeWidening is not true"):
        save(spark, table, wide)
    with pytest.raises(Exception, match=r"OVERFLOW|OUT_OF_RANGE"):
        insert(spark, table, wide)
    assert log.contents(table) == before
    insert(spark, table, "SELECT 2L AS n")
    assert spark.table(name).dtypes[0] == ("n", "smallint")
    spark.sql(f"ALTER TABLE {name} SET TBLPROPERTIES ('delta.enableTypeWidening' = 'true')")
    save(spark, table, wide)
    assert [kind for _, kind in spark.table(name).dtypes] == [
        "int",
        "decimal(9,2)",
        "map<string,bigint>",
    ]
    assert [row.n for row in spark.table(name).orderBy("n").collect()] == [1, 2, 70000]
    spark.sql(f"ALTER TABLE {name} ADD CONSTRAINT small CHECK (n < 100000)")
    with pytest.raises(Exception, match="n < 100000"):
        save(spark, table, "SELECT 5L AS n")
    # Once it is off again, rows are cast as before, though types were widened.
    spark.sql(f"ALTER TABLE {name} SET TBLPROPERTIES ('delta.enableTypeWidening' = 'false')")
    insert(spark, table, "SELECT 5L AS n")
    assert spark.table(name).dtypes[0] == ("n", "int")
    assert [row.n for row in spark.table(name).orderBy("n").collect()] == [1, 2, 5, 70000]


def test_whole_numbers_that_parquet_stores_alike_grow_wider_in_any_table_as_in_delta_spark(
    spark: SparkSession, table: str
) -> None:
    name = f"delta.`{table}`"
    spark.sql(f"CREATE TABLE {name} (n SMALLINT, arr ARRAY<STRUCT<x: TINYINT>>) USING delta")
    spark.sql(f"INSERT INTO {name} VALUES (7, array(named_struct('x', 1)))")
    save(spark, table, "SELECT 70000 AS n, array(named_struct('x', 300S)) AS arr")
    save(spark, table, "SELECT 8S AS n, array(named_struct('x', 2Y)) AS arr")
    assert spark.table(name).dtypes == [("n", "int"), ("arr", "array<struct<x:smallint>>")]
    assert rows_of(spark, table) == [(7, [(1,)]), (70000, [(300,)]), (8, [(2,)])]
    # Those of the older file, too, by its statistics and by Parquet's.
    found = spark.table(name).where("n < 60000 AND arr[0].x < 300").orderBy("n")
    assert [row.n for row in found.collect()] == [7, 8]
    assert "typeChanges" not in log.metadata(table)["schemaString"]
    assert "typeWidening" not in str(log.actions(table, 0, "protocol"))
    with pytest.raises(Exception, match="DELTAIC_SCHEMA_EVOLUTION_REFUSED"):
        save(spark, table, "SELECT 9L AS n")


def test_rows_of_which_a_column_would_cut_values_are_refused_where_merging_is_asked_for(
    spark: SparkSession, table: str
) -> None:
    name = f"delta.`{table}`"
    spark.sql(f"CREATE TABLE {name} (n INT, d DECIMAL(4, 1), t DATE, f DOUBLE) USING delta")
    for value in (
        "1.9D AS n",
        "1.95 AS n",
        "1.25 AS d",
        "1.25D AS d",
        "TIMESTAMP'2024-02-03 10:00:00' AS t",
        "TIMESTAMP_NTZ'2024-02-03 10:00:00' AS t",
    ):
        with pytest.raises(Exception, match="DELTAIC_SCHEMA_EVOLUTION_REFUSED"):
            save(spark, table, f"SELECT {value}")
    # Rows that lack a column are not cast.
    save(spark, table, "SELECT 2BD AS n, 3 AS d, CAST(NULL AS DATE) AS t, 1.5 AS f")
    assert rows_of(spark, table) == [(2, Decimal(3), None, 1.5)]
    spark.sql(f"ALTER TABLE {name} SET TBLPROPERTIES ('delta.enableTypeWidening' = 'true')")
    save(spark, table, "SELECT 1.9D AS n")
    assert rows_of(spark, table) == [(1.9, None, None, None), (2.0, Decimal(3), None, 1.5)]


def test_computed_columns_are_computed_beside_new_ones(spark: SparkSession, table: str) -> None:
    name = f"delta.`{table}`"
    spark.sql(
        f"CREATE TABLE {name} (k BIGINT GENERATED ALWAYS AS IDENTITY, a INT NOT NULL,"
        " g INT GENERATED ALWAYS AS (a + 1), c INT DEFAULT 7) USING delta"
        " TBLPROPERTIES ('delta.feature.allowColumnDefaults' = 'supported')"
    )
    for write in (save, insert):
        write(spark, table, "SELECT 2 AS a, 'n' AS new")
    assert rows_of(spark, table) == [(1, 2, 3, 7, "n"), (2, 2, 3, 7, "n")]
    before = log.contents(table)
    with pytest.raises(Exception, match="NOT_NULL"):
        save(spark, table, "SELECT CAST(NULL AS INT) AS a, 1 AS other")
    assert log.contents(table) == before


def test_explaining_a_write_does_not_change_the_table(spark: SparkSession, table: str) -> None:
    spark.range(3).write.format("delta").save(table)
    before = log.contents(table)
    spark.sql(f"EXPLAIN INSERT WITH SCHEMA EVOLUTION INTO delta.`{table}` SELECT 1L, 2 AS new")
    assert log.contents(table) == before


def test_rows_appended_meanwhile_stay_and_columns_added_meanwhile_conflict(
    spark: SparkSession, table: str
) -> None:
    spark.range(2).write.format("delta").save(table)
    with committed_meanwhile(
        lambda: spark.range(5, 6).write.format("delta").mode("append").save(table)
    ):
        save(spark, table, "SELECT 9L AS id, 'a' AS a")
    assert rows_of(spark, table) == [(0, None), (1, None), (5, None), (9, "a")]
    with (
        pytest.raises(Exception, match="METADATA_CHANGED"),
        committed_meanwhile(lambda: save(spark, table, "SELECT 10L AS id, 'b' AS b")),
    ):
        save(spark, table, "SELECT 11L AS id, 'c' AS c")
    assert spark.read.format("delta").load(table).columns == ["id", "a", "b"]


def test_other_formats_and_views_are_written_as_ever(spark: SparkSession, table: str) -> None:
    spark.sql(f"CREATE TABLE other (a INT) USING parquet LOCATION '{table}'")
    try:
        spark.sql("INSERT INTO other VALUES (1)")
        spark.sql("SELECT 2 AS a").write.mode("append").saveAsTable("other", format="parquet")
        assert sorted(row.a for row in spark.table("other").collect()) == [1, 2]
    finally:
        spark.sql("DROP TABLE other")
