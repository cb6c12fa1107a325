"""A driver that is killed during CLONE: the next CLONE goes on, and the source is as before."""

from __future__ import annotations

import shutil
from collections import Counter
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from tests.faults.conftest import BASE_ROWS, SCHEMA, _Copies
from tests.support.faulty import ARM, FaultyProcesses, is_alive
from tests.support.session_settings import session_settings
from tests.support.spark_process import SparkProcessError
from tests.support.table_builder import append_file, in_order, rows_of
from tests.support.vacuumed import UNCHECKED

_CLONE = "CREATE OR REPLACE TABLE delta.`{clone}` {kind} CLONE delta.`{source}`"
_COPY = r"/clone/[^/.][^/]*-part-[^/]*\.parquet$"
_TEMPORARY_COPY = r"/clone/[^/]*\.copying$"
_TEMPORARY = r"/clone/_delta_log/\.0{20}\.json\.[^/]*\.tmp$"
_ENTRY = r"/clone/_delta_log/0{20}\.json$"
_SOURCE_ENTRY = r"/source/_delta_log/0{19}7\.json$"

POINTS = {
    "deep: before the first file": ("DEEP", "create", _TEMPORARY_COPY, 1, "before"),
    "deep: before the first file has its name": ("DEEP", "move", _COPY, 1, "before"),
    "deep: after the third file": ("DEEP", "move", _COPY, 3, "after"),
    "deep: before the log entry": ("DEEP", "create", _TEMPORARY, 1, "before"),
    "deep: before the log entry has its name": ("DEEP", "link", _ENTRY, 1, "before"),
    "deep: after the log entry has its name": ("DEEP", "link", _ENTRY, 1, "after"),
    "shallow: before the source knows": ("SHALLOW", "link", _SOURCE_ENTRY, 1, "before"),
    "shallow: after the source knows": ("SHALLOW", "link", _SOURCE_ENTRY, 1, "after"),
    "shallow: before the log entry has its name": ("SHALLOW", "link", _ENTRY, 1, "before"),
    "shallow: after the log entry has its name": ("SHALLOW", "link", _ENTRY, 1, "after"),
}

#: Other files are copied at the same time.
FIRST_COPIES = list(POINTS)[:2]


def data_files(table: str) -> set[str]:
    """Return the names of the data files in the folder of a table, whatever needs them."""
    return {file.name for file in Path(table).glob("*.parquet")}


def needed(spark: SparkSession, table: str) -> set[str]:
    names = spark.read.format("delta").load(table).select("_metadata.file_name").distinct()
    return {row[0] for row in names.collect()}


@pytest.mark.parametrize("point", POINTS)
def test_next_clone_goes_on_where_the_killed_one_was(
    spark: SparkSession,
    processes: FaultyProcesses,
    copy_of: _Copies,
    tmp_path: Path,
    figures: Counter[str],
    point: str,
) -> None:
    kind, call, path, nth, when = POINTS[point]
    source, clone = copy_of("plain", "source"), str(tmp_path / "clone")
    supported = "'delta.feature.domainMetadata' = 'supported'"
    spark.sql(f"ALTER TABLE delta.`{source}` SET TBLPROPERTIES ({supported})")
    statement = _CLONE.format(clone=clone, kind=kind, source=source)
    fault = [call, path, nth, f"kill {when}"]
    with processes.take() as (process, pid), pytest.raises(SparkProcessError):
        process.run(ARM + "spark.sql(statement)", statement=statement, fault=fault)
    assert not is_alive(pid), "it was not killed"
    figures["kills"] += 1
    committed = (path, when) == (_ENTRY, "after")
    assert Path(clone, "_delta_log", f"{0:020d}.json").exists() == committed
    assert rows_of(spark, source) == in_order(BASE_ROWS)
    whole = {file: file.stat().st_mtime_ns for file in Path(clone).glob("*-part-*.parquet")}
    assert whole or kind == "SHALLOW" or point in FIRST_COPIES

    append_file(spark, source, SCHEMA, [(999, "next")])
    spark.sql(statement)
    assert rows_of(spark, clone) == in_order([*BASE_ROWS, (999, "next")])
    assert {file: file.stat().st_mtime_ns for file in whole} == whole, "copied again"
    assert data_files(clone) == (needed(spark, clone) if kind == "DEEP" else set())

    # Nothing that was left keeps files of the source, once there is no clone any more.
    shutil.rmtree(clone)
    spark.sql(f"DELETE FROM delta.`{source}` WHERE id < 20")
    with session_settings(spark, UNCHECKED):
        spark.sql(f"VACUUM delta.`{source}` RETAIN 0 HOURS")
    assert data_files(source) == needed(spark, source)
