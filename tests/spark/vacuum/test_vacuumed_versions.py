"""Versions whose files VACUUM has deleted: the error names the VACUUM and its time."""

from __future__ import annotations

import re
import time
from datetime import datetime, timezone
from typing import TYPE_CHECKING

import pytest

from deltaic.exceptions import DeltaError, TableStateError
from tests.support import log
from tests.support.session_settings import session_settings
from tests.support.vacuumed import UNCHECKED, changed_table

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


def read(spark: SparkSession, table: str, version: int) -> int:
    return spark.read.format("delta").option("versionAsOf", version).load(table).count()


def all_rows(spark: SparkSession, table: str, version: int) -> int:
    df = spark.read.format("delta").option("versionAsOf", version).load(table)
    return len(df.collect())


def moment(timestamp_ms: int) -> str:
    text = datetime.fromtimestamp(timestamp_ms / 1000, timezone.utc).isoformat()
    return text[:19]


def vacuumed(spark: SparkSession, table: str, logged: str) -> int:
    """Build and vacuum a table; return its version before the VACUUM, which the log has or not."""
    changed_table(spark, table)
    newest = log.newest(table)
    time.sleep(0.01)
    with session_settings(spark, {**UNCHECKED, "spark.deltaic.vacuum.logging.enabled": logged}):
        spark.sql(f"VACUUM delta.`{table}` RETAIN 0 HOURS")
    return newest


def require_time_of_vacuum(table: str, version: int, found: str) -> None:
    stated = log.commit_info(table, version)["timestamp"]
    seconds = datetime.fromisoformat(found.replace("Z", "+00:00")).timestamp()
    assert abs(seconds - stated / 1000) < 5


@pytest.mark.parametrize("logged", ["true", "false"])
def test_version_without_its_files_is_an_error_with_the_time_of_the_vacuum(
    spark: SparkSession, table: str, logged: str
) -> None:
    newest = vacuumed(spark, table, logged)
    assert all_rows(spark, table, newest) > 0
    # Version 2 lacks a deletion vector, the others a data file or a vector.
    for version in (1, 2, 3, 4):
        with pytest.raises(TableStateError) as raised:
            all_rows(spark, table, version)
        assert raised.value.condition == "DELTAIC_VERSION_VACUUMED", version
        assert raised.value.parameters["version"] == str(version)
        if logged == "true":
            found = str(raised.value.parameters["vacuumTimestamp"])
            require_time_of_vacuum(table, newest + 1, found)
            assert re.search(r"VACUUM at \d{4}-", str(raised.value))


@pytest.mark.parametrize("logged", ["true", "false"])
def test_version_that_cannot_be_restored_is_an_error_with_the_time_of_the_vacuum(
    spark: SparkSession, table: str, logged: str
) -> None:
    newest = vacuumed(spark, table, logged)
    with pytest.raises(TableStateError) as raised:
        spark.sql(f"RESTORE TABLE delta.`{table}` TO VERSION AS OF 1")
    assert raised.value.condition == "DELTAIC_RESTORED_FILES_MISSING"
    found = re.search(r"VACUUM at (\S+) deleted files", str(raised.value))
    assert found is not None
    if logged == "true":
        require_time_of_vacuum(table, newest + 1, found[1])


def test_file_that_no_vacuum_has_deleted_is_only_missing(spark: SparkSession, table: str) -> None:
    changed_table(spark, table)
    newest = log.newest(table)
    spark.sql(f"VACUUM delta.`{table}`")
    (path,) = [add["path"] for add in log.actions(table, newest, "add")]
    log.data_path(table, {"path": path.replace("%2520", "%20")}).unlink(missing_ok=True)
    for file in log.stored_files(table):
        if "a b" in str(file) or "a%20b" in str(file):
            file.unlink(missing_ok=True)
    with pytest.raises(DeltaError) as raised:
        all_rows(spark, table, newest)
    assert raised.value.condition == "DELTAIC_DATA_FILE_MISSING"
    spark.sql(f"DELETE FROM delta.`{table}`")
    with pytest.raises(TableStateError, match="VACUUM or another program deleted them"):
        spark.sql(f"RESTORE TABLE delta.`{table}` TO VERSION AS OF {newest}")


def test_change_feed_of_a_vacuumed_version_is_the_same_error(
    spark: SparkSession, table: str
) -> None:
    changed_table(spark, table)
    time.sleep(0.01)
    with session_settings(spark, UNCHECKED):
        spark.sql(f"VACUUM delta.`{table}` RETAIN 0 HOURS")
    feed = spark.read.format("delta").option("readChangeFeed", "true")
    with pytest.raises(DeltaError) as raised:
        feed.option("startingVersion", 1).option("endingVersion", 3).load(table).collect()
    assert raised.value.condition == "DELTAIC_VERSION_VACUUMED"
