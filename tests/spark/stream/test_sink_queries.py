"""Queries of every kind into a table: sources, joins, watermarks, aggregations."""

from __future__ import annotations

import time
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from pyspark.sql import functions as F

from tests.support import log
from tests.support.interleave import committed_meanwhile
from tests.support.streams import stream_of, write_stream
from tests.support.table_builder import append_file, build_table, in_order, rows_of

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

#: Makes a query of a function that reads the events, as a stream or as a batch.
Query = Callable[[Callable[[], "DataFrame"]], "DataFrame"]

_EVENTS = "id INT, at STRING"
_FILES = [
    [(1, "2024-01-01 00:01:00"), (2, "2024-01-01 00:04:00")],
    [(2, "2024-01-01 00:05:00")],
    [(3, "2024-01-01 00:21:00")],
    [(7, "2024-01-01 00:45:00")],
]


def _filtered(read: Callable[[], DataFrame]) -> DataFrame:
    return read().where("id % 2 = 0")


def _joined_with_a_table(read: Callable[[], DataFrame]) -> DataFrame:
    rows = read()
    names = rows.sparkSession.createDataFrame([(1, "one"), (2, "two")], "id INT, name STRING")
    return rows.join(names, "id")


def _joined_with_a_stream(read: Callable[[], DataFrame]) -> DataFrame:
    left = read().withWatermark("at", "1 hour")
    right = read().withWatermark("at", "1 hour").selectExpr("id AS other", "at AS other_at")
    return left.join(right, F.expr("id = other AND other_at BETWEEN at AND at + INTERVAL 1 HOUR"))


def _deduplicated(read: Callable[[], DataFrame]) -> DataFrame:
    return read().withWatermark("at", "1 hour").dropDuplicates(["id"]).select("id")


def _joined_with_a_stream_or_alone(read: Callable[[], DataFrame]) -> DataFrame:
    """The last row of the left side stays open in a stream: one of the right may still match."""
    left = read().withWatermark("at", "5 minutes")
    right = read().withWatermark("at", "5 minutes")
    right = right.selectExpr("id + 1 AS other", "at AS other_at")
    near = "other_at BETWEEN at - INTERVAL 10 MINUTES AND at + INTERVAL 10 MINUTES"
    joined = left.join(right, F.expr(f"id = other AND {near}"), "left_outer")
    return joined.where("at < '2024-01-01 00:40:00'")


def _deduplicated_within_the_watermark(read: Callable[[], DataFrame]) -> DataFrame:
    rows = read()
    if rows.isStreaming:
        rows = rows.withWatermark("at", "1 hour").dropDuplicatesWithinWatermark(["id"])
    else:
        rows = rows.dropDuplicates(["id"])
    return rows.select("id")


def _counted_by_session(read: Callable[[], DataFrame]) -> DataFrame:
    """The last session stays open in a stream."""
    rows = read().withWatermark("at", "5 minutes").withColumn("early", F.col("id") < 3)
    counts = rows.groupBy(F.session_window("at", "10 minutes"), "early").count()
    closed = counts.where("session_window.start < '2024-01-01 00:40:00'")
    return closed.select("session_window.start", "session_window.end", "early", "count")


def _counted_by_window(read: Callable[[], DataFrame]) -> DataFrame:
    """The last window stays open in a stream: rows of it may still arrive."""
    counts = read().withWatermark("at", "1 minute").groupBy(F.window("at", "10 minutes")).count()
    return counts.where("window.start < '2024-01-01 00:40:00'").select("window.start", "count")


QUERIES: dict[str, Query] = {
    "filter": _filtered,
    "join with a table": _joined_with_a_table,
    "join of streams": _joined_with_a_stream,
    "outer join of streams": _joined_with_a_stream_or_alone,
    "deduplication": _deduplicated,
    "deduplication within the watermark": _deduplicated_within_the_watermark,
    "windows": _counted_by_window,
    "session windows": _counted_by_session,
}


