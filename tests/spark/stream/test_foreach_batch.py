"""MERGE of the batches of a stream, each committed once."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING, Any

import pytest

from deltaic import DeltaTable
from deltaic.exceptions import InvalidArgumentError
from tests.support import log
from tests.support.session_settings import session_settings
from tests.support.table_builder import build_table, rows_of

if TYPE_CHECKING:
    from pathlib import Path

    from pyspark.sql import DataFrame, SparkSession

    from deltaic.merge import DeltaMergeBuilder


def increment(spark: SparkSession, table: str, ids: DataFrame) -> DeltaMergeBuilder:
    """A MERGE that has another result when it runs again."""
    target = DeltaTable.forPath(spark, table).alias("t")
    merge = target.merge(ids.alias("s"), "t.id = s.id").whenMatchedUpdate(set={"n": "t.n + 1"})
    return merge.whenNotMatchedInsert(values={"id": "s.id", "n": "1"})


def test_merge_is_committed_once_for_each_version_of_an_application(
    spark: SparkSession, table: str
) -> None:
    build_table(spark, table, "id BIGINT, n INT", [[(1, 1)]])
    ids = spark.range(1, 3)
    for version in (5, 5, 4, 6, 6):
        increment(spark, table, ids).idempotent("counter", version).execute()
    assert rows_of(spark, table) == [(1, 3), (2, 2)]
    assert log.versions(table) == [0, 1, 2]
    assert [log.actions(table, v, "txn")[0]["version"] for v in (1, 2)] == [5, 6]
    assert log.actions(table, 2, "txn")[0]["appId"] == "counter"
    increment(spark, table, ids).idempotent("another", 5).execute()
    increment(spark, table, ids).execute()
    assert rows_of(spark, table) == [(1, 5), (2, 4)]
    assert log.actions(table, 4, "txn") == []


def test_merge_without_changes_is_recorded(spark: SparkSession, table: str) -> None:
    """Run again, its source may have rows."""
    build_table(spark, table, "id BIGINT, n INT", [[(1, 1)]])
    increment(spark, table, spark.range(0)).idempotent("counter", 1).execute()
    increment(spark, table, spark.range(3)).idempotent("counter", 1).execute()
    assert rows_of(spark, table) == [(1, 1)]


def test_identifier_holds_for_its_own_statement_only(spark: SparkSession, tmp_path: Path) -> None:
    """Other threads of the session write other tables meanwhile."""
    tables = [str(tmp_path / f"table {n}") for n in range(4)]
    for table in tables:
        build_table(spark, table, "id BIGINT, n INT", [[(1, 1)]])

    def write(number: int) -> None:
        table = tables[number]
        for version in range(4):
            if number % 2:
                spark.range(2).selectExpr("id", "0 AS n").write.format("delta").mode("append").save(
                    table
                )
            else:
                increment(spark, table, spark.range(1, 2)).idempotent("app", version).execute()

    with ThreadPoolExecutor(4) as pool:
        list(pool.map(write, range(4)))
    for number, table in enumerate(tables):
        assert log.versions(table) == [0, 1, 2, 3, 4]
        kinds = {len(log.actions(table, version, "txn")) for version in range(1, 5)}
        assert kinds == ({0} if number % 2 else {1})


def test_sql_merge_in_a_batch_is_committed_once_by_settings(
    spark: SparkSession, table: str
) -> None:
    build_table(spark, table, "id BIGINT, n INT", [[(1, 1)]])
    statement = (
        f"MERGE INTO delta.`{table}` t USING (SELECT 1 AS id) s ON t.id = s.id"
        " WHEN MATCHED THEN UPDATE SET n = t.n + 1"
    )
    for version in (0, 0, 1):
        settings = {
            "spark.deltaic.write.txnAppId": "sql",
            "spark.deltaic.write.txnVersion": str(version),
        }
        with session_settings(spark, settings):
            spark.sql(statement)
    assert rows_of(spark, table) == [(1, 3)]


@pytest.mark.parametrize(
    ("app_id", "version", "kind"),
    [
        ("", 1, InvalidArgumentError),
        (None, 1, InvalidArgumentError),
        (7, 1, TypeError),
        ("a", "1", TypeError),
        ("a", True, TypeError),
        ("a", 1.5, TypeError),
        ("a", 2**63, InvalidArgumentError),
        ("a", -1, InvalidArgumentError),
    ],
)
def test_wrong_identifier_is_refused(
    spark: SparkSession, table: str, app_id: Any, version: Any, kind: type[Exception]
) -> None:
    build_table(spark, table, "id BIGINT, n INT", [[(1, 1)]])
    with pytest.raises(kind, match=r"appId|version"):
        increment(spark, table, spark.range(1)).idempotent(app_id, version)
