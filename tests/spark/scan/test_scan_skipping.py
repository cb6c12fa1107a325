"""Files that cannot hold a matching row are not opened.

Two proofs for each condition: the plan lists the expected number of files, and the answer comes out
right with all other files gone from the disk.
"""

from __future__ import annotations

from collections.abc import Iterator
from decimal import Decimal
from pathlib import Path
from typing import TYPE_CHECKING

import pyarrow as pa
import pytest

from tests.support.foreign_table import ForeignTable, field
from tests.support.log import stored_files
from tests.support.plans import scanned_files
from tests.support.table_builder import (
    BuildWithOracle,
    TableWithOracle,
    assert_same_rows,
    build_with_oracle,
)

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession


def rows(spark: SparkSession) -> DataFrame:
    """Ten files of 100 ids; in each but the third `n` is never null, in the fourth always."""
    return spark.range(0, 1000, 1, 10).selectExpr(
        "id",
        "CAST(id DIV 100 AS INT) AS p",
        "CAST(-id AS INT) AS neg",
        "concat('s', lpad(CAST(id AS STRING), 4, '0')) AS s",
        "CASE WHEN id DIV 100 = 3 OR (id DIV 100 = 2 AND id % 2 = 0) THEN NULL"
        " ELSE id / 10.0D END AS n",
        "CAST(id AS DECIMAL(9, 3)) AS dec",
        "date_add(DATE'2020-01-01', CAST(id AS INT)) AS d",
        "timestamp_seconds(id * 3600) AS ts",
        "named_struct('x', named_struct('y', id)) AS st",
        "id % 2 = 0 AS flag",
    )


