"""The statistics in the log are those of the rows in the files, counted by brute force."""

from __future__ import annotations

import datetime as dt
import json
from collections.abc import Callable, Iterator
from decimal import Decimal
from typing import TYPE_CHECKING, Any

import pytest

from tests.support import log

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

Statistics = dict[str, Any]
Row = dict[str, Any]


def rows_in(spark: SparkSession, table: str, add: log.Action) -> list[Row]:
    """Return the rows of one data file, as Spark's own reader of plain Parquet shows them."""
    df = spark.read.parquet("file://" + str(log.data_path(table, add)).replace("%", "%25"))
    return [row.asDict(recursive=True) for row in df.collect()]


def values(rows: list[Row], path: tuple[str, ...]) -> list[Any]:
    """Return a nested column; below a null struct it is null."""

    def value(row: Any) -> Any:
        for name in path:
            row = None if row is None else row[name]
        return row

    return [value(row) for row in rows]


def at(tree: Any, path: tuple[str, ...]) -> Any:
    for name in path:
        tree = None if tree is None else tree.get(name)
    return tree


def write(df: DataFrame, table: str, **options: str) -> None:
    df.write.format("delta").options(**options).save(table)


def each_file(spark: SparkSession, table: str) -> Iterator[tuple[Statistics, list[Row]]]:
    for add in log.active_files(table):
        yield log.statistics(add), rows_in(spark, table, add)


def same(value: Any) -> Any:
    return value


def milliseconds(value: dt.datetime) -> str:
    return value.isoformat(timespec="milliseconds")


# How a type's values are spelled in the log, and the columns of `mixed` that have it.
COLUMNS: dict[tuple[str, ...], Callable[[Any], Any]] = {
    ("i",): same,
    ("l",): same,
    ("f",): same,
    ("d",): same,
    ("s",): same,
    ("dec",): float,
    ("date",): str,
    ("ts",): lambda v: milliseconds(v) + "Z",
    ("ntz",): milliseconds,
    ("st", "a"): same,
    ("st", "b", "c"): same,
    ("nulls",): same,
}


def mixed(spark: SparkSession) -> DataFrame:
    return spark.range(0, 600, 1, 3).selectExpr(
        "CAST(id * 7919 % 601 - 300 AS INT) AS i",
        "CASE WHEN id % 5 > 0 THEN id * 104729 % 1000003 END AS l",
        "CAST((id % 97 - 48) / 4 AS FLOAT) AS f",
        "(id % 89 - 44) / 8.0D AS d",
        "CASE WHEN id % 7 > 0 THEN concat('ä', CAST(id * 31 % 593 AS STRING)) END AS s",
        "CAST((id * 17 % 601 - 300) / 4 AS DECIMAL(20, 2)) AS dec",
        "date_add(DATE'1969-01-01', CAST(id * 13 % 601 AS INT)) AS date",
        "timestamp_millis(id * 1234567 % 999999937 - 400000000) AS ts",
        "CAST(timestamp_millis(id * 7654321 % 999999937) AS TIMESTAMP_NTZ) AS ntz",
        "CASE WHEN id % 3 > 0 THEN named_struct('a', id % 50, 'b', CASE WHEN id % 4 > 0 THEN"
        " named_struct('c', CAST(id % 90 AS STRING)) END) END AS st",
        "CAST(NULL AS STRING) AS nulls",
        "id % 2 = 0 AS flag",
        "CAST(CAST(id AS STRING) AS BINARY) AS bin",
        "CASE WHEN id % 6 > 0 THEN array(id) END AS arr",
    )


@pytest.fixture(scope="module", params=["one row group", "many row groups"])
def files(
    spark: SparkSession, tmp_path_factory: pytest.TempPathFactory, request: pytest.FixtureRequest
) -> list[tuple[Statistics, list[Row]]]:
    table = str(tmp_path_factory.mktemp("statistics") / "table")
    small = {"parquet.block.size": "2000", "parquet.block.row.count.limit": "50"}
    write(mixed(spark), table, **(small if request.param == "many row groups" else {}))
    found = list(each_file(spark, table))
    assert len(found) == 3
    return found


@pytest.mark.parametrize("path", COLUMNS, ids=".".join)
def test_bounds_and_null_count_are_exact(
    files: list[tuple[Statistics, list[Row]]], path: tuple[str, ...]
):
    spell = COLUMNS[path]
    for statistics, rows in files:
        column = values(rows, path)
        known = [v for v in column if v is not None]
        assert at(statistics["nullCount"], path) == len(column) - len(known)
        bounds = [at(statistics[name], path) for name in ("minValues", "maxValues")]
        assert bounds == ([spell(min(known)), spell(max(known))] if known else [None, None])


@pytest.mark.protocol("writer-icebergcompatv1-5", "writer-icebergcompatv2-10")
def test_record_counts_are_exact_and_bounds_tight(files: list[tuple[Statistics, list[Row]]]):
    for statistics, rows in files:
        assert statistics["numRecords"] == len(rows)
        assert statistics["tightBounds"] is True


def test_types_without_bounds_have_null_counts_only(files: list[tuple[Statistics, list[Row]]]):
    for statistics, rows in files:
        for name in ("flag", "bin", "arr"):
            assert name not in statistics["minValues"]
            assert name not in statistics["maxValues"]
            nulls = sum(value is None for value in values(rows, (name,)))
            assert statistics["nullCount"][name] == nulls


