"""A process that is killed during VACUUM: the table is intact, and the next run ends the work."""

from __future__ import annotations

import os
import threading
import time
from contextlib import suppress
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from tests.support import log
from tests.support.jobs import await_tasks
from tests.support.session_settings import session_settings
from tests.support.spark_process import SparkProcess, SparkProcessError
from tests.support.vacuumed import UNCHECKED, changed_table, needed, stored

GARBAGE = 20_000
THOROUGH = pytest.mark.thorough


def rows(spark: SparkSession, table: str) -> list[tuple[object, ...]]:
    return sorted(tuple(row) for row in spark.read.format("delta").load(table).collect())


def remaining(folder: Path) -> int:
    try:
        return len(os.listdir(folder))
    except FileNotFoundError:
        return 0


def write_garbage(table: str, folder: Path, kind: str) -> None:
    """Write files that the table does not need; for LITE, two commits add and remove them."""
    folder.mkdir()
    names = [f"part-{n}.parquet" for n in range(GARBAGE)]
    for name in names:
        (folder / name).write_bytes(b"")
    if kind == "LITE":
        await_tasks()
        partition = {"_p": "garbage"}
        paths = [f"{folder.name}/{name}" for name in names]
        adds = (
            {
                "add": {
                    "path": path,
                    "partitionValues": partition,
                    "size": 0,
                    "modificationTime": 1,
                    "dataChange": True,
                }
            }
            for path in paths
        )
        log.write_commit(table, log.newest(table) + 1, *adds)
        now_ms = int(time.time() * 1000)
        removes = (
            {"remove": {"path": path, "deletionTimestamp": now_ms, "dataChange": True}}
            for path in paths
        )
        log.write_commit(table, log.newest(table) + 1, *removes)


@pytest.mark.parametrize(
    ("kind", "deleted"),
    [
        *(("FULL", count) for count in (0, 1, 1000, GARBAGE - 100)),
        ("LITE", 1000),
        *(pytest.param("LITE", count, marks=THOROUGH) for count in (0, 1, GARBAGE - 100)),
    ],
)
def test_vacuum_that_was_killed_is_repeated_with_the_same_result(
    spark: SparkSession, table: str, kind: str, deleted: int
) -> None:
    changed_table(spark, table)
    expected = rows(spark, table)
    folder = Path(table, "_p=garbage")
    write_garbage(table, folder, kind)
    time.sleep(0.01)
    statement = f"VACUUM delta.`{table}` {kind} RETAIN 0 HOURS"
    with SparkProcess(UNCHECKED, engine="deltaic") as other:
        newest = log.newest(table)

        def kill() -> None:
            while log.newest(table) == newest or remaining(folder) > GARBAGE - deleted:
                pass
            other._process.kill()

        killer = threading.Thread(target=kill)
        other.run("result = spark.range(1).count()")
        killer.start()
        # The last files may be deleted before it is killed.
        with suppress(SparkProcessError) if deleted > 1000 else pytest.raises(SparkProcessError):
            other.run("result = spark.sql(statement).count()", statement=statement)
        killer.join()
    assert rows(spark, table) == expected
    assert needed(table, 0) <= stored(table)
    with session_settings(spark, UNCHECKED):
        spark.sql(statement)
    assert stored(table) == needed(table, 0)
    # LITE lists no directories.
    assert folder.exists() == (kind == "LITE")
    assert rows(spark, table) == expected
