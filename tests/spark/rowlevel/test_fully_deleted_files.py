"""Files that lose all their rows are removed without being read.

Most tests delete the data files: a statement that reads one fails.
"""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from deltaic.exceptions import ConcurrentAppendException, ConcurrentDeleteDeleteException
from tests.support import change_feed, log
from tests.support.interleave import committed_meanwhile
from tests.support.jobs import jobs_of
from tests.support.lost_files import lose_files
from tests.support.table_builder import append_file, build_table, rows_of

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

SCHEMA = "id INT, v INT, p STRING"
#: Ids 0 to 9, 10 to 19 and so on, a file each; every other one in another partition.
FILES = [[(10 * file + row, row, "ab"[file % 2]) for row in range(10)] for file in range(6)]
NULLS = [(60, 0, "a"), (61, None, "a")]


def affected(spark: SparkSession, statement: str) -> int:
    [(count,)] = spark.sql(statement).collect()
    return int(count)


def changes(spark: SparkSession, table: str, version: int) -> list[tuple[str, int]]:
    feed = change_feed.changes(spark, table, startingVersion=version)
    return sorted((row["_change_type"], row["id"]) for row in feed.collect())


def test_files_that_lose_all_rows_are_removed_and_only_the_others_are_read(
    spark: SparkSession, table: str
) -> None:
    properties = {"delta.enableChangeDataFeed": "true", "delta.enableRowTracking": "true"}
    build_table(spark, table, SCHEMA, [*FILES, NULLS], properties=properties)
    name = f"delta.`{table}`"
    spark.sql(f"DELETE FROM {name} WHERE id = 15")
    assert lose_files(table, but={20, 60}) == 5
    statement = f"DELETE FROM {name} WHERE v >= 0 AND (id < 25 OR id >= 30)"
    plan = spark.sql(f"EXPLAIN {statement}").collect()[0][0]
    assert log.newest(table) == 1
    assert "5 files as a whole" in plan
    assert affected(spark, statement) == 55
    # A null is not deleted: its file is read, and keeps the row.
    assert rows_of(spark, table) == [*((i, i - 20, "a") for i in range(25, 30)), NULLS[1]]
    removes = log.actions(table, 2, "remove")
    assert len(removes) == 7
    assert [r["deletionVector"]["cardinality"] for r in removes if log.dv_id(r)] == [1]
    assert len(log.actions(table, 2, "add")) == 2
    assert not log.actions(table, 2, "cdc")
    metrics = log.commit_info(table, 2)["operationMetrics"]
    assert (metrics["numDeletedRows"], metrics["numRemovedFiles"]) == ("55", "5")
    assert metrics["numDeletionVectorsAdded"] == "2"
    assert metrics["numCopiedRows"] == "0"


@pytest.mark.parametrize(
    ("condition", "left"),
    [
        ("", 0),
        ("WHERE p = 'a'", 3),
        ("WHERE upper(p) = 'B' AND id > -1", 3),
        ("WHERE id IN (SELECT 1000)", 6),
        ("WHERE id > 1000", 6),
        ("WHERE id BETWEEN 10 AND 29 OR p = 'b'", 2),
    ],
)
def test_no_job_runs_if_metadata_selects_every_file(
    spark: SparkSession, table: str, condition: str, left: int
) -> None:
    build_table(spark, table, SCHEMA, FILES, partition_by=["p"])
    lose_files(table)
    counts = []
    jobs = jobs_of(
        spark,
        lambda: counts.append(affected(spark, f"DELETE FROM delta.`{table}` {condition}")),
    )
    if "SELECT" not in condition:
        assert jobs == 0
    assert counts == [10 * (6 - left)]
    assert len(log.active_files(table)) == left
    assert log.newest(table) == min(6 - left, 1)
    spark.sql(f"DELETE FROM delta.`{table}`")
    assert not log.active_files(table)


