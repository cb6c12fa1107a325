"""How many files DML writes: few for each partition, and no more than a rewrite would."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from tests.support import log
from tests.support.interleave import committed_meanwhile
from tests.support.session_settings import session_settings
from tests.support.table_builder import build_table, in_order, rows_of

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

SCHEMA = "id INT, v INT, p INT"
PARTITIONS = 3
#: As many tasks as that come out of every join, and of every shuffle before a write.
TASKS = 6
MANY_TASKS = {
    "spark.sql.shuffle.partitions": str(TASKS),
    "spark.sql.autoBroadcastJoinThreshold": "-1",
    "spark.sql.adaptive.coalescePartitions.enabled": "false",
}
BY_PARTITION = "spark.databricks.delta.merge.repartitionBeforeWrite.enabled"
OPTIMIZED = "'delta.autoOptimize.optimizeWrite' = 'true'"

#: Deletes the even, changes the odd and adds the new.
CHANGE = """
MERGE INTO {t} t USING (SELECT INT(id) AS k FROM range(0, 90, 1, 4)) s ON t.id = s.k
WHEN MATCHED AND t.id % 2 = 0 THEN DELETE WHEN MATCHED THEN UPDATE SET v = -1
WHEN NOT MATCHED THEN INSERT (id, v, p) VALUES (s.k, 1, s.k % 3)
"""
ONLY_INSERT = """
MERGE INTO {t} t USING (SELECT INT(id) AS k FROM range(0, 90, 1, 4)) s ON t.id = s.k
WHEN NOT MATCHED THEN INSERT (id, v, p) VALUES (s.k, 1, s.k % 3)
"""
ROWS = [(n, 0, n % PARTITIONS) for n in range(60)]
ADDED = [(n, 1, n % 3) for n in range(60, 90)]


@pytest.mark.parametrize(
    ("merge", "vectors", "outcome"),
    [
        (CHANGE, True, [(n, -1, p) for n, _, p in ROWS if n % 2] + ADDED),
        (CHANGE, False, [(n, -1, p) for n, _, p in ROWS if n % 2] + ADDED),
        (ONLY_INSERT, True, ROWS + ADDED),
    ],
    ids=["vectors", "rewrite", "insert"],
)
def test_merge_into_partitions_writes_one_file_to_each(
    spark: SparkSession,
    table: str,
    merge: str,
    vectors: bool,
    outcome: list[tuple[int, int, int]],
) -> None:
    properties = {"delta.enableChangeDataFeed": "true", "delta.enableRowTracking": "true"}
    written, counts = [], []
    for by_partition in ("false", "true"):
        path = f"{table}_{by_partition}"
        build_table(
            spark,
            path,
            SCHEMA,
            [ROWS[:30], ROWS[30:]],
            partition_by=["p"],
            deletion_vectors=vectors,
            properties=properties,
        )
        with session_settings(spark, {**MANY_TASKS, BY_PARTITION: by_partition}):
            counts.append(spark.sql(merge.format(t=f"delta.`{path}`")).collect())
        assert rows_of(spark, path) == in_order(outcome)
        written.append(
            [
                str(log.data_path(path, file).parent)
                for kind in ("add", "cdc")
                for file in log.actions(path, 1, kind)
                if "deletionVector" not in file
            ]
        )
    assert counts[0] == counts[1]
    apart, together = written
    assert len(apart) > 2 * len(together)
    if merge == ONLY_INSERT:
        assert len(together) == len(set(together)) == PARTITIONS


def test_rows_are_shuffled_for_the_write_only_where_that_makes_fewer_files(
    spark: SparkSession, table: str
) -> None:
    plain, parted = f"{table}_plain", f"{table}_parted"
    build_table(spark, plain, SCHEMA, [ROWS])
    build_table(spark, parted, SCHEMA, [ROWS], partition_by=["p"])
    only_delete = CHANGE[: CHANGE.index("WHEN")] + "WHEN MATCHED THEN DELETE"
    update, delete = "UPDATE {t} SET v = 2 WHERE id % 2 = 0", "DELETE FROM {t} WHERE id % 2 = 0"
    statements = [CHANGE, ONLY_INSERT, only_delete, update, delete]

    def shuffled(path: str, statement: str) -> bool:
        text = statement.format(t=f"delta.`{path}`")
        return "REBALANCE_PARTITIONS" in spark.sql(f"EXPLAIN {text}").collect()[0][0]

    assert [shuffled(plain, s) for s in statements] == [False] * 5
    assert [shuffled(parted, s) for s in statements] == [True, True, False, False, False]
    for path in (plain, parted):
        spark.sql(f"ALTER TABLE delta.`{path}` SET TBLPROPERTIES ({OPTIMIZED})")
        assert [shuffled(path, s) for s in statements] == [True, True, False, True, False]
        with session_settings(spark, {"spark.deltaic.optimizeWrite.enabled": "false"}):
            assert shuffled(path, update) is False
        with session_settings(spark, {"spark.sql.adaptive.enabled": "false"}):
            assert shuffled(path, CHANGE)


def test_optimized_update_writes_one_file_of_many_tasks(spark: SparkSession, table: str) -> None:
    files = [ROWS[n : n + 10] for n in range(0, 60, 10)]
    build_table(spark, table, SCHEMA, files)
    one_task_each = {
        "spark.sql.files.maxPartitionBytes": "4000",
        "spark.sql.files.openCostInBytes": "4000",
    }
    for optimized, count in (("false", 6), ("true", 1)):
        settings = {"spark.databricks.delta.optimizeWrite.enabled": optimized, **one_task_each}
        with session_settings(spark, settings):
            [(changed,)] = spark.sql(
                f"UPDATE delta.`{table}` SET v = v + 1 WHERE id % 5 = 0"
            ).collect()
        adds = log.last_actions(table, "add")
        assert (changed, sum("deletionVector" not in add for add in adds)) == (12, count)
    assert rows_of(spark, table) == in_order((n, 2 * (n % 5 == 0), p) for n, _, p in ROWS)


@pytest.mark.parametrize("overwrites", [False, True], ids=["new table", "new columns"])
def test_optimized_write_takes_partition_columns_in_any_case(
    spark: SparkSession, table: str, overwrites: bool
) -> None:
    if overwrites:
        spark.range(1).write.format("delta").save(table)
    writer = spark.range(9).selectExpr("id", "id % 3 AS p").write.format("delta")
    writer = writer.option("optimizeWrite", "true")
    if overwrites:
        writer = writer.mode("overwrite").option("overwriteSchema", "true")
    with pytest.raises(Exception, match="nowhere"):
        writer.partitionBy("nowhere").save(table)
    writer.partitionBy("P").save(table)
    assert log.metadata(table)["partitionColumns"] == ["p"]
    assert len(log.last_actions(table, "add")) == 3
    assert rows_of(spark, table) == in_order((n, n % 3) for n in range(9))


#: So many rows that every other one makes a vector too large for the log.
LARGE = 5_000


@pytest.mark.parametrize(
    ("count", "step"),
    [(1, 2), (2, 2), (5, 2), (5, 100)],
    ids=["one file", "two", "many", "many, and vectors in the log"],
)
def test_change_creates_no_more_files_than_one_that_rewrites(
    spark: SparkSession, table: str, count: int, step: int
) -> None:
    files = [[(LARGE * n + i, 0, 0) for i in range(LARGE)] for n in range(count)]
    properties = {"delta.enableChangeDataFeed": "true", "delta.randomizeFilePrefixes": "true"}
    build_table(spark, table, SCHEMA, files, properties=properties)
    built = {True: table, False: f"{table}_rewrite"}
    log.copy_table(table, built[False])
    without = "SET TBLPROPERTIES ('delta.enableDeletionVectors' = 'false')"
    spark.sql(f"ALTER TABLE delta.`{built[False]}` {without}")
    source = f"(SELECT INT(id) AS k FROM range(2, {LARGE * count + 10}, {step}, 1))"
    statements = [
        f"UPDATE {{t}} SET v = 1 WHERE id % {step} = 1",
        f"DELETE FROM {{t}} WHERE id % {step} = 0",
        f"MERGE INTO {{t}} t USING {source} s ON t.id = s.k WHEN MATCHED AND k % 5 = 1 THEN DELETE"
        " WHEN MATCHED THEN UPDATE SET v = 2 WHEN NOT MATCHED THEN INSERT (id) VALUES (k)",
    ]
    for number, statement in enumerate(statements):
        created, rows = {}, {}
        for vectors, path in built.items():
            copy = f"{path}_{number}"
            log.copy_table(path, copy)
            before = log.stored_files(copy)
            spark.sql(statement.format(t=f"delta.`{copy}`"))
            created[vectors] = [file.name for file in log.stored_files(copy) - before]
            rows[vectors] = rows_of(spark, copy)
        assert len(created[True]) <= len(created[False]), created
        of_vectors = [name for name in created[True] if name.endswith(".bin")]
        assert len(of_vectors) == (1 if step == 2 else 0), created
        assert rows[True] == rows[False]


def test_vectors_of_a_statement_go_into_the_log_while_all_are_small_together(
    spark: SparkSession, table: str
) -> None:
    files = [[(LARGE * n + i, 0, 0) for i in range(LARGE)] for n in range(2)]
    build_table(spark, table, SCHEMA, files)

    def of_vectors(condition: str) -> int:
        before = log.files_in(table, ".bin")
        spark.sql(f"DELETE FROM delta.`{table}` WHERE {condition}")
        return len(log.files_in(table, ".bin") - before)

    # 1000 rows of a file take 2 KB, and the old vector is merged with the new one.
    assert of_vectors(f"id < {LARGE} AND id % 5 = 0") == 0
    assert of_vectors(f"id < {LARGE} AND id % 5 IN (1, 2)") == 1
    with session_settings(spark, {"spark.deltaic.deletionVectors.maxInlineBytes": "1k"}):
        assert of_vectors(f"id >= {LARGE} AND id % 5 = 0") == 1
        assert of_vectors(f"id = {LARGE + 1} OR id = 3") == 1, "what lay in a file stays in files"
    with session_settings(spark, {"spark.deltaic.deletionVectors.maxFileBytes": "1k"}):
        assert of_vectors("id % 1000 = 4") == 2, "a file ends with the vector that fills it"
    left = [r for file in files for r in file if r[0] % 5 > 2 * (r[0] < LARGE)]
    assert rows_of(spark, table) == in_order(
        r for r in left if r[0] not in (3, LARGE + 1) and r[0] % 1000 != 4
    )


def test_no_vector_goes_into_the_log_if_its_limit_is_zero(spark: SparkSession, table: str) -> None:
    """Not one of a single row, and none that a rebase onto a winning commit merges."""
    build_table(spark, table, SCHEMA, [[(i, 0, 0) for i in range(100)], [(100, 0, 0)]])
    name = f"delta.`{table}`"
    with session_settings(spark, {"spark.deltaic.deletionVectors.maxInlineBytes": "0"}):
        spark.sql(f"DELETE FROM {name} WHERE id = 1")
        spark.sql(f"UPDATE {name} SET v = 1 WHERE id = 2")
        spark.sql(
            f"MERGE INTO {name} t USING (SELECT 3 AS k) s ON t.id = s.k WHEN MATCHED THEN DELETE"
        )
        with committed_meanwhile(lambda: spark.sql(f"DELETE FROM {name} WHERE id = 4")):
            spark.sql(f"DELETE FROM {name} WHERE id = 5")
        with committed_meanwhile(lambda: spark.sql(f"DELETE FROM {name} WHERE id = 6")):
            spark.sql(f"OPTIMIZE {name}")
    vectors = [
        add["deletionVector"]
        for version in log.versions(table)
        for add in log.actions(table, version, "add")
        if "deletionVector" in add
    ]
    assert len(vectors) >= 6
    assert {vector["storageType"] for vector in vectors} == {"u"}
    assert {row[0] for row in rows_of(spark, table)} == set(range(101)) - {1, 3, 4, 5, 6}
