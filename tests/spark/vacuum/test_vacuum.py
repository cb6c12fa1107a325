"""VACUUM FULL: which files go, which stay, and what the history says."""

from __future__ import annotations

import os
import time
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from pyspark.errors import AnalysisException

from deltaic import DeltaTable
from deltaic.exceptions import InvalidArgumentError
from tests.support import log
from tests.support.jobs import descriptions_of, jobs_of
from tests.support.session_settings import session_settings
from tests.support.spark_process import SparkProcess
from tests.support.vacuumed import (
    UNCHECKED,
    aged_copy,
    backdate,
    changed_table,
    hidden,
    litter,
    needed,
    stored,
    young,
)

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

FILE_ACTIONS = ("add", "remove", "cdc")


def rows(spark: SparkSession, table: str, version: int) -> list[tuple[object, ...]]:
    df = spark.read.format("delta").option("versionAsOf", version).load(table)
    return sorted(tuple(row) for row in df.collect())


def directories(table: str) -> set[Path]:
    return {path for path in Path(table).rglob("*") if path.is_dir()}


@pytest.mark.protocol("dv-functional-2")
def test_files_of_no_version_within_the_retention_go_and_all_others_stay(
    spark: SparkSession, table: str, tmp_path: Path
) -> None:
    litter(changed_table(spark, table))
    newest = log.newest(table)
    ages = {version: 200.0 if version < 4 else 20.0 for version in range(newest + 1)}
    aged = aged_copy(table, tmp_path / "aged", ages)
    keep = needed(aged, 168) | young(aged, 168) | hidden(aged)
    gone = stored(aged) - keep
    assert len(gone) > 5, "the test has garbage"
    bytes_gone = sum(Path(aged, name).stat().st_size for name in gone)
    expected = {version: rows(spark, table, version) for version in range(3, newest + 1)}
    before = directories(aged)

    result = spark.sql(f"VACUUM delta.`{aged}`")
    assert result.columns == ["path"]
    assert [row.path for row in result.collect()] == [f"file:{aged}"]
    assert stored(aged) == keep

    unlimited = {
        "spark.deltaic.vacuum.enforceTimeTravelWithinDeletedFileRetentionDuration": "false"
    }
    with session_settings(spark, unlimited):
        assert {v: rows(spark, aged, v) for v in expected} == expected
    start, end = (log.commit_info(aged, newest + n) for n in (1, 2))
    assert start["operation"] == "VACUUM START"
    assert start["operationParameters"] == {
        "retentionCheckEnabled": True,
        "defaultRetentionMillis": 604800000,
    }
    assert start["operationMetrics"]["sizeOfDataToDelete"] == str(bytes_gone)
    assert end["operation"] == "VACUUM END"
    assert end["operationParameters"] == {"status": "COMPLETED"}
    assert start["isolationLevel"] == end["isolationLevel"] == "SnapshotIsolation"
    metrics = end["operationMetrics"]
    # As in delta-spark, directories count.
    assert int(metrics["numDeletedFiles"]) == len(gone) + len(before - directories(aged))
    assert metrics["numDeletedFiles"] == start["operationMetrics"]["numFilesToDelete"]
    assert not any(log.actions(aged, newest + n, kind) for n in (1, 2) for kind in FILE_ACTIONS)


def test_directories_that_are_empty_without_the_files_go_unless_they_are_new(
    spark: SparkSession, table: str
) -> None:
    litter(changed_table(spark, table))
    backdate(table, 500)
    Path(table, "new/directory").mkdir(parents=True)
    spark.sql(f"VACUUM delta.`{table}`")
    assert not Path(table, "empty").exists()
    assert not Path(table, "deep").exists()
    assert Path(table, "new/directory").exists()
    assert Path(table, "_p=x/_temporary/part").exists()
    assert not Path(table, "_p=x/part-0.parquet").exists()


def test_dry_run_shows_what_is_deleted_and_its_result_is_an_inventory(
    spark: SparkSession, table: str
) -> None:
    litter(changed_table(spark, table))
    name = f"delta.`{table}`"
    before = stored(table)
    newest = log.newest(table)
    with session_settings(spark, UNCHECKED):
        time.sleep(0.01)
        shown = spark.sql(f"VACUUM {name} RETAIN 0 HOURS DRY RUN")
        plan = [row.path for row in shown.collect()]
        assert stored(table) == before
        assert log.newest(table) == newest, "a dry run commits nothing"
        Path(table, "later.parquet").write_bytes(b"later")
        shown.createOrReplaceTempView("shown")
        spark.sql(f"VACUUM {name} RETAIN 0 HOURS USING INVENTORY shown")
    prefix = f"file:{table}/"
    assert all(path.startswith(prefix) for path in plan)
    relative = {path.removeprefix(prefix) for path in plan}
    assert before - stored(table) == relative & before
    assert Path(table, "later.parquet").exists()
    assert not any(Path(table, path).exists() for path in relative)


