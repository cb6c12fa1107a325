"""Deep CLONE: a table with copies of the files of another."""

from __future__ import annotations

import os
import shutil
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from pyspark.errors import AnalysisException

from deltaic import DeltaTable
from deltaic.exceptions import InvalidArgumentError, ProtocolChangedException, TableStateError
from tests.support import log
from tests.support.interleave import committed_meanwhile
from tests.support.session_settings import session_settings
from tests.support.table_builder import append_file, build_table, build_three_versions, rows_of

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

COLUMNS = "id INT, v STRING"
ON_DISK = {"spark.deltaic.deletionVectors.maxInlineBytes": "0"}


def build(spark: SparkSession, table: str, **options: Any) -> None:
    build_three_versions(spark, table, COLUMNS, **options)


def clone(spark: SparkSession, table: str, kind: str = "DEEP CLONE", as_of: str = "") -> Any:
    """Clone a table to the path beside it, and return the row of the result."""
    words = f"CREATE OR REPLACE TABLE delta.`{table}-clone` {kind} delta.`{table}` {as_of}"
    return spark.sql(words).first()


@pytest.mark.parametrize("kind", ["DEEP CLONE", "CLONE"])
@pytest.mark.parametrize("partition_by", [[], ["v"]])
def test_clone_has_all_rows_without_its_source(
    spark: SparkSession, table: str, kind: str, partition_by: list[str]
) -> None:
    build(spark, table, partition_by=partition_by)
    before = rows_of(spark, table)
    result = clone(spark, table, kind)
    sizes = [f["size"] for f in log.active_files(table)]
    assert (result.num_copied_files, result.copied_files_size) == (3, sum(sizes))
    assert all(not f["path"].startswith(("/", "file:")) for f in log.active_files(f"{table}-clone"))
    shutil.rmtree(table)
    assert rows_of(spark, f"{table}-clone") == before
    spark.sql(f"DELETE FROM delta.`{table}-clone` WHERE id < 3")
    assert len(rows_of(spark, f"{table}-clone")) == len(before) - 2


def test_an_older_version_with_its_deletion_vectors(spark: SparkSession, table: str) -> None:
    build(spark, table)
    clone(spark, table, as_of="VERSION AS OF 1")
    expected = rows_of(spark, table, 1)
    shutil.rmtree(table)
    assert rows_of(spark, f"{table}-clone") == expected
    assert len(list(Path(f"{table}-clone").rglob("deletion_vector_*.bin"))) == 1


def test_a_repeated_clone_copies_only_new_files(spark: SparkSession, table: str) -> None:
    build(spark, table)
    clone(spark, table)
    assert clone(spark, table).num_copied_files == 0
    assert log.versions(f"{table}-clone") == [0]
    append_file(spark, table, COLUMNS, [(9, "d")])
    with session_settings(spark, ON_DISK):
        spark.sql(f"DELETE FROM delta.`{table}` WHERE id IN (0, 8)")
    stored = {p: p.stat().st_mtime_ns for p in log.stored_files(f"{table}-clone")}
    result = clone(spark, table)
    # The file with another deletion vector is not copied again; the log adds it again.
    assert result.num_removed_files == 2
    assert rows_of(spark, f"{table}-clone") == rows_of(spark, table)
    for path, time in stored.items():
        assert path.stat().st_mtime_ns == time
    assert len([p for p in log.stored_files(f"{table}-clone") if p.suffix == ".parquet"]) == 4


def test_an_interrupted_clone_continues(spark: SparkSession, table: str) -> None:
    build(spark, table)
    target = f"{table}-clone"
    clone(spark, table)
    names = {p.relative_to(target): p.stat().st_size for p in log.stored_files(target)}
    # As if killed: no commit, one file is missing, and another one is shorter.
    shutil.rmtree(Path(target, "_delta_log"))
    data = sorted(p for p in names if p.suffix == ".parquet")
    Path(target, data[0]).unlink()
    os.truncate(Path(target, data[1]), 10)
    kept = Path(target, data[2]).stat().st_mtime_ns
    spark.sql(f"CREATE TABLE delta.`{target}` DEEP CLONE delta.`{table}`")
    assert rows_of(spark, target) == rows_of(spark, table)
    assert {p.relative_to(target): p.stat().st_size for p in log.stored_files(target)} == names
    assert Path(target, data[2]).stat().st_mtime_ns == kept


