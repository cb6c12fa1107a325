"""The log of a tracked schema: where it is, who writes it, and what is in it after a stop."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from tests.support.streams import failure_of, run_stream
from tests.support.table_builder import build_table
from tests.support.tracked_streams import (
    ALL_ALLOWED,
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


@pytest.mark.parametrize(
    ("damaged", "part"),
    [
        ("v1\n{}", "it has no field tableId"),
        ("v2\n{}", "a file starts with 'v2' instead of v1"),
        ("", "a file starts with '' instead of v1"),
        ("v1\n{", "Unexpected end-of-input"),
        ("schema", "a schema cannot be parsed"),
    ],
)
def test_log_that_is_damaged_is_an_error(
    spark: SparkSession, table: str, tmp_path: Path, damaged: str, part: str
) -> None:
    mapped(spark, table)
    checkpoint = tmp_path / "checkpoint"
    read_to_the_end(spark, table, checkpoint)
    (log,) = checkpoint.glob("_schema_log_*")
    (log / ".0.crc").unlink()
    if damaged == "schema":
        [entry] = entries(checkpoint)
        damaged = "v1\n" + json.dumps({**entry, "dataSchemaJson": "{"})
    (log / "0").write_text(damaged, encoding="utf-8")
    from deltaic.exceptions import DeltaError

    with pytest.raises(DeltaError, match=part) as caught:
        tracked(spark, table, checkpoint)
    assert caught.value.condition == "DELTAIC_STREAM_SCHEMA_LOG_MALFORMED"


def test_missing_commits_cannot_be_skipped(spark: SparkSession, table: str, tmp_path: Path) -> None:
    mapped(spark, table)
    checkpoint = tmp_path / "checkpoint"
    text = failure_of(tracked(spark, table, checkpoint, failOnDataLoss="false"), checkpoint)
    assert "failOnDataLoss=false: a missing commit may have changed the schema. Leave" in text


def test_entry_that_another_query_adds_first_is_an_error(
    spark: SparkSession, table: str, tmp_path: Path
) -> None:
    mapped(spark, table)
    checkpoint = tmp_path / "checkpoint"
    read_to_the_end(spark, table, checkpoint)
    insert(spark, table, (2, "b", 20))
    alter(spark, table, "RENAME COLUMN v TO w")
    (log,) = checkpoint.glob("_schema_log_*")
    [entry] = entries(checkpoint)

    def plant(batch: DataFrame, _: int) -> None:
        other = {**entry, "sourceMetadataPath": "file:/other/sources/0"}
        (log / "1").write_text("v1\n" + json.dumps(other), encoding="utf-8")

    writer = tracked(spark, table, checkpoint).writeStream.foreachBatch(plant)
    writer = writer.option("checkpointLocation", str(checkpoint)).trigger(availableNow=True)
    from pyspark.errors import PySparkException

    with pytest.raises(PySparkException, match=r"SCHEMA_LOCATION_SHARED[\s\S]*/other/sources/0"):
        writer.start().awaitTermination()
    assert len(entries(checkpoint)) == 2


def test_first_entry_at_a_version_without_rows_is_not_skipped(
    spark: SparkSession, table: str, tmp_path: Path
) -> None:
    build_table(spark, table, "id INT, v STRING", [[(1, "a")]])
    alter(spark, table, "SET TBLPROPERTIES ('delta.columnMapping.mode' = 'name')")
    checkpoint = tmp_path / "checkpoint"
    assert read_to_the_end(spark, table, checkpoint) == ([(["id", "v"], (1, "a"))], 0)
    alter(spark, table, "RENAME COLUMN v TO w")
    spark.sql(f"INSERT INTO delta.`{table}` VALUES (2, 'b')")
    assert NOT_ALLOWED in failure_of(tracked(spark, table, checkpoint), checkpoint)
    found, _ = read_to_the_end(spark, table, checkpoint, allowSourceColumnRename="2")
    assert found == [(["id", "w"], (2, "b"))]


def test_dataframe_is_started_again_if_nothing_has_changed(
    spark: SparkSession, table: str, tmp_path: Path
) -> None:
    mapped(spark, table)
    checkpoint = tmp_path / "checkpoint"
    df = tracked(spark, table, checkpoint)
    assert run_stream(df, checkpoint) == [[(1, "a", 10)]]
    insert(spark, table, (2, "b", 20))
    assert run_stream(df, checkpoint) == [[(2, "b", 20)]]
    alter(spark, table, "RENAME COLUMN v TO w")
    assert "DELTAIC_SCHEMA_CHANGED" in failure_of(df, checkpoint)
    newer = tracked(spark, table, checkpoint, **ALL_ALLOWED)
    assert TRACKED in failure_of(newer, checkpoint)
    assert "DELTAIC_STREAM_COLUMNS_OUTDATED" in failure_of(newer, checkpoint)
    assert read_to_the_end(spark, table, checkpoint, **ALL_ALLOWED) == ([], 0)


def test_change_is_recorded_after_a_stop_right_before_it(
    spark: SparkSession, table: str, tmp_path: Path
) -> None:
    """The batch after the change is planned and done, but the entry is missing."""
    mapped(spark, table)
    checkpoint = tmp_path / "checkpoint"
    read_to_the_end(spark, table, checkpoint)
    alter(spark, table, "RENAME COLUMN v TO w")
    insert(spark, table, (2, "b", 20))
    assert TRACKED in failure_of(tracked(spark, table, checkpoint), checkpoint)
    (log,) = checkpoint.glob("_schema_log_*")
    for name in ("1", ".1.crc"):
        (log / name).unlink()
    found, failures = read_to_the_end(spark, table, checkpoint, **ALL_ALLOWED)
    assert (found, failures) == ([(["id", "w", "n"], (2, "b", 20))], 1)


def test_two_sources_that_change_at_once_are_both_recorded(
    spark: SparkSession, tmp_path: Path
) -> None:
    tables = [str(tmp_path / name) for name in ("one", "two")]
    checkpoint = tmp_path / "checkpoint"
    for path in tables:
        mapped(spark, path)

    def both() -> DataFrame:
        one, two = (tracked(spark, path, checkpoint, **ALL_ALLOWED) for path in tables)
        return one.union(two)

    assert run_stream(both(), checkpoint) == [[(1, "a", 10)] * 2]
    for path in tables:
        alter(spark, path, "RENAME COLUMN v TO w")
        insert(spark, path, (2, "b", 20))
    for _ in tables:
        assert TRACKED in failure_of(both(), checkpoint)
    assert run_stream(both(), checkpoint) == [[(2, "b", 20)] * 2]


def test_older_version_is_refused_with_a_recorded_schema_too(
    spark: SparkSession, table: str, tmp_path: Path
) -> None:
    from deltaic.exceptions import DeltaError

    mapped(spark, table)
    checkpoint = tmp_path / "checkpoint"
    read_to_the_end(spark, table, checkpoint)
    with pytest.raises(DeltaError, match="Use option startingVersion"):
        tracked(spark, table, checkpoint, versionAsOf=0)