@pytest.fixture(scope="module")
def ranged(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> TableWithOracle:
    path = str(tmp_path_factory.mktemp("ranged") / "table")
    return build_with_oracle(spark, path, rows(spark), deletion_vectors=True)


@pytest.fixture(scope="module")
def partitioned(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> TableWithOracle:
    path = str(tmp_path_factory.mktemp("partitioned") / "table")
    return build_with_oracle(
        spark, path, rows(spark), deletion_vectors=True, partition_by=("p", "flag")
    )


@pytest.mark.parametrize(
    ("condition", "files"),
    [
        ("id = 250", 1),
        ("id = 5000", 0),
        ("id > 949", 1),
        ("id >= 800", 2),
        ("id BETWEEN 199 AND 300", 3),
        ("id IN (5, 105, 9999)", 2),
        ("id < 100 OR id > 899", 2),
        ("NOT (id < 900)", 1),
        ("neg > -50", 1),
        ("s = 's0420'", 1),
        ("s LIKE 's09%'", 1),
        ("startswith(s, 's00')", 1),
        ("n IS NULL", 2),
        ("n IS NOT NULL", 9),
        ("n < 1.0", 1),
        # NaN is above everything, and bounds of a writer may not include it.
        ("n > 99.0", 9),
        ("dec = 123.000", 1),
        ("d < DATE'2020-02-01'", 1),
        ("ts = timestamp_seconds(720000)", 1),
        ("st.x.y = 777", 1),
        ("p = 4", 1),
        ("p = 4 AND id = 1", 0),
        ("id = 250 AND s <> 'x'", 1),
        ("250 >= id AND 240 < id", 1),
        ("id <=> 250", 1),
        ("id <=> neg", 1),
        ("coalesce(id, 0) = 250", 1),
        ("coalesce(n, -1.0D) = -1.0D", 2),
        ("id + 1 = 251", 1),
        ("id * -2 < -1990", 1),
        ("id DIV 100 = 4", 1),
        ("year(d) = 2022", 3),
        ("trunc(d, 'MM') = DATE'2020-03-01'", 1),
        ("date_add(d, 30) < DATE'2020-03-01'", 1),
        ("to_date(ts) = DATE'1970-01-10'", 1),
        # A clock may be set back across midnight: days have a day's grace.
        ("date_trunc('DAY', ts) = TIMESTAMP'1970-01-10'", 2),
        ("left(s, 3) = 's09'", 1),
        ("contains(s, '42')", 10),
        ("id % 1000 = 250", 10),
        ("flag", 10),
    ],
)
def test_condition_on_bounds_and_null_counts_reads_only_files_that_may_match(
    ranged: TableWithOracle, condition: str, files: int
):
    assert len(scanned_files(ranged.df().where(condition))) == files
    ranged.assert_same_answer(f"SELECT * FROM {{t}} WHERE {condition}")


@pytest.mark.parametrize(
    ("condition", "files"),
    [
        ("p = 4", 2),
        ("p = 4 AND flag", 1),
        ("p IN (1, 2) AND NOT flag", 2),
        ("p + 1 = 5", 2),
        ("p <> 0 AND 10 / p = 5", 2),
        ("p > 7 OR p IS NULL", 4),
        ("p = 4 AND id = 400", 1),
        ("id = 499", 1),
        ("p = 99", 0),
        ("(p = 1 AND id < 5) OR p = 2", 2),
    ],
)
def test_condition_on_partition_columns_reads_only_matching_partitions(
    partitioned: TableWithOracle, condition: str, files: int
):
    assert len(scanned_files(partitioned.df().where(condition))) == files
    partitioned.assert_same_answer(f"SELECT * FROM {{t}} WHERE {condition}")


def test_names_of_folders_that_delta_spark_converted_are_values_as_it_casts_them(
    spark: SparkSession, table: str
):
    columns = [field("id", "integer"), field("flag", "boolean"), field("d", "decimal(4,2)")]
    foreign = ForeignTable(table, *columns, partition_by=("flag", "d"))
    for number, (flag, d) in enumerate([("1", "1.234"), ("no", "2"), ("true", "1.23")]):
        rows = pa.table({"id": pa.array([number], pa.int32())})
        foreign.add(rows, {"flag": flag, "d": d})
    df = spark.read.format("delta").load(table)
    low, high = Decimal("1.23"), Decimal("2.00")
    assert_same_rows(df.collect(), [(0, True, low), (1, False, high), (2, True, low)])
    found = df.where("flag AND d = 1.23")
    assert len(scanned_files(found)) == 2
    assert_same_rows(found.collect(), [(0, True, low), (2, True, low)])
    spark.sql(f"DELETE FROM delta.`{table}` WHERE flag")
    assert_same_rows(spark.read.format("delta").load(table).collect(), [(1, False, high)])


@pytest.mark.parametrize(
    ("condition", "files"),
    [
        # Spark pads what it reads of a CHAR before it compares: no file can be skipped.
        ("c = 'ab'", 4),
        ("c = 'ab   '", 4),
        ("c IN ('ab', 'none')", 4),
        ("c < 'b'", 4),
        ("c IS NOT NULL", 4),
        ("v = 'ab'", 1),
        ("v = 'ab   '", 1),
        ("v >= 'xy'", 1),
    ],
)
def test_char_and_varchar_values_are_found_and_skipped(
    spark: SparkSession, padded: tuple[str, str], condition: str, files: int
):
    table, plain = (f"SELECT id FROM {name} WHERE {condition}" for name in padded)
    assert len(scanned_files(spark.sql(table))) == files
    assert_same_rows(spark.sql(table).collect(), spark.sql(plain).collect())


@pytest.fixture(scope="module")
def padded(
    spark: SparkSession, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[tuple[str, str]]:
    """The same rows in a Delta table of four files and in Parquet."""
    folder = tmp_path_factory.mktemp("padded")
    columns = "(id INT, c CHAR(5), v VARCHAR(5))"
    delta = f"delta.`{folder / 'delta'}`"
    spark.sql(f"CREATE TABLE {delta} {columns} USING delta")
    spark.sql(f"CREATE TABLE padded_rows {columns} USING parquet LOCATION '{folder / 'plain'}'")
    for name in (delta, "padded_rows"):
        spark.sql(f"INSERT INTO {name} VALUES (1, 'a', 'a'), (2, 'ab', 'ab'), (3, NULL, NULL)")
        spark.sql(f"INSERT INTO {name} VALUES (4, 'x', 'x'), (5, 'xyz', 'xy'), (6, 'y', 'ab   ')")
    yield delta, "padded_rows"
    spark.sql("DROP TABLE padded_rows")


@pytest.mark.parametrize("letter", ["a", "ä", "漢", "🙂"])
def test_long_strings_are_skipped_by_their_truncated_bounds(
    spark: SparkSession, table: str, letter: str
):
    spark.sql(f"CREATE TABLE delta.`{table}` USING delta AS SELECT repeat('{letter}', 40) AS s")
    df = spark.read.format("delta").load(table)
    longer = f"{letter * 32}\U0010ffffx"
    for condition, files in (
        (f"s >= '{letter * 40}'", 1),
        (f"s > '{longer}'", 0),
        (f"s = '{longer}'", 0),
    ):
        assert len(scanned_files(df.where(condition))) == files, condition


@pytest.mark.parametrize(
    ("partition_by", "condition"),
    [((), "id BETWEEN 199 AND 300"), ((), "n IS NULL"), (("p",), "p = 7"), (("p",), "id = 711")],
)
def test_answer_is_complete_when_all_files_that_may_be_skipped_are_gone(
    spark: SparkSession,
    build: BuildWithOracle,
    partition_by: tuple[str, ...],
    condition: str,
):
    table = build(rows(spark), partition_by=partition_by)
    expected = table.live.where(condition).collect()
    needed = {Path(path) for path in scanned_files(table.df().where(condition))}
    unneeded = stored_files(table.path) - needed
    assert unneeded
    for file in unneeded:
        file.unlink()
    assert_same_rows(table.df().where(condition).collect(), expected)


@pytest.mark.protocol("dv-column-statistics-1", "per-file-statistics-3")
def test_loose_bounds_after_a_delete_still_skip_and_never_lose_a_row(
    spark: SparkSession, build: BuildWithOracle
):
    table = build(rows(spark), deletion_vectors=True)
    # The smallest and the largest rows go, and one on which `n IS NULL` depends for its file.
    table.delete("id IN (200, 202, 299, 250) OR id BETWEEN 700 AND 750")
    assert len(scanned_files(table.df().where("id = 250"))) == 1
    for condition in ("id = 250", "id <= 750 AND id > 690", "n IS NULL", "n IS NOT NULL"):
        table.assert_same_answer(f"SELECT * FROM {{t}} WHERE {condition}")


def test_rows_without_statistics_are_always_read(spark: SparkSession, build: BuildWithOracle):
    table = build(rows(spark), options={"delta.dataSkippingNumIndexedCols": "1"})
    assert len(scanned_files(table.df().where("id = 250"))) == 1
    assert len(scanned_files(table.df().where("neg = -250"))) == 10
    table.assert_same_answer("SELECT * FROM {t} WHERE neg = -250")
