"""Definitions that no table can have: each error says what is wrong and what to do."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from pyspark.errors import AnalysisException

from deltaic.exceptions import DeltaError, InvalidArgumentError

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


def assert_refused(
    spark: SparkSession, statement: str, table: str, condition: str, says: str
) -> None:
    with pytest.raises(AnalysisException) as raised:
        spark.sql(statement.format(t=f"delta.`{table}`"))
    problem = raised.value
    assert isinstance(problem, InvalidArgumentError), problem
    assert problem.condition == condition
    assert table in str(problem)
    assert says in str(problem)


@pytest.mark.parametrize(
    "columns", ["(n VOID) USING delta", "(n VOID, p INT) USING delta PARTITIONED BY (p)"]
)
def test_rows_for_a_table_of_void_columns_alone_are_refused_until_one_has_a_type(
    spark: SparkSession, table: str, columns: str
) -> None:
    spark.sql(f"CREATE TABLE delta.`{table}` {columns}")
    values = "(null, 1)" if "p INT" in columns else "(null)"
    statement = f"INSERT INTO {{t}} VALUES {values}"
    assert_refused(spark, statement, table, "DELTAIC_VOID_COLUMNS_ALONE", "are of type VOID")
    spark.sql(f"ALTER TABLE delta.`{table}` ALTER COLUMN n TYPE INT")
    spark.sql(f"INSERT INTO delta.`{table}` VALUES {values}")
    assert spark.read.format("delta").load(table).count() == 1


@pytest.mark.parametrize(
    ("type", "named"),
    [
        ("VARIANT", "VARIANT"),
        ("VOID", "VOID"),
        ("STRUCT<a: INT>", "STRUCT"),
        ("ARRAY<INT>", "ARRAY"),
        ("MAP<INT, INT>", "MAP"),
    ],
)
def test_partition_column_of_a_type_without_a_string_form_is_refused_by_its_type(
    spark: SparkSession, table: str, type: str, named: str
) -> None:
    definition = f"CREATE TABLE {{t}} (id INT, v {type}) USING delta PARTITIONED BY (v)"
    says = f"partitioned by v: values of type {named} have no string representation"
    assert_refused(spark, definition, table, "DELTAIC_PARTITION_COLUMN_TYPE", says)


@pytest.mark.parametrize(
    "value", ["parse_json('1')", "map(1, 2)", "array(1)", "named_struct('a', 1)"]
)
def test_rows_are_not_partitioned_by_a_column_of_such_a_type(
    spark: SparkSession, table: str, value: str
) -> None:
    df = spark.sql(f"SELECT 1 AS id, {value} AS v")
    with pytest.raises(DeltaError, match="cannot be partitioned by v: values of type"):
        df.write.format("delta").partitionBy("v").save(table)
    with pytest.raises(DeltaError, match="cannot be partitioned by v: values of type"):
        spark.sql(
            f"CREATE TABLE delta.`{table}` USING delta PARTITIONED BY (v) AS"
            f" SELECT 1 AS id, {value} AS v"
        )
    assert not Path(table).exists()


@pytest.mark.parametrize(
    ("by", "transform"),
    [
        ("PARTITIONED BY (bucket(4, a))", "bucket(4, a)"),
        ("PARTITIONED BY (years(t))", "years(t)"),
        ("CLUSTERED BY (a) INTO 4 BUCKETS", "bucket(4, a)"),
    ],
)
def test_partitioning_by_what_is_no_column_is_refused_by_what_it_is(
    spark: SparkSession, table: str, by: str, transform: str
) -> None:
    definition = f"CREATE TABLE {{t}} (a INT, t TIMESTAMP) USING delta {by}"
    says = f"cannot be partitioned by {transform}: Delta tables are"
    assert_refused(spark, definition, table, "DELTAIC_PARTITION_TRANSFORM", says)


def test_writer_with_buckets_is_refused(spark: SparkSession) -> None:
    with pytest.raises(AnalysisException, match=r"partitioned by bucket\(4, id\): Delta tables"):
        spark.range(3).write.format("delta").bucketBy(4, "id").saveAsTable("in_buckets")


def test_column_name_is_refused_with_the_property_that_allows_it(
    spark: SparkSession, table: str
) -> None:
    definition = "CREATE TABLE {t} (`a b` INT, c INT) USING delta"
    says = "property delta.columnMapping.mode is name"
    assert_refused(spark, definition, table, "DELTAIC_INVALID_COLUMN_NAME", says)
    allowed = f"{definition} TBLPROPERTIES ('delta.columnMapping.mode' = 'name')"
    spark.sql(allowed.format(t=f"delta.`{table}`"))
    assert spark.read.format("delta").load(table).columns == ["a b", "c"]
