"""RESTORE: an older version of a table becomes its newest version."""

from __future__ import annotations

import os
import shutil
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from pyspark.errors import AnalysisException, ParseException

from deltaic import DeltaTable
from deltaic.exceptions import (
    ConcurrentModificationError,
    ConcurrentWriteException,
    InvalidArgumentError,
    MetadataChangedException,
    ProtocolChangedException,
    TableStateError,
)
from tests.support import log
from tests.support.interleave import committed_meanwhile
from tests.support.session_settings import session_settings
from tests.support.table_builder import build_three_versions, rows_of

if TYPE_CHECKING:
    from collections.abc import Callable

    from pyspark.sql import SparkSession

COLUMNS = "id INT, v STRING"
KEPT = {
    "delta.deletedFileRetentionDuration": "interval 10000 days",
    "delta.logRetentionDuration": "interval 10000 days",
}
DOWNGRADE = "spark.deltaic.restore.protocolDowngradeAllowed"


def build(spark: SparkSession, table: str, **options: Any) -> None:
    build_three_versions(spark, table, COLUMNS, **options)


def restore(spark: SparkSession, table: str, to: str | int) -> dict[str, int]:
    clause = f"VERSION AS OF {to}" if isinstance(to, int) else to
    [row] = spark.sql(f"RESTORE TABLE delta.`{table}` TO {clause}").collect()
    found: dict[str, int] = row.asDict()
    return found


def set_times(table: str, first_s: int) -> None:
    """Let versions be committed at intervals of a minute."""
    for version in log.versions(table):
        time = first_s + 60 * version
        os.utime(log.commit_path(table, version), (time, time))


@pytest.mark.parametrize("deletion_vectors", [True, False])
@pytest.mark.parametrize("version", [0, 1])
def test_each_version_can_be_restored(
    spark: SparkSession, table: str, version: int, deletion_vectors: bool
) -> None:
    build(spark, table, deletion_vectors=deletion_vectors)
    expected = rows_of(spark, table, version)
    files = {(f["path"], log.dv_id(f)) for v in [version] for f in _files_at(table, v)}
    restore(spark, table, version)
    assert rows_of(spark, table) == expected
    assert {(f["path"], log.dv_id(f)) for f in log.active_files(table)} == files
    restore(spark, table, 2)
    assert rows_of(spark, table) == rows_of(spark, table, 2)


def _files_at(table: str, version: int) -> list[log.Action]:
    copy = f"{table}-{version}"
    log.copy_table(Path(table, "_delta_log"), Path(copy, "_delta_log"))
    for later in log.versions(copy):
        if later > version:
            log.commit_path(copy, later).unlink()
    files = log.active_files(copy)
    shutil.rmtree(copy)
    return files


def test_result_and_history_count_the_files_as_delta_spark_does(
    spark: SparkSession, table: str
) -> None:
    build(spark, table)
    size = {f["path"]: f["size"] for f in log.active_files(table)}
    before = {f["path"]: f["size"] for f in _files_at(table, 0)}
    counts = {
        "table_size_after_restore": sum(before.values()),
        "num_of_files_after_restore": 2,
        "num_removed_files": 3,
        "num_restored_files": 2,
        "removed_files_size": sum(size.values()),
        "restored_files_size": sum(before.values()),
    }
    assert restore(spark, table, 0) == counts
    [entry] = DeltaTable.forPath(spark, table).history(1).collect()
    assert entry.operation == "RESTORE"
    assert entry.operationParameters == {"version": "0"}
    assert entry.isolationLevel == "Serializable"
    assert entry.readVersion == 2 and not entry.isBlindAppend
    assert entry.operationMetrics == {
        "tableSizeAfterRestore": str(counts["table_size_after_restore"]),
        "numOfFilesAfterRestore": "2",
        "numRemovedFiles": "3",
        "numRestoredFiles": "2",
        "removedFilesSize": str(counts["removed_files_size"]),
        "restoredFilesSize": str(counts["restored_files_size"]),
    }
    changes = [*log.last_actions(table, "add"), *log.last_actions(table, "remove")]
    assert len(changes) == 5 and all(action["dataChange"] for action in changes)


