"""CLONE of Parquet files, which are named by their path or by a table of the session catalog."""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from pyspark.errors import AnalysisException

from deltaic import DeltaTable
from deltaic.exceptions import DeltaError, InvalidArgumentError, TableStateError
from tests.support import log
from tests.support.databases import own_database
from tests.support.table_builder import build_table, in_order, rows_of

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

KINDS = pytest.mark.parametrize("kind", ["SHALLOW", "DEEP"])


@pytest.fixture
def database(spark: SparkSession) -> Iterator[str]:
    with own_database(spark, "parquet_clones"):
        yield "parquet_clones"


@pytest.fixture
def folder(table: str) -> str:
    """Return the path of a folder whose clone is at `table`."""
    return f"{table}-parquet"


def write(spark: SparkSession, folder: str, *columns: str, by: tuple[str, ...] = ()) -> list[Any]:
    """Append two Parquet files without any part of Deltaic, and return all rows of the folder."""
    rows = spark.range(0, 10, 1, 2).selectExpr(*(columns or ("id", "id * 2 AS v")))
    rows.write.mode("append").partitionBy(*by).parquet(folder)
    return rows_in(spark, folder)


def rows_in(spark: SparkSession, folder: str) -> list[Any]:
    return in_order(tuple(row) for row in spark.read.parquet(folder).collect())


def clone(spark: SparkSession, table: str, folder: str, kind: str, rest: str = "") -> Any:
    words = f"CREATE OR REPLACE TABLE delta.`{table}` {kind} CLONE parquet.`{folder}` {rest}"
    return spark.sql(words).first()


def contents(folder: str) -> dict[str, bytes]:
    return {str(p): p.read_bytes() for p in Path(folder).rglob("*") if p.is_file()}


@KINDS
def test_clone_has_the_rows_and_the_files_stay_as_they_are(
    spark: SparkSession, table: str, folder: str, kind: str
) -> None:
    rows = write(spark, folder)
    before = contents(folder)
    result = clone(spark, table, folder, kind)
    sizes = [p.stat().st_size for p in Path(folder).glob("*.parquet")]
    assert (result.source_table_size, result.source_num_of_files) == (sum(sizes), 2)
    assert result.num_copied_files == (2 if kind == "DEEP" else 0)
    assert rows_of(spark, table) == rows
    (entry,) = DeltaTable.forPath(spark, table).history().collect()
    assert entry.operation == "CLONE"
    assert entry.operationParameters == {
        "source": f"parquet.`file:{folder}`",
        "sourceVersion": "-1",
        "isShallow": str(kind == "SHALLOW").lower(),
    }
    assert all('"numRecords":5' in add["stats"] for add in log.active_files(table))
    spark.sql(f"DELETE FROM delta.`{table}` WHERE id < 3")
    assert len(rows_of(spark, table)) == 7
    spark.sql(f"VACUUM delta.`{table}`")
    assert contents(folder) == before


def test_a_shallow_clone_has_absolute_paths_and_a_deep_one_needs_no_source(
    spark: SparkSession, table: str, folder: str
) -> None:
    rows = write(spark, folder)
    clone(spark, table, folder, "SHALLOW")
    assert {add["path"] for add in log.active_files(table)} == {
        f"file:{p}" for p in Path(folder).glob("*.parquet")
    }
    clone(spark, table, folder, "DEEP")
    shutil.rmtree(folder)
    assert rows_of(spark, table) == rows


@KINDS
def test_partition_columns_are_those_of_the_directories(
    spark: SparkSession, table: str, folder: str, kind: str
) -> None:
    columns = ("id", "CAST(id % 2 AS INT) AS p", "IF(id < 2, NULL, 'ü/% ' || id % 3) AS q")
    rows = write(spark, folder, *columns, by=("p", "q"))
    clone(spark, table, folder, kind)
    assert rows_of(spark, table) == rows
    detail = DeltaTable.forPath(spark, table).detail().first()
    assert detail is not None
    assert detail.partitionColumns == ["p", "q"]
    assert {f["partitionValues"]["q"] for f in log.active_files(table)} == {
        None, "ü/% 0", "ü/% 1", "ü/% 2",
    }  # fmt: skip


@KINDS
def test_a_repeated_clone_adds_what_is_new_and_removes_what_is_gone(
    spark: SparkSession, table: str, folder: str, kind: str
) -> None:
    write(spark, folder)
    clone(spark, table, folder, kind)
    stored = {p: p.stat().st_mtime_ns for p in log.stored_files(table)}
    clone(spark, table, folder, kind)
    assert log.versions(table) == [0]
    sorted(Path(folder).glob("*.parquet"))[0].unlink()
    rows = write(spark, folder)
    result = clone(spark, table, folder, kind)
    assert result.num_removed_files == 1
    assert result.num_copied_files == (2 if kind == "DEEP" else 0)
    assert rows_of(spark, table) == rows
    assert all(path.stat().st_mtime_ns == time for path, time in stored.items())


@KINDS
def test_a_file_that_was_written_again_under_its_name(
    spark: SparkSession, table: str, folder: str, kind: str
) -> None:
    write(spark, folder)
    clone(spark, table, folder, kind)
    first, second = sorted(Path(folder).glob("*.parquet"))
    for crc in Path(folder).glob(".*.crc"):
        crc.unlink()
    # As long as before, with other rows.
    first.write_bytes(second.read_bytes())
    os.utime(first, (1_700_000_000, 1_700_000_000))
    if kind == "SHALLOW":
        with pytest.raises(TableStateError, match=first.name):
            clone(spark, table, folder, kind)
        assert log.versions(table) == [0]
        return
    expected = rows_in(spark, folder)
    clone(spark, table, folder, kind)
    assert rows_of(spark, table) == expected
    assert len(log.active_files(table)) == 2


