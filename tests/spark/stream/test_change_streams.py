"""Streams of changes have the rows of the batch feed, in batches that keep updates whole."""

from __future__ import annotations

import os
import re
import time
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from tests.support import log
from tests.support.change_feed import changes
from tests.support.maintenance import await_maintenance
from tests.support.streams import failure_of, forget_versions, run_stream, stream_of
from tests.support.table_builder import append_file, build_table

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

#: Properties and partition columns of tables whose changes are recorded in different ways.
TABLES: dict[str, tuple[dict[str, str], list[str]]] = {
    "vectors": ({"delta.enableDeletionVectors": "true"}, []),
    "files": ({"delta.enableDeletionVectors": "false"}, []),
    "partitions": ({"delta.enableDeletionVectors": "true"}, ["v"]),
    "mapping": ({"delta.enableDeletionVectors": "true", "delta.columnMapping.mode": "name"}, ["v"]),
    "mapping by ID": (
        {"delta.enableDeletionVectors": "true", "delta.columnMapping.mode": "id"},
        [],
    ),
}


@pytest.fixture(params=list(TABLES))
def feeding(spark: SparkSession, table: str, request: pytest.FixtureRequest) -> str:
    """A table of eight versions, each of which changes rows in another way."""
    properties, partitions = TABLES[request.param]
    properties = {**properties, "delta.enableChangeDataFeed": "true"}
    vectors = properties.pop("delta.enableDeletionVectors") == "true"
    build_table(
        spark, table, "id INT, v STRING", [[(1, "a"), (2, "b"), (3, "b")], [(4, "a"), (5, "c")]],
        properties=properties, partition_by=partitions, deletion_vectors=vectors,
    )  # fmt: skip
    name = f"delta.`{table}`"
    spark.sql(f"INSERT INTO {name} VALUES (6, 'a'), (7, 'b'), (8, 'd')")
    spark.sql(f"DELETE FROM {name} WHERE id IN (2, 4)")
    spark.sql(f"UPDATE {name} SET id = id + 100 WHERE id IN (5, 6)")
    spark.sql(
        f"MERGE INTO {name} t USING (SELECT explode(array(7, 9)) AS k) s ON t.id = k"
        " WHEN MATCHED THEN UPDATE SET v = 'm' WHEN NOT MATCHED THEN INSERT (id, v) VALUES (k, 'm')"
    )
    spark.sql(f"OPTIMIZE {name}")
    spark.sql(f"DELETE FROM {name} WHERE v = 'd'")
    spark.sql(f"INSERT OVERWRITE {name} VALUES (1, 'o'), (2, 'a')")
    return table


def read(df: DataFrame, checkpoint: Path) -> list[Counter[Any]]:
    """The rows of each batch."""
    return [Counter(batch) for batch in run_stream(df, checkpoint)]


def feed(spark: SparkSession, table: str, first: int, **options: Any) -> Counter[Any]:
    rows = changes(spark, table, startingVersion=first, **options).collect()
    return Counter(tuple(row) for row in rows)


def of_changes(spark: SparkSession, table: str, **options: Any) -> DataFrame:
    return stream_of(spark, table, readChangeFeed="true", **options)


@pytest.mark.protocol("reader-addcdcfile-4")
@pytest.mark.parametrize("first", [0, 1, 3])
@pytest.mark.parametrize("limit", [{}, {"maxFilesPerTrigger": 1}, {"maxBytesPerTrigger": "1b"}])
def test_stream_from_a_version_has_the_rows_of_the_batch_feed(
    spark: SparkSession, feeding: str, tmp_path: Path, first: int, limit: dict[str, Any]
) -> None:
    df = of_changes(spark, feeding, startingVersion=first, **limit)
    assert df.columns == ["id", "v", "_change_type", "_commit_version", "_commit_timestamp"]
    batches = read(df, tmp_path / "checkpoint")
    assert sum(batches, Counter()) == feed(spark, feeding, first)
    if limit:
        assert len(batches) >= 6 - first
        for batch in batches:
            assert len({row[3] for row in batch}) == 1, "a batch of one file has one commit"
            images = Counter(row[2] for row in batch)
            assert images["update_preimage"] == images["update_postimage"]


