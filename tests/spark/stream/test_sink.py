"""Streams into tables: each batch is one commit, with the rows and checks of a batch write."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow.parquet as pq
import pytest
from pyspark.errors import PySparkException
from pyspark.sql import functions as F

from deltaic.tables import DeltaTable
from tests.support import log
from tests.support.interleave import committed_meanwhile
from tests.support.session_settings import session_settings
from tests.support.streams import forget_batch, stream_of, write_stream
from tests.support.table_builder import append_file, build_table, in_order

if TYPE_CHECKING:
    from pyspark.sql import SparkSession
    from pyspark.sql.streaming.query import StreamingQuery


@pytest.fixture
def source(spark: SparkSession, tmp_path: Path) -> str:
    """A table of three commits, which `one_by_one` reads in as many batches."""
    path = str(tmp_path / "source")
    build_table(spark, path, "id INT, v STRING", [[(1, "a"), (2, "b")]])
    append_file(spark, path, "id INT, v STRING", [(3, "c")])
    append_file(spark, path, "id INT, v STRING", [(4, "a")])
    return path


@pytest.fixture
def checkpoint(tmp_path: Path) -> Path:
    return tmp_path / "checkpoint"


def one_by_one(spark: SparkSession, source: str) -> Any:
    return stream_of(spark, source, maxFilesPerTrigger=1, startingVersion=0)


def rows_of(spark: SparkSession, table: str) -> list[tuple[Any, ...]]:
    named = table if "/" not in table else f"delta.`{table}`"
    return in_order(map(tuple, spark.table(named).collect()))


def test_each_batch_is_one_commit_with_its_query_and_number(
    spark: SparkSession, source: str, table: str, checkpoint: Path
) -> None:
    query = write_stream(one_by_one(spark, source), table, checkpoint)
    assert rows_of(spark, table) == [(1, "a"), (2, "b"), (3, "c"), (4, "a")]
    assert log.versions(table) == [0, 1, 2]
    for version in log.versions(table):
        info = log.commit_info(table, version)
        assert info["operation"] == "STREAMING UPDATE"
        expected = {"outputMode": "Append", "queryId": str(query.id), "epochId": str(version)}
        assert info["operationParameters"] == expected
        assert info["isBlindAppend"] is True
        [txn] = log.actions(table, version, "txn")
        assert (txn["appId"], txn["version"]) == (str(query.id), version)
        added = log.actions(table, version, "add")
        rows = sum(log.statistics(add)["numRecords"] for add in added)
        assert info["operationMetrics"] == {
            "numAddedFiles": str(len(added)),
            "numRemovedFiles": "0",
            "numOutputRows": str(rows),
            "numOutputBytes": str(sum(add["size"] for add in added)),
        }
    history = DeltaTable.forPath(spark, table).history(1).first()
    assert history is not None
    assert history.operation == "STREAMING UPDATE"
    assert history.operationParameters["epochId"] == "2"


def test_progress_counts_rows_in_and_out(
    spark: SparkSession, source: str, table: str, checkpoint: Path
) -> None:
    df = one_by_one(spark, source).where("id % 3 <> 0")
    progress = write_stream(df, table, checkpoint).recentProgress
    batches = [json.loads(batch.json) for batch in progress]
    assert [batch["numInputRows"] for batch in batches] == [2, 1, 1]
    assert [batch["sink"]["numOutputRows"] for batch in batches] == [2, 0, 1]
    assert {batch["sink"]["description"] for batch in batches} == {f"DeltaSink[file:{table}]"}


@pytest.mark.parametrize("options", [{}, {"readChangeFeed": "true"}])
def test_progress_says_what_is_left_to_read(
    spark: SparkSession, table: str, tmp_path: Path, checkpoint: Path, options: dict[str, str]
) -> None:
    source = str(tmp_path / "source")
    feed = {"delta.enableChangeDataFeed": "true"}
    build_table(spark, source, "id INT", [[(1,)], [(2,)], [(3,)]], properties=feed)
    for n in (4, 5):
        append_file(spark, source, "id INT", [(n,)])
    df = stream_of(spark, source, maxFilesPerTrigger=1, startingVersion=0, **options)
    progress = write_stream(df.select("id"), table, checkpoint).recentProgress
    metrics = [json.loads(batch.json)["sources"][0]["metrics"] for batch in progress]
    sizes = [add["size"] for version in range(3) for add in log.actions(source, version, "add")]
    left = [sum(sizes[n:]) for n in range(1, 6)]
    assert [int(found["numFilesOutstanding"]) for found in metrics] == [4, 3, 2, 1, 0]
    assert [int(found["numBytesOutstanding"]) for found in metrics] == left
    assert [int(found["numCommitsOutstanding"]) for found in metrics] == [2, 2, 2, 1, 0]


@pytest.mark.parametrize("limit", [{"maxFilesPerTrigger": 1}, {"maxBytesPerTrigger": "1b"}])
@pytest.mark.parametrize("options", [{}, {"readChangeFeed": "true"}])
def test_progress_says_what_is_left_of_the_rows_that_a_stream_begins_with(
    spark: SparkSession,
    table: str,
    tmp_path: Path,
    checkpoint: Path,
    options: dict[str, str],
    limit: dict[str, Any],
) -> None:
    source = str(tmp_path / "source")
    feed = {"delta.enableChangeDataFeed": "true"}
    build_table(spark, source, "id INT", [[(1,)], [(2,)]], properties=feed)
    append_file(spark, source, "id INT", [(3,)])
    spark.sql(f"DELETE FROM delta.`{source}` WHERE id = 2")
    df = stream_of(spark, source, **limit, **options)
    append_file(spark, source, "id INT", [(4,)])
    progress = write_stream(df.select("id"), table, checkpoint).recentProgress
    metrics = [json.loads(batch.json)["sources"][0]["metrics"] for batch in progress]
    assert len(metrics) == 3
    total = sum(add["size"] for add in log.active_files(source))
    assert [int(found["numFilesOutstanding"]) for found in metrics] == [2, 1, 0]
    left = [int(found["numBytesOutstanding"]) for found in metrics]
    assert total > left[0] > left[1] > left[2] == 0
    assert [int(found["numCommitsOutstanding"]) for found in metrics] == [0, 0, 0]


@pytest.mark.parametrize("options", [{}, {"readChangeFeed": "true"}])
def test_progress_counts_what_is_committed_while_the_first_rows_are_read(
    spark: SparkSession, table: str, tmp_path: Path, checkpoint: Path, options: dict[str, str]
) -> None:
    source = str(tmp_path / "source")
    feed = {"delta.enableChangeDataFeed": "true"}
    build_table(spark, source, "id INT", [[(1,)], [(2,)], [(3,)]], properties=feed)
    df = stream_of(spark, source, maxFilesPerTrigger=1, **options).select("id")
    writer = df.writeStream.format("delta").option("checkpointLocation", str(checkpoint))

    def append_two() -> None:
        for n in (4, 5):
            append_file(spark, source, "id INT", [(n,)])

    with committed_meanwhile(append_two):
        query = writer.start(table)
        try:
            query.processAllAvailable()
        finally:
            query.stop()
    batches = [json.loads(batch.json) for batch in query.recentProgress if batch.numInputRows]
    metrics = [batch["sources"][0]["metrics"] for batch in batches]
    assert [int(found["numFilesOutstanding"]) for found in metrics] == [4, 3, 2, 1, 0]
    assert [int(found["numCommitsOutstanding"]) for found in metrics] == [2, 2, 2, 1, 0]


def test_files_that_are_left_are_not_counted_if_they_are_too_many(
    spark: SparkSession, table: str, tmp_path: Path, checkpoint: Path
) -> None:
    source = str(tmp_path / "source")
    build_table(spark, source, "id INT", [[(1,)]])
    [add] = log.actions(source, 0, "add")
    files = [{"add": {**add, "path": f"gone-{n}.parquet"}} for n in range(10_000)]
    log.write_commit(source, 1, files[0])
    log.write_commit(source, 2, *files[1:], files[0])
    log.write_commit(source, 3, files[0])
    df = stream_of(spark, source, maxFilesPerTrigger=1, startingVersion=0)
    writer = df.writeStream.format("delta").option("checkpointLocation", str(checkpoint))
    query = writer.trigger(availableNow=True).start(table)
    with pytest.raises(PySparkException, match="gone-0"):
        query.awaitTermination()
    assert query.recentProgress[0]["sources"][0]["metrics"] == {"numCommitsOutstanding": "3"}
    assert rows_of(spark, table) == [(1,)]


def test_batch_without_rows_leaves_neither_commit_nor_file(
    spark: SparkSession, source: str, table: str, checkpoint: Path
) -> None:
    df = one_by_one(spark, source)
    write_stream(df.where("id < 3"), table, checkpoint)
    assert log.versions(table) == [0]
    assert len(log.files_in(table, ".parquet")) == len(log.actions(table, 0, "add"))
    append_file(spark, source, "id INT, v STRING", [(1, "z")])
    write_stream(df.where("id < 3"), table, checkpoint)
    assert log.versions(table) == [0, 1]
    assert log.commit_info(table)["operationParameters"]["epochId"] == "3"
    assert rows_of(spark, table) == [(1, "a"), (1, "z"), (2, "b")]


@pytest.mark.parametrize("way", ["start", "option", "toTable", "toTable of an existing table"])
def test_every_way_to_name_the_table_creates_it_with_layout_and_properties(
    spark: SparkSession, source: str, table: str, checkpoint: Path, way: str
) -> None:
    writer = (
        one_by_one(spark, source).writeStream.format("delta").partitionBy("v")
        .option("checkpointLocation", str(checkpoint)).trigger(availableNow=True)
    )  # fmt: skip
    name = "streamed_into"
    if way == "toTable of an existing table":
        spark.sql(f"CREATE TABLE {name} (id INT, v STRING) USING delta PARTITIONED BY (v)")
    try:
        if way.startswith("toTable"):
            query: StreamingQuery = writer.toTable(name)
        else:
            writer = writer.option("delta.appendOnly", "true")
            query = writer.start(table) if way == "start" else writer.option("path", table).start()
        query.awaitTermination()
        named = name if way.startswith("toTable") else f"delta.`{table}`"
        assert in_order(map(tuple, spark.table(named).select("id", "v").collect())) == [
            (1, "a"), (2, "b"), (3, "c"), (4, "a"),
        ]  # fmt: skip
        detail = spark.sql(f"DESCRIBE DETAIL {named}").first()
        assert detail is not None
        assert detail.partitionColumns == ["v"]
        if not way.startswith("toTable"):
            assert detail.properties["delta.appendOnly"] == "true"
    finally:
        spark.sql(f"DROP TABLE IF EXISTS {name}")


def test_stream_creates_a_clustered_table(
    spark: SparkSession, source: str, table: str, checkpoint: Path
) -> None:
    writer = stream_of(spark, source).writeStream.format("delta").clusterBy("id")
    writer = writer.option("checkpointLocation", str(checkpoint)).trigger(availableNow=True)
    writer.start(table).awaitTermination()
    detail = DeltaTable.forPath(spark, table).detail().first()
    assert detail is not None
    assert detail.clusteringColumns == ["id"]
    assert len(rows_of(spark, table)) == 4


def test_stream_by_name_creates_a_clustered_table(
    spark: SparkSession, source: str, checkpoint: Path
) -> None:
    writer = one_by_one(spark, source).writeStream.format("delta").clusterBy("v", "id")
    writer = writer.option("checkpointLocation", str(checkpoint)).trigger(availableNow=True)
    try:
        writer.toTable("clustered_by_stream").awaitTermination()
        detail = DeltaTable.forName(spark, "clustered_by_stream").detail().first()
        assert detail is not None
        assert detail.clusteringColumns == ["v", "id"]
        expected = [(1, "a"), (2, "b"), (3, "c"), (4, "a")]
        assert rows_of(spark, "clustered_by_stream") == expected
    finally:
        spark.sql("DROP TABLE IF EXISTS clustered_by_stream")


def test_complete_mode_replaces_all_rows(
    spark: SparkSession, source: str, table: str, checkpoint: Path
) -> None:
    counts = one_by_one(spark, source).groupBy("v").count()
    spark.conf.set("spark.sql.sources.partitionOverwriteMode", "dynamic")
    try:
        write_stream(counts, table, checkpoint, mode="complete", partition_by=["v"])
    finally:
        spark.conf.unset("spark.sql.sources.partitionOverwriteMode")
    assert rows_of(spark, table) == [("a", 2), ("b", 1), ("c", 1)]
    assert log.versions(table) == [0, 1, 2]
    assert len(log.actions(table, 2, "remove")) == len(log.actions(table, 1, "add"))
    info = log.commit_info(table)
    assert info["operationParameters"]["outputMode"] == "Complete"
    assert info["operationMetrics"]["numRemovedFiles"] != "0"
    assert info["isBlindAppend"] is False
    # The next run goes on from the state of this one.
    append_file(spark, source, "id INT, v STRING", [(9, "b")])
    write_stream(counts, table, checkpoint, mode="complete")
    assert rows_of(spark, table) == [("a", 2), ("b", 2), ("c", 1)]


def test_complete_mode_replaces_the_schema_if_asked_to(
    spark: SparkSession, source: str, table: str, checkpoint: Path
) -> None:
    spark.sql(f"CREATE TABLE delta.`{table}` (other INT) USING delta")
    counts = stream_of(spark, source).groupBy("v").count()
    write_stream(counts, table, checkpoint, mode="complete", overwriteSchema="true")
    assert rows_of(spark, table) == [("a", 2), ("b", 1), ("c", 1)]


def test_new_columns_are_added_if_asked_to_and_else_refused(
    spark: SparkSession, source: str, table: str, checkpoint: Path
) -> None:
    spark.sql(f"CREATE TABLE delta.`{table}` (id INT) USING delta")
    df = one_by_one(spark, source)
    with pytest.raises(PySparkException, match="mergeSchema"):
        write_stream(df, table, checkpoint)
    assert log.versions(table) == [0]
    assert not log.files_in(table, ".parquet")
    write_stream(df, table, checkpoint, mergeSchema="true")
    assert rows_of(spark, table) == [(1, "a"), (2, "b"), (3, "c"), (4, "a")]


def test_columns_are_widened_if_asked_to_where_the_table_allows_it(
    spark: SparkSession, source: str, table: str, checkpoint: Path
) -> None:
    widening = "TBLPROPERTIES ('delta.enableTypeWidening' = 'true')"
    spark.sql(f"CREATE TABLE delta.`{table}` (id INT, v STRING) USING delta {widening}")
    write_stream(stream_of(spark, source), table, checkpoint)
    append_file(spark, source, "id INT, v STRING", [(5, "e")])
    wider = stream_of(spark, source).selectExpr("id + 5000000000 AS id", "v")
    with pytest.raises(PySparkException, match="CAST_OVERFLOW"):
        write_stream(wider, table, checkpoint)
    assert log.versions(table) == [0, 1]
    write_stream(wider, table, checkpoint, mergeSchema="true")
    assert dict(spark.read.format("delta").load(table).dtypes)["id"] == "bigint"
    expected = [(1, "a"), (2, "b"), (3, "c"), (4, "a"), (5_000_000_005, "e")]
    assert rows_of(spark, table) == in_order(expected)
    assert log.versions(table) == [0, 1, 2]


@pytest.mark.protocol("default-columns-5")
def test_rows_are_cast_filled_and_computed_as_by_any_write(
    spark: SparkSession, source: str, table: str, checkpoint: Path
) -> None:
    spark.sql(
        f"CREATE TABLE delta.`{table}` (k BIGINT GENERATED ALWAYS AS IDENTITY, id BIGINT, v STRING,"
        " twice BIGINT GENERATED ALWAYS AS (id * 2), d STRING DEFAULT 'none') USING delta"
        " TBLPROPERTIES ('delta.feature.allowColumnDefaults' = 'supported')"
    )
    df = one_by_one(spark, source).select(F.col("v"), F.col("id").cast("tinyint").alias("id"))
    write_stream(df, table, checkpoint)
    rows = spark.sql(f"SELECT id, v, twice, d FROM delta.`{table}` ORDER BY id").collect()
    assert [tuple(row) for row in rows] == [
        (1, "a", 2, "none"), (2, "b", 4, "none"), (3, "c", 6, "none"), (4, "a", 8, "none"),
    ]  # fmt: skip
    keys = [row.k for row in spark.sql(f"SELECT k FROM delta.`{table}`").collect()]
    assert len(set(keys)) == 4


CONDITIONS = {
    "NOT NULL": ("id INT NOT NULL, v STRING", "nullif(id, 3)", "NOT_NULL|not-null|NULL"),
    "CHECK": ("id INT, v STRING", "id", "small"),
    "CHAR": ("id INT, v CHAR(1)", "id", "EXCEED_LIMIT_LENGTH"),
    "invariant": ("id INT, v STRING", "id", "id < 3"),
    "generated": (
        "id INT, v STRING, g INT GENERATED ALWAYS AS (id + 1)",
        "id",
        "CHECK_VIOLATED.*`g`|CHECK_VIOLATED.* g ",
    ),
}


@pytest.mark.protocol("check-constraints-10", "check-constraints-11", "column-invariants-2")
@pytest.mark.protocol("column-invariants-3")
@pytest.mark.parametrize("case", CONDITIONS)
def test_row_that_violates_a_condition_fails_the_batch_and_earlier_ones_stand(
    spark: SparkSession, source: str, table: str, checkpoint: Path, case: str
) -> None:
    columns, key, message = CONDITIONS[case]
    if case == "invariant":
        invariant = {"delta.invariants": '{"expression": {"expression": "id < 3"}}'}
        ids = spark.range(0).selectExpr("CAST(id AS INT) AS id", "'' AS v")
        held = ids.withMetadata("id", invariant)
        held.write.format("delta").save(table)
    else:
        spark.sql(f"CREATE TABLE delta.`{table}` ({columns}) USING delta")
    if case == "CHECK":
        spark.sql(f"ALTER TABLE delta.`{table}` ADD CONSTRAINT small CHECK (id < 3)")
    before = log.newest(table)
    value = "IF(id = 3, 'too long', v)" if case == "CHAR" else "v"
    df = one_by_one(spark, source).selectExpr(f"{key} AS id", f"{value} AS v")
    if case == "generated":
        df = df.selectExpr("*", "IF(id = 3, 0, id + 1) AS g")
    with pytest.raises(PySparkException, match=message):
        write_stream(df, table, checkpoint)
    assert log.newest(table) == before + 1
    assert [row[:2] for row in rows_of(spark, table)] == [(1, "a"), (2, "b")]
    live = {add["path"] for add in log.active_files(table)}
    assert log.files_in(table, ".parquet") == live, "the files of the failed batch are deleted"


def test_options_of_writes_hold(
    spark: SparkSession, source: str, table: str, checkpoint: Path
) -> None:
    df = stream_of(spark, source)
    write_stream(
        df, table, checkpoint, maxRecordsPerFile=1, userMetadata="by a stream", dataChange="false"
    )
    adds = log.actions(table, 0, "add")
    assert [log.statistics(add)["numRecords"] for add in adds] == [1, 1, 1, 1]
    assert {add["dataChange"] for add in adds} == {False}
    assert log.commit_info(table)["userMetadata"] == "by a stream"


@pytest.mark.parametrize(("codec", "suffix"), [("gzip", ".gz.parquet"), ("zstd", ".zstd.parquet")])
def test_files_are_compressed_as_asked_for(
    spark: SparkSession, source: str, table: str, checkpoint: Path, codec: str, suffix: str
) -> None:
    write_stream(one_by_one(spark, source), table, checkpoint, compression=codec)
    names = log.files_in(table, ".parquet")
    assert len(names) >= 3
    assert all(name.endswith("-c000" + suffix) for name in names), names
    for name in names:
        column = pq.ParquetFile(Path(table, name)).metadata.row_group(0).column(0)
        assert column.compression == codec.upper()
    assert len(rows_of(spark, table)) == 4


def test_optimized_write_makes_one_file_in_a_query_with_state(
    spark: SparkSession, table: str, tmp_path: Path, checkpoint: Path
) -> None:
    """Spark disables adaptive execution there, which otherwise joins the partitions of a write."""
    source = str(tmp_path / "ids")
    spark.range(100).write.format("delta").save(source)
    targets = {f"{table} {value}": value for value in ("false", "true")}
    with session_settings(spark, {"spark.sql.shuffle.partitions": "3"}):
        for target, value in targets.items():
            counts = stream_of(spark, source).groupBy("id").count()
            folder = checkpoint / value
            write_stream(counts, target, folder, mode="complete", optimizeWrite=value)
    assert [len(log.actions(target, 0, "add")) for target in targets] == [3, 1]
    for target in targets:
        assert rows_of(spark, target) == in_order((n, 1) for n in range(100))


def test_optimized_write_makes_one_file_of_many_tasks(
    spark: SparkSession, source: str, table: str, checkpoint: Path
) -> None:
    df = stream_of(spark, source).repartition(4)
    write_stream(df, table, checkpoint)
    assert len(log.actions(table, 0, "add")) > 1
    append_file(spark, source, "id INT, v STRING", [(i, "x") for i in range(10, 20)])
    write_stream(df, table, checkpoint, optimizeWrite="true")
    assert len(log.actions(table, 1, "add")) == 1


def test_batch_that_was_committed_is_not_written_again(
    spark: SparkSession, source: str, table: str, checkpoint: Path
) -> None:
    """As after a kill between the commit of the table and that of the stream."""
    df = one_by_one(spark, source)
    write_stream(df, table, checkpoint)
    forget_batch(checkpoint, 2)
    write_stream(df, table, checkpoint)
    assert log.versions(table) == [0, 1, 2]
    append_file(spark, source, "id INT, v STRING", [(5, "e")])
    write_stream(df, table, checkpoint)
    assert rows_of(spark, table) == [(1, "a"), (2, "b"), (3, "c"), (4, "a"), (5, "e")]


def test_two_queries_into_one_table_and_changes_beside_do_not_conflict(
    spark: SparkSession, source: str, table: str, tmp_path: Path
) -> None:
    build_table(spark, table, "id INT, v STRING", [[(100, "x"), (101, "y")]])
    queries = []
    for i in range(2):
        writer = one_by_one(spark, source).writeStream.format("delta")
        writer = writer.option("checkpointLocation", str(tmp_path / f"checkpoint{i}"))
        queries.append(writer.trigger(availableNow=True).start(table))
    spark.sql(f"DELETE FROM delta.`{table}` WHERE id = 100")
    spark.sql(f"UPDATE delta.`{table}` SET v = 'z' WHERE id = 101")
    for query in queries:
        query.awaitTermination()
    twice = [(1, "a"), (2, "b"), (3, "c"), (4, "a")] * 2
    assert rows_of(spark, table) == in_order([*twice, (101, "z")])


@pytest.mark.parametrize("named", [False, True])
def test_table_that_is_dropped_while_a_query_writes_it_does_not_come_back(
    spark: SparkSession, source: str, table: str, checkpoint: Path, named: bool
) -> None:
    target = "dropped_sink" if named else table
    if named:
        spark.sql(f"CREATE TABLE {target} (id INT, v STRING) USING delta")
    writer = one_by_one(spark, source).writeStream.format("delta")
    writer = writer.option("checkpointLocation", str(checkpoint))
    query = writer.toTable(target) if named else writer.start(target)
    try:
        query.processAllAvailable()
        detail = DeltaTable.forName(spark, target) if named else DeltaTable.forPath(spark, table)
        location = detail.detail().first().location.removeprefix("file:")  # type: ignore[union-attr]
        if named:
            spark.sql(f"DROP TABLE {target}")
        else:
            shutil.rmtree(location)
        append_file(spark, source, "id INT, v STRING", [(5, "e")])
        with pytest.raises(PySparkException, match="DELTAIC_NOT_A_TABLE"):
            query.processAllAvailable()
    finally:
        query.stop()
        spark.sql("DROP TABLE IF EXISTS dropped_sink")
    assert not Path(location, "_delta_log").exists()