@pytest.mark.protocol("dv-action-reconciliation-changes-3")
def test_deletion_vectors_come_back_as_they_were(spark: SparkSession, table: str) -> None:
    build(spark, table)
    vectors = {f["path"]: f["deletionVector"] for f in log.actions(table, 1, "add")}
    assert len(vectors) == 2
    spark.sql(f"DELETE FROM delta.`{table}` WHERE id = 2")
    spark.sql(f"DELETE FROM delta.`{table}` WHERE id > 3")
    restore(spark, table, 1)
    assert {f["path"]: f["deletionVector"] for f in log.active_files(table)} == vectors


def test_restoring_the_current_state_commits_nothing_and_says_so(
    spark: SparkSession, table: str
) -> None:
    build(spark, table)
    size = sum(f["size"] for f in log.active_files(table))
    unchanged = {
        "table_size_after_restore": size,
        "num_of_files_after_restore": 3,
        "num_removed_files": 0,
        "num_restored_files": 0,
        "removed_files_size": 0,
        "restored_files_size": 0,
    }
    assert restore(spark, table, 2) == unchanged
    assert restore(spark, table, "TIMESTAMP AS OF '2100-01-01'") == unchanged
    assert log.newest(table) == 2
    restore(spark, table, 0)
    assert restore(spark, table, 0)["num_removed_files"] == 0
    assert log.newest(table) == 3


@pytest.mark.parametrize(
    "statement",
    [
        "RESTORE {t} VERSION AS OF 0",
        "restore table {t} to version as of '0'",
        "RESTORE TABLE {t} TO SYSTEM_VERSION AS OF 0;",
        "RESTORE {t} TO FOR VERSION AS OF 0",
        "RESTORE {t} FOR SYSTEM_TIME AS OF '2021-01-01 00:00:30'",
        "RESTORE /* why */ TABLE {t} TO TIMESTAMP AS OF '2021-01-01T00:00:00Z'",
    ],
)
def test_statement_is_spelled_as_in_delta_spark(
    spark: SparkSession, table: str, statement: str
) -> None:
    build(spark, table, properties=KEPT)
    set_times(table, 1_609_459_200)
    with session_settings(spark, {"spark.sql.session.timeZone": "UTC"}):
        spark.sql(statement.format(t=f"delta.`{table}`"))
    assert rows_of(spark, table) == rows_of(spark, table, 0)


@pytest.mark.parametrize(
    ("zone", "timestamp", "version"),
    [
        ("UTC", "2021-01-01 00:01:59", 1),
        ("America/New_York", "2020-12-31 19:01:59", 1),
        ("Asia/Kolkata", "2021-01-01 05:30:00", 0),
        ("America/New_York", "2021-01-01 00:01:59+00:00", 1),
        ("UTC", "2021-01-01", 0),
    ],
)
def test_timestamp_is_in_the_time_zone_of_the_session(
    spark: SparkSession, table: str, zone: str, timestamp: str, version: int
) -> None:
    build(spark, table, properties=KEPT)
    set_times(table, 1_609_459_200)
    expected = rows_of(spark, table, version)
    with session_settings(spark, {"spark.sql.session.timeZone": zone}):
        DeltaTable.forPath(spark, table).restoreToTimestamp(timestamp)
    assert rows_of(spark, table) == expected
    [entry] = DeltaTable.forPath(spark, table).history(1).collect()
    assert entry.operationParameters == {"timestamp": timestamp}


@pytest.mark.parametrize(
    ("clause", "condition"),
    [
        ("VERSION AS OF 7", "DELTAIC_VERSION_NOT_FOUND"),
        ("VERSION AS OF 'one'", "DELTAIC_INVALID_TIME_TRAVEL"),
        ("TIMESTAMP AS OF 'yesterday morning'", "DELTAIC_INVALID_TIME_TRAVEL"),
        ("TIMESTAMP AS OF '1999-01-01'", "DELTAIC_TIMESTAMP_BEFORE_EARLIEST"),
    ],
)
def test_version_that_cannot_be_read_is_refused(
    spark: SparkSession, table: str, clause: str, condition: str
) -> None:
    build(spark, table)
    with pytest.raises(AnalysisException) as raised:
        restore(spark, table, clause)
    assert raised.value.getCondition() == condition
    assert table in str(raised.value)
    assert log.newest(table) == 2