@pytest.mark.parametrize("kind", ["DEEP", "SHALLOW"])
def test_of_two_concurrent_clones_one_creates_the_table(
    spark: SparkSession, table: str, kind: str
) -> None:
    build(spark, table)
    statement = f"CREATE TABLE {{}} delta.`{table}-clone` {kind} CLONE delta.`{table}`"

    def other() -> None:
        spark.sql(statement.format(""))

    with committed_meanwhile(other):
        assert spark.sql(statement.format("IF NOT EXISTS")).collect() == []
    assert rows_of(spark, f"{table}-clone") == rows_of(spark, table)
    shutil.rmtree(f"{table}-clone")
    with committed_meanwhile(other), pytest.raises(ProtocolChangedException, match="concurrently"):
        spark.sql(statement.format(""))
    assert log.versions(f"{table}-clone") == [0]
    assert rows_of(spark, f"{table}-clone") == rows_of(spark, table)


def test_a_folder_with_other_files_is_refused(spark: SparkSession, table: str) -> None:
    build_table(spark, table, COLUMNS, [[(1, "a")]])
    Path(f"{table}-clone").mkdir()
    Path(f"{table}-clone", "other.parquet").write_text("x")
    with pytest.raises(AnalysisException, match=r"other\.parquet"):
        clone(spark, table)
    assert not Path(f"{table}-clone", "_delta_log").exists()


def test_a_missing_file_is_named_and_nothing_committed(spark: SparkSession, table: str) -> None:
    build(spark, table)
    victim = log.data_path(table, log.active_files(table)[0])
    victim.unlink()
    with pytest.raises(Exception, match=victim.name):
        clone(spark, table)
    assert not Path(f"{table}-clone", "_delta_log").exists()


def test_a_deep_clone_of_a_shallow_one(spark: SparkSession, table: str) -> None:
    build(spark, table)
    spark.sql(f"CREATE TABLE delta.`{table}-shallow` SHALLOW CLONE delta.`{table}`")
    append_file(spark, f"{table}-shallow", COLUMNS, [(9, "d")])
    cloned = DeltaTable.forPath(spark, f"{table}-shallow").clone(f"{table}-deep")
    expected = rows_of(spark, f"{table}-shallow")
    shutil.rmtree(table)
    shutil.rmtree(f"{table}-shallow")
    assert sorted(map(tuple, cloned.toDF().collect()), key=repr) == expected


def test_names_with_special_characters(spark: SparkSession, table: str) -> None:
    schema, rows = "id INT, p STRING", [(1, "a b"), (2, "ü/%=:"), (3, None), (4, "x" * 100)]
    build_table(spark, table, schema, [rows], partition_by=["p"])
    clone(spark, table)
    shutil.rmtree(table)
    assert rows_of(spark, f"{table}-clone") == sorted(rows, key=repr)


def test_an_empty_table(spark: SparkSession, table: str) -> None:
    spark.sql(f"CREATE TABLE delta.`{table}` (id INT) USING delta")
    assert clone(spark, table).num_copied_files == 0
    assert rows_of(spark, f"{table}-clone") == []


def test_a_file_of_another_length_than_in_the_log_is_not_copied(
    spark: SparkSession, table: str
) -> None:
    build(spark, table)
    damaged = log.data_path(table, log.active_files(table)[0])
    before = damaged.read_bytes()
    os.truncate(damaged, len(before) - 10)
    with pytest.raises(TableStateError, match=damaged.name) as raised:
        clone(spark, table)
    assert raised.value.condition == "DELTAIC_CLONED_FILE_DAMAGED"
    assert not Path(f"{table}-clone", "_delta_log").exists()
    damaged.write_bytes(before)
    clone(spark, table)
    assert rows_of(spark, f"{table}-clone") == rows_of(spark, table)


@pytest.mark.parametrize("kind", ["SHALLOW", "DEEP"])
def test_a_clone_inside_its_source_is_refused(spark: SparkSession, table: str, kind: str) -> None:
    build_table(spark, table, COLUMNS, [[(1, "a")]])
    with pytest.raises(InvalidArgumentError, match="inside the other"):
        spark.sql(f"CREATE TABLE delta.`{table}/sub` {kind} CLONE delta.`{table}`")
    assert not Path(table, "sub").exists()
