"""Streams whose schema is tracked go on after columns were renamed, dropped or widened."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from tests.support.streams import failure_of, run_stream, stream_of
from tests.support.table_builder import build_table

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

MAPPED = {
    "delta.columnMapping.mode": "name",
    "delta.enableTypeWidening": "true",
    "delta.enableChangeDataFeed": "true",
    "delta.enableDeletionVectors": "true",
}
ALL_ALLOWED = {
    "allowSourceColumnRename": "always",
    "allowSourceColumnDrop": "always",
    "allowSourceColumnTypeChange": "always",
}
TRACKED = "DELTAIC_STREAM_SCHEMA_TRACKED"
NOT_ALLOWED = "DELTAIC_STREAM_SCHEMA_CHANGE_NOT_ALLOWED"

#: Statements that change the schema, the columns after each, and a row to insert then.
CHANGES: list[tuple[str, list[str], tuple[Any, ...]]] = [
    ("RENAME COLUMN v TO w", ["id", "w", "n"], (2, "b", 20)),
    ("ADD COLUMNS (extra STRING)", ["id", "w", "n", "extra"], (3, "c", 30, "x")),
    ("ALTER COLUMN n TYPE BIGINT", ["id", "w", "n", "extra"], (4, "d", 2**40, "y")),
    ("DROP COLUMN w", ["id", "n", "extra"], (5, 50, "z")),
    ("ADD COLUMNS (w INT)", ["id", "n", "extra", "w"], (6, 60, "z", 600)),
    ("SET TBLPROPERTIES ('delta.appendOnly' = 'false')", ["id", "n", "extra", "w"], (7, 0, "", 0)),
]


def tracked(spark: SparkSession, table: str, checkpoint: Path, **options: Any) -> DataFrame:
    return stream_of(spark, table, schemaTrackingLocation=str(checkpoint), **options)


def mapped(spark: SparkSession, table: str) -> None:
    build_table(spark, table, "id INT, v STRING, n INT", [[(1, "a", 10)]], properties=MAPPED)


def alter(spark: SparkSession, table: str, change: str) -> None:
    spark.sql(f"ALTER TABLE delta.`{table}` {change}")


def insert(spark: SparkSession, table: str, row: tuple[Any, ...]) -> None:
    spark.sql(f"INSERT INTO delta.`{table}` VALUES {row}")


def changed_table(spark: SparkSession, table: str) -> list[tuple[list[str], tuple[Any, ...]]]:
    """Make a table with all changes; return the columns and the row of each version with a row."""
    mapped(spark, table)
    expected: list[tuple[list[str], tuple[Any, ...]]] = [(["id", "v", "n"], (1, "a", 10))]
    for change, columns, row in CHANGES:
        alter(spark, table, change)
        insert(spark, table, row)
        expected.append((columns, row))
    return expected


def read_to_the_end(
    spark: SparkSession, table: str, checkpoint: Path, **options: Any
) -> tuple[list[tuple[list[str], tuple[Any, ...]]], int]:
    """Start the query again after each failure; return columns and rows, and the failures."""
    from pyspark.errors import PySparkException

    found: list[tuple[list[str], tuple[Any, ...]]] = []
    for failures in range(20):
        df = tracked(spark, table, checkpoint, **options)

        def keep(batch: DataFrame, _: int) -> None:
            found.extend((batch.columns, tuple(row)) for row in batch.collect())

        writer = df.writeStream.foreachBatch(keep).option("checkpointLocation", str(checkpoint))
        query = writer.trigger(availableNow=True).start()
        try:
            query.awaitTermination()
            return found, failures
        except PySparkException as problem:
            assert TRACKED in str(problem), problem
    raise AssertionError("the stream does not end")


def entries(checkpoint: Path) -> list[dict[str, Any]]:
    """The entries of the only schema tracking log."""
    (log,) = checkpoint.glob("_schema_log_*")
    files = sorted(
        (file for file in log.iterdir() if file.name.isdigit()), key=lambda f: int(f.name)
    )
    texts = [file.read_text(encoding="utf-8").split("\n") for file in files]
    assert all(text[0] == "v1" for text in texts)
    return [json.loads(text[1]) for text in texts]


@pytest.mark.parametrize("limit", [{}, {"maxFilesPerTrigger": 1}])
def test_stream_reads_each_row_with_the_columns_of_its_time(
    spark: SparkSession, table: str, tmp_path: Path, limit: dict[str, Any]
) -> None:
    expected = changed_table(spark, table)
    options = {"startingVersion": 0, **ALL_ALLOWED, **limit}
    found, failures = read_to_the_end(spark, table, tmp_path / "checkpoint", **options)
    assert found == expected
    # Once because the DataFrame is created with the newest columns, then at each change.
    assert failures == 1 + len(CHANGES)
    assert len(entries(tmp_path / "checkpoint")) == 1 + len(CHANGES)


def test_stream_that_runs_while_the_schema_changes(
    spark: SparkSession, table: str, tmp_path: Path
) -> None:
    mapped(spark, table)
    checkpoint = tmp_path / "checkpoint"
    found, failures = read_to_the_end(spark, table, checkpoint)
    assert (found, failures) == ([(["id", "v", "n"], (1, "a", 10))], 0)
    for change, columns, row in CHANGES:
        alter(spark, table, change)
        insert(spark, table, row)
        found, failures = read_to_the_end(spark, table, checkpoint, **ALL_ALLOWED)
        assert (found, failures) == ([(columns, row)], 1), change
        assert read_to_the_end(spark, table, checkpoint, **ALL_ALLOWED) == ([], 0)


def test_stream_of_changes_has_the_columns_of_their_time(
    spark: SparkSession, table: str, tmp_path: Path
) -> None:
    expected = changed_table(spark, table)
    spark.sql(f"DELETE FROM delta.`{table}` WHERE id = 1")
    options = {"startingVersion": 0, "readChangeFeed": "true", **ALL_ALLOWED}
    found, failures = read_to_the_end(spark, table, tmp_path / "checkpoint", **options)
    meta = ["_change_type", "_commit_version", "_commit_timestamp"]
    inserts = [
        (columns + meta, (*row, "insert", 2 * i)) for i, (columns, row) in enumerate(expected)
    ]
    columns = expected[-1][0] + meta
    deleted = (columns, (1, 10, None, None, "delete", 2 * len(CHANGES) + 1))
    assert [(columns, row[:-1]) for columns, row in found] == [*inserts, deleted]
    assert failures == 1 + len(CHANGES)


def test_changes_without_rows_in_between_fail_the_query_once(
    spark: SparkSession, table: str, tmp_path: Path
) -> None:
    mapped(spark, table)
    checkpoint = tmp_path / "checkpoint"
    read_to_the_end(spark, table, checkpoint)
    for change in ("RENAME COLUMN v TO w", "RENAME COLUMN w TO v", "RENAME COLUMN v TO u"):
        alter(spark, table, change)
    insert(spark, table, (2, "b", 20))
    found, failures = read_to_the_end(spark, table, checkpoint, allowSourceColumnRename="3")
    assert (found, failures) == ([(["id", "u", "n"], (2, "b", 20))], 1)
    log = entries(checkpoint)
    assert [entry["deltaCommitVersion"] for entry in log] == [0, 1, 3]
    assert log[2]["previousMetadataSeqNum"] == 0


def test_stream_by_name_in_a_table_with_partitions(
    spark: SparkSession, table: str, tmp_path: Path
) -> None:
    checkpoint = tmp_path / "checkpoint"
    spark.sql(
        "CREATE TABLE tracked_source (id INT, p STRING) USING delta PARTITIONED BY (p)"
        f" LOCATION '{table}' TBLPROPERTIES ('delta.columnMapping.mode' = 'name')"
    )
    try:
        spark.sql("INSERT INTO tracked_source VALUES (1, 'a')")

        def source() -> DataFrame:
            reader = spark.readStream.option("schemaLocation", str(checkpoint))
            return reader.option("allowSourceColumnRename", "true").table("tracked_source")

        assert run_stream(source(), checkpoint) == [[(1, "a")]]
        spark.sql("ALTER TABLE tracked_source RENAME COLUMN p TO q")
        spark.sql("INSERT INTO tracked_source VALUES (2, 'b')")
        stale = source()
        assert stale.columns == ["id", "p"]
        assert TRACKED in failure_of(stale, checkpoint)
        assert "DELTAIC_STREAM_COLUMNS_OUTDATED" in failure_of(stale, checkpoint)
        assert source().columns == ["id", "q"]
        assert run_stream(source().where("q = 'b'"), checkpoint) == [[(2, "b")]]
    finally:
        spark.sql("DROP TABLE tracked_source")


@pytest.mark.parametrize(
    ("changes", "kinds"),
    [
        (["RENAME COLUMN v TO w"], ["allowSourceColumnRename"]),
        (["DROP COLUMN v"], ["allowSourceColumnDrop"]),
        (["ALTER COLUMN n TYPE BIGINT"], ["allowSourceColumnTypeChange"]),
        (
            ["DROP COLUMN v", "RENAME COLUMN n TO m"],
            ["allowSourceColumnDrop", "allowSourceColumnRename"],
        ),
    ],
    ids=lambda value: "-".join(value).replace(" ", "_"),
)
def test_change_must_be_allowed(
    spark: SparkSession, table: str, tmp_path: Path, changes: list[str], kinds: list[str]
) -> None:
    mapped(spark, table)
    checkpoint = tmp_path / "checkpoint"
    assert TRACKED not in str(read_to_the_end(spark, table, checkpoint))
    for change in changes:
        alter(spark, table, change)
    version = len(changes)

    def allowed(**options: str) -> bool:
        df = tracked(spark, table, checkpoint, **options)
        try:
            run_stream(df, checkpoint)
        except Exception as problem:
            text = str(problem)
            assert NOT_ALLOWED in text and table in text and f"{version}" in text, text
            return False
        return True

    assert TRACKED in failure_of(tracked(spark, table, checkpoint), checkpoint)
    text = failure_of(tracked(spark, table, checkpoint), checkpoint)
    assert NOT_ALLOWED in text and all(kind in text for kind in kinds), text
    others = {kind: "always" for kind in ALL_ALLOWED if kind != kinds[0]}
    assert not allowed(**others)
    assert not allowed(**{kind: str(version + 1) for kind in kinds})
    assert not allowed(**dict.fromkeys(kinds, "false"))
    # A setting that is in effect for this source alone, as the error names it.
    prefix = f"spark.deltaic.streaming.{kinds[0]}.ckpt_"
    name = prefix + text.split(prefix)[1].split(")")[0].split(",")[0]
    spark.conf.set(name, str(version + 1))
    try:
        assert not allowed(**others)
        spark.conf.set(name, str(version))
        assert allowed(**others)
    finally:
        spark.conf.unset(name)
    assert not allowed(**others)
    assert allowed(**dict.fromkeys(kinds, str(version)))
    assert allowed(**dict.fromkeys(kinds, "always"))


@pytest.mark.parametrize("setting", ["allowSourceColumnRename", "allowSourceColumnRenameAndDrop"])
def test_change_is_allowed_by_a_setting_for_all_streams(
    spark: SparkSession, table: str, tmp_path: Path, setting: str
) -> None:
    mapped(spark, table)
    checkpoint = tmp_path / "checkpoint"
    read_to_the_end(spark, table, checkpoint)
    alter(spark, table, "RENAME COLUMN v TO w")
    name = f"spark.databricks.delta.streaming.{setting}"
    spark.conf.set(name, "always")
    try:
        assert read_to_the_end(spark, table, checkpoint) == ([], 1)
    finally:
        spark.conf.unset(name)


def test_type_change_that_loses_values_is_refused(
    spark: SparkSession, table: str, tmp_path: Path
) -> None:
    spark.sql("SELECT 1 AS id, 'a' AS v").write.format("delta").save(table)
    checkpoint = tmp_path / "checkpoint"
    read_to_the_end(spark, table, checkpoint)
    rows = spark.sql("SELECT 1 AS id, 2.5D AS v").write.format("delta").mode("overwrite")
    rows.option("overwriteSchema", "true").save(table)
    options = {**ALL_ALLOWED, "skipChangeCommits": "true"}
    assert TRACKED in failure_of(tracked(spark, table, checkpoint, **options), checkpoint)
    text = failure_of(tracked(spark, table, checkpoint, **options), checkpoint)
    assert "DELTAIC_STREAM_SCHEMA_CHANGED" in text and "version 1" in text, text


def test_stream_that_has_read_without_tracking_goes_on_with_it(
    spark: SparkSession, table: str, tmp_path: Path
) -> None:
    mapped(spark, table)
    checkpoint = tmp_path / "checkpoint"
    assert run_stream(stream_of(spark, table), checkpoint) == [[(1, "a", 10)]]
    alter(spark, table, "RENAME COLUMN v TO w")
    insert(spark, table, (2, "b", 20))
    found, failures = read_to_the_end(spark, table, checkpoint, **ALL_ALLOWED)
    # The DataFrame has the new columns, the first definition is that of what was read.
    assert (found, failures) == ([(["id", "w", "n"], (2, "b", 20))], 2)
    insert(spark, table, (3, "c", 30))
    assert run_stream(stream_of(spark, table), checkpoint) == [[(3, "c", 30)]]


def test_two_sources_of_a_query_have_logs_of_their_own(
    spark: SparkSession, table: str, tmp_path: Path
) -> None:
    mapped(spark, table)
    checkpoint = tmp_path / "checkpoint"

    def both(second: str) -> DataFrame:
        one = tracked(spark, table, checkpoint, streamingSourceTrackingId="one")
        two = tracked(spark, table, checkpoint, streamingSourceTrackingId=second)
        return one.union(two)

    text = failure_of(both("one"), checkpoint)
    assert "DELTAIC_STREAM_SCHEMA_LOCATION_SHARED" in text and "streamingSourceTrackingId" in text
    assert run_stream(both("two"), checkpoint) == [[(1, "a", 10)] * 2]
    names = sorted(path.name.rsplit("_", 1)[1] for path in checkpoint.glob("_schema_log_*"))
    assert names == ["one", "two"]


def test_location_of_another_query_is_refused(
    spark: SparkSession, table: str, tmp_path: Path
) -> None:
    mapped(spark, table)
    first, second = tmp_path / "one", tmp_path / "two"
    read_to_the_end(spark, table, first)
    text = failure_of(tracked(spark, table, first), second)
    assert "DELTAIC_STREAM_SCHEMA_LOCATION_OUTSIDE_CHECKPOINT" in text and str(second) in text
    name = "spark.deltaic.streaming.allowSchemaLocationOutsideCheckpointLocation"
    spark.conf.set(name, "true")
    try:
        text = failure_of(tracked(spark, table, first), second)
    finally:
        spark.conf.unset(name)
    assert "DELTAIC_STREAM_SCHEMA_LOCATION_SHARED" in text and f"{first}/sources/0" in text


def test_log_that_is_damaged_is_an_error(spark: SparkSession, table: str, tmp_path: Path) -> None:
    mapped(spark, table)
    checkpoint = tmp_path / "checkpoint"
    read_to_the_end(spark, table, checkpoint)
    (log,) = checkpoint.glob("_schema_log_*")
    (log / ".0.crc").unlink()
    (log / "0").write_text("v1\n{}", encoding="utf-8")
    from deltaic.exceptions import DeltaError

    with pytest.raises(DeltaError, match="it has no field tableId") as caught:
        tracked(spark, table, checkpoint)
    assert caught.value.condition == "DELTAIC_STREAM_SCHEMA_LOG_MALFORMED"


def test_missing_commits_cannot_be_skipped(spark: SparkSession, table: str, tmp_path: Path) -> None:
    mapped(spark, table)
    checkpoint = tmp_path / "checkpoint"
    text = failure_of(tracked(spark, table, checkpoint, failOnDataLoss="false"), checkpoint)
    assert "failOnDataLoss=false: a missing commit may have changed the schema" in text
