"""The result of VACUUM with DRY RUN: of any size, read from where it is stored."""

from __future__ import annotations

import gc
import os
import tempfile
import time
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from deltaic import DeltaTable
from tests.support import log
from tests.support.jobs import jobs_of
from tests.support.vacuumed import backdate, changed_table, stored

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

#: The paths are in three chunks.
GARBAGE = 9000


@pytest.fixture
def garbage(spark: SparkSession, table: str) -> set[str]:
    """The paths of what VACUUM deletes: old files, and their empty directories."""
    changed_table(spark, table)
    folders = [Path(table, f"_p=garbage-{n}") for n in range(3)]
    for folder in folders:
        folder.mkdir()
    names = [f"_p=garbage-{n % 3}/part-{n}.parquet" for n in range(GARBAGE)]
    for name in names:
        Path(table, name).touch()
    for folder in folders:
        backdate(str(folder), 500)
    return {f"file:{table}/{name}" for name in (*names, *(folder.name for folder in folders))}


def test_result_is_queried_like_any_other(
    spark: SparkSession, table: str, garbage: set[str], tmp_path: Path
) -> None:
    before = stored(table)
    shown = spark.sql(f"VACUUM delta.`{table}` DRY RUN")
    assert jobs_of(spark, shown.show) == 1
    assert jobs_of(spark, lambda: shown.take(5000)) == 0
    paths = [row.path for row in shown.collect()]
    assert set(paths) == garbage and len(paths) == len(garbage)
    assert [row.path for row in shown.take(5000)] == paths[:5000]
    assert [row.path for row in shown.toLocalIterator()] == paths
    assert shown.count() == len(paths)
    assert shown.where("path LIKE '%garbage-1/%'").distinct().count() == GARBAGE // 3
    shown.write.parquet(str(tmp_path / "plan"))
    plan = spark.read.parquet(str(tmp_path / "plan"))
    assert {row.path for row in plan.collect()} == garbage
    assert shown.join(plan, "path").count() == len(paths)
    assert stored(table) == before


def test_small_result_is_in_memory(spark: SparkSession, table: str) -> None:
    changed_table(spark, table)
    for n in range(3):
        Path(table, f"{n}.parquet").touch()
        os.utime(Path(table, f"{n}.parquet"), (1, 1))
    shown = spark.sql(f"VACUUM delta.`{table}` DRY RUN")
    assert jobs_of(spark, shown.show) == 0
    assert shown.count() == 3
    assert shown.where("path LIKE '%/1.parquet'").count() == 1


def test_plan_is_carried_out_as_it_was_shown(
    spark: SparkSession, table: str, garbage: set[str]
) -> None:
    name = f"delta.`{table}`"
    shown = DeltaTable.forPath(spark, table).vacuum(dryRun=True)
    shown.createOrReplaceTempView("shown")
    Path(table, "later.parquet").touch()
    os.utime(Path(table, "later.parquet"), (1, 1))
    spark.sql(f"VACUUM {name} USING INVENTORY shown")
    assert Path(table, "later.parquet").exists(), "it was not shown"
    assert not any(Path(path.removeprefix("file:")).exists() for path in garbage)
    assert log.commit_info(table)["operationMetrics"]["numDeletedFiles"] == str(len(garbage))
    assert shown.count() == len(garbage), "what was shown stays as it was"


def test_rows_that_spark_stores_of_the_command_are_those_shown(
    spark: SparkSession, table: str, garbage: set[str]
) -> None:
    """A server of Spark Connect sends these."""
    shown = spark.sql(f"VACUUM delta.`{table}` DRY RUN")
    rows = shown._jdf.queryExecution().commandExecuted().rows()
    numbers = [0, 4095, 4096, 1, GARBAGE - 1, GARBAGE, rows.size() - 1]
    stored_rows = [rows.apply(n).getUTF8String(0).toString() for n in numbers]
    paths = [row.path for row in shown.collect()]
    assert stored_rows == [paths[n] for n in numbers]
    assert rows.size() == len(garbage)


@pytest.mark.thorough
def test_temporary_file_is_deleted_with_the_result(spark: SparkSession, table: str) -> None:
    changed_table(spark, table)
    path = "concat(repeat('directory/', 20), id, '.parquet')"
    inventory = f"SELECT {path} AS path, 1L AS length, false AS isDir, 0L AS modificationTime"
    folder = Path(tempfile.gettempdir())

    def files() -> set[Path]:
        return set(folder.glob("deltaic-log-*.tmp"))

    before = files()
    query = f"({inventory} FROM range(0, 100000, 1, 4))"
    shown = spark.sql(f"VACUUM delta.`{table}` USING INVENTORY {query} DRY RUN")
    assert shown.count() == 100_000
    assert len(files() - before) == 1, "more than 16 MB are not in memory"
    del shown
    gc.collect()
    jvm = spark._jvm
    assert jvm is not None
    deadline = time.monotonic() + 60
    while files() - before:
        assert time.monotonic() < deadline
        jvm.System.gc()
        time.sleep(0.1)
