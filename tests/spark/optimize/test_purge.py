"""REORG TABLE ... APPLY (PURGE): deleted rows and dropped columns leave the files."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pyarrow.parquet as pq
import pytest

from deltaic import DeltaTable
from deltaic.exceptions import InvalidArgumentError
from tests.support import change_feed, log
from tests.support.interleave import committed_meanwhile
from tests.support.table_builder import build_table, rows_of

if TYPE_CHECKING:
    from pyspark.sql import Row, SparkSession

SCHEMA = "id BIGINT, p INT, s STRUCT<a: INT, b: STRING>"
FILES = [[(n * 10 + i, n % 2, (i, f"text {i}")) for i in range(10)] for n in range(4)]


def purge(spark: SparkSession, table: str, where: str = "") -> Row:
    (result,) = spark.sql(f"REORG TABLE delta.`{table}` {where} APPLY (PURGE)").collect()
    assert result.path == f"file:{table}"
    metrics: Row = result.metrics
    return metrics


def columns_of(table: str) -> set[str]:
    files = log.active_files(table)
    return {name for add in files for name in pq.read_schema(log.data_path(table, add)).names}


@pytest.mark.protocol("dv-describe-history-1", "dv-functional-4", "dv-functional-7")
def test_files_with_deleted_rows_are_rewritten(spark: SparkSession, table: str) -> None:
    build_table(spark, table, SCHEMA, FILES)
    spark.sql(f"DELETE FROM delta.`{table}` WHERE id IN (3, 13, 14)")
    before = rows_of(spark, table)
    metrics = purge(spark, table)
    assert (metrics.numFilesRemoved, metrics.totalFilesSkipped) == (2, 2)
    assert metrics.deletionVectorStats.numDeletionVectorRowsRemoved == 3
    assert rows_of(spark, table) == before
    files = log.active_files(table)
    assert not any("deletionVector" in add for add in files)
    assert sum(log.statistics(add)["numRecords"] for add in files) == 37
    info = log.commit_info(table)
    assert info["operation"] == "REORG"
    assert info["operationParameters"] == {"predicate": "[]", "applyPurge": True}
    assert info["operationMetrics"]["numDeletionVectorsRemoved"] == "2"
    assert purge(spark, table).numFilesRemoved == 0
    assert len(log.versions(table)) == 3


@pytest.mark.parametrize(
    ("words", "reason"),
    [
        ("", "no APPLY"),
        ("APPLY (FOO)", r"APPLY \(FOO\) is not supported"),
        ("WHERE p = 1", "no APPLY"),
        ("APPLY (PURGE, FOO)", "PURGE, FOO"),
        ("PARTITION (p = 1) APPLY (PURGE)", "is not a table with an optional condition"),
    ],
)
def test_statement_without_purge_is_refused(
    spark: SparkSession, table: str, words: str, reason: str
) -> None:
    build_table(spark, table, SCHEMA, FILES)
    with pytest.raises(InvalidArgumentError, match=reason) as raised:
        spark.sql(f"REORG TABLE delta.`{table}` {words}")
    assert raised.value.condition == "DELTAIC_REORG_INVALID"
    assert table in raised.value.parameters["reason"]
    assert log.versions(table) == [0]


def test_partitions_are_selected(spark: SparkSession, table: str) -> None:
    build_table(spark, table, SCHEMA, FILES, partition_by=["p"])
    spark.sql(f"DELETE FROM delta.`{table}` WHERE id % 10 = 3")
    assert purge(spark, table, "WHERE p = 1").numFilesRemoved == 2
    assert {add["partitionValues"]["p"] for add in log.last_actions(table, "remove")} == {"1"}
    with pytest.raises(InvalidArgumentError, match="references id"):
        purge(spark, table, "WHERE id = 1")


@pytest.mark.parametrize("mode", ["name", "id"])
def test_dropped_columns_leave_the_files(spark: SparkSession, table: str, mode: str) -> None:
    properties = {"delta.columnMapping.mode": mode, "delta.enableRowTracking": "true"}
    schema = f"{SCHEMA}, gone STRING, l ARRAY<STRUCT<x: INT, y: INT>>, m MAP<STRING, INT>"
    rows = [[(*row, "x", [(1, 2)], {"k": 1}) for row in file] for file in FILES]
    build_table(spark, table, schema, rows, properties=properties)
    name = f"delta.`{table}`"
    spark.sql(f"UPDATE {name} SET p = 7 WHERE id = 3")  # writes a file with row tracking columns
    assert purge(spark, table).numFilesRemoved == 1
    assert purge(spark, table).numFilesRemoved == 0
    ids = f"SELECT id, _metadata.row_id, _metadata.row_commit_version FROM {name} ORDER BY id"
    before = spark.sql(ids).collect()
    many = len(columns_of(table))
    spark.sql(f"ALTER TABLE {name} DROP COLUMN gone")
    files = len(log.active_files(table))
    assert purge(spark, table).numFilesRemoved == files
    assert len(columns_of(table)) == many - 1
    for dropped in ("s.b", "l.element.y"):
        spark.sql(f"ALTER TABLE {name} DROP COLUMN {dropped}")
        kept = rows_of(spark, table)
        assert purge(spark, table).numFilesRemoved == len(log.last_actions(table, "remove")) > 0
        assert rows_of(spark, table) == kept
        assert purge(spark, table).numFilesRemoved == 0
    assert spark.sql(ids).collect() == before


@pytest.mark.protocol("add-file-and-remove-file-3", "dv-new-add-action-format-1")
@pytest.mark.protocol("dv-new-remove-action-format-1", "writer-row-tracking-28")
def test_change_feed_has_nothing_of_a_purge_and_rows_keep_their_ids(
    spark: SparkSession, table: str
) -> None:
    properties = {"delta.enableChangeDataFeed": "true", "delta.enableRowTracking": "true"}
    build_table(spark, table, SCHEMA, FILES, properties=properties)
    spark.sql(f"DELETE FROM delta.`{table}` WHERE id IN (3, 13, 14)")
    spark.sql(f"UPDATE delta.`{table}` SET p = 7 WHERE id = 5")
    ids = f"SELECT id, _metadata.row_id, _metadata.row_commit_version FROM delta.`{table}`"
    before, version = spark.sql(ids).collect(), log.newest(table)
    (result,) = DeltaTable.forPath(spark, table).purge().collect()
    assert result.metrics.numFilesRemoved > 0 and log.newest(table) == version + 1
    assert log.last_actions(table, "cdc") == []
    assert not any(add["dataChange"] for add in log.last_actions(table, "add"))
    assert change_feed.changes(spark, table, startingVersion=version + 1).collect() == []
    assert sorted(spark.sql(ids).collect()) == sorted(before)


def test_python_selects_partitions(spark: SparkSession, table: str) -> None:
    build_table(spark, table, SCHEMA, FILES, partition_by=["p"])
    spark.sql(f"DELETE FROM delta.`{table}` WHERE id % 10 = 3")
    target = DeltaTable.forPath(spark, table)
    (result,) = target.purge("p = 1").collect()
    assert result.metrics.numFilesRemoved == 2
    with pytest.raises(InvalidArgumentError, match="references id"):
        target.purge("id = 1")
    with pytest.raises(InvalidArgumentError, match="condition"):
        target.purge(3)  # type: ignore[arg-type]


def test_purge_and_changes_do_not_fail_each_other(spark: SparkSession, table: str) -> None:
    build_table(spark, table, SCHEMA, FILES)
    name = f"delta.`{table}`"
    spark.sql(f"DELETE FROM {name} WHERE id = 3")
    with committed_meanwhile(lambda: spark.sql(f"DELETE FROM {name} WHERE id = 4")):
        purge(spark, table)
    with committed_meanwhile(lambda: purge(spark, table)):
        spark.sql(f"DELETE FROM {name} WHERE id = 5")
    assert {row[0] for row in rows_of(spark, table)} == {0, 1, 2, *range(6, 40)}
