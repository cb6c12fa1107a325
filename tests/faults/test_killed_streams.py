"""A query that writes a table is killed again and again: each row of its source is there once."""

from __future__ import annotations

import itertools
import random
from collections import Counter
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from tests.faults.conftest import require_kept
from tests.support import log
from tests.support.faulty import ARM, FaultyProcesses, is_alive
from tests.support.spark_process import SparkProcessError
from tests.support.streams import stream_of, write_stream
from tests.support.table_builder import append_file, build_table, in_order

#: Kills of one point in each mode: 5 points in two modes make 200 kills.
KILLS = 20

_DATA = r"/table/part-[^/]*\.parquet$"
_ENTRY = r"/table/_delta_log/0{10}\d{10}\.json$"

#: The call at which the driver is killed, its path, and whether it is killed before or after.
POINTS = {
    "after the offset log": ("rename", r"/checkpoint/offsets/", "after"),
    "within a task": ("close", _DATA, "before"),
    "after the data files, before the commit": ("link", _ENTRY, "before"),
    "after the commit": ("link", _ENTRY, "after"),
    "before the commit log": ("rename", r"/checkpoint/commits/", "before"),
}

#: Lets the log of a query be written through the faulty file system.
THROUGH_FAULTS = """
spark.conf.set(
    "spark.sql.streaming.checkpointFileManagerClass",
    "org.apache.spark.sql.execution.streaming.checkpointing.FileSystemBasedCheckpointFileManager",
)
"""

#: Reads file by file, so that a run has several batches.
QUERY = f"""
{THROUGH_FAULTS}rows = spark.readStream.format("delta").option("maxFilesPerTrigger", 1).load(source)
if mode == "complete":
    rows = rows.groupBy("part").count()
writer = rows.writeStream.format("delta").outputMode(mode).trigger(availableNow=True)
writer.option("checkpointLocation", checkpoint).start(table).awaitTermination()
result = None
"""


@pytest.mark.parametrize("mode", ["append", "complete"])
@pytest.mark.parametrize("point", POINTS)
def test_rows_of_a_query_that_is_killed_many_times_are_there_once(
    spark: SparkSession,
    processes: FaultyProcesses,
    tmp_path: Path,
    figures: Counter[str],
    point: str,
    mode: str,
) -> None:
    source, table, checkpoint = (str(tmp_path / name) for name in ("source", "table", "checkpoint"))
    schema, numbers, choice = (
        "id INT, part INT",
        itertools.count(),
        random.Random(f"{point} {mode}"),
    )
    build_table(spark, source, schema, [[(next(numbers), 0)]])
    call, path, when = POINTS[point]
    for kill in range(KILLS):
        for _ in range(3):
            append_file(spark, source, schema, [(next(numbers), kill % 3), (next(numbers), 7)])
        fault = [call, path, choice.randint(1, 3), f"kill {when}"]
        with processes.take() as (process, pid), pytest.raises(SparkProcessError) as ended:
            process.run(
                ARM + QUERY,
                source=source,
                table=table,
                checkpoint=checkpoint,
                mode=mode,
                fault=fault,
            )
        assert not is_alive(pid), f"it was not killed: {ended.value}"
        figures["kills"] += 1
        if mode == "append" and Path(table, "_delta_log").exists():
            ids = [row.id for row in spark.read.format("delta").load(table).collect()]
            assert len(ids) == len(set(ids)), f"rows are there twice after kill {kill}"
    rows = stream_of(spark, source, maxFilesPerTrigger=1)
    if mode == "complete":
        rows = rows.groupBy("part").count()
    write_stream(rows, table, Path(checkpoint), mode=mode)
    figures["commits"] += len(log.versions(table))
    expected = spark.read.format("delta").load(source)
    if mode == "complete":
        expected = expected.groupBy("part").count()
    found = in_order(map(tuple, spark.read.format("delta").load(table).collect()))
    require_kept(figures, found == in_order(map(tuple, expected.collect())), point)
    epochs = [
        log.commit_info(table, v)["operationParameters"]["epochId"] for v in log.versions(table)
    ]
    assert epochs == sorted(set(epochs), key=int), "a batch was committed twice"


#: Kills of a tracked stream at each point.
TRACKED_KILLS = 7

#: Around the entry of a change, and before the batch after the change is committed.
TRACKED_POINTS = {
    "before the entry": ("rename", r"/checkpoint/_schema_log_", "before"),
    "after the entry": ("rename", r"/checkpoint/_schema_log_", "after"),
    "before the commit log": ("rename", r"/checkpoint/commits/", "before"),
}

TRACKED_QUERY = f"""
{THROUGH_FAULTS}
def run():
    rows = spark.readStream.format("delta").option("schemaTrackingLocation", checkpoint)
    rows = rows.option("allowSourceColumnRename", "always").load(source)
    writer = rows.writeStream.format("delta").option("mergeSchema", "true")
    writer = writer.option("checkpointLocation", checkpoint).trigger(availableNow=True)
    try:
        writer.start(table).awaitTermination()
        return True
    except Exception as problem:
        if "DELTAIC_STREAM_SCHEMA_TRACK" not in str(problem):
            raise
        return False

while not run():
    pass
result = None
"""


@pytest.mark.parametrize("point", TRACKED_POINTS)
def test_rows_of_a_tracked_stream_that_is_killed_at_changes_are_there_once(
    spark: SparkSession,
    processes: FaultyProcesses,
    tmp_path: Path,
    figures: Counter[str],
    point: str,
) -> None:
    paths = {name: str(tmp_path / name) for name in ("source", "table", "checkpoint")}
    source = f"delta.`{paths['source']}`"
    mapped = {"delta.columnMapping.mode": "name"}
    build_table(spark, paths["source"], "id INT, v0 INT", [[(0, 0)]], properties=mapped)
    with processes.take() as (process, _):
        process.run(TRACKED_QUERY, **paths)
    call, path, when = TRACKED_POINTS[point]
    for kill in range(1, TRACKED_KILLS + 1):
        spark.sql(f"INSERT INTO {source} VALUES ({10 * kill}, {10 * kill})")
        spark.sql(f"ALTER TABLE {source} RENAME COLUMN v{kill - 1} TO v{kill}")
        spark.sql(f"INSERT INTO {source} VALUES ({10 * kill + 1}, {10 * kill + 1})")
        with processes.take() as (process, pid), pytest.raises(SparkProcessError) as ended:
            process.run(ARM + TRACKED_QUERY, **paths, fault=[call, path, 1, f"kill {when}"])
        assert not is_alive(pid), f"it was not killed: {ended.value}"
        figures["kills"] += 1
        if kill % 2 == 0:
            with processes.take() as (process, _):
                process.run(TRACKED_QUERY, **paths)
    with processes.take() as (process, _):
        process.run(TRACKED_QUERY, **paths)
    figures["commits"] += len(log.versions(paths["table"]))
    # Each row has its value in the column of its time, and in no other one.
    expected = {0: {"v0": 0}}
    for kill in range(1, TRACKED_KILLS + 1):
        expected[10 * kill] = {f"v{kill - 1}": 10 * kill}
        expected[10 * kill + 1] = {f"v{kill}": 10 * kill + 1}
    rows = [row.asDict() for row in spark.read.format("delta").load(paths["table"]).collect()]
    found = {
        row.pop("id"): {name: value for name, value in row.items() if value is not None}
        for row in rows
    }
    require_kept(figures, len(rows) == len(found) and found == expected, point)
