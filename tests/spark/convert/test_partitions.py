"""Partition columns of converted folders: inferred and stated, and the values of directories."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from deltaic.exceptions import DeltaError
from tests.support import log
from tests.support.session_settings import session_settings
from tests.support.table_builder import in_order, rows_of

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


def directories(spark: SparkSession, path: str, *names: str) -> None:
    """Write one file of one row, the number of the directory, to each directory."""
    for number, name in enumerate(names):
        one = spark.range(number, number + 1, 1, 1)
        one.write.mode("append").parquet(f"{path}/{name}")


def convert(spark: SparkSession, path: str, by: str | None = None) -> tuple[Any, ...]:
    partitioned = "" if by is None else f"PARTITIONED BY ({by})"
    statement = f"CONVERT TO DELTA parquet.`{path}` {partitioned}"
    (row,) = spark.sql(statement).collect()
    return tuple(row)


def refused(spark: SparkSession, path: str, by: str | None = None) -> DeltaError:
    with pytest.raises(DeltaError) as raised:
        convert(spark, path, by)
    assert not Path(path, "_delta_log").exists()
    return raised.value


def by_spark(spark: SparkSession, path: str) -> tuple[list[Any], str]:
    """Return the rows and columns that Spark reads from the folder, before it is converted."""
    df = spark.read.parquet(path)
    return in_order(tuple(row) for row in df.collect()), df.schema.simpleString()


#: Directories, and how the result shows the inferred columns.
INFERRED = {
    "nested": (["y=2024/m=1", "y=2024/m=12", "y=2025/m=01"], "y INT, m INT"),
    "long": (["n=1", "n=5000000000"], "n BIGINT"),
    "double": (["n=1.5", "n=2"], "n DOUBLE"),
    "decimal": (["n=1", "n=12345678901234567890"], "n DECIMAL(20,0)"),
    "date": (["d=2024-01-31", "d=1999-12-01"], "d DATE"),
    "timestamp": (["t=2024-01-31 10%3A11%3A12.5", "t=2024-02-01 00%3A00%3A00"], "t TIMESTAMP"),
    "mixed": (["n=1", "n=x"], "n STRING"),
    "null": (["n=1", "n=__HIVE_DEFAULT_PARTITION__"], "n INT"),
    "case": (["Year=2024/MonthOfYear=1", "Year=2025/MonthOfYear=2"], "Year INT, MonthOfYear INT"),
    "characters": (
        ["p=a b", "p=a%20b", "p=50%25", "p=x%2Fy", "p=k%3Dv", "p=%3A", "p=ü€", "p=a+b", "p=#?"],
        "p STRING",
    ),
    "column with characters": (["größe=1", "größe=2"], "`größe` INT"),
}


@pytest.mark.parametrize("kind", INFERRED)
def test_columns_of_the_directories_are_inferred_as_spark_reads_them(
    spark: SparkSession, table: str, kind: str
) -> None:
    names, shown = INFERRED[kind]
    directories(spark, table, *names)
    before = by_spark(spark, table)
    assert convert(spark, table) == (len(names), shown, True)
    df = spark.read.format("delta").load(table)
    assert (rows_of(spark, table), df.schema.simpleString()) == before
    for _, *values in before[0]:
        condition = " AND ".join(
            f"`{column}` <=> {'NULL' if value is None else _literal(value)}"
            for column, value in zip(df.columns[1:], values, strict=True)
        )
        found = {row.id for row in df.where(condition).collect()}
        assert found == {other for other, *same in before[0] if same == values}


def test_column_that_is_always_null_is_a_string(spark: SparkSession, table: str) -> None:
    directories(spark, table, "n=__HIVE_DEFAULT_PARTITION__")
    assert convert(spark, table) == (1, "n STRING", True)
    assert rows_of(spark, table) == [(0, None)]


def _literal(value: Any) -> str:
    text = str(value).replace("'", "\\'")
    kind = {"date": "DATE", "datetime": "TIMESTAMP"}.get(type(value).__name__, "")
    return f"{kind}'{text}'"


def test_types_are_inferred_by_the_settings_of_the_session(spark: SparkSession, table: str) -> None:
    directories(spark, table, "n=01", "n=2")
    setting = {"spark.sql.sources.partitionColumnTypeInference.enabled": "false"}
    with session_settings(spark, setting):
        assert convert(spark, table) == (2, "n STRING", True)
    assert [row[1] for row in rows_of(spark, table)] == ["01", "2"]


#: The stated columns, a directory, and the value in the log.
STATED = [
    ("p STRING", "p=01", "01"),
    ("p INT", "p=01", "1"),
    ("p BIGINT", "p=-5", "-5"),
    ("p SMALLINT", "p=7", "7"),
    ("p DECIMAL(7,2)", "p=12.5", "12.50"),
    ("p DOUBLE", "p=1e3", "1000.0"),
    ("p BOOLEAN", "p=true", "true"),
    ("p DATE", "p=2024-1-5", "2024-01-05"),
    ("p TIMESTAMP", "p=2024-01-31 10%3A11%3A12.123456", "2024-01-31T10:11:12.123456Z"),
    ("p TIMESTAMP_NTZ", "p=2024-01-31 10%3A11%3A12", "2024-01-31 10:11:12"),
    ("p BINARY", "p=abc", "abc"),
    ("P INT", "p=3", "3"),
    ("p INT COMMENT 'of rows'", "p=3", "3"),
    ("p STRING", "p=__HIVE_DEFAULT_PARTITION__", None),
    ("p DATE", "p=__HIVE_DEFAULT_PARTITION__", None),
]


@pytest.mark.parametrize(("by", "name", "value"), STATED)
def test_stated_columns_have_typed_values(
    spark: SparkSession, table: str, by: str, name: str, value: str | None
) -> None:
    directories(spark, table, name)
    column = by.split()[0]
    assert not convert(spark, table, by)[2]
    (add,) = log.active_files(table)
    assert add["partitionValues"] == {column: value}
    with session_settings(spark, {"spark.sql.session.timeZone": "Asia/Tokyo"}):
        assert spark.read.format("delta").load(table).where(f"{column} IS NULL").count() == (
            1 if value is None else 0
        )


def test_timestamps_are_of_the_time_zone_of_the_session(spark: SparkSession, table: str) -> None:
    directories(spark, table, "p=2024-01-31 10%3A00%3A00")
    with session_settings(spark, {"spark.sql.session.timeZone": "Asia/Tokyo"}):
        convert(spark, table, "p TIMESTAMP")
    (add,) = log.active_files(table)
    assert add["partitionValues"] == {"p": "2024-01-31T01:00:00.000000Z"}


def test_stated_columns_may_be_in_another_order(spark: SparkSession, table: str) -> None:
    directories(spark, table, "a=1/b=x", "a=2/b=y")
    assert convert(spark, table, "b STRING, a INT") == (2, "b STRING, a INT", False)
    assert rows_of(spark, table) == [(0, "x", 1), (1, "y", 2)]


def test_value_of_another_type_is_refused_or_null(spark: SparkSession, table: str) -> None:
    directories(spark, table, "p=1", "p=x y")
    problem = refused(spark, table, "p INT")
    assert problem.condition == "DELTAIC_CONVERT_PARTITION_VALUE"
    assert problem.parameters["value"] == "x y"
    assert "p=x y/" in problem.parameters["file"]
    ignored = {"spark.databricks.delta.convert.partitionValues.ignoreCastFailure": "true"}
    with session_settings(spark, ignored):
        convert(spark, table, "p INT")
    assert rows_of(spark, table) == [(0, 1), (1, None)]


def test_column_that_is_not_null_has_no_null_partition(spark: SparkSession, table: str) -> None:
    directories(spark, table, "p=1", "p=__HIVE_DEFAULT_PARTITION__")
    problem = refused(spark, table, "p INT NOT NULL")
    assert problem.condition == "DELTAIC_CONVERT_PARTITION_VALUE"
    assert "INT NOT NULL" in str(problem)
    convert(spark, table, "p INT")


@pytest.mark.parametrize(
    ("names", "by", "found", "expected"),
    [
        (["p=1", "q=1"], None, "q", "p"),
        (["p=1", "p=1/q=1"], None, "p, q", "p"),
        (["p=1", "."], None, "p", "none"),
        (["p=1/p=2"], None, "p, p", "p"),
        (["p=1"], "q INT", "p", "q"),
        (["p=1"], "p INT, q INT", "p", "p, q"),
        (["p=1/q=1"], "p INT", "p, q", "p"),
        (["."], "p INT", "none", "p"),
    ],
)
def test_directories_of_other_columns_are_refused(
    spark: SparkSession, table: str, names: list[str], by: str | None, found: str, expected: str
) -> None:
    directories(spark, table, *names)
    problem = refused(spark, table, by)
    assert problem.condition == "DELTAIC_CONVERT_DIRECTORIES_DIFFER"
    assert (problem.parameters["found"], problem.parameters["expected"]) == (found, expected)


def test_spelling_of_directories_may_differ(spark: SparkSession, table: str) -> None:
    directories(spark, table, "Day=2024-01-01", "day=2024-01-02")
    assert convert(spark, table)[1] == "Day DATE"
    assert len(rows_of(spark, table)) == 2


def test_partition_column_that_is_in_the_files_too_has_the_value_of_the_directory(
    spark: SparkSession, table: str
) -> None:
    for number in range(2):
        rows = spark.sql(f"SELECT 'inside' AS p, {number} AS id")
        rows.write.parquet(f"{table}/p={number}")
    before = by_spark(spark, table)
    convert(spark, table)
    df = spark.read.format("delta").load(table)
    assert (rows_of(spark, table), df.schema.simpleString()) == before
    assert all("p" not in log.statistics(add)["minValues"] for add in log.active_files(table))


def test_folder_with_partition_directories_above_it(spark: SparkSession, table: str) -> None:
    directories(spark, f"{table}/a=1/b", "p=1", "p=2")
    assert convert(spark, f"{table}/a=1/b") == (2, "p INT", True)


def test_only_partition_columns_are_refused(spark: SparkSession, table: str) -> None:
    spark.sql("SELECT 1 AS p").write.parquet(f"{table}/p=1")
    assert refused(spark, table).condition == "DELTAIC_NO_DATA_COLUMNS"
