"""Tables as sources of streams: batches, where they begin and go on, and what they refuse."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from tests.support.streams import failure_of, run_stream, stream_of
from tests.support.table_builder import append_file, build_table, rows_of

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from tests.support.spark_process import SparkProcess


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


CHANGES = {
    "deleted": ("DELETE FROM {t} WHERE id = 2", "ignoreDeletes", []),
    "changed, skipped": ("UPDATE {t} SET id = 9 WHERE id = 3", "skipChangeCommits", []),
    "changed, ignored": ("UPDATE {t} SET id = 9 WHERE id = 3", "ignoreChanges", [(4,), (9,)]),
    "file deletion ignored": ("DELETE FROM {t} WHERE id = 3", "ignoreFileDeletion", [(4,)]),
}


@pytest.mark.parametrize("case", CHANGES)
def test_commit_that_takes_rows_is_refused_by_name_unless_an_option_says_what_to_do(
    spark: SparkSession, table: str, tmp_path: Path, case: str
) -> None:
    statement, option, rows = CHANGES[case]
    build_table(spark, table, "id INT", [[(2,)], [(3,), (4,)]])
    checkpoint = tmp_path / "checkpoint"
    run_stream(stream_of(spark, table), checkpoint)
    spark.sql(statement.format(t=f"delta.`{table}`"))
    text = failure_of(stream_of(spark, table), checkpoint)
    name = "DELETES" if case == "deleted" else "CHANGES"
    assert f"DELTAIC_STREAM_COMMIT_{name}" in text, text
    assert "Version 1 " in text and table in text and option.replace("FileDeletion", "") in text
    append_file(spark, table, "id INT", [(5,)])
    read = run_stream(stream_of(spark, table, **{option: "true"}), checkpoint)
    assert [row for batch in read for row in batch] == sorted([*rows, (5,)])


def test_excluded_files_are_not_read(spark: SparkSession, table: str, tmp_path: Path) -> None:
    rows = [[(1, "x"), (2, "y")]]
    build_table(spark, table, "id INT, p STRING", rows, partition_by=["p"])
    stream = stream_of(spark, table, excludeRegex="p=x/")
    assert run_stream(stream, tmp_path / "checkpoint") == [[(2, "y")]]
    everything = stream_of(spark, table, excludeRegex="")
    assert run_stream(everything, tmp_path / "all") == [[(1, "x"), (2, "y")]]


def test_added_columns_stop_a_running_stream_and_are_read_by_the_next(
    spark: SparkSession, table: str, tmp_path: Path
) -> None:
    build_table(spark, table, "id INT", [[(1,)]])
    stream, checkpoint = stream_of(spark, table), tmp_path / "checkpoint"
    assert run_stream(stream, checkpoint) == [[(1,)]]
    spark.sql(f"ALTER TABLE delta.`{table}` ADD COLUMN n INT")
    append_file(spark, table, "id INT, n INT", [(2, 3)])
    text = failure_of(stream, checkpoint)
    assert "DELTAIC_STREAM_COLUMNS_ADDED" in text and "Version 1 " in text and table in text
    assert run_stream(stream_of(spark, table), checkpoint) == [[(2, 3)]]


def test_columns_that_were_renamed_meanwhile_are_an_error(
    spark: SparkSession, table: str, tmp_path: Path
) -> None:
    mapped = {"delta.columnMapping.mode": "name"}
    build_table(spark, table, "id INT, n INT", [[(1, 1)]], properties=mapped)
    checkpoint = tmp_path / "checkpoint"
    assert run_stream(stream_of(spark, table), checkpoint) == [[(1, 1)]]
    append_file(spark, table, "id INT, n INT", [(2, 2)])
    spark.sql(f"ALTER TABLE delta.`{table}` RENAME COLUMN n TO m")
    text = failure_of(stream_of(spark, table), checkpoint)
    assert "DELTAIC_STREAM_SCHEMA_CHANGED" in text and table in text


def test_table_that_took_the_place_of_another_is_an_error(
    spark: SparkSession, table: str, tmp_path: Path
) -> None:
    build_table(spark, table, "id INT", [[(1,)]])
    checkpoint = tmp_path / "checkpoint"
    run_stream(stream_of(spark, table), checkpoint)
    shutil.rmtree(table)
    build_table(spark, table, "id INT", [[(2,)]])
    text = failure_of(stream_of(spark, table), checkpoint)
    assert "DELTAIC_STREAM_TABLE_REPLACED" in text and table in text


def test_commits_that_are_gone_are_an_error_unless_their_loss_is_accepted(
    spark: SparkSession, table: str, tmp_path: Path
) -> None:
    often = {"delta.checkpointInterval": "2"}
    build_table(spark, table, "id INT", [[(0,)]], properties=often)
    checkpoint = tmp_path / "checkpoint"
    run_stream(stream_of(spark, table), checkpoint)
    for i in range(1, 6):
        append_file(spark, table, "id INT", [(i,)])
    log = Path(table) / "_delta_log"
    assert list(log.glob("*4.checkpoint*.parquet"))
    for version in range(4):
        for file in log.glob(f"*{version:020}.*"):
            file.unlink()
    text = failure_of(stream_of(spark, table), checkpoint)
    assert "DELTAIC_STREAM_DATA_LOST" in text and "version 1," in text and "from 4 on" in text
    left = run_stream(stream_of(spark, table, failOnDataLoss="false"), checkpoint)
    assert left == [[(4,), (5,)]]


@pytest.mark.parametrize(
    ("options", "part"),
    [
        ({"startingVersion": "soon"}, "it is a version, from 0 on, or latest"),
        ({"startingVersion": 7}, "the table's latest version is 0"),
        ({"startingTimestamp": "2999-01-01"}, "the table's latest version, 0, is older"),
        ({"startingTimestamp": "soon"}, "it cannot be read as a timestamp"),
        ({"startingVersion": 0, "startingTimestamp": "2000-01-01"}, "one can hold"),
        ({"maxFilesPerTrigger": 0}, "maxFilesPerTrigger=0: it is a whole number from 1 on"),
        ({"maxBytesPerTrigger": "many"}, "it is a number of bytes from 1 on"),
        ({"ignoreDeletes": "maybe"}, "ignoreDeletes=maybe: it is true or false"),
        ({"excludeRegex": "("}, "excludeRegex=("),
        ({"schemaTrackingLocation": "/x"}, "schemaTrackingLocation is not supported"),
        ({"versionAsOf": 0}, "a stream of the older version 0 is not supported"),
        (
            {"readChangeFeed": "true", "startingVersion": 0},
            "a stream of the table's changes is not supported",
        ),
    ],
    ids=lambda value: "-".join(value) if isinstance(value, dict) else "",
)
def test_options_that_cannot_hold_are_refused_by_name(
    spark: SparkSession, table: str, tmp_path: Path, options: dict[str, object], part: str
) -> None:
    feed = {"delta.enableChangeDataFeed": "true"}
    build_table(spark, table, "id INT", [[(1,)]], properties=feed)
    text = failure_of(stream_of(spark, table, **options), tmp_path / "checkpoint")
    assert part in text and table in text, text


def test_stream_of_no_table_says_so(spark: SparkSession, tmp_path: Path) -> None:
    text = failure_of_load(spark, str(tmp_path / "nothing"))
    assert "DELTAIC_NOT_A_TABLE" in text and "nothing" in text


def failure_of_load(spark: SparkSession, path: str) -> str:
    from deltaic.exceptions import DeltaError

    with pytest.raises(DeltaError) as caught:
        stream_of(spark, path)
    return str(caught.value)


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


def test_without_the_extension_a_stream_is_refused(
    spark: SparkSession, without_extension: SparkProcess, table: str, tmp_path: Path
) -> None:
    build_table(spark, table, "id INT", [[(1,)]])
    text = without_extension.run(
        """
try:
    query = (
        spark.readStream.format("delta").load(path).writeStream.format("noop")
        .option("checkpointLocation", checkpoint).trigger(availableNow=True).start()
    )
    query.awaitTermination()
    result = "read"
except Exception as problem:
    result = str(problem)
""",
        path=table,
        checkpoint=str(tmp_path / "checkpoint"),
    )
    assert "DELTAIC_EXTENSION_MISSING" in text and "a streamed read" in text, text