def test_stream_without_a_start_begins_with_the_rows_of_the_table(
    spark: SparkSession, feeding: str, tmp_path: Path
) -> None:
    now = log.newest(feeding)
    df = of_changes(spark, feeding, maxFilesPerTrigger=1)
    first = sum(read(df, tmp_path / "checkpoint"), Counter())
    assert {row[2:4] for row in first} == {("insert", now)}
    assert sorted(row[:2] for row in first) == [(1, "o"), (2, "a")]
    spark.sql(f"UPDATE delta.`{feeding}` SET v = 'x' WHERE id = 2")
    spark.sql(f"DELETE FROM delta.`{feeding}` WHERE id = 1")
    second = sum(read(df, tmp_path / "checkpoint"), Counter())
    assert second == feed(spark, feeding, now + 1)


def test_stream_from_the_latest_version_has_later_changes_alone(
    spark: SparkSession, feeding: str, tmp_path: Path
) -> None:
    df = of_changes(spark, feeding, startingVersion="latest")
    assert read(df, tmp_path / "checkpoint") == []
    now = log.newest(feeding)
    spark.sql(f"UPDATE delta.`{feeding}` SET v = 'x' WHERE id = 2")
    assert sum(read(df, tmp_path / "checkpoint"), Counter()) == feed(spark, feeding, now + 1)


def test_stream_from_a_time_begins_with_the_next_commit(
    spark: SparkSession, feeding: str, tmp_path: Path
) -> None:
    [row] = changes(spark, feeding, startingVersion=3).selectExpr(
        "CAST(min(_commit_timestamp) AS STRING) AS t"
    ).collect()  # fmt: skip
    df = of_changes(spark, feeding, startingTimestamp=row.t)
    assert sum(read(df, tmp_path / "checkpoint"), Counter()) == feed(spark, feeding, 3)


def test_stream_by_name_filters_and_selects_as_a_batch_query(
    spark: SparkSession, feeding: str, tmp_path: Path
) -> None:
    spark.sql(f"CREATE TABLE fed USING delta LOCATION '{feeding}'")
    try:
        reader = spark.readStream.option("readChangeFeed", "true").option("startingVersion", 1)
        df = reader.table("fed").where("_change_type <> 'insert' AND id > 2")
        df = df.select("_commit_version", "id")
        batch = changes(spark, feeding, startingVersion=1)
        expected = batch.where("_change_type <> 'insert' AND id > 2").select(
            "_commit_version", "id"
        )
        assert sum(read(df, tmp_path / "checkpoint"), Counter()) == Counter(
            tuple(row) for row in expected.collect()
        )
    finally:
        spark.sql("DROP TABLE fed")


def test_stream_goes_on_although_its_start_is_gone(
    spark: SparkSession, feeding: str, tmp_path: Path
) -> None:
    """The start counts for a new query only."""
    df = of_changes(spark, feeding, startingVersion=0)
    read(df, tmp_path / "checkpoint")
    now = log.newest(feeding)
    spark.sql(f"UPDATE delta.`{feeding}` SET v = 'x' WHERE id = 2")
    beyond = of_changes(spark, feeding, startingVersion=1000)
    assert sum(read(beyond, tmp_path / "checkpoint"), Counter()) == feed(spark, feeding, now + 1)


def test_rows_of_narrower_columns_are_widened(
    spark: SparkSession, table: str, tmp_path: Path
) -> None:
    build_table(
        spark, table, "id INT", [[(1,)]],
        properties={"delta.enableChangeDataFeed": "true", "delta.enableTypeWidening": "true"},
    )  # fmt: skip
    spark.sql(f"UPDATE delta.`{table}` SET id = 2")
    spark.sql(f"ALTER TABLE delta.`{table}` ALTER COLUMN id TYPE BIGINT")
    append_file(spark, table, "id BIGINT", [(1 << 40,)])
    df = of_changes(spark, table, startingVersion=0).drop("_commit_timestamp")
    assert sum(read(df, tmp_path / "checkpoint"), Counter()) == Counter(
        [
            (1, "insert", 0),
            (1, "update_preimage", 1),
            (2, "update_postimage", 1),
            (1 << 40, "insert", 3),
        ]
    )