LONG_STRINGS = {
    "ascii": ["a" * 40, "a" * 40 + "b", "b" * 100],
    "umlauts": ["ä" * 40, "ö" * 50],
    "outside of the basic plane": ["🙂" * 40, "𝄞" * 33],
    "mixed": ["x" * 31 + "🙂🙂🙂", "x" * 31 + "\uffff" * 5, "x" * 31 + "\uffff🙂" + "z" * 9],
    "largest code points": ["\U0010ffff" * 40],
}


@pytest.mark.parametrize("kind", LONG_STRINGS)
def test_bounds_of_long_strings_are_cut_short_and_still_bound(
    spark: SparkSession, table: str, kind: str
):
    strings = LONG_STRINGS[kind]
    write(spark.createDataFrame([(t,) for t in strings], "s STRING").coalesce(1), table)
    (statistics,) = [log.statistics(add) for add in log.active_files(table)]
    low, high = statistics["minValues"]["s"], statistics["maxValues"].get("s")
    assert len(low) <= 32
    assert min(strings).startswith(low)
    if kind == "largest code points":
        assert high is None or high >= max(strings)
    else:
        assert len(high) <= 33
        assert high >= max(strings)
    for text in strings:
        found = spark.read.format("delta").load(table).where(f"s = '{text}'")
        assert found.count() == 1


def test_time_bounds_are_cut_to_milliseconds_and_still_find_the_row(
    spark: SparkSession, table: str
):
    """Protocol § Per-file Statistics: readers allow for the millisecond that is cut off."""
    write(spark.sql("SELECT TIMESTAMP'2024-01-01 00:00:00.123999' AS ts, 1 AS n"), table)
    (statistics,) = [log.statistics(add) for add in log.active_files(table)]
    assert statistics["maxValues"]["ts"] == "2024-01-01T00:00:00.123Z"
    df = spark.read.format("delta").load(table)
    assert df.where("ts = TIMESTAMP'2024-01-01 00:00:00.123999'").count() == 1
    assert df.where("ts > TIMESTAMP'2024-01-01 00:00:00.1235'").count() == 1


@pytest.mark.parametrize(
    ("numbers", "bounded"),
    [([1.0, float("nan")], False), ([float("nan")], False), ([-0.0, 0.0], True)],
)
def test_bounds_of_floating_point_values_never_exclude_nan_or_a_zero(
    spark: SparkSession, table: str, numbers: list[float], bounded: bool
):
    write(spark.createDataFrame([(n,) for n in numbers], "d DOUBLE").coalesce(1), table)
    (statistics,) = [log.statistics(add) for add in log.active_files(table)]
    assert ("d" in statistics["maxValues"]) is bounded
    df = spark.read.format("delta").load(table)
    for number in numbers:
        condition = "isnan(d)" if number != number else f"d = {number}D"
        expected = sum(n == number or (n != n and number != number) for n in numbers)
        assert df.where(condition).count() == expected


@pytest.mark.protocol("writer-icebergcompatv1-5", "writer-icebergcompatv2-10")
@pytest.mark.parametrize(
    ("properties", "columns"),
    [
        ({"delta.dataSkippingNumIndexedCols": "0"}, set()),
        ({"delta.dataSkippingNumIndexedCols": "2"}, {"a", "b"}),
        ({"delta.dataSkippingNumIndexedCols": "-1"}, {"a", "b", "c", "d"}),
        ({"delta.dataSkippingStatsColumns": "c,d.x"}, {"c", "d"}),
    ],
)
def test_table_properties_choose_the_columns_with_statistics(
    spark: SparkSession, table: str, properties: dict[str, str], columns: set[str]
):
    df = spark.range(5).selectExpr("id a", "id b", "id c", "named_struct('x', id) d")
    write(df.coalesce(1), table, **properties)
    (statistics,) = [log.statistics(add) for add in log.active_files(table)]
    assert set(statistics.get("nullCount", {})) == columns
    assert statistics["numRecords"] == 5


def test_columns_after_the_first_32_have_no_statistics_by_default(spark: SparkSession, table: str):
    write(spark.range(3).selectExpr("id", *[f"id AS c{n}" for n in range(40)]), table)
    names = set(log.statistics(log.active_files(table)[0])["minValues"])
    assert names == {"id", *[f"c{n}" for n in range(31)]}


def test_partition_columns_are_not_in_the_statistics(spark: SparkSession, table: str):
    rows = spark.range(10).selectExpr("id", "id % 2 AS p")
    rows.write.format("delta").partitionBy("p").save(table)
    for add in log.active_files(table):
        assert set(json.loads(add["stats"])["minValues"]) == {"id"}


def test_decimals_keep_all_their_digits_also_when_a_deletion_vector_is_added(
    spark: SparkSession, table: str
):
    digits = "12345678901234567890.123456789012345678"
    rows = spark.sql(f"SELECT CAST('{digits}' AS DECIMAL(38, 18)) AS n, id FROM range(2)")
    rows.coalesce(1).write.format("delta").option("delta.enableDeletionVectors", "true").save(table)

    def smallest() -> Decimal:
        (add,) = log.active_files(table)
        return Decimal(json.loads(add["stats"], parse_float=Decimal)["minValues"]["n"])

    assert smallest() == Decimal(digits)
    spark.sql(f"DELETE FROM delta.`{table}` WHERE id = 0")
    assert log.active_files(table)[0]["deletionVector"]["cardinality"] == 1
    assert smallest() == Decimal(digits)
    assert spark.read.format("delta").load(table).where(f"n = {digits}BD").count() == 1