def test_inventory_limits_what_is_deleted(spark: SparkSession, table: str) -> None:
    garbage = sorted(litter(changed_table(spark, table)))
    backdate(table, 500)
    live = sorted(needed(table, 0))[0]
    inventory = [
        (f"{table}/{garbage[0]}", 7, False, 0),
        (garbage[1], 7, False, 0),
        (f"file:{table}/{garbage[2]}", 7, False, int(time.time() * 1000)),
        (f"{table}/{live}", 7, False, 0),
        ("_delta_log/00000000000000000000.json", 7, False, 0),
        ("_hidden/stray.parquet", 7, False, 0),
        ("/elsewhere/file.parquet", 7, False, 0),
        (f"{table}/empty/directory", 0, True, 0),
        (f"{table}/never.parquet", 7, False, 0),
    ]
    columns = "path STRING, length BIGINT, isDir BOOLEAN, modificationTime BIGINT"
    spark.createDataFrame(inventory, columns).createOrReplaceTempView("inventory")
    before = stored(table)
    shown = spark.sql(
        f"VACUUM delta.`{table}` USING INVENTORY (SELECT * FROM (TABLE inventory)) DRY RUN"
    )
    expected = {garbage[0], garbage[1], "empty/directory", "never.parquet"}
    assert {row.path.removeprefix(f"file:{table}/") for row in shown.collect()} == expected
    DeltaTable.forPath(spark, table).vacuum(inventory="TABLE inventory")
    assert before - stored(table) == {garbage[0], garbage[1]}
    assert not Path(table, "empty/directory").exists()
    with pytest.raises(AnalysisException, match="modificationTime") as raised:
        spark.sql(f"VACUUM delta.`{table}` USING INVENTORY (SELECT 1 AS path)")
    assert isinstance(raised.value, InvalidArgumentError)


def test_retention_shorter_than_the_tables_is_refused_unless_the_check_is_off(
    spark: SparkSession, table: str
) -> None:
    changed_table(spark, table)
    backdate(table, 100)
    Path(table, "old.parquet").write_bytes(b"")
    os.utime(Path(table, "old.parquet"), (1, 1))
    before, newest = stored(table), log.newest(table)
    for statement in ("RETAIN 167 HOURS", "RETAIN 0 HOURS DRY RUN", "LITE RETAIN 1.5 HOURS"):
        with pytest.raises(InvalidArgumentError) as raised:
            spark.sql(f"VACUUM delta.`{table}` {statement}")
        assert raised.value.condition == "DELTAIC_VACUUM_RETENTION_TOO_SHORT"
        assert raised.value.parameters["tableRetentionHours"] == "168"
        setting = raised.value.parameters["setting"]
        assert setting == "spark.deltaic.retentionDurationCheck.enabled"
    with session_settings(spark, UNCHECKED), pytest.raises(InvalidArgumentError, match="negative"):
        spark.sql(f"VACUUM delta.`{table}` RETAIN -1 HOURS")
    with pytest.raises(InvalidArgumentError, match="negative"):
        DeltaTable.forPath(spark, table).vacuum(-0.5)
    assert stored(table) == before
    assert log.newest(table) == newest

    spark.sql(f"VACUUM delta.`{table}` RETAIN 1000000 HOURS")
    assert "old.parquet" in stored(table), "the retention of the statement is honoured"
    assert log.commit_info(table, newest + 1)["operationParameters"] == {
        "retentionCheckEnabled": True,
        "defaultRetentionMillis": 604800000,
        "specifiedRetentionMillis": 3600000000000,
    }
    spark.sql(f"VACUUM '{table}' RETAIN 168 HOURS FULL")
    assert "old.parquet" not in stored(table)


def test_longer_retention_keeps_files_whose_tombstones_have_expired(
    spark: SparkSession, table: str, tmp_path: Path
) -> None:
    changed_table(spark, table)
    ages = {version: 2000.0 - version for version in log.versions(table)}
    aged = aged_copy(table, tmp_path / "aged", ages)
    spark.sql(f"INSERT INTO delta.`{aged}` VALUES (1, 'a b')")
    before = stored(aged)
    spark.sql(f"VACUUM delta.`{aged}` RETAIN 3000 HOURS")
    assert stored(aged) == before
    keep = needed(aged, 1996.5)
    spark.sql(f"VACUUM delta.`{aged}` RETAIN 1996.5 HOURS")
    assert stored(aged) == keep < before