def test_an_interrupted_deep_clone_continues(spark: SparkSession, table: str, folder: str) -> None:
    rows = write(spark, folder)
    clone(spark, table, folder, "DEEP")
    copies = sorted(p for p in log.stored_files(table) if p.suffix == ".parquet")
    shutil.rmtree(Path(table, "_delta_log"))
    copies[0].unlink()
    kept = copies[1].stat().st_mtime_ns
    clone(spark, table, folder, "DEEP")
    assert rows_of(spark, table) == rows
    assert copies[1].stat().st_mtime_ns == kept


def test_schemas_of_files_are_merged(spark: SparkSession, table: str, folder: str) -> None:
    for columns in (["CAST(id AS INT) AS id"], ["id", "'x' AS v"]):
        spark.range(10).selectExpr(*columns).write.mode("append").parquet(folder)
    clone(spark, table, folder, "SHALLOW")
    expected = [(n, v) for n in range(10) for v in (None, "x")]
    assert rows_of(spark, table) == in_order(expected)
    assert [field.dataType.simpleString() for field in spark.table(f"delta.`{table}`").schema] == [
        "bigint", "string",
    ]  # fmt: skip


def test_a_table_of_the_catalog(spark: SparkSession, database: str, table: str) -> None:
    spark.sql(
        "CREATE TABLE source (id BIGINT, p DATE) USING parquet PARTITIONED BY (p) "
        "COMMENT 'rows' TBLPROPERTIES ('team' = 'me', 'delta.appendOnly' = 'true')"
    )
    spark.sql("INSERT INTO source VALUES (1, DATE'2025-01-01'), (2, NULL)")
    spark.sql("CREATE TABLE target SHALLOW CLONE source TBLPROPERTIES ('delta.appendOnly'='false')")
    assert spark.table("target").collect() == spark.table("source").collect()
    detail = DeltaTable.forName(spark, "target").detail().first()
    assert detail is not None
    assert detail.partitionColumns == ["p"]
    assert detail.description == "rows"
    assert detail.properties == {"team": "me", "delta.appendOnly": "false"}
    (entry,) = DeltaTable.forName(spark, "target").history().collect()
    assert entry.operationParameters["source"] == f"spark_catalog.{database}.source"
    spark.sql("DELETE FROM target WHERE id = 1")
    assert [row.id for row in spark.table("source").orderBy("id").collect()] == [1, 2]


def test_properties_of_the_clone(spark: SparkSession, table: str, folder: str) -> None:
    rows = write(spark, folder)
    properties = (
        "TBLPROPERTIES ('delta.enableRowTracking' = 'true', 'delta.columnMapping.mode' = 'name', "
        "'delta.dataSkippingNumIndexedCols' = '1')"
    )
    clone(spark, table, folder, "SHALLOW", properties)
    assert sorted(add["baseRowId"] for add in log.active_files(table)) == [0, 5]
    assert all('"v"' not in add["stats"] for add in log.active_files(table))
    spark.sql(f"ALTER TABLE delta.`{table}` RENAME COLUMN v TO w")
    assert rows_of(spark, table) == rows


def test_defaults_of_the_session_are_for_new_tables_only(
    spark: SparkSession, table: str, folder: str
) -> None:
    write(spark, folder)
    name = "spark.databricks.delta.properties.defaults.enableChangeDataFeed"
    spark.conf.set(name, "true")
    try:
        clone(spark, table, folder, "SHALLOW")
    finally:
        spark.conf.unset(name)
    assert log.metadata(table)["configuration"] == {}


@pytest.mark.parametrize(
    ("rest", "error", "message"),
    [
        ("VERSION AS OF 0", InvalidArgumentError, "only one version"),
        ("TIMESTAMP AS OF '2025-01-01'", InvalidArgumentError, "only one version"),
        (
            "TBLPROPERTIES ('delta.enableIcebergCompatV2' = 'true', "
            "'delta.columnMapping.mode' = 'name')",
            InvalidArgumentError,
            "enableIcebergCompatV2",
        ),
        ("PARTITIONED BY (id)", InvalidArgumentError, "partition columns"),
    ],
)
def test_refused_clauses_leave_nothing(
    spark: SparkSession, table: str, folder: str, rest: str, error: type[Exception], message: str
) -> None:
    write(spark, folder)
    with pytest.raises(error, match=message):
        clone(spark, table, folder, "SHALLOW", rest)
    assert not Path(table).exists()


def test_refused_sources(spark: SparkSession, table: str, folder: str, database: str) -> None:
    build_table(spark, folder, "id INT", [[(1,)]])
    with pytest.raises(InvalidArgumentError, match="Delta table already"):
        clone(spark, table, folder, "SHALLOW")
    with pytest.raises(InvalidArgumentError, match="a path has to be absolute"):
        clone(spark, table, "relative/folder", "SHALLOW")
    with pytest.raises(TableStateError, match="no Parquet files"):
        clone(spark, table, f"{folder}-missing", "SHALLOW")
    Path(f"{folder}-text").mkdir()
    Path(f"{folder}-text", "a.parquet").write_text("not Parquet")
    with pytest.raises(TableStateError, match=r"a\.parquet"):
        clone(spark, table, f"{folder}-text", "DEEP")
    spark.sql("CREATE TABLE other (id INT) USING json")
    with pytest.raises(DeltaError, match="json"):
        spark.sql(f"CREATE TABLE delta.`{table}` SHALLOW CLONE other")
    spark.sql("CREATE VIEW a_view AS SELECT 1 AS id")
    with pytest.raises(AnalysisException):
        spark.sql(f"CREATE TABLE delta.`{table}` SHALLOW CLONE a_view")
    assert not Path(table).exists()
