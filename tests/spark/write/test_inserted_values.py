"""INSERT and DataFrames provide values of other types than their columns have."""

from __future__ import annotations

from collections.abc import Callable
from datetime import date, datetime

import pytest
from pyspark.sql import SparkSession

from deltaic.exceptions import InvalidArgumentError
from tests.support.session_settings import session_settings
from tests.support.table_builder import rows_of

POLICY = "spark.sql.storeAssignmentPolicy"
COLUMNS = (
    "id INT, d DATE, ts TIMESTAMP, ok BOOLEAN, s STRUCT<a: INT, b: STRING>, m MAP<STRING, INT>"
)
STRINGS = "'7' id, '2024-01-02' d, '2024-01-02 10:00:00' ts, 'true' ok, {s} s, map('k', '1') m"
STORED = (7, date(2024, 1, 2), datetime(2024, 1, 2, 10), True, (1, "b"), {"k": 1})

Write = Callable[[SparkSession, str], object]


BY_PLACE = STRINGS.format(s="named_struct('x', '1', 'y', 'b')")
BY_NAME = STRINGS.format(s="named_struct('b', 'b', 'a', '1')")


def _statement(sql: str) -> Write:
    return lambda spark, table: spark.sql(sql.format(t=f"delta.`{table}`"))


WRITES: dict[str, Write] = {
    "by place": _statement(f"INSERT INTO {{t}} SELECT {BY_PLACE}"),
    "by list": _statement(f"INSERT INTO {{t}} (ID, d, ts, ok, s, m) SELECT {BY_PLACE}"),
    "by name": _statement(f"INSERT INTO {{t}} BY NAME SELECT {BY_NAME}"),
    "overwriting": _statement(f"INSERT OVERWRITE {{t}} SELECT {BY_PLACE}"),
    "replacing": _statement(f"INSERT INTO {{t}} REPLACE WHERE id > 5 SELECT {BY_PLACE}"),
    "replacing matches": _statement(f"INSERT INTO {{t}} REPLACE USING (ok) SELECT {BY_PLACE}"),
    "DataFrame by name": lambda spark, table: (
        spark.sql(f"SELECT {BY_NAME}").writeTo(f"delta.`{table}`").append()
    ),
    "DataFrame by place": lambda spark, table: spark.sql(f"SELECT {BY_PLACE}").write.insertInto(
        f"delta.`{table}`"
    ),
}


@pytest.mark.parametrize("write", WRITES.values(), ids=WRITES)
@pytest.mark.parametrize("policy", ["ANSI", "LEGACY"])
def test_strings_are_cast_to_the_types_of_their_columns(
    spark: SparkSession, table: str, write: Write, policy: str
) -> None:
    spark.sql(f"CREATE TABLE delta.`{table}` ({COLUMNS}) USING delta")
    with session_settings(spark, {POLICY: policy}):
        write(spark, table)
    assert rows_of(spark, table) == [STORED]


def test_legacy_keeps_what_does_not_fit_as_null_save_where_a_column_refuses_null(
    spark: SparkSession, table: str
) -> None:
    spark.sql(
        f"CREATE TABLE delta.`{table}` (id INT NOT NULL, d DATE, p TIMESTAMP) USING delta "
        "PARTITIONED BY (p)"
    )
    with session_settings(spark, {POLICY: "LEGACY"}):
        spark.sql(
            f"INSERT INTO delta.`{table}` PARTITION (p = '2024-01-02 10:00:00') "
            "SELECT nullif('1', 'x'), 'soon'"
        )
        with pytest.raises(Exception, match="NULL"):
            spark.sql("SELECT 'x' id").writeTo(f"delta.`{table}`").append()
    assert rows_of(spark, table) == [(1, None, datetime(2024, 1, 2, 10))]


def test_rows_for_a_path_are_not_cast_from_strings(spark: SparkSession, table: str) -> None:
    spark.sql(f"CREATE TABLE delta.`{table}` (id INT, d DATE) USING delta")
    rows = spark.sql("SELECT 1L id, '2024-01-02' d")
    for policy in ("ANSI", "LEGACY"):
        with session_settings(spark, {POLICY: policy}):
            # BIGINT is cast where no column is missing: delta-spark refuses the two at once.
            rows.selectExpr("id", "CAST(NULL AS DATE) d").write.format("delta").mode("append").save(
                table
            )
            with pytest.raises(Exception, match="CANNOT_SAFELY_CAST"):
                rows.write.format("delta").mode("append").save(table)
    assert rows_of(spark, table) == [(1, None), (1, None)]


def test_strict_casts_nothing(spark: SparkSession, table: str) -> None:
    spark.sql(f"CREATE TABLE delta.`{table}` (id INT) USING delta")
    with session_settings(spark, {POLICY: "STRICT"}), pytest.raises(Exception, match="SAFELY_CAST"):
        spark.sql(f"INSERT INTO delta.`{table}` VALUES ('1')")
    assert rows_of(spark, table) == []


def test_a_string_that_does_not_fit_is_an_error_with_table_and_column(
    spark: SparkSession, table: str
) -> None:
    spark.sql(f"CREATE TABLE delta.`{table}` (id INT, s STRUCT<a: DATE>) USING delta")
    for column, rows in [("id", "'x', NULL"), ("s", "1, named_struct('a', 'soon')")]:
        with pytest.raises(Exception, match="DELTAIC_VALUE_DOES_NOT_FIT") as refused:
            spark.sql(f"INSERT INTO delta.`{table}` SELECT {rows}")
        assert table in str(refused.value)
        assert f"column {column} " in str(refused.value).casefold()
    with pytest.raises(InvalidArgumentError, match="DATE") as refused:
        spark.sql(f"INSERT INTO delta.`{table}` SELECT 1, named_struct('a', 5)")
    assert table in str(refused.value)
    assert rows_of(spark, table) == []


def test_values_specified_for_a_partition_leave_the_others_in_their_positions(
    spark: SparkSession, table: str
) -> None:
    spark.sql(f"CREATE TABLE delta.`{table}` (a INT, p INT, d DATE) USING delta PARTITIONED BY (p)")
    spark.sql(f"INSERT INTO delta.`{table}` PARTITION (p = 3) SELECT '1', '2024-01-02'")
    assert rows_of(spark, table) == [(1, 3, date(2024, 1, 2))]


@pytest.mark.parametrize("options", [{}, {"mergeSchema": "true"}])
def test_names_may_differ_in_case_where_the_session_minds(
    spark: SparkSession, table: str, options: dict[str, str]
) -> None:
    spark.sql("SELECT 1 AS Id, named_struct('A', 1) AS S").write.format("delta").save(table)
    with session_settings(spark, {"spark.sql.caseSensitive": "true"}):
        rows = spark.sql("SELECT named_struct('a', 2) AS s, 2 AS id")
        rows.write.format("delta").mode("append").options(**options).save(table)
        rows = spark.sql("SELECT named_struct('a', '3') AS s, '3' AS id")
        rows.writeTo(f"delta.`{table}`").options(**options).append()
    assert sorted(rows_of(spark, table)) == [(1, (1,)), (2, (2,)), (3, (3,))]