def _with_time(rows: DataFrame) -> DataFrame:
    return rows.withColumn("at", F.col("at").cast("timestamp"))


@pytest.mark.parametrize("name", QUERIES)
def test_query_leaves_what_a_batch_query_returns_and_goes_on_after_a_restart(
    spark: SparkSession, table: str, tmp_path: Path, name: str
) -> None:
    source = str(tmp_path / "source")

    def run() -> None:
        query = QUERIES[name](lambda: _with_time(stream_of(spark, source, maxFilesPerTrigger=1)))
        write_stream(query, table, tmp_path / "checkpoint")

    build_table(spark, source, _EVENTS, _FILES[:2])
    run()
    for file in _FILES[2:]:
        append_file(spark, source, _EVENTS, file)
    run()
    expected = QUERIES[name](lambda: _with_time(spark.read.format("delta").load(source)))
    rows = in_order(map(tuple, expected.collect()))
    assert len(rows) > 1
    assert rows_of(spark, table) == rows


def test_aggregation_in_complete_mode_is_the_batch_aggregation(
    spark: SparkSession, table: str, tmp_path: Path
) -> None:
    source = str(tmp_path / "source")
    build_table(spark, source, _EVENTS, _FILES)

    def counts(rows: DataFrame) -> DataFrame:
        return rows.groupBy("id").agg(F.count("*").alias("n"), F.max("at").alias("at"))

    stream = stream_of(spark, source, maxFilesPerTrigger=1)
    write_stream(counts(stream), table, tmp_path / "checkpoint", mode="complete")
    expected = counts(spark.read.format("delta").load(source)).collect()
    assert rows_of(spark, table) == in_order(map(tuple, expected))
    assert log.newest(table) == len(_FILES) - 1


def test_files_and_the_rate_source_are_streamed(
    spark: SparkSession, table: str, tmp_path: Path
) -> None:
    files = str(tmp_path / "files")
    spark.range(30).repartition(3).write.json(files)
    rows = spark.readStream.schema("id BIGINT").option("maxFilesPerTrigger", 1).json(files)
    write_stream(rows, table, tmp_path / "checkpoint")
    assert rows_of(spark, table) == in_order((n,) for n in range(30))
    assert log.newest(table) == 2
    rated = f"{table}-rated"
    rate = spark.readStream.format("rate-micro-batch").option("rowsPerBatch", 10).load()
    writer = rate.select(F.col("value").alias("id")).writeStream.format("delta")
    writer = writer.option("checkpointLocation", str(tmp_path / "rate"))
    query = writer.trigger(processingTime="100 milliseconds").start(rated)
    try:
        for _ in range(600):
            if Path(rated, "_delta_log").exists() and len(log.versions(rated)) >= 4:
                break
            time.sleep(0.1)
    finally:
        query.stop()
    rows_per_batch = len(log.versions(rated)) * 10
    assert rows_per_batch >= 40
    assert rows_of(spark, rated) == in_order((n,) for n in range(rows_per_batch))


def test_rows_of_the_rate_source_are_there_once_after_restarts(
    spark: SparkSession, table: str, tmp_path: Path
) -> None:
    rate = spark.readStream.format("rate").option("rowsPerSecond", 50).option("numPartitions", 2)
    writer = rate.load().writeStream.format("delta")
    writer = writer.option("checkpointLocation", str(tmp_path / "checkpoint"))
    writer = writer.trigger(processingTime="100 milliseconds")
    for runs in (1, 2):
        query = writer.start(table)
        try:
            for _ in range(600):
                assert query.exception() is None
                if Path(table, "_delta_log").exists() and len(log.versions(table)) >= 2 * runs:
                    break
                time.sleep(0.1)
        finally:
            query.stop()
    values = [row.value for row in spark.read.format("delta").load(table).collect()]
    assert len(values) >= 50
    assert sorted(values) == list(range(len(values)))


