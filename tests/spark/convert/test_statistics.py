"""Statistics of converted files, which come from footers: never wrong, whoever wrote the file."""

from __future__ import annotations

from datetime import date, datetime, timedelta, timezone
from decimal import Decimal
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from tests.support import log
from tests.support.session_settings import session_settings
from tests.support.table_builder import in_order, rows_of

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession


def convert(spark: SparkSession, path: str, rest: str = "") -> DataFrame:
    spark.sql(f"CONVERT TO DELTA parquet.`{path}` {rest}")
    return spark.read.format("delta").load(path)


def statistics(path: str) -> dict[str, Any]:
    (add,) = log.active_files(path)
    return log.statistics(add)


def by_arrow(path: str, **columns: pa.Array) -> None:
    """Write one file as another engine would."""
    Path(path).mkdir(exist_ok=True)
    pq.write_table(pa.table(columns), f"{path}/0.parquet", version="2.6")


def test_bounds_and_counts_are_those_of_the_rows(spark: SparkSession, table: str) -> None:
    df = spark.range(0, 100, 1, 1).selectExpr(
        "id",
        "CAST(id AS TINYINT) AS b",
        "CAST(id - 50 AS INT) AS i",
        "IF(id % 10 = 0, NULL, id / 8) AS d",
        "CAST(id AS DECIMAL(20, 2)) / 4 AS amount",
        "date_add(DATE'2024-01-01', CAST(id AS INT)) AS day",
        "concat('name ', lpad(id, 3, '0')) AS s",
        "id % 2 = 0 AS flag",
        "named_struct('x', id, 'y', CAST(NULL AS INT)) AS st",
        "IF(id = 3, NULL, array(id)) AS l",
    )
    with session_settings(spark, {"spark.sql.parquet.outputTimestampType": "TIMESTAMP_MICROS"}):
        df.selectExpr(
            "*", "timestamp_seconds(id) AS t", "TIMESTAMP_NTZ'2024-01-01 00:00:00' AS n"
        ).write.parquet(table)
    converted = convert(spark, table)
    found = statistics(table)
    assert found["numRecords"] == 100 and found["tightBounds"] is True
    assert found["minValues"] == {
        "id": 0,
        "b": 0,
        "i": -50,
        "d": 0.125,
        "amount": 0,
        "day": "2024-01-01",
        "s": "name 000",
        "st": {"x": 0},
        "t": "1970-01-01T00:00:00.000Z",
        "n": "2024-01-01T00:00:00.000",
    }
    assert found["maxValues"] == {
        "id": 99,
        "b": 99,
        "i": 49,
        "d": 12.375,
        "amount": 24.75,
        "day": "2024-04-09",
        "s": "name 099",
        "st": {"x": 99},
        "t": "1970-01-01T00:01:39.000Z",
        "n": "2024-01-01T00:00:00.000",
    }
    assert {k: v for k, v in found["nullCount"].items() if v} == {
        "d": 10,
        "st": {"x": 0, "y": 100},
        "l": 1,
    }
    assert converted.where("i > 49 OR s > 'name 099'").rdd.getNumPartitions() == 0


def test_no_statistics_leaves_them_out(spark: SparkSession, table: str) -> None:
    spark.range(10).write.parquet(table)
    df = convert(spark, table, "NO STATISTICS")
    assert all("stats" not in add for add in log.active_files(table))
    assert df.where("id = 3").count() == 1
    (entry,) = spark.sql(f"DESCRIBE HISTORY delta.`{table}`").collect()
    assert entry.operationParameters["collectStats"] == "false"


INDEXED = "spark.databricks.delta.properties.defaults.dataSkippingNumIndexedCols"
NAMED = "spark.databricks.delta.properties.defaults.dataSkippingStatsColumns"
PREFIX = "spark.databricks.delta.properties.defaults.dataSkippingStringPrefixLength"


@pytest.mark.parametrize(
    ("settings", "columns"),
    [
        ({}, {"a", "s", "b", "c"}),
        ({INDEXED: "2"}, {"a", "s"}),
        ({INDEXED: "-1"}, {"a", "s", "b", "c"}),
        ({INDEXED: "0"}, set()),
        ({NAMED: "c,s.y"}, {"c", "s"}),
    ],
)
def test_properties_select_the_columns(
    spark: SparkSession, table: str, settings: dict[str, str], columns: set[str]
) -> None:
    spark.sql(
        "SELECT 1 AS a, named_struct('x', 1, 'y', 2) AS s, 3 AS b, 'long words' AS c"
    ).write.parquet(table)
    with session_settings(spark, settings):
        convert(spark, table)
    assert statistics(table)["nullCount"].keys() == columns


