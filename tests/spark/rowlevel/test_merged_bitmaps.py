"""Bitmaps of deleted rows that are too large for the driver are merged in tasks."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from deltaic.exceptions import ConcurrentDeleteDeleteException
from tests.support import change_feed, log
from tests.support.interleave import committed_meanwhile
from tests.support.jobs import jobs_of
from tests.support.session_settings import session_settings
from tests.support.table_builder import build_table, in_order, rows_of

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

SCHEMA = "id INT, v INT"
#: Bitmaps of every third of these rows take kilobytes.
ROWS = 5_000
FILES = [[(ROWS * file + row, 0) for row in range(ROWS)] for file in range(3)]
#: Whatever a task finds is too large for the driver, and each file is read by several tasks.
IN_TASKS = {
    "spark.deltaic.deletionVectors.maxBitmapMergeBytes": "0",
    "spark.sql.files.maxPartitionBytes": "8000",
    "spark.sql.files.openCostInBytes": "0",
}


def files_named_by_vectors(table: str) -> set[str]:
    vectors = (
        add.get("deletionVector", {"storageType": "i"})
        for version in log.versions(table)
        for add in log.actions(table, version, "add")
    )
    return {vector["pathOrInlineDv"] for vector in vectors if vector["storageType"] == "u"}


def assert_no_file_is_left_over(table: str) -> None:
    assert len(log.files_in(table, ".bin")) == len(files_named_by_vectors(table))


@pytest.mark.parametrize("vectors", [True, False], ids=["vectors", "rewrite"])
def test_changes_merged_in_tasks_are_those_merged_on_the_driver(
    spark: SparkSession, table: str, vectors: bool
) -> None:
    properties = {"delta.enableChangeDataFeed": "true", "delta.randomizeFilePrefixes": "true"}
    build_table(spark, table, SCHEMA, FILES, deletion_vectors=vectors, properties=properties)
    name = f"delta.`{table}`"
    ids = f"(SELECT INT(id) AS id FROM range(0, {4 * ROWS}, 2, 1))"
    statements = [
        f"DELETE FROM {name} WHERE id % 3 = 0",
        f"UPDATE {name} SET v = v + 1 WHERE id % 5 = 1",
        f"MERGE INTO {name} t USING {ids} s ON t.id = s.id WHEN MATCHED AND t.id % 7 = 1"
        " THEN DELETE WHEN MATCHED AND t.id % 7 < 4 THEN UPDATE SET v = v + 10"
        f" WHEN NOT MATCHED AND s.id >= {3 * ROWS} THEN INSERT (id) VALUES (s.id)",
        # More rows of the first file than may be under a vector.
        f"DELETE FROM {name} WHERE id < {ROWS // 2} OR id % 11 = 3",
    ]
    with session_settings(spark, IN_TASKS):
        [(deleted,)] = spark.sql(statements[0]).collect()
        [(updated,)] = spark.sql(statements[1]).collect()
        merged = spark.sql(statements[2]).collect()
        with session_settings(spark, {"spark.deltaic.deletionVectors.minDeletedBytes": "0"}):
            spark.sql(statements[3])
    rows: dict[int, int | None] = {id: v for file in FILES for id, v in file if id % 3}
    assert deleted == 3 * ROWS - len(rows)
    changed = [id for id in rows if id % 5 == 1]
    assert updated == len(changed)
    rows |= dict.fromkeys(changed, 1)
    gone = [id for id in rows if id % 2 == 0 and id % 7 == 1]
    changed = [id for id in rows if id % 2 == 0 and id % 7 < 4 and id % 7 != 1]
    added = [id for id in range(3 * ROWS, 4 * ROWS) if id % 2 == 0]
    counts = (len(changed), len(gone), len(added))
    assert tuple(merged[0]) == (sum(counts), *counts)
    rows = {id: v for id, v in rows.items() if id not in set(gone)}
    rows |= {id: (rows[id] or 0) + 10 for id in changed}
    rows |= dict.fromkeys(added)
    left = {id: v for id, v in rows.items() if id >= ROWS // 2 and id % 11 != 3}
    assert dict(rows_of(spark, table)) == left
    for version in range(1, 5):
        feed = change_feed.changes(spark, table, startingVersion=version, endingVersion=version)
        before = change_feed.rows_at(spark, table, version - 1)
        after = change_feed.rows_at(spark, table, version)
        assert change_feed.apply_changes(before, feed) == after
    assert bool(log.files_in(table, ".bin")) is vectors
    assert_no_file_is_left_over(table)


def test_statement_that_fails_or_shares_files_leaves_no_bitmap_behind(
    spark: SparkSession, table: str
) -> None:
    build_table(spark, table, SCHEMA, FILES)
    name = f"delta.`{table}`"

    def update(condition: str) -> None:
        spark.sql(f"UPDATE {name} SET v = 1 WHERE {condition}")

    few = jobs_of(spark, lambda: update("id % 3 = 0"))
    with session_settings(spark, IN_TASKS):
        assert jobs_of(spark, lambda: update("id % 3 = 1")) == few + 1
        with (
            committed_meanwhile(lambda: spark.sql(f"DELETE FROM {name} WHERE id % 6 = 2")),
            pytest.raises(ConcurrentDeleteDeleteException, match="rows of the file"),
        ):
            update("id % 3 = 2")
        assert_no_file_is_left_over(table)
        with committed_meanwhile(lambda: spark.sql(f"DELETE FROM {name} WHERE id % 12 = 11")):
            update("id % 12 = 5")
        with pytest.raises(Exception, match="DIVIDE_BY_ZERO"):
            spark.sql(f"DELETE FROM {name} WHERE id % 6 = 1 AND 1 / ({3 * ROWS - 5} - id) <> 0")
    expected = [(id, 1) for file in FILES for id, _ in file if id % 6 != 2 and id % 12 != 11]
    assert rows_of(spark, table) == in_order(expected)
    assert_no_file_is_left_over(table)