def test_arguments_of_the_methods_are_checked(spark: SparkSession, table: str) -> None:
    build(spark, table)
    api = DeltaTable.forPath(spark, table)
    wrong: list[Callable[[], object]] = [
        lambda: api.restoreToVersion(-1),
        lambda: api.restoreToVersion("0"),  # type: ignore[arg-type]
        lambda: api.restoreToVersion(True),
        lambda: api.restoreToTimestamp(""),
        lambda: api.restoreToTimestamp(3),  # type: ignore[arg-type]
    ]
    for call in wrong:
        with pytest.raises(InvalidArgumentError):
            call()
    assert log.newest(table) == 2


def test_incomplete_statement_is_a_parse_error(spark: SparkSession, table: str) -> None:
    build(spark, table)
    for clause in ("", "TO", "VERSION AS OF -1", "TIMESTAMP AS OF now()", "VERSION AS OF 0 x"):
        with pytest.raises(ParseException):
            spark.sql(f"RESTORE TABLE delta.`{table}` {clause}")


def test_version_whose_log_was_cleaned_up_is_refused(spark: SparkSession, table: str) -> None:
    build(spark, table, properties={"delta.checkpointInterval": "2"})
    spark._jvm.io.deltaic.spark.PythonApi.awaitMaintenance(60_000)  # type: ignore[union-attr]
    assert list(Path(table, "_delta_log").glob("*2.checkpoint.parquet"))
    for version in (0, 1):
        log.commit_path(table, version).unlink()
    with pytest.raises(TableStateError, match="versions from 2 to 2") as raised:
        restore(spark, table, 0)
    assert raised.value.condition == "DELTAIC_VERSION_NOT_FOUND"


def test_missing_files_are_named_before_anything_is_committed(
    spark: SparkSession, table: str
) -> None:
    build(spark, table)
    data = log.actions(table, 0, "add")[0]["path"]
    vectors = set(Path(table).rglob("*.bin"))
    spark.sql(f"DELETE FROM delta.`{table}`")
    Path(table, data).unlink()
    for path in vectors:
        path.unlink()
    for version, names in {0: [data], 1: [data, *(path.name for path in vectors)]}.items():
        with pytest.raises(TableStateError) as raised:
            restore(spark, table, version)
        assert raised.value.condition == "DELTAIC_RESTORED_FILES_MISSING"
        assert raised.value.parameters["count"] == str(len(names))
        assert all(name in raised.value.parameters["files"] for name in names)
        assert log.newest(table) == 3
    with session_settings(spark, {"spark.sql.files.ignoreMissingFiles": "true"}):
        restore(spark, table, 0)
        assert [row[0] for row in rows_of(spark, table)] in ([0, 1, 2, 3], [4, 5, 6, 7])


def test_at_most_100_missing_files_are_named(spark: SparkSession, table: str) -> None:
    rows = spark.range(130).selectExpr("cast(id AS INT) AS p", "id")
    rows.write.format("delta").partitionBy("p").save(table)
    files = [add["path"] for add in log.actions(table, 0, "add")]
    assert len(files) > 110
    spark.sql(f"DELETE FROM delta.`{table}`")
    for file in files[:-3]:
        Path(table, file).unlink()
    with pytest.raises(TableStateError) as raised:
        restore(spark, table, 0)
    parameters = raised.value.parameters
    assert parameters["count"] == str(len(files) - 3)
    assert parameters["files"].count(".parquet") == 100


def test_version_beyond_the_file_retention_is_refused(spark: SparkSession, table: str) -> None:
    build(spark, table)
    set_times(table, 1_609_459_200)
    with pytest.raises(AnalysisException) as raised:
        restore(spark, table, 0)
    assert raised.value.getCondition() == "DELTAIC_VERSION_BEYOND_FILE_RETENTION"