def test_skipped_commits_have_no_changes(spark: SparkSession, feeding: str, tmp_path: Path) -> None:
    df = of_changes(spark, feeding, startingVersion=0, skipChangeCommits="true")
    found = sum(read(df, tmp_path / "checkpoint"), Counter())
    assert found == Counter({row: n for row, n in feed(spark, feeding, 0).items() if row[3] < 2})


def drop_feed(spark: SparkSession, table: str) -> None:
    spark.sql(
        f"ALTER TABLE delta.`{table}` SET TBLPROPERTIES ('delta.enableChangeDataFeed'='false')"
    )
    append_file(spark, table, "id INT, v STRING", [(50, "z")])


def rename(spark: SparkSession, table: str) -> None:
    spark.sql(f"ALTER TABLE delta.`{table}` ADD COLUMN w INT")
    append_file(spark, table, "id INT, v STRING, w INT", [(50, "z", 1)])


CHANGED: dict[str, tuple[Callable[[SparkSession, str], None], str]] = {
    "the feed ends": (drop_feed, "DELTAIC_CHANGES_NOT_RECORDED"),
    "a column is added": (rename, "DELTAIC_STREAM_COLUMNS_OUTDATED"),
}


@pytest.mark.parametrize("case", CHANGED)
def test_definition_that_the_stream_cannot_go_on_with_is_an_error(
    spark: SparkSession, table: str, tmp_path: Path, case: str
) -> None:
    change, condition = CHANGED[case]
    properties = {"delta.enableChangeDataFeed": "true"}
    build_table(spark, table, "id INT, v STRING", [[(1, "a")]], properties=properties)
    df = of_changes(spark, table)
    read(df, tmp_path / "checkpoint")
    change(spark, table)
    assert condition in failure_of(df, tmp_path / "checkpoint")


def test_table_without_a_feed_and_a_range_with_an_end_are_refused(
    spark: SparkSession, table: str, tmp_path: Path
) -> None:
    build_table(spark, table, "id INT", [[(1,)]])
    df = of_changes(spark, table)
    assert "DELTAIC_CHANGES_NOT_RECORDED" in failure_of(df, tmp_path / "checkpoint")
    for option in ("endingVersion", "endingTimestamp"):
        df = of_changes(spark, table, startingVersion=0, **{option: "0"})
        assert option in failure_of(df, tmp_path / f"checkpoint {option}")


def test_batch_read_without_a_start_is_still_refused(spark: SparkSession, feeding: str) -> None:
    with pytest.raises(Exception, match="DELTAIC_CHANGES_START_MISSING"):
        spark.read.format("delta").option("readChangeFeed", "true").load(feeding).collect()


def plain_commits(spark: SparkSession, table: str) -> list[str]:
    """Make a table of three commits with two files each; return the paths of the files."""
    feed = {"delta.enableChangeDataFeed": "true"}
    build_table(spark, table, "id INT", [[(1,)], [(2,)]], properties=feed)
    for n in (3, 5):
        rows = spark.createDataFrame([(n,), (n + 1,)], "id INT").repartitionByRange(2, "id")
        rows.write.format("delta").mode("append").save(table)
    return [add["path"] for version in range(3) for add in log.actions(table, version, "add")]


@pytest.mark.parametrize(("limit", "batches"), [(1, 6), (2, 3), (3, 2), (6, 1)])
def test_files_of_appends_are_divided_into_batches(
    spark: SparkSession, table: str, tmp_path: Path, limit: int, batches: int
) -> None:
    plain_commits(spark, table)
    for options in ({"readChangeFeed": "true"}, {"readChangeData": "true"}):
        df = stream_of(spark, table, startingVersion=0, maxFilesPerTrigger=limit, **options)
        found = read(df, tmp_path / f"checkpoint {options}")
        assert len(found) == batches
        assert sum(found, Counter()) == feed(spark, table, 0)


