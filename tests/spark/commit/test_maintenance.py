"""What follows commits: checksums, checkpoints, compactions and cleanup, on tables of a session."""

from __future__ import annotations

import json
import os
import shutil
import struct
import time
from pathlib import Path

import pyarrow.parquet as pq
import pytest
from pyspark.sql import SparkSession

from deltaic import DeltaTable
from tests.support import log
from tests.support.maintenance import await_maintenance, do_maintenance, log_files
from tests.support.session_settings import session_settings
from tests.support.spark_process import SparkProcess
from tests.support.table_builder import rows_of

INLINE = {"spark.deltaic.maintenance.background": "false"}
DAY_S = 86_400
OLD_VERSIONS = "spark.deltaic.vacuum.enforceTimeTravelWithinDeletedFileRetentionDuration"


def append(spark: SparkSession, table: str, *numbers: int) -> None:
    for number in numbers:
        spark.range(number, number + 1, 1, 1).write.format("delta").mode("append").save(table)


def checkpoint_versions(table: str) -> list[int]:
    return sorted({int(path.name[:20]) for path in log_files(table, "*.checkpoint*.parquet")})


def left_overs(table: str) -> list[str]:
    return [path.name for path in Path(table, "_delta_log").rglob("*.tmp")]


def test_every_tenth_version_has_a_checkpoint_and_every_version_a_checksum(
    spark: SparkSession, table: str
) -> None:
    append(spark, table, *range(22))
    await_maintenance(spark)
    assert checkpoint_versions(table) == [10, 20]
    assert [int(path.name[:20]) for path in log_files(table, "*.crc")] == list(range(22))
    hint = json.loads(Path(table, "_delta_log", "_last_checkpoint").read_text())
    assert (hint["version"], hint["numOfAddFiles"]) == (20, 21)
    assert left_overs(table) == []
    for version in range(20):
        log.commit_path(table, version).unlink()
    moved = str(Path(table).rename(f"{table}-moved"))
    assert rows_of(spark, moved) == rows_of(spark, moved, 21)
    assert [row for (row,) in sorted(rows_of(spark, moved))] == list(range(22))


def test_a_hook_that_fails_does_not_fail_the_commit_and_the_next_commit_makes_up_for_it(
    spark: SparkSession, table: str
) -> None:
    with session_settings(spark, INLINE):
        append(spark, table, 0)
        spark.sql(
            f"CREATE TABLE delta.`{table}-2` (id BIGINT) USING delta "
            "TBLPROPERTIES ('delta.checkpointInterval' = '2')"
        )
        table = f"{table}-2"
        in_the_way = Path(table, "_delta_log", "_last_checkpoint")
        (in_the_way / "x").mkdir(parents=True)
        append(spark, table, 1, 2)
        assert rows_of(spark, table) == [(1,), (2,)]
        shutil.rmtree(in_the_way)
        append(spark, table, 3)
    assert checkpoint_versions(table) == [2, 3]
    assert json.loads(in_the_way.read_text())["version"] == 3


def test_a_setting_that_is_not_valid_fails_no_commit(spark: SparkSession, table: str) -> None:
    with session_settings(spark, {"spark.deltaic.checkpoint.partSize": "many"}):
        append(spark, table, 1)
    assert rows_of(spark, table) == [(1,)]


def test_checksums_and_compactions_are_as_the_session_asks(spark: SparkSession, table: str) -> None:
    settings = {
        **INLINE,
        "spark.databricks.delta.writeChecksumFile.enabled": "false",
        "spark.deltaic.logCompaction.interval": "3",
    }
    with session_settings(spark, settings):
        append(spark, table, *range(7))
    names = [path.name for path in log_files(table, "*.compacted.json")]
    assert names == [f"{first:020d}.{first + 2:020d}.compacted.json" for first in (0, 3)]
    assert log_files(table, "*.crc") == []
    expected = rows_of(spark, table)
    for version in range(6):
        log.commit_path(table, version).write_text("")
    moved = str(Path(table).rename(f"{table}-moved"))
    assert rows_of(spark, moved) == expected


def test_a_checkpoint_drops_what_is_past_the_retention(spark: SparkSession, table: str) -> None:
    spark.sql(
        f"CREATE TABLE delta.`{table}` (id BIGINT) USING delta TBLPROPERTIES "
        "('delta.checkpointInterval' = '3', 'delta.logRetentionDuration' = 'interval 2 days',"
        " 'delta.deletedFileRetentionDuration' = 'interval 2 days')"
    )
    with session_settings(spark, INLINE):
        append(spark, table, *range(1, 5))
        now = time.time()
        for version in range(5):
            os.utime(log.commit_path(table, version), (now, now - (9 - version) * DAY_S))
        # A process cleans up a log once a day, and has done so; it has cached nothing of this path.
        table = str(Path(table).rename(f"{table}-later"))
        append(spark, table, 5)
        assert log.versions(table)[0] == 0
        append(spark, table, 6)
    assert log.versions(table)[0] == 3
    assert checkpoint_versions(table) == [3, 6]
    assert sorted(rows_of(spark, table)) == [(n,) for n in range(1, 7)]
    with session_settings(spark, {OLD_VERSIONS: "false"}):
        assert sorted(rows_of(spark, table, 3)) == [(1,), (2,), (3,)]


