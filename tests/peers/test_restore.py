"""RESTORE beside delta-spark's: the same result, and each engine goes on from the other's."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import pytest

from tests.support import delta_rs, log
from tests.support.quick import quick_and_thorough
from tests.support.table_builder import rows_of

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from tests.support.spark_process import SparkProcess

VECTORS = "'delta.enableDeletionVectors' = 'true'"
TRACKED = "'delta.enableRowTracking' = 'true'"
FEED = "'delta.enableChangeDataFeed' = 'true'"

#: Statements, and the version to restore.
TABLES: dict[str, tuple[list[str], int]] = {
    "vectors": (
        [
            f"CREATE TABLE {{t}} USING delta TBLPROPERTIES ({VECTORS}, {FEED}) AS "
            "SELECT /*+ REPARTITION(3) */ id, id % 5 AS p FROM range(1000)",
            "DELETE FROM {t} WHERE id % 10 = 0",
            "DELETE FROM {t} WHERE id % 7 = 0",
            "UPDATE {t} SET p = 9 WHERE id < 20",
            "INSERT INTO {t} VALUES (5000, 5)",
        ],
        1,
    ),
    "partitions": (
        [
            "CREATE TABLE {t} (id BIGINT, p STRING) USING delta PARTITIONED BY (p)",
            "INSERT INTO {t} SELECT id, concat('p ', id % 3) FROM range(30)",
            "DELETE FROM {t} WHERE p = 'p 1'",
            "INSERT INTO {t} VALUES (100, NULL), (101, 'ü/%')",
        ],
        1,
    ),
    "columns": (
        [
            "CREATE TABLE {t} (id BIGINT, v STRING) USING delta "
            "TBLPROPERTIES ('delta.columnMapping.mode' = 'name')",
            "INSERT INTO {t} VALUES (1, 'a'), (2, 'b')",
            "ALTER TABLE {t} RENAME COLUMN v TO w",
            "ALTER TABLE {t} ADD COLUMN x INT",
            "INSERT INTO {t} VALUES (3, 'c', 3)",
        ],
        1,
    ),
    "row tracking": (
        [
            f"CREATE TABLE {{t}} (id BIGINT, v STRING) USING delta TBLPROPERTIES ({TRACKED}, "
            f"{VECTORS})",
            "INSERT INTO {t} VALUES (1, 'a'), (2, 'b'), (3, 'c')",
            "UPDATE {t} SET v = 'u' WHERE id = 2",
            "INSERT INTO {t} VALUES (4, 'd')",
        ],
        1,
    ),
    "clustering": (
        [
            "CREATE TABLE {t} (id BIGINT, v STRING) USING delta",
            "INSERT INTO {t} VALUES (1, 'a'), (2, 'b')",
            "ALTER TABLE {t} CLUSTER BY (id)",
            "INSERT INTO {t} VALUES (3, 'c')",
            "ALTER TABLE {t} CLUSTER BY (v)",
        ],
        3,
    ),
    "unclustered": (
        [
            "CREATE TABLE {t} (id BIGINT, v STRING) USING delta",
            "INSERT INTO {t} VALUES (1, 'a'), (2, 'b')",
            "ALTER TABLE {t} CLUSTER BY (id)",
            "INSERT INTO {t} VALUES (3, 'c')",
        ],
        1,
    ),
    "types": (
        [
            "CREATE TABLE {t} (id BIGINT, v SMALLINT) USING delta "
            "TBLPROPERTIES ('delta.enableTypeWidening' = 'true')",
            "INSERT INTO {t} VALUES (1, 1)",
            "ALTER TABLE {t} ALTER COLUMN v TYPE INT",
            "INSERT INTO {t} VALUES (2, 100000)",
        ],
        1,
    ),
    "identity": (
        [
            "CREATE TABLE {t} (id BIGINT GENERATED ALWAYS AS IDENTITY, v STRING) USING delta",
            "INSERT INTO {t} (v) VALUES ('a')",
            "INSERT INTO {t} (v) VALUES ('b'), ('c')",
        ],
        1,
    ),
}

RUN = """
rows = []
for statement in statements:
    rows = [row.asDict() for row in spark.sql(statement).collect()]
result = rows
"""
READ = """
detail = spark.sql(f"DESCRIBE DETAIL delta.`{path}`").first()
history = spark.sql(f"DESCRIBE HISTORY delta.`{path}` LIMIT 1").first()
result = [
    sorted(repr(tuple(row)) for row in spark.read.format("delta").load(path).collect()),
    list(detail.clusteringColumns),
    sorted(detail.tableFeatures),
    dict(history.operationMetrics),
    history.operationParameters.get("version"),
    history.isolationLevel,
]
"""


def in_theirs(peer: SparkProcess, path: str, *statements: str) -> Any:
    return peer.run(RUN, statements=[s.replace("{t}", f"delta.`{path}`") for s in statements])


def in_ours(spark: SparkSession, path: str, statement: str) -> list[dict[str, Any]]:
    return [
        row.asDict() for row in spark.sql(statement.replace("{t}", f"delta.`{path}`")).collect()
    ]


def state(path: str) -> Any:
    """Return what the log says of the files, and of the domains and the schema."""
    files = [
        [add.get(name) for name in ("path", "baseRowId", "defaultRowCommitVersion", "stats")]
        + [log.dv_id(add)]
        for add in log.active_files(path)
    ]
    domains: dict[str, Any] = {}
    schema = None
    for version in log.versions(path):
        for body in log.actions(path, version, "domainMetadata"):
            domains[body["domain"]] = None if body["removed"] else body["configuration"]
        for body in log.actions(path, version, "metaData"):
            schema = json.loads(body["schemaString"])
    clustering = json.loads(domains.get("delta.clustering") or "{}")
    return files, clustering.get("clusteringColumns"), domains.get("delta.rowTracking"), schema


@pytest.mark.parametrize(
    "name", quick_and_thorough(TABLES, "vectors", "row tracking", "clustering")
)
def test_both_engines_restore_the_same_and_go_on(
    spark: SparkSession, delta_spark: SparkProcess, table: str, name: str
) -> None:
    statements, version = TABLES[name]
    in_theirs(delta_spark, table, *statements)
    expected = rows_of(spark, table, version)
    other = f"{table}-theirs"
    log.copy_table(table, other)
    restore = f"RESTORE TABLE {{t}} TO VERSION AS OF {version}"
    assert in_ours(spark, table, restore) == in_theirs(delta_spark, other, restore)
    assert state(table) == state(other)
    assert delta_spark.run(READ, path=table) == delta_spark.run(READ, path=other)
    assert rows_of(spark, table) == rows_of(spark, other) == expected
    if name not in ("columns", "types"):
        assert len(delta_rs.by_query(table)) == len(expected)

    last = len(statements) - 1
    back = f"RESTORE TABLE {{t}} TO VERSION AS OF {last}"
    assert in_theirs(delta_spark, table, back) == in_ours(spark, other, back)
    assert rows_of(spark, table) == rows_of(spark, other) == rows_of(spark, table, last)
    assert delta_spark.run(READ, path=table) == delta_spark.run(READ, path=other)
    for path in (table, other):
        in_ours(spark, path, "DELETE FROM {t} WHERE id = 1")
        in_theirs(delta_spark, path, "DELETE FROM {t} WHERE id = 2", restore)
        assert rows_of(spark, path) == expected
