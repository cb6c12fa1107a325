"""VACUUM LITE: from where it begins, and what becomes of the log between two runs."""

from __future__ import annotations

import json
import os
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import unquote

import pytest

from deltaic.exceptions import TableStateError
from tests.support import log
from tests.support.maintenance import await_maintenance
from tests.support.session_settings import session_settings
from tests.support.vacuumed import UNCHECKED, aged_copy, changed_table, litter, needed, stored

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

INLINE = {"spark.deltaic.maintenance.background": "false"}


def info(table: str) -> dict[str, Any]:
    return dict(json.loads(Path(table, "_delta_log/_last_vacuum_info").read_text()))


def vacuum(spark: SparkSession, table: str, options: str = "LITE RETAIN 0 HOURS") -> None:
    time.sleep(0.01)
    with session_settings(spark, UNCHECKED):
        spark.sql(f"VACUUM delta.`{table}` {options}")


def drop_log(table: str, before: int) -> None:
    """Delete the commits before a version, as the log cleanup of another engine does."""
    for version in range(before):
        log.commit_path(table, version).unlink(missing_ok=True)


def age_log(table: str, days: float, last: int) -> None:
    then = time.time() - days * 86_400
    for version in range(last + 1):
        os.utime(log.commit_path(table, version), (then, then))


def test_lite_deletes_what_commits_have_removed_and_nothing_else(
    spark: SparkSession, table: str, tmp_path: Path
) -> None:
    changed_table(spark, table)
    ages = {version: 200.0 if version < 4 else 20.0 for version in log.versions(table)}
    aged = aged_copy(table, tmp_path / "aged", ages)
    garbage = litter(aged)
    before = stored(aged)
    shown = spark.sql(f"VACUUM delta.`{aged}` LITE DRY RUN").collect()
    spark.sql(f"VACUUM delta.`{aged}` LITE")
    gone = before - stored(aged)
    assert gone == {row.path.removeprefix(f"file:{aged}/") for row in shown} != set()
    assert not gone & (needed(aged, 168) | garbage)
    assert any("_change_data" in name for name in gone)
    assert any(".bin" in name for name in gone)
    assert info(aged)["latestCommitVersionOutsideOfRetentionWindow"] == 3
    assert stored(aged) - needed(aged, 168) - garbage <= {
        "_hidden/stray.parquet",
        ".hidden.parquet",
        "_SUCCESS",
        "_p=x/_temporary/part",
    }


def test_lite_begins_after_the_last_vacuum_of_either_kind(spark: SparkSession, table: str) -> None:
    changed_table(spark, table)
    vacuum(spark, table)
    first = info(table)["latestCommitVersionOutsideOfRetentionWindow"]
    assert first == log.newest(table) - 2
    spark.sql(f"DELETE FROM delta.`{table}` WHERE id = 5000")
    drop_log_safe = log.newest(table)
    vacuum(spark, table, "RETAIN 0 HOURS")
    assert info(table)["latestCommitVersionOutsideOfRetentionWindow"] == drop_log_safe
    assert info(table)["liteUsed"] is True
    spark.sql(f"DELETE FROM delta.`{table}` WHERE id = 9")
    spark.sql(f"DELETE FROM delta.`{table}` WHERE true")
    vacuum(spark, table)
    assert stored(table) == needed(table, 0) == set()
    vacuum(spark, table, "RETAIN 1000 HOURS")
    kept = info(table)["latestCommitVersionOutsideOfRetentionWindow"]
    assert kept > drop_log_safe, "a longer retention takes nothing back"


def test_lite_after_commits_are_gone_is_refused_until_a_full_run(
    spark: SparkSession, table: str, tmp_path: Path
) -> None:
    changed_table(spark, table, **{"delta.checkpointInterval": "4"})
    await_maintenance(spark)
    cut = tmp_path / "cut"
    log.copy_table(table, cut)
    drop_log(str(cut), before=4)
    before = stored(cut)
    with pytest.raises(TableStateError) as raised:
        vacuum(spark, str(cut))
    assert raised.value.condition == "DELTAIC_VACUUM_LITE_LOG_MISSING"
    assert raised.value.parameters["earliest"] == "4"
    assert stored(cut) == before
    vacuum(spark, str(cut), "RETAIN 0 HOURS")
    spark.sql(f"DELETE FROM delta.`{cut}` WHERE true")
    vacuum(spark, str(cut))
    assert stored(cut) == set()


@pytest.mark.protocol("dv-tombstones-1")
def test_tombstones_of_a_checkpoint_replace_commits_that_are_gone(
    spark: SparkSession, table: str, tmp_path: Path
) -> None:
    changed_table(spark, table, **{"delta.checkpointInterval": "4"})
    await_maintenance(spark)
    cut = str(tmp_path / "cut")
    log.copy_table(table, cut)
    week_ago = int((time.time() - 6 * 86_400) * 1000)
    body = {"latestCommitVersionOutsideOfRetentionWindow": 1, "cutoffTimestamp": week_ago}
    Path(cut, "_delta_log/_last_vacuum_info").write_text(json.dumps(body))
    removed = {
        name
        for version in (2, 3, 4)
        for remove in log.actions(cut, version, "remove")
        for name in [remove["path"].replace("%2520", "%20").replace("%252F", "%2F")]
    }
    drop_log(cut, before=4)
    before = stored(cut)
    vacuum(spark, cut)
    gone = before - stored(cut)
    assert any(".bin" in name for name in gone)
    assert removed - gone <= needed(table, 0)
    older = {**body, "cutoffTimestamp": week_ago - 2 * 86_400_000}
    Path(cut, "_delta_log/_last_vacuum_info").write_text(json.dumps(older))
    with pytest.raises(TableStateError, match="VACUUM without LITE once"):
        vacuum(spark, cut)


@pytest.mark.parametrize("kind", ["LITE", "FULL"])
def test_log_cleanup_keeps_the_commits_that_the_next_lite_run_needs(
    spark: SparkSession, table: str, kind: str
) -> None:
    interval = {
        "delta.checkpointInterval": "3",
        "delta.logRetentionDuration": "interval 2 days",
        "delta.deletedFileRetentionDuration": "interval 2 days",
    }
    with session_settings(spark, INLINE):
        changed_table(spark, table, **interval)
        vacuum(spark, table, f"{kind} RETAIN 0 HOURS")
        recorded = info(table)["latestCommitVersionOutsideOfRetentionWindow"]
        for n in range(4):
            spark.sql(f"INSERT INTO delta.`{table}` VALUES ({n}, 'x')")
            spark.sql(f"DELETE FROM delta.`{table}` WHERE id = {n}")
        age_log(table, days=10, last=log.newest(table))
        # A process cleans up a log once a day, and has done so; it has cached nothing of this path.
        table = str(Path(table).rename(f"{table}-later"))
        for n in range(4):
            spark.sql(f"INSERT INTO delta.`{table}` VALUES ({n}, 'x')")
    left = log.versions(table)
    assert left[0] > 0, "cleanup has run"
    if kind == "FULL":
        assert left[0] > recorded + 1, "LITE is not used, so nothing is kept for it"
    else:
        assert left[0] <= recorded + 1
        vacuum(spark, table)
        left_files = {name for name in stored(table) if name.endswith(".parquet")}
        assert left_files == live_files(spark, table)


def live_files(spark: SparkSession, table: str) -> set[str]:
    files = spark.read.format("delta").load(table).select("_metadata.file_path").distinct()
    return {unquote(row[0].removeprefix(f"file:{table}/")) for row in files.collect()}
