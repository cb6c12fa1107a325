"""Streams whose schema is tracked go on after columns were renamed, dropped or widened."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from pyspark.errors import PySparkException

from deltaic import DeltaTable
from tests.support.streams import failure_of, run_stream, stream_of, write_stream
from tests.support.table_builder import build_table, in_order
from tests.support.tracked_streams import (
    ALL_ALLOWED,
    INITIALIZED,
    NOT_ALLOWED,
    TRACKED,
    alter,
    entries,
    insert,
    mapped,
    read_to_the_end,
    tracked,
)

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

#: Statements that change the schema, the columns after each, and a row to insert then.
CHANGES: list[tuple[str, list[str], tuple[Any, ...]]] = [
    ("RENAME COLUMN v TO w", ["id", "w", "n"], (2, "b", 20)),
    ("ADD COLUMNS (extra STRING)", ["id", "w", "n", "extra"], (3, "c", 30, "x")),
    ("ALTER COLUMN n TYPE BIGINT", ["id", "w", "n", "extra"], (4, "d", 2**40, "y")),
    ("DROP COLUMN w", ["id", "n", "extra"], (5, 50, "z")),
    ("ADD COLUMNS (w INT)", ["id", "n", "extra", "w"], (6, 60, "z", 600)),
    ("SET TBLPROPERTIES ('delta.appendOnly' = 'false')", ["id", "n", "extra", "w"], (7, 0, "", 0)),
]


def changed_table(spark: SparkSession, table: str) -> list[tuple[list[str], tuple[Any, ...]]]:
    """Make a table with all changes; return the columns and the row of each version with a row."""
    mapped(spark, table)
    expected: list[tuple[list[str], tuple[Any, ...]]] = [(["id", "v", "n"], (1, "a", 10))]
    for change, columns, row in CHANGES:
        alter(spark, table, change)
        insert(spark, table, row)
        expected.append((columns, row))
    return expected


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
    assert read_to_the_end(spark, table, checkpoint) == ([(["id", "v", "n"], (1, "a", 10))], 0)
    for change in changes:
        alter(spark, table, change)
    version = len(changes)

    def allowed(**options: str) -> bool:
        df = tracked(spark, table, checkpoint, **options)
        try:
            run_stream(df, checkpoint)
        except Exception as problem:
            text = str(problem)
            assert NOT_ALLOWED in text and f"versions 0 and {version} of table" in text, text
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


@pytest.mark.parametrize(
    ("setting", "change"),
    [
        ("allowSourceColumnRename", "RENAME COLUMN v TO w"),
        ("allowSourceColumnRenameAndDrop", "RENAME COLUMN v TO w"),
        ("allowSourceColumnDrop", "DROP COLUMN v"),
        ("allowSourceColumnRenameAndDrop", "DROP COLUMN v"),
        ("allowSourceColumnTypeChange", "ALTER COLUMN n TYPE BIGINT"),
    ],
)
def test_change_is_allowed_by_a_setting_for_all_streams(
    spark: SparkSession, table: str, tmp_path: Path, setting: str, change: str
) -> None:
    mapped(spark, table)
    checkpoint = tmp_path / "checkpoint"
    read_to_the_end(spark, table, checkpoint)
    alter(spark, table, change)
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
    assert "DELTAIC_STREAM_SCHEMA_CHANGE_UNSUPPORTED" in text, text
    assert "Between versions 0 and 1" in text and "may be lost: v" in text, text


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


def test_values_of_identity_columns_are_no_change_of_the_schema(
    spark: SparkSession, table: str, tmp_path: Path
) -> None:
    name = f"delta.`{table}`"
    spark.sql(
        f"CREATE TABLE {name} (id BIGINT GENERATED ALWAYS AS IDENTITY, v STRING DEFAULT 'x')"
        " USING delta TBLPROPERTIES ('delta.feature.allowColumnDefaults' = 'supported')"
    )
    checkpoint = tmp_path / "checkpoint"
    read = []
    for value in ("a", "b", "c"):
        spark.sql(f"INSERT INTO {name} (v) VALUES ('{value}')")
        found, failures = read_to_the_end(spark, table, checkpoint)
        assert failures == 0
        read += [row for _, row in found]
    assert [row[1] for row in read] == ["a", "b", "c"]
    assert len(entries(checkpoint)) == 1


def test_change_of_the_protocol_ends_a_batch(
    spark: SparkSession, table: str, tmp_path: Path
) -> None:
    build_table(spark, table, "id INT", [[(1,)]], deletion_vectors=False)
    checkpoint = tmp_path / "checkpoint"
    read_to_the_end(spark, table, checkpoint)
    DeltaTable.forPath(spark, table).addFeatureSupport("deletionVectors")
    spark.sql(f"INSERT INTO delta.`{table}` VALUES (2)")
    assert read_to_the_end(spark, table, checkpoint) == ([(["id"], (2,))], 1)
    assert "deletionVectors" in entries(checkpoint)[-1]["protocolJson"]


def test_query_fails_at_a_change_while_it_waits_for_rows(
    spark: SparkSession, table: str, tmp_path: Path
) -> None:
    from pyspark.errors import PySparkException

    mapped(spark, table)
    checkpoint = tmp_path / "checkpoint"
    found: list[tuple[Any, ...]] = []

    def keep(batch: DataFrame, _: int) -> None:
        found.extend(tuple(row) for row in batch.collect())

    writer = tracked(spark, table, checkpoint).writeStream.foreachBatch(keep)
    writer = writer.option("checkpointLocation", str(checkpoint))
    query = writer.trigger(processingTime="100 milliseconds").start()
    try:
        query.processAllAvailable()
        insert(spark, table, (2, "b", 20))
        alter(spark, table, "RENAME COLUMN v TO w")
        with pytest.raises(PySparkException, match=TRACKED):
            query.awaitTermination(60)
        assert not query.isActive
    finally:
        query.stop()
    assert found == [(1, "a", 10), (2, "b", 20)]
    insert(spark, table, (3, "c", 30))
    rows, failures = read_to_the_end(spark, table, checkpoint, **ALL_ALLOWED)
    assert (rows, failures) == ([(["id", "w", "n"], (3, "c", 30))], 0)


def test_widened_column_of_a_tracked_stream_is_widened_in_the_table_that_it_writes(
    spark: SparkSession, table: str, tmp_path: Path
) -> None:
    source, checkpoint = str(tmp_path / "source"), tmp_path / "checkpoint"
    mapped(spark, source)
    alter(spark, source, "ALTER COLUMN n TYPE BIGINT")
    insert(spark, source, (2, "b", 20_000_000_000))
    alter(spark, source, "ADD COLUMNS (w STRING)")
    insert(spark, source, (3, "c", 30, "x"))
    widening = "TBLPROPERTIES ('delta.enableTypeWidening' = 'true')"
    spark.sql(f"CREATE TABLE delta.`{table}` (id INT, v STRING, n INT) USING delta {widening}")

    def run() -> None:
        df = tracked(spark, source, checkpoint, startingVersion=0, **ALL_ALLOWED)
        write_stream(df, table, checkpoint, mergeSchema="true")

    for condition in (INITIALIZED, TRACKED, TRACKED):
        with pytest.raises(PySparkException, match=condition):
            run()
    run()
    found = spark.read.format("delta").load(table)
    assert dict(found.dtypes)["n"] == "bigint"
    assert in_order(map(tuple, found.collect())) == [
        (1, "a", 10, None), (2, "b", 20_000_000_000, None), (3, "c", 30, "x"),
    ]  # fmt: skip