@pytest.mark.protocol("reader-addcdcfile-2")
def test_rewrite_beside_whole_files_records_all_changes_of_the_feed(
    spark: SparkSession, table: str
) -> None:
    properties = {"delta.enableChangeDataFeed": "true"}
    build_table(spark, table, SCHEMA, FILES, deletion_vectors=False, properties=properties)
    spark.sql(f"DELETE FROM delta.`{table}` WHERE id < 15")
    assert changes(spark, table, 1) == [("delete", i) for i in range(15)]
    assert len(log.actions(table, 1, "cdc")) > 0
    metrics = log.commit_info(table, 1)["operationMetrics"]
    assert (metrics["numDeletedRows"], metrics["numCopiedRows"]) == ("15", "5")
    lose_files(table, but={15})
    spark.sql(f"DELETE FROM delta.`{table}` WHERE id >= 20")
    assert not log.actions(table, 2, "cdc")
    assert rows_of(spark, table) == [(i, i - 10, "b") for i in range(15, 20)]


def test_files_without_a_row_count_are_read(spark: SparkSession, table: str) -> None:
    spark.conf.set("spark.deltaic.properties.defaults.dataSkippingNumIndexedCols", "1")
    try:
        build_table(spark, table, SCHEMA, FILES[:2])
    finally:
        spark.conf.unset("spark.deltaic.properties.defaults.dataSkippingNumIndexedCols")
    adds = log.active_files(table)
    for add in adds:
        add.pop("stats")
    metadata, protocol = log.metadata(table), log.actions(table, 0, "protocol")[0]
    bare = f"{table}_bare"
    log.copy_table(table, bare)
    shutil.rmtree(Path(bare, "_delta_log"))
    Path(bare, "_delta_log").mkdir()
    actions: list[dict[str, Any]] = [{"protocol": protocol}, {"metaData": metadata}]
    log.write_commit(bare, 0, *actions, *({"add": add} for add in adds))
    assert affected(spark, f"DELETE FROM delta.`{bare}`") == 20
    # The second column has no bounds: its rows must be read.
    assert affected(spark, f"DELETE FROM delta.`{table}` WHERE v < 100") == 20


def test_files_removed_without_a_read_conflict_too(spark: SparkSession, table: str) -> None:
    properties = {"delta.isolationLevel": "Serializable"}
    build_table(spark, table, SCHEMA, FILES[:3], properties=properties)
    name = f"delta.`{table}`"
    with (
        committed_meanwhile(lambda: append_file(spark, table, SCHEMA, [(5, 5, "a")])),
        pytest.raises(ConcurrentAppendException),
    ):
        spark.sql(f"DELETE FROM {name} WHERE id < 10")
    with committed_meanwhile(lambda: append_file(spark, table, SCHEMA, [(100, 5, "a")])):
        spark.sql(f"DELETE FROM {name} WHERE id BETWEEN 20 AND 29")
    with (
        committed_meanwhile(lambda: spark.sql(f"DELETE FROM {name} WHERE id IN (11, 13)")),
        pytest.raises(ConcurrentDeleteDeleteException, match="2 rows of the file"),
    ):
        spark.sql(f"DELETE FROM {name} WHERE id BETWEEN 10 AND 19")
    with committed_meanwhile(lambda: spark.sql(f"DELETE FROM {name} WHERE id = 3")):
        spark.sql(f"DELETE FROM {name} WHERE id BETWEEN 10 AND 19 OR id = 4")
    left = {*range(10), 5, 100} - {3, 4}
    assert {row[0] for row in rows_of(spark, table)} == left


def test_replaced_partitions_and_ranges_are_not_read(spark: SparkSession, table: str) -> None:
    build_table(spark, table, SCHEMA, FILES)
    lose_files(table, but={30})
    new = spark.createDataFrame([(1, 1, "c")], SCHEMA).coalesce(1)
    writer = new.write.format("delta").mode("overwrite")
    writer.option("replaceWhere", "id < 35 OR id > 39").save(table)
    assert rows_of(spark, table) == [(1, 1, "c"), *((i, i - 30, "b") for i in range(35, 40))]
    metrics = log.commit_info(table, 1)["operationMetrics"]
    assert (metrics["numDeletedRows"], metrics["numRemovedFiles"]) == ("55", "5")