def test_columns_are_selected_of_the_merged_ones(spark: SparkSession, table: str) -> None:
    """The second file begins with a column that is the last of the table."""
    Path(table).mkdir()
    pq.write_table(pa.table({"a": [1], "b": [2], "c": [3]}), f"{table}/0.parquet")
    pq.write_table(pa.table({"d": [4], "c": [5], "b": [6], "a": [7]}), f"{table}/1.parquet")
    with session_settings(spark, {INDEXED: "2"}):
        convert(spark, table)
    found = [log.statistics(add)["minValues"] for add in log.active_files(table)]
    assert found == [{"a": 1, "b": 2}, {"a": 7, "b": 6}]


def test_strings_are_truncated_to_bounds_that_hold(spark: SparkSession, table: str) -> None:
    by_arrow(table, s=pa.array(["a" * 100, "b" * 100]), u=pa.array(["ü" * 10, "€" * 90]))
    with session_settings(spark, {PREFIX: "5"}):
        df = convert(spark, table)
    found = statistics(table)
    assert found["minValues"]["s"] == "aaaaa"
    assert found["maxValues"]["s"][:5] == "bbbbb" and len(found["maxValues"]["s"]) == 6
    assert found["minValues"]["u"] == "üüüüü"
    assert df.where(f"s = '{'b' * 100}'").count() == 1
    assert df.where(f"u = '{'€' * 90}'").count() == 1


def test_int96_timestamps_have_no_bounds(spark: SparkSession, table: str) -> None:
    with session_settings(spark, {"spark.sql.parquet.outputTimestampType": "INT96"}):
        spark.range(0, 5, 1, 1).selectExpr("id", "timestamp_seconds(id) AS t").write.parquet(table)
    df = convert(spark, table)
    found = statistics(table)
    assert found["minValues"] == {"id": 0} and found["nullCount"] == {"id": 0, "t": 0}
    assert df.where("t = timestamp_seconds(3)").collect()[0].id == 3
    assert df.selectExpr("min(t)", "max(t)", "count(t)").collect() == [
        (datetime(1970, 1, 1), datetime(1970, 1, 1, 0, 0, 4), 5)
    ]


def test_largest_float_is_unknown_where_the_writer_leaves_nan_out(
    spark: SparkSession, table: str
) -> None:
    numbers = [1.5, float("nan"), -2.0]
    by_arrow(table, f=pa.array(numbers, pa.float32()), d=pa.array(numbers))
    df = convert(spark, table)
    assert "max" not in str(statistics(table)["maxValues"]) and not statistics(table)["maxValues"]
    assert statistics(table)["minValues"] == {"f": -2.0, "d": -2.0}
    assert df.where("d > 100").count() == 1, "NaN is larger"
    assert repr(df.selectExpr("max(f)", "max(d)", "min(d)").collect()[0]) == repr(
        spark.sql(
            "SELECT float('nan') AS `max(f)`, double('nan') AS `max(d)`, -2D AS `min(d)`"
        ).collect()[0]
    )


def test_floats_of_sparks_writer_have_both_bounds_unless_there_is_nan(
    spark: SparkSession, table: str
) -> None:
    spark.sql("SELECT 1.5D AS d, double('NaN') AS n, 0.0D AS z").coalesce(1).write.parquet(table)
    df = convert(spark, table)
    found = statistics(table)
    assert (found["minValues"], found["maxValues"]) == ({"d": 1.5, "z": 0}, {"d": 1.5, "z": 0})
    assert df.where("n > 5").count() == 1 and df.where("z = -0.0D").count() == 1


@pytest.mark.parametrize("unit", ["ms", "us"])
def test_units_of_timestamps(spark: SparkSession, table: str, unit: str) -> None:
    moments = [datetime(2024, 1, 31, 10, 11, 12, 345000), datetime(2024, 2, 1)]
    by_arrow(
        table,
        t=pa.array(moments, pa.timestamp(unit, "UTC")),
        n=pa.array(moments, pa.timestamp(unit)),
    )
    df = convert(spark, table)
    found = statistics(table)
    assert found["minValues"] == {
        "t": "2024-01-31T10:11:12.345Z",
        "n": "2024-01-31T10:11:12.345",
    }
    assert df.where("t = TIMESTAMP'2024-01-31 10:11:12.345'").count() == 1
    assert df.where("n = TIMESTAMP_NTZ'2024-02-01 00:00:00'").count() == 1


def test_unsigned_numbers(spark: SparkSession, table: str) -> None:
    by_arrow(
        table,
        a=pa.array([1, 200], pa.uint8()),
        b=pa.array([1, 60_000], pa.uint16()),
        c=pa.array([1, 4_000_000_000], pa.uint32()),
        d=pa.array([1, 2**64 - 1], pa.uint64()),
    )
    before = in_order(tuple(row) for row in spark.read.parquet(table).collect())
    df = convert(spark, table)
    assert rows_of(spark, table) == before
    largest = {"a": 200, "b": 60_000, "c": 4_000_000_000, "d": 2**64 - 1}
    assert statistics(table)["maxValues"] == largest
    for name, value in largest.items():
        assert df.where(f"{name} = {value}").count() == 1


