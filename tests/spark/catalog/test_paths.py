"""Which table a path names, and the error when it names none."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from tests.support import log
from tests.support.plans import scanned_files
from tests.support.table_builder import build_table, build_with_oracle, rows_of

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


def test_relative_path_is_one_of_the_working_directory(spark: SparkSession, table: str):
    target = build_with_oracle(spark, table, spark.range(5), deletion_vectors=True)
    relative = os.path.relpath(table)
    assert spark.read.format("delta").load(relative).count() == 5
    assert spark.sql(f"SELECT * FROM delta.`{relative}`").count() == 5
    spark.sql(f"DELETE FROM delta.`{relative}` WHERE id = 0")
    spark.sql(f"INSERT INTO delta.`{relative}` VALUES (10), (11)")
    assert target.df().count() == 6
    for travel in (
        f"delta.`{relative}` VERSION AS OF 0",
        f"delta.`{relative}@v0`",
    ):
        assert spark.sql(f"SELECT * FROM {travel}").count() == 5


def test_database_called_delta_comes_before_relative_paths(spark: SparkSession, table: str):
    build_with_oracle(spark, table, spark.range(5))
    spark.sql("CREATE DATABASE delta")
    try:
        spark.sql("CREATE TABLE delta.plain USING parquet AS SELECT 1 AS a")
        spark.sql(f"CREATE TABLE delta.ours USING delta LOCATION '{table}'")
        assert spark.sql("SELECT * FROM delta.plain").count() == 1
        assert spark.sql("SELECT * FROM delta.ours").count() == 5
        assert spark.sql("SELECT * FROM delta.`ours@v0`").count() == 5
        assert spark.sql(f"SELECT * FROM delta.`{os.path.relpath(table)}`").count() == 5
    finally:
        spark.sql("DROP DATABASE delta CASCADE")


@pytest.mark.parametrize("path", ["no/such/table", "absent"])
def test_relative_path_without_a_table_is_said_in_full(spark: SparkSession, path: str):
    with pytest.raises(Exception, match=rf"DELTAIC_NOT_A_TABLE\] file:{os.getcwd()}/{path} "):
        spark.sql(f"SELECT * FROM delta.`{path}`")


def test_name_of_no_table_is_still_an_error_of_spark(spark: SparkSession):
    for name in ("no_such_table", "`no_such_table@v1`", "no_such_db.`t@v1`"):
        with pytest.raises(Exception, match=r"TABLE_OR_VIEW_NOT_FOUND|SCHEMA_NOT_FOUND"):
            spark.table(name)


def test_several_paths_are_refused_by_name(spark: SparkSession, table: str):
    build_with_oracle(spark, table, spark.range(5))
    with pytest.raises(Exception, match=rf"DELTAIC_SEVERAL_PATHS.*{table}.*/other"):
        spark.read.format("delta").load([table, "/other"])
    assert spark.read.format("delta").load([table]).count() == 5


@pytest.mark.parametrize("empty", [None, ""])
def test_no_path_is_said_to_be_missing(spark: SparkSession, empty: str | None):
    reader = spark.read.format("delta")
    with pytest.raises(Exception, match="DELTAIC_PATH_MISSING"):
        reader.load() if empty is None else reader.load(empty)


def test_directory_or_file_inside_a_table_names_the_table(spark: SparkSession, table: str):
    rows = spark.range(4).selectExpr("id", "id % 2 AS part", "'x' AS kind")
    build_with_oracle(spark, table, rows, partition_by=["part", "kind"])
    file = next(Path(table, "part=1", "kind=x").glob("*.parquet"))
    inside = ["part=1", "part=1/kind=x", "part=1/kind=x/", "part=7", "_delta_log"]
    for path in [*(f"{table}/{i}" for i in inside), str(file)]:
        with pytest.raises(Exception, match=r"DELTAIC_PATH_INSIDE_TABLE") as caught:
            spark.sql(f"SELECT * FROM delta.`{path}`")
        assert f"inside the table file:{table}." in str(caught.value)
    # The partitions among them can be loaded.
    for path in (f"{table}/part=7", f"{table}/_delta_log", str(file)):
        with pytest.raises(Exception, match=r"DELTAIC_PATH_INSIDE_TABLE") as caught:
            spark.read.format("delta").load(path)
        assert f"inside the table file:{table}." in str(caught.value)
    assert spark.read.format("delta").load(f"{table}/part=1/kind=x").count() == 2


def test_partition_that_is_loaded_is_read_and_nothing_else(spark: SparkSession, table: str):
    rows = spark.range(6).selectExpr("id", "id % 2 AS p")
    build_with_oracle(spark, table, rows, partition_by=["p"])
    part = spark.read.format("delta").load(f"{table}/p=1")
    assert sorted(row.id for row in part.collect()) == [1, 3, 5]
    # Metadata-only scans, limits and joins with the whole table stay within it, too.
    assert (part.count(), part.selectExpr("min(id)", "max(id)").first()) == (3, (1, 5))
    assert part.limit(9).count() == part.where("p = 1").count() == 3
    whole = spark.read.format("delta").load(table)
    assert whole.join(part, "id").count() == 3
    assert whole.exceptAll(part).count() == 3
    cached = part.cache()
    try:
        assert (cached.count(), whole.count()) == (3, 6)
    finally:
        cached.unpersist()
    part.createOrReplaceTempView("a_partition")
    for statement in ("DELETE FROM a_partition", "UPDATE a_partition SET id = 0"):
        with pytest.raises(Exception, match="DELTAIC_PATH_INSIDE_TABLE"):
            spark.sql(statement)
    with pytest.raises(Exception, match="DELTAIC_PATH_INSIDE_TABLE"):
        stream = spark.readStream.format("delta").load(f"{table}/p=1").writeStream
        stream.format("noop").start().processAllAvailable()
    assert whole.count() == 6


def test_directory_of_plain_files_is_said_to_be_no_table(spark: SparkSession, table: str):
    spark.range(3).write.parquet(table)
    with pytest.raises(Exception, match="DELTAIC_NOT_A_TABLE"):
        spark.read.format("delta").load(table)


def test_file_that_the_log_names_by_a_way_out_of_the_table_is_its_own_and_stays(
    spark: SparkSession, tmp_path: Path
):
    """Decision 0017: it is read where it is, changed by the name it has, and never deleted."""
    for vectors in (True, False):
        table, outside = tmp_path / f"table-{vectors}", tmp_path / f"outside {vectors}"
        target = build_with_oracle(
            spark, str(table), spark.range(10), files=2, deletion_vectors=vectors
        )
        outside.mkdir()
        commit = log.commit_path(table, 0)
        text = commit.read_text()
        for add in log.actions(table, 0, "add"):
            data = log.data_path(table, add)
            data.rename(outside / data.name)
            name = add["path"]
            text = text.replace(name, f"x/../../outside%20{vectors}/{name}")
        commit.write_text(text)
        for file in (table / "_delta_log").glob("*.crc"):
            file.unlink()
        there = sorted(path.name for path in outside.iterdir())
        target.delete("id < 3")
        target.append(spark.range(20, 23))
        target.delete("id = 8")
        target.assert_same_content()
        removed = {action["path"] for v in (1, 3) for action in log.actions(table, v, "remove")}
        assert removed and all(path.startswith("x/../../outside%20") for path in removed)
        spark.sql(f"TRUNCATE TABLE delta.`{table}`")
        assert target.df().count() == 0
        assert sorted(path.name for path in outside.iterdir()) == there


def test_file_whose_size_is_not_in_the_log_loses_no_row(spark: SparkSession, table: str):
    build_table(spark, table, "id INT", [[(1,)], [(2,)], [(3,)]])
    adds = log.actions(table, 0, "add")
    sizes = dict(zip([add["path"] for add in adds], (0, -1, adds[2]["size"]), strict=True))
    again = [{"add": {**add, "size": sizes[add["path"]]}} for add in adds]
    log.write_commit(table, 1, *again)
    assert rows_of(spark, table) == [(1,), (2,), (3,)]
    sized = f"SELECT id FROM delta.`{table}` WHERE _metadata.file_size > 0"
    assert sorted(row.id for row in spark.sql(sized).collect()) == [1, 2, 3]
    assert spark.sql(sized.replace("> 0", "<= 0")).count() == 0
    assert scanned_files(spark.sql(f"{sized} AND _metadata.file_name = 'nowhere'")) == set()
    lengths = {path: os.path.getsize(f"{table}/{path}") for path in sizes}
    result = spark.sql(
        f"SELECT DISTINCT _metadata.file_name, _metadata.file_size FROM delta.`{table}`"
    )
    assert dict(map(tuple, result.collect())) == lengths