def test_bounds_in_a_checkpoint_enclose_the_floats_of_a_column_that_was_widened(
    spark: SparkSession, table: str
) -> None:
    spark.sql(
        f"CREATE TABLE delta.`{table}` (x FLOAT) USING delta TBLPROPERTIES "
        "('delta.enableTypeWidening' = 'true', 'delta.checkpoint.writeStatsAsStruct' = 'true', "
        "'delta.checkpoint.writeStatsAsJson' = 'false')"
    )
    spark.sql(f"INSERT INTO delta.`{table}` VALUES (0.7), (1.1)")
    spark.sql(f"ALTER TABLE delta.`{table}` ALTER COLUMN x TYPE DOUBLE")
    newest = log.newest(table)
    do_maintenance(spark, table, newest, {"task": "classicCheckpoint"})
    (checkpoint,) = log_files(table, f"{newest:020d}.checkpoint.parquet")
    adds = pq.read_table(checkpoint, columns=["add"])["add"].to_pylist()
    stats = [add["stats_parsed"] for add in adds if add]
    low = min(s["minValues"]["x"] for s in stats)
    high = max(s["maxValues"]["x"] for s in stats)
    # The float nearest to 0.7 is below it, the one nearest to 1.1 above.
    nearest = [struct.unpack("f", struct.pack("f", x))[0] for x in (0.7, 1.1)]
    assert low <= nearest[0] < 0.7
    assert high >= nearest[1] > 1.1


def test_checkpoint_without_json_keeps_statistics_of_what_rows_are_clustered_by(
    spark: SparkSession, table: str
) -> None:
    spark.sql(
        f"CREATE TABLE delta.`{table}` (a INT, b INT, c INT) USING delta CLUSTER BY (c)"
        " TBLPROPERTIES ('delta.checkpoint.writeStatsAsStruct' = 'true',"
        " 'delta.checkpoint.writeStatsAsJson' = 'false')"
    )
    spark.sql(
        f"ALTER TABLE delta.`{table}` SET TBLPROPERTIES ('delta.dataSkippingNumIndexedCols' = '1')"
    )
    spark.sql(f"INSERT INTO delta.`{table}` VALUES (1, 2, 3)")
    newest = log.newest(table)
    do_maintenance(spark, table, newest, {"task": "classicCheckpoint"})
    (checkpoint,) = log_files(table, f"{newest:020d}.checkpoint.parquet")
    adds = pq.read_table(checkpoint, columns=["add"])["add"].to_pylist()
    (stats,) = [add["stats_parsed"] for add in adds if add]
    assert stats["minValues"] == stats["maxValues"] == {"a": 1, "c": 3}


def test_nothing_is_written_into_a_table_that_was_dropped(spark: SparkSession) -> None:
    for _ in range(3):
        spark.sql(
            "CREATE TABLE upkept (id BIGINT) USING delta "
            "TBLPROPERTIES ('delta.checkpointInterval' = '1')"
        )
        location = DeltaTable.forName(spark, "upkept").detail().collect()[0]["location"]
        spark.sql("INSERT INTO upkept VALUES (1)")
        spark.sql("INSERT INTO upkept VALUES (2)")
        spark.sql("DROP TABLE upkept")
        await_maintenance(spark)
        assert not Path(location.removeprefix("file:")).exists()


EXITS_AT_ONCE = """
import os
for number in range(11):
    spark.range(number, number + 1, 1, 1).write.format("delta").mode("append").save(path)
result = None
"""


def test_a_process_that_exits_right_after_its_commit_leaves_its_checkpoint_and_no_ruins(
    spark: SparkSession, table: str
) -> None:
    with SparkProcess(engine="deltaic") as other:
        other.run(EXITS_AT_ONCE, path=table)
    deadline = time.monotonic() + 60
    while checkpoint_versions(table) != [10] or left_overs(table):
        assert time.monotonic() < deadline, sorted(os.listdir(Path(table, "_delta_log")))
        time.sleep(0.1)
    assert [row for (row,) in sorted(rows_of(spark, table))] == list(range(11))


@pytest.mark.protocol("classic-checkpoint-1")
@pytest.mark.parametrize("writers", [4])
def test_several_threads_that_commit_leave_one_checkpoint_an_interval(
    spark: SparkSession, table: str, writers: int
) -> None:
    from concurrent.futures import ThreadPoolExecutor

    append(spark, table, 0)
    with ThreadPoolExecutor(writers) as pool:
        list(pool.map(lambda n: append(spark, table, n), range(1, 25)))
    await_maintenance(spark)
    assert checkpoint_versions(table) == [10, 20]
    for version in range(20):
        log.commit_path(table, version).unlink()
    moved = str(Path(table).rename(f"{table}-moved"))
    assert [row for (row,) in sorted(rows_of(spark, moved))] == list(range(25))