def test_append_only_table_is_not_restored(spark: SparkSession, table: str) -> None:
    build(spark, table)
    spark.sql(f"ALTER TABLE delta.`{table}` SET TBLPROPERTIES ('delta.appendOnly' = 'true')")
    with pytest.raises(TableStateError) as raised:
        restore(spark, table, 0)
    assert raised.value.condition == "DELTAIC_APPEND_ONLY"
    assert log.newest(table) == 3


@pytest.mark.parametrize(
    ("theirs", "conflict"),
    {
        "append": ("INSERT INTO {t} VALUES (9, 'd')", ConcurrentWriteException),
        "delete": ("DELETE FROM {t} WHERE id = 0", ConcurrentWriteException),
        "delete of a file": ("DELETE FROM {t} WHERE id = 8", ConcurrentWriteException),
        "columns": ("ALTER TABLE {t} ADD COLUMN w INT", MetadataChangedException),
        "restore": ("RESTORE TABLE {t} TO VERSION AS OF 1", ConcurrentWriteException),
        "the same": ("RESTORE TABLE {t} TO VERSION AS OF 0", ConcurrentWriteException),
        "feature": (
            "ALTER TABLE {t} SET TBLPROPERTIES ('delta.feature.rowTracking' = 'supported')",
            ProtocolChangedException,
        ),
    }.values(),
)
@pytest.mark.parametrize("level", ["Serializable", "WriteSerializable"])
def test_restore_conflicts_with_a_concurrent_change(
    spark: SparkSession,
    table: str,
    theirs: str,
    conflict: type[ConcurrentModificationError],
    level: str,
) -> None:
    build(spark, table, properties={"delta.isolationLevel": level})
    t = f"delta.`{table}`"
    with pytest.raises(conflict), committed_meanwhile(lambda: spark.sql(theirs.format(t=t))):
        restore(spark, table, 0)
    assert log.newest(table) == 3
    assert rows_of(spark, table) == rows_of(spark, table, 3)
    restore(spark, table, 0)
    assert rows_of(spark, table) == rows_of(spark, table, 0)


def test_changes_of_rows_conflict_with_a_concurrent_restore(
    spark: SparkSession, table: str
) -> None:
    build(spark, table)
    with (
        pytest.raises(ConcurrentModificationError),
        committed_meanwhile(lambda: restore(spark, table, 0)),
    ):
        spark.sql(f"DELETE FROM delta.`{table}` WHERE id = 6")
    assert rows_of(spark, table) == rows_of(spark, table, 0)


def test_table_with_a_large_checkpoint_is_restored(spark: SparkSession, table: str) -> None:
    build(spark, table, properties={"delta.checkpointInterval": "1"})
    spark._jvm.io.deltaic.spark.PythonApi.awaitMaintenance(60_000)  # type: ignore[union-attr]
    with session_settings(spark, {"spark.deltaic.snapshot.distributedThresholdBytes": "0"}):
        counts = restore(spark, table, 1)
        assert counts["num_removed_files"] == 1 and counts["num_restored_files"] == 0
        assert counts["num_of_files_after_restore"] == 2
        assert rows_of(spark, table) == rows_of(spark, table, 1)


@pytest.mark.protocol("dv-generate-1")
def test_features_that_were_added_since_stay_unless_a_downgrade_is_allowed(
    spark: SparkSession, table: str
) -> None:
    build(spark, table, deletion_vectors=False)
    before = DeltaTable.forPath(spark, table).detail().collect()[0].tableFeatures
    spark.sql(f"ALTER TABLE delta.`{table}` SET TBLPROPERTIES ('delta.enableTypeWidening' = true)")
    restore(spark, table, 0)
    detail = DeltaTable.forPath(spark, table).detail().collect()[0]
    assert set(detail.tableFeatures) == {*before, "typeWidening"}
    assert "delta.enableTypeWidening" not in detail.properties
    with session_settings(spark, {DOWNGRADE: "true"}):
        restore(spark, table, 0)
    assert DeltaTable.forPath(spark, table).detail().collect()[0].tableFeatures == before
    with session_settings(spark, {DOWNGRADE: "perhaps"}), pytest.raises(InvalidArgumentError):
        restore(spark, table, 1)
