"""What stops a stream by a clear error: lost rows or history, other columns, wrong options."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from tests.support import log
from tests.support.maintenance import await_maintenance
from tests.support.streams import failure_of, forget_versions, run_stream, stream_of
from tests.support.table_builder import append_file, build_table, in_order
from tests.support.tracked_streams import INITIALIZED, TRACKED, tracked

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from tests.support.spark_process import SparkProcess


CHANGES = {
    "deleted": ("DELETE FROM {t} WHERE id = 2", "ignoreDeletes", []),
    "deleted, skipped": ("DELETE FROM {t} WHERE id = 2", "skipChangeCommits", []),
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
    deletes = case.startswith("deleted")
    assert f"DELTAIC_STREAM_COMMIT_{'DELETES' if deletes else 'CHANGES'}" in text, text
    assert "Version 1 " in text and table in text and "skipChangeCommits" in text
    assert ("ignoreDeletes" if deletes else "ignoreChanges") in text
    append_file(spark, table, "id INT", [(5,)])
    read = run_stream(stream_of(spark, table, **{option: "true"}), checkpoint)
    assert [row for batch in read for row in batch] == sorted([*rows, (5,)])


def test_added_columns_stop_a_running_stream_and_are_read_by_the_next(
    spark: SparkSession, table: str, tmp_path: Path
) -> None:
    build_table(spark, table, "id INT", [[(1,)]])
    stream, checkpoint = stream_of(spark, table), tmp_path / "checkpoint"
    assert run_stream(stream, checkpoint) == [[(1,)]]
    spark.sql(f"ALTER TABLE delta.`{table}` ADD COLUMN n INT")
    append_file(spark, table, "id INT, n INT", [(2, 3)])
    text = failure_of(stream, checkpoint)
    assert "DELTAIC_STREAM_COLUMNS_OUTDATED" in text and "version 1," in text and table in text
    assert run_stream(stream_of(spark, table), checkpoint) == [[(2, 3)]]


def test_column_that_may_be_null_now_is_read_by_the_next_stream(
    spark: SparkSession, table: str, tmp_path: Path
) -> None:
    spark.sql(f"CREATE TABLE delta.`{table}` (id INT NOT NULL) USING delta")
    append_file(spark, table, "id INT", [(1,)])
    stream, checkpoint = stream_of(spark, table), tmp_path / "checkpoint"
    assert run_stream(stream, checkpoint) == [[(1,)]]
    spark.sql(f"ALTER TABLE delta.`{table}` ALTER COLUMN id DROP NOT NULL")
    append_file(spark, table, "id INT", [(None,)])
    assert "DELTAIC_SCHEMA_CHANGED" in failure_of(stream, checkpoint)
    assert run_stream(stream_of(spark, table), checkpoint) == [[(None,)]]


def test_column_that_was_widened_is_read_by_the_next_stream_and_by_one_from_the_start(
    spark: SparkSession, table: str, tmp_path: Path
) -> None:
    widening = {"delta.enableTypeWidening": "true"}
    build_table(spark, table, "id INT, a ARRAY<FLOAT>", [[(1, [0.5])]], properties=widening)
    stream, checkpoint = stream_of(spark, table), tmp_path / "checkpoint"
    assert run_stream(stream, checkpoint) == [[(1, [0.5])]]
    append_file(spark, table, "id INT, a ARRAY<FLOAT>", [(2, [1.5])])
    for change in ("id TYPE BIGINT", "a.element TYPE DOUBLE"):
        spark.sql(f"ALTER TABLE delta.`{table}` ALTER COLUMN {change}")
    append_file(spark, table, "id BIGINT, a ARRAY<DOUBLE>", [(1 << 40, [0.1])])
    assert "DELTAIC_SCHEMA_CHANGED" in failure_of(stream, checkpoint)
    added = [(1 << 40, [0.1]), (2, [1.5])]
    assert run_stream(stream_of(spark, table), checkpoint) == [added]
    whole = stream_of(spark, table, startingVersion="0")
    assert run_stream(whole, tmp_path / "other") == [in_order([(1, [0.5]), *added])]


def test_column_that_was_replaced_by_a_wider_one_is_not_read_from_before(
    spark: SparkSession, table: str, tmp_path: Path
) -> None:
    # Nothing says then that bounds of the older files are of floats: skipping would lose rows.
    build_table(spark, table, "x FLOAT", [[(0.7,)]])
    df = spark.sql("SELECT 1D AS x").write.format("delta").mode("overwrite")
    df.option("overwriteSchema", "true").save(table)
    stream = stream_of(spark, table, startingVersion="0", ignoreChanges="true").where("x < 0.7D")
    assert "DELTAIC_STREAM_SCHEMA_CHANGED" in failure_of(stream, tmp_path / "checkpoint")


MAPPED = {"delta.columnMapping.mode": "name"}


def test_older_dataframe_does_not_go_on_after_a_column_change_that_a_newer_one_has_passed(
    spark: SparkSession, table: str, tmp_path: Path
) -> None:
    build_table(spark, table, "id INT, n INT", [[(1, 1)]], properties=MAPPED)
    older, checkpoint = stream_of(spark, table), tmp_path / "checkpoint"
    run_stream(older, checkpoint)
    spark.sql(f"ALTER TABLE delta.`{table}` ADD COLUMN m INT")
    append_file(spark, table, "id INT, n INT, m INT", [(2, 2, 2)])
    assert run_stream(stream_of(spark, table), checkpoint) == [[(2, 2, 2)]]
    append_file(spark, table, "id INT, n INT, m INT", [(3, 3, 3)])
    assert "DELTAIC_STREAM_COLUMNS_OUTDATED" in failure_of(older, checkpoint)
    assert run_stream(stream_of(spark, table), checkpoint) == [[(3, 3, 3)]]


def test_batch_that_failed_is_not_read_without_a_column_that_was_dropped_since(
    spark: SparkSession, table: str, tmp_path: Path
) -> None:
    build_table(spark, table, "id INT, n INT", [[(1, 1)]], properties=MAPPED)
    checkpoint = tmp_path / "checkpoint"
    run_stream(stream_of(spark, table), checkpoint)
    append_file(spark, table, "id INT, n INT", [(2, 2)])
    broken = stream_of(spark, table).selectExpr("raise_error('broken')")
    assert "broken" in failure_of(broken, checkpoint)
    spark.sql(f"ALTER TABLE delta.`{table}` DROP COLUMN n")
    assert "DELTAIC_STREAM_SCHEMA_CHANGED" in failure_of(stream_of(spark, table), checkpoint)


def test_another_start_applies_until_the_first_batch_is_done(
    spark: SparkSession, table: str, tmp_path: Path
) -> None:
    build_table(spark, table, "id INT", [[(1,), (2,)]])
    spark.sql(f"DELETE FROM delta.`{table}` WHERE id = 1")
    append_file(spark, table, "id INT", [(3,)])
    checkpoint = tmp_path / "checkpoint"
    text = failure_of(stream_of(spark, table, startingVersion=1), checkpoint)
    assert "DELTAIC_STREAM_COMMIT_CHANGES" in text
    assert run_stream(stream_of(spark, table, startingVersion=2), checkpoint) == [[(3,)]]
    append_file(spark, table, "id INT", [(4,)])
    assert run_stream(stream_of(spark, table, startingVersion=0), checkpoint) == [[(4,)]]


def test_start_that_comes_after_a_batch_that_was_begun_is_refused(
    spark: SparkSession, table: str, tmp_path: Path
) -> None:
    build_table(spark, table, "id INT", [[(1,)]])
    checkpoint = tmp_path / "checkpoint"
    broken = stream_of(spark, table, startingVersion=0).selectExpr("raise_error('broken')")
    assert "broken" in failure_of(broken, checkpoint)
    append_file(spark, table, "id INT", [(2,)])
    text = failure_of(stream_of(spark, table, startingVersion="latest"), checkpoint)
    assert "DELTAIC_STREAM_CHECKPOINT_INCOMPATIBLE" in text and table in text
    assert run_stream(stream_of(spark, table, startingVersion=0), checkpoint) == [[(1,)], [(2,)]]


def test_columns_that_were_renamed_meanwhile_are_an_error(
    spark: SparkSession, table: str, tmp_path: Path
) -> None:
    build_table(spark, table, "id INT, n INT", [[(1, 1)]], properties=MAPPED)
    checkpoint = tmp_path / "checkpoint"
    assert run_stream(stream_of(spark, table), checkpoint) == [[(1, 1)]]
    append_file(spark, table, "id INT, n INT", [(2, 2)])
    spark.sql(f"ALTER TABLE delta.`{table}` RENAME COLUMN n TO m")
    text = failure_of(stream_of(spark, table), checkpoint)
    assert "DELTAIC_STREAM_SCHEMA_CHANGED" in text and table in text
    # What the error advises: the schema is tracked from here on, with the same checkpoint.
    assert "schemaTrackingLocation" in text
    assert INITIALIZED in failure_of(tracked(spark, table, checkpoint), checkpoint)
    allowed = {"allowSourceColumnRename": "always"}
    assert TRACKED in failure_of(tracked(spark, table, checkpoint, **allowed), checkpoint)
    append_file(spark, table, "id INT, m INT", [(3, 3)])
    assert run_stream(tracked(spark, table, checkpoint, **allowed), checkpoint) == [[(3, 3)]]


def test_table_that_took_the_place_of_another_is_an_error(
    spark: SparkSession, table: str, tmp_path: Path
) -> None:
    build_table(spark, table, "id INT", [[(1,)]])
    checkpoint = tmp_path / "checkpoint"
    run_stream(stream_of(spark, table), checkpoint)
    started = table_id(table)
    shutil.rmtree(table)
    build_table(spark, table, "id INT", [[(2,)]])
    text = failure_of(stream_of(spark, table), checkpoint)
    assert "DELTAIC_STREAM_TABLE_REPLACED" in text and table in text
    assert f"started for the table with the id {started}" in text
    assert f"the current table has the id {table_id(table)}" in text


def table_id(table: str) -> str:
    [metadata] = log.actions(table, 0, "metaData")
    return str(metadata["id"])


@pytest.mark.parametrize("changes", [False, True])
def test_file_that_vacuum_has_deleted_before_the_stream_read_it(
    spark: SparkSession, table: str, tmp_path: Path, changes: bool
) -> None:
    options = {"readChangeFeed": "true"} if changes else {"skipChangeCommits": "true"}
    feed = {"delta.enableChangeDataFeed": "true"}
    build_table(spark, table, "id INT", [[(1,)]], properties=feed)
    checkpoint = tmp_path / "checkpoint"
    run_stream(stream_of(spark, table, **options), checkpoint)
    append_file(spark, table, "id INT", [(2,)])
    [added] = log.actions(table, 1, "add")
    append_file(spark, table, "id INT", [(3,)])
    Path(table, added["path"]).unlink()
    text = failure_of(stream_of(spark, table, **options), checkpoint)
    assert "DELTAIC_STREAM_DATA_FILE_MISSING" in text and added["path"] in text
    assert "a batch up to version 2" in text and "new checkpointLocation" in text


def test_replaced_table_is_another_one(spark: SparkSession, tmp_path: Path) -> None:
    spark.sql("CREATE TABLE streamed USING delta AS SELECT 1 AS id")
    try:
        checkpoint = tmp_path / "checkpoint"
        assert run_stream(spark.readStream.table("streamed"), checkpoint) == [[(1,)]]
        spark.sql("CREATE OR REPLACE TABLE streamed USING delta AS SELECT 2 AS id")
        reader = spark.readStream.option("skipChangeCommits", "true")
        assert "DELTAIC_STREAM_TABLE_REPLACED" in failure_of(reader.table("streamed"), checkpoint)
    finally:
        spark.sql("DROP TABLE streamed")


def test_commits_that_are_gone_are_an_error_unless_their_loss_is_accepted(
    spark: SparkSession, table: str, tmp_path: Path
) -> None:
    often = {"delta.checkpointInterval": "2"}
    build_table(spark, table, "id INT", [[(0,)]], properties=often)
    checkpoint = tmp_path / "checkpoint"
    run_stream(stream_of(spark, table), checkpoint)
    for i in range(1, 6):
        append_file(spark, table, "id INT", [(i,)])
    await_maintenance(spark)
    assert list((Path(table) / "_delta_log").glob("*4.checkpoint*.parquet"))
    forget_versions(table, below=4)
    text = failure_of(stream_of(spark, table), checkpoint)
    assert (
        "DELTAIC_STREAM_DATA_LOST" in text
        and "version 1," in text
        and "only from version 4" in text
    )
    left = run_stream(stream_of(spark, table, failOnDataLoss="false"), checkpoint)
    assert left == [[(4,), (5,)]]


def test_loss_is_accepted_of_commits_that_are_deleted_between_two_batches_too(
    spark: SparkSession, table: str, tmp_path: Path
) -> None:
    often = {"delta.checkpointInterval": "2"}
    build_table(spark, table, "id INT", [[(0,)]], properties=often)
    for i in range(1, 8):
        append_file(spark, table, "id INT", [(i,)])
    reader = stream_of(
        spark, table, failOnDataLoss="false", maxFilesPerTrigger=1, startingVersion=0
    )
    batches = run_stream(
        reader, tmp_path / "checkpoint", after_batch=lambda: forget_versions(table, below=6)
    )
    # Of the commit that is next, what it holds was known before.
    assert batches == [[(0,)], [(1,)], [(6,)], [(7,)]]


def test_snapshot_to_begin_with_that_is_gone_is_an_error(
    spark: SparkSession, table: str, tmp_path: Path
) -> None:
    often = {"delta.checkpointInterval": "2"}
    build_table(spark, table, "id INT", [[(0,)], [(1,)]], properties=often)
    checkpoint = tmp_path / "checkpoint"
    broken = stream_of(spark, table, maxFilesPerTrigger=1).selectExpr("raise_error('broken')")
    assert "broken" in failure_of(broken, checkpoint)
    for i in range(2, 6):
        append_file(spark, table, "id INT", [(i,)])
    await_maintenance(spark)
    forget_versions(table, below=4)
    text = failure_of(stream_of(spark, table, failOnDataLoss="false"), checkpoint)
    assert "DELTAIC_STREAM_SNAPSHOT_LOST" in text and "version 0," in text and table in text


@pytest.mark.parametrize(
    ("options", "part"),
    [
        ({"startingVersion": "soon"}, "it is a version, from 0 on, or latest"),
        ({"startingVersion": 7}, "the table's latest version is 0"),
        ({"startingTimestamp": "2999-01-01"}, "the table's latest version, 0, is older"),
        ({"startingTimestamp": "2999-01-01"}, "startingVersion=latest"),
        ({"startingTimestamp": "soon"}, "it is not a timestamp, such as 2026-01-31"),
        ({"startingVersion": 0, "startingTimestamp": "2000-01-01"}, "one can hold"),
        (
            {"maxFilesPerTrigger": 0},
            "maxFilesPerTrigger=0: it is a whole number from 1 to 2147483647",
        ),
        ({"maxBytesPerTrigger": "many"}, "it is a number of bytes from 1 on"),
        ({"ignoreDeletes": "maybe"}, "ignoreDeletes=maybe: it is true or false"),
        ({"excludeRegex": "("}, "excludeRegex=("),
        ({"allowSourceColumnDrop": "soon"}, "it is always, or the version of the change"),
        ({"versionAsOf": 0}, "a stream reads on from a version. Use option startingVersion"),
        (
            {"readChangeFeed": "true", "startingVersion": 0, "endingVersion": 0},
            "endingVersion=0: a stream has no end. Read these versions in a batch",
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


def failure_of_load(spark: SparkSession, path: str, **options: str) -> str:
    from deltaic.exceptions import DeltaError

    with pytest.raises(DeltaError) as caught:
        stream_of(spark, path, **options)
    return str(caught.value)


@pytest.mark.parametrize(
    ("options", "part"),
    [
        ({"schemaTrackingLocation": ""}, "it is a folder in the checkpointLocation"),
        ({"schemaTrackingLocation": " "}, "it is a folder in the checkpointLocation"),
        (
            {"schemaTrackingLocation": "/a", "schemaLocation": "/b"},
            "schemaLocation=/b: it is another name of schemaTrackingLocation, which is /a",
        ),
    ],
)
def test_location_of_the_schema_must_be_one_folder(
    spark: SparkSession, table: str, options: dict[str, str], part: str
) -> None:
    build_table(spark, table, "id INT", [[(1,)]])
    assert part in failure_of_load(spark, table, **options)


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


def test_stream_begins_at_a_commit_that_is_there_though_its_version_cannot_be_rebuilt(
    spark: SparkSession, table: str, tmp_path: Path
) -> None:
    often = {"delta.checkpointInterval": "4"}
    build_table(spark, table, "id INT", [[(0,)]], properties=often)
    for i in range(1, 6):
        append_file(spark, table, "id INT", [(i,)])
    await_maintenance(spark)
    forget_versions(table, below=2)
    found = run_stream(stream_of(spark, table, startingVersion=2), tmp_path / "checkpoint")
    assert found == [[(2,), (3,), (4,), (5,)]]
