"""Statements that Spark's grammar lacks, and that nothing else is taken for one of them."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import timedelta
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from pyspark.errors import AnalysisException, ParseException
from pyspark.sql.types import TimestampType

from deltaic import DeltaTable
from deltaic.exceptions import DeltaError, TableStateError
from tests.support import log
from tests.support.session_settings import session_settings

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


@pytest.fixture
def named(spark: SparkSession, table: str) -> Iterator[str]:
    """A table of three versions with a keyword for its name; its path is `table`."""
    spark.sql(f"CREATE TABLE `limit` (id BIGINT, p INT) USING delta LOCATION '{table}'")
    for n in range(2):
        spark.sql(f"INSERT INTO `limit` VALUES ({n}, {n})")
    yield "`limit`"
    spark.sql("DROP TABLE `limit`")


def test_describe_history_is_the_history_of_the_api(spark: SparkSession, table: str, named: str):
    expected = DeltaTable.forPath(spark, table).history()
    assert [row.version for row in expected.collect()] == [2, 1, 0]
    for statement in (
        f"DESCRIBE HISTORY {named}",
        f"desc history default.{named};",
        f"DESCRIBE HISTORY spark_catalog.default.{named}",
        f"DESCRIBE HISTORY delta.`{table}`",
        f"DESCRIBE HISTORY '{table}'",
        f'describe\n history /* of */ "{table}" -- a path',
        f"DESCRIBE HISTORY 'file:{table}' LIMIT 100",
    ):
        found = spark.sql(statement)
        assert found.schema == expected.schema
        assert found.collect() == expected.collect(), statement


def test_describe_history_takes_a_limit_and_is_a_dataframe(spark: SparkSession, named: str):
    newest = spark.sql(f"DESCRIBE HISTORY {named} LIMIT 2")
    assert [row.version for row in newest.collect()] == [2, 1]
    assert newest.where("operation = 'WRITE'").selectExpr("max(version)").collect()[0][0] == 2


def test_describe_history_shows_what_it_can_of_fields_that_are_of_another_kind(
    spark: SparkSession, table: str, named: str
):
    info = {"operation": "WRITE", "job": "nightly-42", "readVersion": "2", "isBlindAppend": "yes"}
    log.write_commit(table, 3, {"commitInfo": info})
    api = DeltaTable.forPath(spark, table).history()
    for history in (spark.sql(f"DESCRIBE HISTORY {named}"), api):
        rows = history.collect()
        assert [row.version for row in rows] == [3, 2, 1, 0]
        newest = rows[0]
        shown = (newest.operation, newest.job, newest.readVersion, newest.isBlindAppend)
        assert shown == ("WRITE", None, 2, None)


def test_variables_stand_for_their_values(spark: SparkSession, table: str, named: str):
    settings = {"of.our.tests.name": named, "of.our.tests.path": table, "of.our.tests.rows": "2"}
    with session_settings(spark, settings):
        found = spark.sql("DESCRIBE HISTORY ${of.our.tests.name} LIMIT ${spark:of.our.tests.rows}")
        assert [row.version for row in found.collect()] == [2, 1]
        for target in ("'${of.our.tests.path}'", "delta.`${of.our.tests.path}`"):
            assert spark.sql(f"DESCRIBE DETAIL {target}").collect()[0].numFiles == 2
        off = {"spark.sql.variable.substitute": "false"}
        with session_settings(spark, off), pytest.raises(ParseException):
            spark.sql("DESCRIBE HISTORY ${of.our.tests.name}")


def test_describe_detail_is_the_detail_of_the_api(spark: SparkSession, table: str, named: str):
    by_path = DeltaTable.forPath(spark, table).detail()
    by_name = DeltaTable.forName(spark, named).detail()
    for statement, expected in (
        (f"DESCRIBE DETAIL '{table}'", by_path),
        (f"desc detail delta.`{table}`", by_path),
        (f"DESCRIBE DETAIL {named}", by_name),
        (f"DESCRIBE DETAIL default . {named}", by_name),
    ):
        found = spark.sql(statement)
        assert found.schema == expected.schema
        assert found.collect() == expected.collect(), statement
    assert by_name.collect()[0].name == "spark_catalog.default.limit"


def test_times_are_moments_whatever_the_session_takes_timestamps_for(
    spark: SparkSession, table: str, named: str
):
    found = DeltaTable.forPath(spark, table)
    with session_settings(spark, {"spark.sql.timestampType": "TIMESTAMP_NTZ"}):
        dfs = [
            spark.sql(f"DESCRIBE HISTORY {named}"),
            found.history(),
            spark.sql(f"DESCRIBE DETAIL {named}"),
            found.detail(),
        ]
    times = {"timestamp", "createdAt", "lastModified"}
    found_types = [field.dataType for f in dfs for field in f.schema if field.name in times]
    assert found_types == [TimestampType()] * 6


def test_describe_of_an_earlier_version_returns_what_was_named(
    spark: SparkSession, table: str, named: str
):
    with pytest.raises(DeltaError, match=r"DELTAIC_NAME_IS_NOT_A_TABLE.*version 1"):
        spark.sql(f"DESCRIBE HISTORY delta.`{table}@v1`")


def test_what_is_no_delta_table_is_refused_and_named(spark: SparkSession, tmp_path: Path):
    with pytest.raises(TableStateError, match=f"DELTAIC_NOT_A_TABLE.*{tmp_path}"):
        spark.sql(f"DESCRIBE HISTORY '{tmp_path}'")
    with pytest.raises(AnalysisException, match=r"TABLE_OR_VIEW_NOT_FOUND.*no_such_table"):
        spark.sql("DESCRIBE DETAIL no_such_table")
    with pytest.raises(TableStateError, match=r"DELTAIC_NOT_A_TABLE.*no_such_path"):
        spark.sql(f"DESCRIBE DETAIL '{tmp_path}/no_such_path'")
    spark.sql("CREATE TABLE sql_parquet USING parquet AS SELECT 1 AS id")
    spark.sql("CREATE VIEW sql_view AS SELECT 1 AS id")
    try:
        with pytest.raises(TableStateError, match=r"sql_parquet.*another format"):
            spark.sql("DESCRIBE HISTORY sql_parquet")
        with pytest.raises(AnalysisException, match="sql_view"):
            spark.sql("DESCRIBE HISTORY sql_view")
    finally:
        spark.sql("DROP TABLE sql_parquet")
        spark.sql("DROP VIEW sql_view")


def test_describe_detail_of_other_formats_returns_what_the_catalog_has(
    spark: SparkSession, table: str, named: str, tmp_path: Path
):
    """Values are those that delta-spark's ``describeNonDeltaTable`` and ``...Path`` give."""
    detail = DeltaTable.forPath(spark, table).detail()
    other = f"{tmp_path}/other"
    spark.sql(
        f"CREATE TABLE sql_other USING parquet PARTITIONED BY (p) LOCATION '{other}'"
        " COMMENT 'not ours' TBLPROPERTIES ('k' = 'v') AS SELECT 1 AS id, 2 AS p"
    )
    try:
        found = spark.sql("DESCRIBE DETAIL sql_other")
        assert found.schema == detail.schema
        [row] = found.collect()
        created = row.createdAt
    finally:
        spark.sql("DROP TABLE sql_other")
    assert abs(created - detail.collect()[0].createdAt) < timedelta(minutes=10)
    assert {k: v for k, v in row.asDict().items() if v is not None} == {
        "format": "parquet",
        "name": "spark_catalog.default.sql_other",
        "description": "not ours",
        "location": f"file:{other}",
        "createdAt": created,
        "partitionColumns": ["p"],
        "properties": {"k": "v"},
    }
    by_path = spark.sql(f"DESCRIBE DETAIL '{other}'").collect()[0].asDict()
    known = {k: v for k, v in by_path.items() if v is not None}
    assert known == {"location": other, "properties": {}}
    with pytest.raises(TableStateError, match=r"DELTAIC_PATH_INSIDE_TABLE"):
        spark.sql(f"DESCRIBE DETAIL '{table}/_delta_log'")


