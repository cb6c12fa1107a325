"""`DataFrame.mergeInto`, whose plan no parser of ours has seen, and statements of SQL scripts."""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from typing import TYPE_CHECKING

import pytest
from pyspark.sql import functions as f

from tests.support import log
from tests.support.table_builder import rows_of

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

_numbers = itertools.count()


@pytest.fixture
def named(spark: SparkSession, table: str) -> Iterator[str]:
    """Return the name of a table with a generated column, of rows 1 to 3."""
    name = f"merged_into_{next(_numbers)}"
    spark.sql(
        f"CREATE TABLE {name} (id INT, v STRING, g INT GENERATED ALWAYS AS (id * 10))"
        f" USING delta LOCATION '{table}'"
    )
    spark.sql(f"INSERT INTO {name} (id, v) VALUES (1, 'a'), (2, 'b'), (3, 'c')")
    yield name
    spark.sql(f"DROP TABLE {name}")


@pytest.fixture
def source(spark: SparkSession) -> DataFrame:
    return spark.createDataFrame([("1", "x"), ("4", "y")], "id STRING, v STRING").alias("s")


def merge_into(source: DataFrame, target: str) -> None:
    (
        source.mergeInto(target, f.expr(f"{target}.id = s.id"))
        .whenMatched()
        .update({"v": f.col("s.v")})
        .whenNotMatched()
        .insert({"id": f.col("s.id"), "v": f.col("s.v")})
        .merge()
    )


MERGED = [(1, "x", 10), (2, "b", 20), (3, "c", 30), (4, "y", 40)]


def test_merge_into_casts_computes_columns_and_is_in_the_history(
    spark: SparkSession, named: str, source: DataFrame, table: str
) -> None:
    merge_into(source, named)
    assert sorted(rows_of(spark, table)) == MERGED
    info = log.commit_info(table)
    assert "s.id" in info["operationParameters"]["predicate"]
    assert info["operationMetrics"]["numSourceRows"] == "2"


def test_merge_into_a_view_of_the_table_changes_the_table(
    spark: SparkSession, named: str, source: DataFrame, table: str
) -> None:
    spark.table(named).createOrReplaceTempView("merged_view")
    merge_into(source, "merged_view")
    assert sorted(rows_of(spark, table)) == MERGED


def test_merge_into_a_view_is_refused_where_default_would_be_null(
    spark: SparkSession, named: str, source: DataFrame, table: str
) -> None:
    spark.sql(
        f"ALTER TABLE {named} SET TBLPROPERTIES ('delta.feature.allowColumnDefaults' = 'supported')"
    )
    spark.sql(f"ALTER TABLE {named} ALTER COLUMN v SET DEFAULT 'none'")
    spark.table(named).createOrReplaceTempView("merged_view")
    with pytest.raises(Exception, match="DELTAIC_NAME_IS_NOT_A_TABLE"):
        merge_into(source, "merged_view")
    assert log.commit_info(table)["operation"] != "MERGE"


def test_script_changes_a_view_that_it_has_made(
    spark: SparkSession, named: str, table: str
) -> None:
    view = f"made_by_script_{next(_numbers)}"
    spark.sql(
        f"BEGIN CREATE TEMPORARY VIEW {view} AS SELECT * FROM {named};"
        f" UPDATE {view} SET id = '7' WHERE id = 3; DELETE FROM {view} WHERE id = 1; END"
    )
    assert sorted(rows_of(spark, table)) == [(2, "b", 20), (7, "c", 70)]


def test_script_keeps_its_handlers(spark: SparkSession, named: str, table: str) -> None:
    spark.table(named).createOrReplaceTempView("merged_view")
    spark.sql(
        "BEGIN DECLARE EXIT HANDLER FOR SQLEXCEPTION"
        " BEGIN DELETE FROM merged_view WHERE id = 1; END;"
        f" IF (SELECT count(*) FROM {named}) = 3 THEN"
        " UPDATE merged_view SET id = '7' WHERE id = 3; END IF;"
        " SELECT raise_error('stop'); END"
    )
    assert sorted(rows_of(spark, table)) == [(2, "b", 20), (7, "c", 70)]


def test_execute_immediate_changes_a_view(spark: SparkSession, named: str, table: str) -> None:
    spark.sql(f"SELECT * FROM {named}").createOrReplaceTempView("merged_view")
    spark.sql("EXECUTE IMMEDIATE 'UPDATE merged_view SET id = ? WHERE id = 3' USING '7'")
    assert sorted(rows_of(spark, table))[-1] == (7, "c", 70)
