"""Tables as stream sources: batches, where they begin and continue, and what they refuse."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from pyspark.sql import functions as F

from tests.support import log
from tests.support.checkpoint import write_checkpoint
from tests.support.file_opens import FileOpens
from tests.support.maintenance import await_maintenance
from tests.support.session_settings import session_settings
from tests.support.streams import failure_of, run_stream, stream_of
from tests.support.table_builder import append_file, build_table, rows_of

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

OUT_OF_RANGE = "spark.databricks.delta.changeDataFeed.timestampOutOfRange.enabled"


def offsets(checkpoint: Path) -> list[dict[str, object]]:
    """What the query has written down of each batch."""
    files = sorted((checkpoint / "offsets").glob("[0-9]*"), key=lambda file: int(file.name))
    return [json.loads(file.read_text().splitlines()[2]) for file in files]


def test_stream_reads_all_rows_and_then_those_that_were_added(
    spark: SparkSession, table: str, tmp_path: Path
) -> None:
    build_table(spark, table, "id INT, s STRING", [[(1, "a"), (2, None)], [(3, "c")]])
    append_file(spark, table, "id INT, s STRING", [(4, "d")])
    stream, checkpoint = stream_of(spark, table), tmp_path / "checkpoint"
    assert run_stream(stream, checkpoint) == [rows_of(spark, table)]
    assert run_stream(stream, checkpoint) == []
    append_file(spark, table, "id INT, s STRING", [(5, "e")])
    append_file(spark, table, "id INT, s STRING", [(6, "f")])
    assert run_stream(stream, checkpoint) == [[(5, "e"), (6, "f")]]


def test_stream_reads_no_deleted_row_and_counts_none(
    spark: SparkSession, table: str, tmp_path: Path
) -> None:
    build_table(spark, table, "id INT, k INT", [[(i, i % 3) for i in range(100)]])
    spark.sql(f"DELETE FROM delta.`{table}` WHERE k = 1")
    counted: list[int] = []
    query = (
        stream_of(spark, table)
        .where("k < 2 AND id >= 30")
        .select("id")
        .writeStream.foreachBatch(lambda batch, _: counted.append(batch.count()))
        .option("checkpointLocation", str(tmp_path / "checkpoint"))
        .trigger(availableNow=True)
        .start()
    )
    query.awaitTermination()
    assert counted == [len([i for i in range(30, 100) if i % 3 == 0])]
    progress = query.lastProgress
    assert progress is not None
    assert progress["numInputRows"] == len([i for i in range(100) if i % 3 != 1])


@pytest.mark.parametrize("batches", [True, False], ids=["batches", "rows"])
def test_filters_columns_and_metadata_of_a_stream_are_those_of_a_query(
    spark: SparkSession, table: str, tmp_path: Path, batches: bool
) -> None:
    rows = [[(p * 10 + i, f"p{p}", i) for i in range(10)] for p in range(4)]
    build_table(spark, table, "id INT, p STRING, n INT", rows, partition_by=["p"])
    spark.sql(f"DELETE FROM delta.`{table}` WHERE n = 7")
    spark.conf.set("spark.sql.parquet.enableVectorizedReader", str(batches).lower())
    try:
        for number, (condition, columns) in enumerate(
            [
                ("p = 'p2'", ["id"]),
                ("P IN ('p1', 'p3') AND Id % 2 = 0", ["p", "n"]),
                ("id > 25 OR p = 'p0'", ["n", "id", "p"]),
                ("_metadata.row_index = 3", ["id", "_metadata.file_name"]),
                ("p IS NULL", ["id"]),
            ]
        ):
            expected = spark.read.format("delta").load(table).where(condition).select(*columns)
            stream = stream_of(spark, table).where(condition).select(*columns)
            read = run_stream(stream, tmp_path / str(number))
            found = [row for batch in read for row in batch]
            assert found == sorted((tuple(row) for row in expected.collect()), key=repr), condition
    finally:
        spark.conf.unset("spark.sql.parquet.enableVectorizedReader")


def last_progress_and_plan(spark: SparkSession, df: DataFrame, checkpoint: Path) -> tuple[int, str]:
    """Return how many rows the last batch has read, and how it was planned."""
    query = (
        df.writeStream.format("noop")
        .option("checkpointLocation", str(checkpoint))
        .trigger(availableNow=True)
        .start()
    )
    query.awaitTermination()
    progress = query.lastProgress
    assert progress is not None
    return progress["numInputRows"], query._jsq.explainInternal(False)


def test_batch_reads_only_the_columns_and_files_that_its_query_asks_for(
    spark: SparkSession, table: str, tmp_path: Path
) -> None:
    rows = [[(p * 10 + i, f"p{p}", (i, str(i))) for i in range(10)] for p in range(4)]
    schema = "id INT, p STRING, s STRUCT<a: INT, b: STRING>"
    build_table(spark, table, schema, rows, partition_by=["p"])
    stream = stream_of(spark, table)
    asked = stream.where("p = 'p2'").select("s.a")
    read, plan = last_progress_and_plan(spark, asked, tmp_path / "partition")
    assert read == 10
    assert "struct<s:struct<a:int>>" in plan and "IsDeleted" not in plan, plan
    asked = stream.where("id > 35").select("id")
    read, plan = last_progress_and_plan(spark, asked, tmp_path / "bounds")
    assert read == 10
    assert "struct<id:int>" in plan, plan
    read, _ = last_progress_and_plan(spark, stream.select("p"), tmp_path / "all")
    assert read == 40


def test_stream_of_small_batches_reads_each_commit_once(
    spark: SparkSession, table: str, tmp_path: Path
) -> None:
    build_table(spark, table, "id INT", [[(0,)]])
    for number in range(1, 9):
        append_file(spark, table, "id INT", [(number,)])
    await_maintenance(spark)
    stream = stream_of(spark, table, startingVersion=0, maxFilesPerTrigger=1)
    commits = sorted(Path(table, "_delta_log").glob("*.json"))
    with FileOpens(commits) as opens:
        read = run_stream(stream, tmp_path / "checkpoint")
    assert read == [[(number,)] for number in range(9)]
    # The version that a stream begins with is looked at first.
    assert [opens.counts.get(commit, 0) for commit in commits[1:]] == [1] * 8


def test_once_and_unions_of_a_stream_with_itself(
    spark: SparkSession, table: str, tmp_path: Path
) -> None:
    build_table(spark, table, "id INT", [[(i,)] for i in range(4)])
    stream = stream_of(spark, table, maxFilesPerTrigger=1)
    union = stream.where("id < 2").union(stream.where("id >= 1"))
    read = run_stream(union, tmp_path / "union")
    assert sorted(row for batch in read for row in batch) == [(0,), (1,), (1,), (2,), (3,)]
    counted: list[int] = []
    query = (
        stream.writeStream.foreachBatch(lambda batch, _: counted.append(batch.count()))
        .option("checkpointLocation", str(tmp_path / "once"))
        .trigger(once=True)
        .start()
    )
    query.awaitTermination()
    assert counted == [4], "once means all that there is"


def test_stream_of_a_distributed_snapshot(spark: SparkSession, table: str, tmp_path: Path) -> None:
    build_table(spark, table, "id INT, k INT", [[(i, i % 2)] * 2 for i in range(6)])
    spark.sql(f"DELETE FROM delta.`{table}` WHERE id = 3")
    write_checkpoint(table, "classic")
    append_file(spark, table, "id INT, k INT", [(9, 9)])
    with session_settings(spark, {"spark.deltaic.snapshot.distributedThresholdBytes": "0"}):
        stream = stream_of(spark, table, maxFilesPerTrigger=4)
        read = run_stream(stream.where("k < 9").select("id"), tmp_path / "checkpoint")
    found = sorted(row for batch in read for row in batch)
    assert found == sorted((i,) for i in [0, 1, 2, 4, 5] for _ in range(2))


def test_rows_from_before_row_tracking_are_read_without_ids(
    spark: SparkSession, table: str, tmp_path: Path
) -> None:
    build_table(spark, table, "id INT", [[(1,)]])
    spark.sql(f"ALTER TABLE delta.`{table}` SET TBLPROPERTIES ('delta.enableRowTracking' = 'true')")
    append_file(spark, table, "id INT", [(2,)])
    stream = stream_of(spark, table, startingVersion=0).select("id", "_metadata.file_size")
    read = run_stream(stream, tmp_path / "checkpoint")
    assert sorted(row[0] for batch in read for row in batch) == [1, 2]


def test_column_of_the_name_of_the_metadata_leaves_both_within_reach(
    spark: SparkSession, table: str, tmp_path: Path
) -> None:
    build_table(spark, table, "id INT, _metadata STRING", [[(1, "own")]])
    stream = stream_of(spark, table)
    both = stream.select("_metadata", stream.metadataColumn("_metadata").getField("row_index"))
    assert run_stream(both, tmp_path / "checkpoint") == [[("own", 0)]]


def test_batches_have_as_many_files_or_bytes_as_they_may(
    spark: SparkSession, table: str, tmp_path: Path
) -> None:
    build_table(spark, table, "id INT", [[(i,)] for i in range(5)])
    for i in range(5, 8):
        append_file(spark, table, "id INT", [(i,)])
    checkpoint = tmp_path / "files"
    read = run_stream(stream_of(spark, table, maxFilesPerTrigger=3), checkpoint)
    assert [len(batch) for batch in read] == [3, 3, 2]
    assert sorted(row for batch in read for row in batch) == [(i,) for i in range(8)]
    read = run_stream(stream_of(spark, table, maxBytesPerTrigger="1b"), tmp_path / "bytes")
    assert [len(batch) for batch in read] == [1] * 8
    both = stream_of(spark, table, maxBytesPerTrigger="1g", maxFilesPerTrigger=4)
    assert [len(batch) for batch in run_stream(both, tmp_path / "both")] == [4, 4]


def test_commit_is_divided_among_batches_in_the_order_of_its_files(
    spark: SparkSession, table: str, tmp_path: Path
) -> None:
    build_table(spark, table, "id INT", [[(0,)]])
    checkpoint = tmp_path / "checkpoint"
    stream = stream_of(spark, table, maxFilesPerTrigger=2)
    run_stream(stream, checkpoint)
    spark.range(1, 6, 1, 5).selectExpr("CAST(id AS INT) AS id").write.format("delta").mode(
        "append"
    ).save(table)
    read = run_stream(stream, checkpoint)
    assert [len(batch) for batch in read] == [2, 2, 1]
    assert sorted(row for batch in read for row in batch) == [(i,) for i in range(1, 6)]
    places = [
        (o["reservoirVersion"], o["index"], o["isStartingVersion"]) for o in offsets(checkpoint)
    ]
    assert places == [(1, -1, False), (1, 1, False), (1, 3, False), (2, -1, False)]


def test_stream_begins_with_a_version_a_time_or_what_comes_next(
    spark: SparkSession, table: str, tmp_path: Path
) -> None:
    build_table(spark, table, "id INT", [[(0,)]])
    for i in (1, 2):
        append_file(spark, table, "id INT", [(i,)])
    assert run_stream(stream_of(spark, table, startingVersion=1), tmp_path / "v") == [[(1,), (2,)]]
    times = {
        r.version: r.timestamp for r in spark.sql(f"DESCRIBE HISTORY delta.`{table}`").collect()
    }
    by_time = stream_of(spark, table, startingTimestamp=str(times[2]))
    assert run_stream(by_time, tmp_path / "t") == [[(2,)]]
    latest = stream_of(spark, table, startingVersion="latest")
    assert run_stream(latest, tmp_path / "latest") == []
    append_file(spark, table, "id INT", [(3,)])
    assert run_stream(latest, tmp_path / "latest") == [[(3,)]], "where it began is written down"


def test_stream_from_a_time_to_come_begins_with_the_next_commit_where_that_is_allowed(
    spark: SparkSession, table: str, tmp_path: Path
) -> None:
    build_table(spark, table, "id INT", [[(0,)]])
    later = stream_of(spark, table, startingTimestamp="2999-01-01")
    with session_settings(spark, {OUT_OF_RANGE: "true"}):
        assert run_stream(later, tmp_path / "later") == []
        append_file(spark, table, "id INT", [(1,)])
        assert run_stream(later, tmp_path / "later") == [[(1,)]]


def test_stream_of_an_empty_table_begins_with_its_first_rows(
    spark: SparkSession, table: str, tmp_path: Path
) -> None:
    spark.sql(f"CREATE TABLE delta.`{table}` (id INT) USING delta")
    checkpoint = tmp_path / "checkpoint"
    assert run_stream(stream_of(spark, table), checkpoint) == []
    append_file(spark, table, "id INT", [(1,)])
    assert run_stream(stream_of(spark, table), checkpoint) == [[(1,)]]


def test_first_batch_that_failed_reads_the_same_rows_again(
    spark: SparkSession, table: str, tmp_path: Path
) -> None:
    build_table(spark, table, "id INT", [[(1,)]])
    stream, checkpoint = stream_of(spark, table), tmp_path / "checkpoint"
    broken = stream.selectExpr("raise_error('broken')")
    assert "broken" in failure_of(broken, checkpoint)
    append_file(spark, table, "id INT", [(2,)])
    again = stream_of(spark, table)
    assert run_stream(again, checkpoint) == [[(1,)], [(2,)]]


def test_rows_that_were_only_moved_are_not_read_again(
    spark: SparkSession, table: str, tmp_path: Path
) -> None:
    build_table(spark, table, "id INT", [[(1,)], [(2,)]])
    stream, checkpoint = stream_of(spark, table), tmp_path / "checkpoint"
    run_stream(stream, checkpoint)
    rows = spark.read.format("delta").load(table).coalesce(1)
    rows.write.format("delta").mode("overwrite").option("dataChange", "false").save(table)
    append_file(spark, table, "id INT", [(3,)])
    assert run_stream(stream, checkpoint) == [[(3,)]]


def test_excluded_files_are_not_read(spark: SparkSession, table: str, tmp_path: Path) -> None:
    rows = [[(1, "x"), (2, "y")]]
    build_table(spark, table, "id INT, p STRING", rows, partition_by=["p"])
    stream = stream_of(spark, table, excludeRegex="p=x/")
    assert run_stream(stream, tmp_path / "checkpoint") == [[(2, "y")]]
    everything = stream_of(spark, table, excludeRegex="")
    assert run_stream(everything, tmp_path / "all") == [[(1, "x"), (2, "y")]]


def test_stream_by_name_joins_a_table_that_is_no_stream(
    spark: SparkSession, table: str, tmp_path: Path
) -> None:
    build_table(spark, table, "id INT, s STRING", [[(1, "a"), (3, "c")]])
    spark.sql("CREATE TABLE streamed (id INT, n INT) USING delta")
    try:
        spark.sql("INSERT INTO streamed VALUES (1, 10), (2, 20)")
        static = spark.read.format("delta").load(table)
        joined = spark.readStream.table("streamed").join(static, "id")
        assert run_stream(joined, tmp_path / "checkpoint") == [[(1, 10, "a")]]
    finally:
        spark.sql("DROP TABLE streamed")


def test_new_stream_begins_with_the_table_as_it_is_when_it_starts(
    spark: SparkSession, table: str, tmp_path: Path
) -> None:
    build_table(spark, table, "id INT", [[(1,), (2,)]])
    stream = stream_of(spark, table)
    spark.sql(f"DELETE FROM delta.`{table}` WHERE id = 1")
    assert run_stream(stream, tmp_path / "checkpoint") == [[(2,)]]


@pytest.mark.parametrize("codegen", ["true", "false"])
def test_batches_go_through_every_kind_of_query(
    spark: SparkSession, table: str, tmp_path: Path, codegen: str
) -> None:
    build_table(spark, table, "id INT, k INT", [[(i, i % 3) for i in range(9)]])
    spark.sql(f"DELETE FROM delta.`{table}` WHERE id = 4")
    static = spark.createDataFrame([(0, "a"), (1, "b")], "k INT, s STRING")
    stream = stream_of(spark, table)
    twice = F.udf(lambda n: 2 * n, "int")
    queries: dict[str, tuple[DataFrame, str, list[tuple[object, ...]]]] = {
        "grouped": (stream.groupBy("k").count(), "complete", [(0, 3), (1, 2), (2, 3)]),
        "distinct": (stream.select("k").dropDuplicates(), "append", [(0,), (1,), (2,)]),
        "function": (stream.where(twice("id") > 14).select("id"), "append", [(8,)]),
        "joined": (
            stream.join(static.hint("merge"), "k").select("id", "s").where("id < 3"),
            "append",
            [(0, "a"), (1, "b")],
        ),
        "exploded": (
            stream.where("id = 5").selectExpr("explode(array(id, k)) AS e"),
            "append",
            [(2,), (5,)],
        ),
    }
    with session_settings(
        spark, {"spark.sql.codegen.wholeStage": codegen, "spark.sql.shuffle.partitions": "2"}
    ):
        for name, (query, mode, expected) in queries.items():
            assert run_stream(query, tmp_path / name, mode) == [expected], name
        writer = stream.writeStream.format("parquet").partitionBy("k")
        writer = writer.option("checkpointLocation", str(tmp_path / "sink"))
        writer.trigger(availableNow=True).start(str(tmp_path / "rows")).awaitTermination()
    assert spark.read.parquet(str(tmp_path / "rows")).count() == 8


def test_char_values_are_padded_as_in_a_query(
    spark: SparkSession, table: str, tmp_path: Path
) -> None:
    spark.sql(f"CREATE TABLE delta.`{table}` (id INT, c CHAR(5), s STRUCT<c: CHAR(3)>) USING delta")
    plain = spark.sql("SELECT 1 AS id, 'ab' AS c, named_struct('c', 'x') AS s").coalesce(1)
    plain.write.parquet(str(tmp_path / "files"))
    [file] = (tmp_path / "files").glob("*.parquet")
    shutil.copy(file, Path(table, "plain.parquet"))
    add = {"path": "plain.parquet", "partitionValues": {}, "size": file.stat().st_size}
    log.write_commit(table, 1, {"add": {**add, "modificationTime": 0, "dataChange": True}})
    batch = spark.read.format("delta").load(table)
    stream = stream_of(spark, table)
    for number, shape in enumerate(
        [
            lambda df: df,
            lambda df: df.where("c = 'ab'").select("id", "s.c"),
            lambda df: df.selectExpr("length(c)", "C"),
        ]
    ):
        expected = [tuple(row) for row in shape(batch).collect()]
        assert len(expected) == 1
        assert run_stream(shape(stream), tmp_path / str(number)) == [expected]