def test_other_statements_are_left_to_spark(spark: SparkSession):
    spark.sql("CREATE TABLE history (detail INT, history STRING) USING parquet")
    spark.sql("CREATE TABLE detail (id INT) USING parquet")
    try:
        assert spark.sql("DESCRIBE history").collect()[0].col_name == "detail"
        assert spark.sql("DESCRIBE TABLE history").count() == 2
        assert spark.sql("DESC TABLE EXTENDED detail").count() > 1
        described = spark.sql("DESCRIBE TABLE history detail").collect()
        assert described[0].info_value == "detail"
        assert spark.sql("DESCRIBE QUERY SELECT 1 AS n").collect()[0].col_name == "n"
        assert spark.sql("SELECT 'DESCRIBE HISTORY t' AS text").collect()[0].text[:8] == "DESCRIBE"
        assert spark.sql("SELECT :n + 1 AS n", args={"n": 4}).collect()[0].n == 5
        assert spark.sql("SELECT ? AS n", args=[4]).collect()[0].n == 4
    finally:
        spark.sql("DROP TABLE history")
        spark.sql("DROP TABLE detail")


@pytest.mark.parametrize(
    "statement",
    [
        "DESCRIBE HISTORY",
        "DESCRIBE HISTORY a-b",
        "DESCRIBE DETAIL t LIMIT 3",
        "DESCRIBE HISTORY 1.2 x",
    ],
)
def test_errors_are_those_of_spark(spark: SparkSession, statement: str):
    with pytest.raises((ParseException, AnalysisException)):
        spark.sql(statement)


def test_names_that_are_words_of_these_statements_stay_names(spark: SparkSession) -> None:
    for name in ("optimize", "vacuum", "clone", "delta", "restore", "`convert`"):
        spark.sql(f"CREATE TABLE {name} (shallow INT, `to` INT) USING delta")
        try:
            spark.sql(f"INSERT INTO {name} VALUES (1, 2)")
            assert spark.sql(f"SELECT shallow, generate.`to` FROM {name} generate").count() == 1
            assert spark.sql(f"DESCRIBE HISTORY {name}").count() == 2
        finally:
            spark.sql(f"DROP TABLE {name}")