@pytest.mark.parametrize(
    "options",
    [
        *("RETAIN 200 HOURS RETAIN 200 HOURS", "RETAIN 7 DAYS"),
        *("LITE FULL", "LITE USING INVENTORY t", "DRY RUN DRY RUN"),
    ],
)
def test_options_that_are_invalid_or_exclude_each_other_are_refused_by_name(
    spark: SparkSession, table: str, options: str
) -> None:
    with pytest.raises(InvalidArgumentError) as raised:
        spark.sql(f"VACUUM delta.`{table}` {options}")
    assert raised.value.condition == "DELTAIC_VACUUM_OPTION_INVALID"
    assert raised.value.parameters["option"] in options


def test_history_may_be_left_alone(spark: SparkSession, table: str) -> None:
    litter(changed_table(spark, table))
    backdate(table, 500)
    newest = log.newest(table)
    with session_settings(spark, {"spark.databricks.delta.vacuum.logging.enabled": "false"}):
        DeltaTable.forPath(spark, table).vacuum()
    assert log.newest(table) == newest
    assert "stray.parquet" not in stored(table)


def test_table_of_the_catalog_is_vacuumed_by_its_name(spark: SparkSession) -> None:
    spark.sql("CREATE TABLE vacuumed (hours INT, lite INT) USING delta")
    try:
        spark.sql("INSERT INTO vacuumed SELECT 1, dry.lite FROM VALUES (1) AS dry(lite)")
        (row,) = spark.sql("VACUUM vacuumed RETAIN 168 HOURS").collect()
        assert row.path.endswith("/vacuumed")
        result = DeltaTable.forName(spark, "vacuumed").vacuum(200)
        assert (result.columns, result.count()) == ([], 0)
        history = DeltaTable.forName(spark, "vacuumed").history()
        operations = [entry.operation for entry in history.collect()]
        assert operations == ["VACUUM END", "VACUUM START"] * 2 + ["WRITE", "CREATE TABLE"]
    finally:
        spark.sql("DROP TABLE vacuumed")


def test_executors_list_a_table_of_many_directories(
    spark: SparkSession, table: str, tmp_path: Path
) -> None:
    litter(changed_table(spark, table))
    backdate(table, 500)
    copy = tmp_path / "copy"
    log.copy_table(table, copy)
    backdate(str(copy), 500)
    statement = "VACUUM delta.`{}` RETAIN 0 HOURS"
    with session_settings(spark, UNCHECKED):
        assert jobs_of(spark, lambda: spark.sql(statement.format(table))) == 0
        with session_settings(spark, {"spark.deltaic.vacuum.distributed.minDirectories": "1"}):
            described = descriptions_of(spark, lambda: spark.sql(statement.format(copy)))
    assert described == [f"deltaic VACUUM: list directories, file:{copy}"]
    assert stored(copy) == stored(table)
    assert not Path(copy, "empty").exists()


def test_files_of_a_distributed_snapshot_stay(
    spark: SparkSession, table: str, tmp_path: Path
) -> None:
    litter(changed_table(spark, table, **{"delta.checkpointInterval": "4"}))
    backdate(table, 500)
    copy = tmp_path / "copy"
    log.copy_table(table, copy)
    backdate(str(copy), 500)
    with session_settings(spark, UNCHECKED):
        for hours in (0, 168):
            spark.sql(f"VACUUM delta.`{table}` RETAIN {hours} HOURS")
            distributed = {"spark.deltaic.snapshot.distributedThresholdBytes": "0"}
            with session_settings(spark, distributed):
                spark.sql(f"VACUUM delta.`{copy}` RETAIN {hours} HOURS")
            assert stored(copy) == stored(table)
    assert rows(spark, str(copy), log.newest(copy)) == rows(spark, table, log.newest(table))


@pytest.mark.thorough
@pytest.mark.parametrize("locale", ["C", "C.UTF-8"])
def test_files_stay_whose_names_the_locale_does_not_show(
    spark: SparkSession, table: str, monkeypatch: pytest.MonkeyPatch, locale: str
) -> None:
    """Java reads such a name with other characters than the log has."""
    changed_table(spark, table)
    spark.sql(f"INSERT INTO delta.`{table}` VALUES (7, 'ü')")
    backdate(table, 500)
    Path(table, "ö.parquet").write_bytes(b"")
    os.utime(Path(table, "ö.parquet"), (1, 1))
    before = stored(table)
    expected = needed(table, 0)
    monkeypatch.setenv("LC_ALL", locale)
    with SparkProcess(UNCHECKED, engine="deltaic") as other:
        other.run("spark.sql(statement)", statement=f"VACUUM delta.`{table}` RETAIN 0 HOURS")
    assert stored(table) == (expected if locale == "C.UTF-8" else expected | {"ö.parquet"})
    assert before > expected