@pytest.mark.parametrize("vectors", [True, False], ids=["vectors", "files"])
@pytest.mark.parametrize("limit", [{"maxFilesPerTrigger": 1}, {"maxBytesPerTrigger": "1b"}])
def test_changes_of_several_files_of_a_commit_are_in_one_batch(
    spark: SparkSession, table: str, tmp_path: Path, limit: dict[str, Any], vectors: bool
) -> None:
    properties = {"delta.enableChangeDataFeed": "true"}
    files = [[(10 * f + n, f) for n in range(9)] for f in range(4)]
    build_table(
        spark, table, "id INT, f INT", files, properties=properties, deletion_vectors=vectors,
        partition_by=["f"],
    )  # fmt: skip
    append_file(spark, table, "id INT, f INT", [(100 + f, f) for f in range(4)])
    name = f"delta.`{table}`"
    spark.sql(f"DELETE FROM {name} WHERE id % 10 = 1")
    spark.sql(f"UPDATE {name} SET id = id + 1000 WHERE id % 10 = 2")
    spark.sql(
        f"MERGE INTO {name} t USING (SELECT explode(sequence(0, 39)) AS k) s ON t.id = k"
        " WHEN MATCHED AND id % 10 = 3 THEN DELETE WHEN MATCHED THEN UPDATE SET id = id + 2000"
        " WHEN NOT MATCHED THEN INSERT (id, f) VALUES (k + 3000, k % 4)"
    )
    kind = "add" if vectors else "cdc"
    for version in (2, 3, 4):
        assert len(log.actions(table, version, kind)) >= 4
    batches = read(of_changes(spark, table, startingVersion=0, **limit), tmp_path / "checkpoint")
    versions = [{row[3] for row in batch} for batch in batches]
    assert all(len(found) == 1 for found in versions)
    order = [version for found in versions for version in found]
    assert order == [0] * 4 + [1] * 4 + [2, 3, 4]
    assert sum(batches, Counter()) == feed(spark, table, 0)


def test_excluded_files_have_no_changes(spark: SparkSession, table: str, tmp_path: Path) -> None:
    paths = plain_commits(spark, table)
    df = of_changes(spark, table, startingVersion=0, excludeRegex=re.escape(paths[3]))
    found = sum(read(df, tmp_path / "checkpoint"), Counter())
    assert sorted(row[0] for row in found) == [1, 2, 3, 5, 6]


def test_lost_commits_of_a_feed_are_an_error_unless_their_loss_is_accepted(
    spark: SparkSession, table: str, tmp_path: Path
) -> None:
    often = {"delta.enableChangeDataFeed": "true", "delta.checkpointInterval": "2"}
    build_table(spark, table, "id INT", [[(0,)]], properties=often)
    checkpoint = tmp_path / "checkpoint"
    read(of_changes(spark, table, startingVersion=0), checkpoint)
    for i in range(1, 6):
        append_file(spark, table, "id INT", [(i,)])
    await_maintenance(spark)
    forget_versions(table, below=4)
    text = failure_of(of_changes(spark, table), checkpoint)
    assert "DELTAIC_STREAM_DATA_LOST" in text and "version 1," in text
    left = read(of_changes(spark, table, failOnDataLoss="false"), checkpoint)
    assert sorted(row[0] for row in sum(left, Counter())) == [4, 5]


def test_time_between_two_commits_starts_with_the_later_one(
    spark: SparkSession, table: str, tmp_path: Path
) -> None:
    plain_commits(spark, table)
    start = int(time.time()) - 1000
    for version in range(3):
        file = Path(table, "_delta_log", f"{version:020}.json")
        os.utime(file, (start + 100 * version,) * 2)
    for seconds, first in ((-1, 0), (0, 0), (1, 1), (100, 1), (150, 2), (200, 2)):
        [row] = spark.range(1).selectExpr(f"string(timestamp_seconds({start + seconds}))").collect()
        df = of_changes(spark, table, startingTimestamp=row[0])
        found = sum(read(df, tmp_path / f"checkpoint {seconds}"), Counter())
        assert found == feed(spark, table, first), seconds