def test_batch_of_a_watermark_alone_costs_neither_commit_nor_file(
    spark: SparkSession, table: str, tmp_path: Path
) -> None:
    source = str(tmp_path / "source")
    build_table(spark, source, _EVENTS, _FILES[:1])
    spark.sql(f"CREATE TABLE delta.`{table}` (start TIMESTAMP, n BIGINT) USING delta")

    def run() -> list[tuple[int, int]]:
        """The rows that each batch reads and writes."""
        rows = _with_time(stream_of(spark, source, maxFilesPerTrigger=1))
        windows = rows.withWatermark("at", "1 minute").groupBy(F.window("at", "10 minutes"))
        counts = windows.agg(F.count("*").alias("n")).selectExpr("window.start AS start", "n")
        progress = write_stream(counts, table, tmp_path / "checkpoint").recentProgress
        return [(batch.numInputRows, batch.sink.numOutputRows) for batch in progress]

    batches = run()
    for file in _FILES[1:]:
        append_file(spark, source, _EVENTS, file)
        batches += run()
    assert [read for read, _ in batches if read] == [2, 1, 1, 1]
    assert (0, 0) in batches, "no batch is without rows"
    commits = [written for _, written in batches if written]
    assert log.versions(table) == list(range(len(commits) + 1))
    added = [add for v in log.versions(table) for add in log.actions(table, v, "add")]
    assert len(log.files_in(table, ".parquet")) == len(added)
    assert [n for _, n in rows_of(spark, table)] == [3, 1]


@pytest.mark.parametrize("feed", [False, True], ids=["rows", "changes"])
@pytest.mark.parametrize(("trigger", "batches"), [("once", 1), ("availableNow", 3)])
def test_commit_meanwhile_is_left_to_the_next_run(
    spark: SparkSession, table: str, tmp_path: Path, trigger: str, batches: int, feed: bool
) -> None:
    source = str(tmp_path / "source")
    properties = {"delta.enableChangeDataFeed": "true"}
    build_table(spark, source, "id INT", [[(1,)], [(2,)]], properties=properties)
    append_file(spark, source, "id INT", [(3,)])
    options = {"readChangeFeed": "true"} if feed else {}
    rows = stream_of(spark, source, maxFilesPerTrigger=1, startingVersion=0, **options)

    def run() -> None:
        writer = rows.select("id").writeStream.format("delta").trigger(**{trigger: True})
        writer = writer.option("checkpointLocation", str(tmp_path / "checkpoint"))
        writer.start(table).awaitTermination()

    with committed_meanwhile(lambda: append_file(spark, source, "id INT", [(4,)])):
        run()
    assert rows_of(spark, table) == [(1,), (2,), (3,)]
    assert log.versions(table) == list(range(batches))
    run()
    assert rows_of(spark, table) == [(1,), (2,), (3,), (4,)]
    assert log.versions(table) == list(range(batches + 1))


def test_once_and_available_now_stop_at_the_version_of_their_start(
    spark: SparkSession, table: str, tmp_path: Path
) -> None:
    source = str(tmp_path / "source")
    build_table(spark, source, "id INT", [[(1,)], [(2,)]])
    rows = stream_of(spark, source, maxFilesPerTrigger=1)
    appended = []

    def append_more(batch: DataFrame, number: int) -> None:
        append_file(spark, source, "id INT", [(100 + number,)])
        appended.append(number)
        batch.write.format("delta").mode("append").save(table)

    writer = rows.writeStream.foreachBatch(append_more).trigger(availableNow=True)
    writer.option("checkpointLocation", str(tmp_path / "checkpoint")).start().awaitTermination()
    assert appended == [0, 1]
    assert rows_of(spark, table) == [(1,), (2,)]
    into = str(tmp_path / "once")
    writer = rows.writeStream.format("delta").trigger(once=True)
    writer.option("checkpointLocation", str(tmp_path / "once-checkpoint")).start(
        into
    ).awaitTermination()
    assert log.versions(into) == [0]
