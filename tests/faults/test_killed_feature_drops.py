"""A driver that is killed during DROP FEATURE: the rows stay, and the next run ends the work."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from deltaic import DeltaTable
from tests.support import log
from tests.support.delta_rs import by_query
from tests.support.faulty import ARM, FaultyProcesses, is_alive
from tests.support.plain_reader import plain_rows
from tests.support.spark_process import SparkProcessError
from tests.support.table_builder import build_table, in_order, rows_of
from tests.support.valid_logs import require_valid_logs

_DROP = "ALTER TABLE delta.`{table}` DROP FEATURE {feature}"
_FIRST = 2

#: The properties of the table, and the statement that uses the feature.
USES = {
    "deletionVectors": (
        {"delta.enableDeletionVectors": "true"},
        "DELETE FROM delta.`{table}` WHERE id IN (3, 17)",
    ),
    "columnMapping": (
        {"delta.columnMapping.mode": "name"},
        "ALTER TABLE delta.`{table}` RENAME COLUMN v TO w",
    ),
    "rowTracking": (
        {"delta.enableRowTracking": "true"},
        "UPDATE delta.`{table}` SET v = 'new' WHERE id = 3",
    ),
}


def entry(version: int) -> str:
    return rf"/_delta_log/{version:020d}\.json$"


def checkpoint(version: int) -> str:
    return rf"/_delta_log/{version:020d}\.checkpoint[^/]*\.parquet$"


POINTS = [
    ("deletionVectors", "link", entry(_FIRST), "before"),
    ("deletionVectors", "link", entry(_FIRST), "after"),
    ("deletionVectors", "create", r"/part-[^/]*\.parquet$", "before"),
    ("deletionVectors", "link", entry(_FIRST + 1), "before"),
    ("deletionVectors", "link", entry(_FIRST + 1), "after"),
    ("deletionVectors", "link", entry(_FIRST + 2), "after"),
    ("deletionVectors", "link", checkpoint(_FIRST + 3), "before"),
    ("deletionVectors", "link", entry(_FIRST + 5), "before"),
    ("deletionVectors", "link", entry(_FIRST + 5), "after"),
    ("columnMapping", "link", entry(_FIRST), "before"),
    ("columnMapping", "link", entry(_FIRST), "after"),
    ("columnMapping", "link", entry(_FIRST + 2), "after"),
    ("rowTracking", "link", entry(_FIRST), "after"),
    ("rowTracking", "link", entry(_FIRST + 1), "before"),
    ("rowTracking", "link", entry(_FIRST + 1), "after"),
]


@pytest.mark.parametrize(("feature", "call", "path", "when"), POINTS)
def test_next_drop_ends_what_the_killed_one_has_begun(
    spark: SparkSession,
    processes: FaultyProcesses,
    table: str,
    figures: Counter[str],
    feature: str,
    call: str,
    path: str,
    when: str,
) -> None:
    properties, use = USES[feature]
    files = [[(n * 10 + i, f"row {i}") for i in range(10)] for n in range(2)]
    build_table(
        spark, table, "id BIGINT, v STRING", files, deletion_vectors=False, properties=properties
    )
    spark.sql(use.format(table=table))
    rows = rows_of(spark, table)
    statement = _DROP.format(table=table, feature=feature)
    fault = [call, path, 1, f"kill {when}"]
    with processes.take() as (process, pid), pytest.raises(SparkProcessError):
        process.run(ARM + "spark.sql(statement)", statement=statement, fault=fault)
    assert not is_alive(pid), "it was not killed"
    figures["kills"] += 1
    assert rows_of(spark, table) == rows
    target = DeltaTable.forPath(spark, table)
    if feature in target.detail().collect()[0].tableFeatures:
        spark.sql(statement)
    assert feature not in target.detail().collect()[0].tableFeatures
    assert rows_of(spark, table) == rows
    assert in_order(by_query(table)) == rows
    assert in_order(plain_rows(table, feature)) == rows
    versions = log.versions(table)
    assert versions == list(range(versions[-1] + 1))
    require_valid_logs(Path(table).parent)