def test_decimals_of_every_storage(spark: SparkSession, table: str) -> None:
    values = [Decimal("-1.25"), Decimal("3.50")]
    by_arrow(table, **{f"p{p}": pa.array(values, pa.decimal128(p, 2)) for p in (5, 12, 30)})
    spark.sql("SELECT CAST(1 AS DECIMAL(5,2)) p5, CAST(9 AS DECIMAL(12,2)) p12").coalesce(
        1
    ).write.mode("append").parquet(table)
    df = convert(spark, table)
    for name in ("p5", "p12", "p30"):
        assert df.where(f"{name} = 3.5").count() == 1
    assert {log.statistics(add)["minValues"]["p5"] for add in log.active_files(table)} == {-1.25, 1}


@pytest.mark.parametrize("mode", ["LEGACY", "CORRECTED"])
@pytest.mark.parametrize("kind", ["INT96", "TIMESTAMP_MICROS"])
def test_old_dates_in_both_calendars(spark: SparkSession, table: str, mode: str, kind: str) -> None:
    settings = {
        "spark.sql.parquet.datetimeRebaseModeInWrite": mode,
        "spark.sql.parquet.int96RebaseModeInWrite": mode,
        "spark.sql.parquet.outputTimestampType": kind,
    }
    query = (
        "SELECT DATE'1500-03-01' AS d, TIMESTAMP'1500-03-01 00:00:00' AS t UNION ALL "
        "SELECT DATE'1582-10-04', TIMESTAMP'1582-10-04 00:00:00' UNION ALL "
        "SELECT DATE'2024-01-01', TIMESTAMP'2024-01-01 00:00:00'"
    )
    with session_settings(spark, settings):
        spark.sql(query).coalesce(1).write.parquet(table)
    df = convert(spark, table)
    assert rows_of(spark, table) == in_order(tuple(r) for r in spark.sql(query).collect())
    for day in ("1500-03-01", "1582-10-04", "2024-01-01"):
        assert df.where(f"d = DATE'{day}'").count() == 1
        assert df.where(f"t = TIMESTAMP'{day} 00:00:00'").count() == 1
    found = statistics(table)["minValues"].get("d")
    assert found == ("1500-03-01" if mode == "CORRECTED" else None)


def test_old_dates_of_another_writer_have_no_bounds(spark: SparkSession, table: str) -> None:
    by_arrow(
        table,
        d=pa.array([date(1500, 3, 1), date(2024, 1, 1)]),
        t=pa.array(
            [
                datetime(1800, 1, 1, tzinfo=timezone.utc),
                datetime(2024, 1, 1, tzinfo=timezone.utc),
            ],
            pa.timestamp("us", "UTC"),
        ),
    )
    convert(spark, table)
    found = statistics(table)
    assert found["minValues"] == {}
    assert found["maxValues"] == {"d": "2024-01-01", "t": "2024-01-01T00:00:00.000Z"}


def test_file_without_statistics_in_its_footer(spark: SparkSession, table: str) -> None:
    Path(table).mkdir()
    columns = pa.table({"id": [1, 2], "s": ["a", None]})
    pq.write_table(columns, f"{table}/0.parquet", write_statistics=False)
    df = convert(spark, table)
    assert statistics(table)["numRecords"] == 2
    assert not statistics(table)["minValues"]
    assert df.where("s IS NULL").count() == 1
    assert df.count() == 2


def test_file_without_rows(spark: SparkSession, table: str) -> None:
    by_arrow(table, id=pa.array([], pa.int64()))
    df = convert(spark, table)
    found = statistics(table)
    assert (found["numRecords"], found["minValues"], found["maxValues"]) == (0, {}, {})
    assert df.count() == 0 and df.selectExpr("max(id)").collect() == [(None,)]


def test_several_row_groups(spark: SparkSession, table: str) -> None:
    Path(table).mkdir()
    start = datetime(2024, 1, 1)
    columns = pa.table(
        {
            "id": range(1000),
            "t": pa.array([start + timedelta(hours=n) for n in range(1000)], pa.timestamp("us")),
            "s": [None if n > 900 else f"{n:04}" for n in range(1000)],
        }
    )
    pq.write_table(columns, f"{table}/0.parquet", row_group_size=100)
    df = convert(spark, table)
    found = statistics(table)
    assert (found["minValues"]["id"], found["maxValues"]["id"]) == (0, 999)
    assert (found["minValues"]["s"], found["maxValues"]["s"]) == ("0000", "0900")
    assert found["nullCount"] == {"id": 0, "t": 0, "s": 99}
    assert df.selectExpr("min(id)", "max(t)").collect() == [(0, start + timedelta(hours=999))]
