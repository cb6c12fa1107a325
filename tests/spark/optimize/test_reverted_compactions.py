"""Statements that rewrite files of which the rows have been compacted more than once meanwhile."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from deltaic.exceptions import ConcurrentModificationError
from tests.support import log
from tests.support.delta_rs import by_query
from tests.support.interleave import committed_meanwhile
from tests.support.table_builder import append_file, build_table, in_order, rows_of
from tests.support.valid_logs import require_valid_logs

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

SCHEMA = "id BIGINT, s STRING"
FILES = [[(n * 10 + i, "base") for i in range(10)] for n in range(3)]


def build(spark: SparkSession, table: str) -> dict[int, str]:
    build_table(
        spark,
        table,
        SCHEMA,
        FILES,
        deletion_vectors=False,
        properties={"delta.enableRowTracking": "true", "delta.enableChangeDataFeed": "true"},
    )
    return dict(rows_of(spark, table))


def compact(spark: SparkSession, table: str, new: int) -> None:
    """Append a row, and compact the files; the last compaction is one of the inputs."""
    append_file(spark, table, SCHEMA, [(new, "added")])
    (result,) = spark.sql(f"OPTIMIZE delta.`{table}`").collect()
    assert result.metrics.numFilesAdded == 1


def require_rows(spark: SparkSession, table: str, expected: dict[int, str]) -> None:
    found = rows_of(spark, table)
    assert found == in_order(expected.items())
    assert in_order(by_query(table)) == in_order(found)
    require_valid_logs(Path(table).parent)


@pytest.mark.parametrize("times", [2, 3])
def test_statement_reverts_each_compaction_of_its_rows(
    spark: SparkSession, table: str, times: int
) -> None:
    rows = build(spark, table)

    def compactions() -> None:
        for n in range(times):
            compact(spark, table, 300 + n)

    with committed_meanwhile(compactions):
        spark.sql(f"UPDATE delta.`{table}` SET s = 'u' WHERE id = 1")
    removed = [remove["path"] for remove in log.actions(table, 2 * times + 1, "remove")]
    assert len(removed) == 1 + times, "its own file, and all compacted files"
    added = {300 + n: "added" for n in range(times)}
    require_rows(spark, table, {**rows, **added, 1: "u"})


def test_two_statements_revert_the_same_compactions(spark: SparkSession, table: str) -> None:
    rows = build(spark, table)

    def compactions() -> None:
        compact(spark, table, 300)
        compact(spark, table, 301)

    def first() -> None:
        with committed_meanwhile(compactions):
            spark.sql(f"DELETE FROM delta.`{table}` WHERE id = 1")

    with committed_meanwhile(first):
        spark.sql(f"UPDATE delta.`{table}` SET s = 'u' WHERE id = 21")
    del rows[1]
    require_rows(spark, table, {**rows, 21: "u", 300: "added", 301: "added"})


def test_statement_reverts_what_another_that_started_later_has_left(
    spark: SparkSession, table: str
) -> None:
    """The other one reverts the second compaction only, of which it changes an appended row."""
    rows = build(spark, table)

    def others() -> None:
        compact(spark, table, 300)
        append_file(spark, table, SCHEMA, [(301, "added")])

        def second() -> None:
            spark.sql(f"OPTIMIZE delta.`{table}`").collect()

        with committed_meanwhile(second):
            spark.sql(f"UPDATE delta.`{table}` SET s = 'v' WHERE id = 301")

    with committed_meanwhile(others):
        spark.sql(f"UPDATE delta.`{table}` SET s = 'u' WHERE id = 1")
    require_rows(spark, table, {**rows, 1: "u", 300: "added", 301: "v"})


def test_statement_conflicts_with_a_change_of_the_compacted_file(
    spark: SparkSession, table: str
) -> None:
    rows = build(spark, table)

    def others() -> None:
        compact(spark, table, 300)

        def second() -> None:
            compact(spark, table, 301)

        with committed_meanwhile(second):
            spark.sql(f"UPDATE delta.`{table}` SET s = 'v' WHERE id = 12")

    with (
        committed_meanwhile(others),
        pytest.raises(ConcurrentModificationError),
    ):
        spark.sql(f"UPDATE delta.`{table}` SET s = 'u' WHERE id = 1")
    require_rows(spark, table, {**rows, 12: "v", 300: "added", 301: "added"})
