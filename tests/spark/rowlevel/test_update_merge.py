"""UPDATE and MERGE in their simple forms, by the same path as DELETE, against brute force."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from pyspark.sql import SparkSession

from tests.support import log
from tests.support.foreign_table import ForeignTable, field
from tests.support.jobs import await_tasks
from tests.support.session_settings import session_settings
from tests.support.table_builder import Row, build_table, in_order, rows_of

if TYPE_CHECKING:
    from pathlib import Path

SCHEMA = "id INT, v INT, p STRING"
FILES: list[list[Row]] = [
    [(1, 10, "a"), (2, None, "a"), (3, 30, "b")],
    [(4, 40, "b"), (5, 50, None), (6, 60, "a")],
]
ROWS = [row for file in FILES for row in file]


@pytest.fixture(params=[True, False], ids=["vectors", "rewrite"])
def built(request: pytest.FixtureRequest, spark: SparkSession, table: str) -> str:
    build_table(
        spark, table, SCHEMA, FILES, partition_by=["p"], deletion_vectors=bool(request.param)
    )
    return table


def test_update_changes_the_rows_for_which_the_condition_is_true(
    spark: SparkSession, built: str
) -> None:
    spark.sql(f"UPDATE delta.`{built}` SET v = v + id WHERE v > 10")
    expected = [(i, v + i if v is not None and v > 10 else v, p) for i, v, p in ROWS]
    assert rows_of(spark, built) == in_order(expected)
    assert rows_of(spark, built, version=0) == in_order(ROWS)


def test_update_moves_rows_to_another_partition(spark: SparkSession, built: str) -> None:
    spark.sql(f"UPDATE delta.`{built}` SET p = 'z' WHERE p = 'a' OR p IS NULL")
    expected = [(i, v, "z" if p in ("a", None) else p) for i, v, p in ROWS]
    assert rows_of(spark, built) == in_order(expected)
    spark.sql(f"DELETE FROM delta.`{built}` WHERE p = 'z' AND id < 3")
    assert rows_of(spark, built) == in_order([r for r in expected if r[0] >= 3 or r[2] != "z"])


def test_rows_of_a_partition_share_a_file_in_whatever_order_they_come(
    spark: SparkSession, table: str
) -> None:
    rows = [(n, 0, "a") for n in range(60)]
    build_table(spark, table, SCHEMA, [rows], partition_by=["p"])
    spark.sql(f"UPDATE delta.`{table}` SET p = id % 3")
    assert len(log.actions(table, 1, "add")) == 3
    spark.sql(
        f"MERGE INTO delta.`{table}` t USING (SELECT id k FROM range(90)) s ON t.id = k "
        "WHEN MATCHED THEN UPDATE SET p = id % 4 WHEN NOT MATCHED THEN INSERT (id, p) "
        "VALUES (k, k % 4)"
    )
    tasks = int(spark.conf.get("spark.sql.shuffle.partitions") or 1)
    assert len(log.actions(table, 2, "add")) <= 4 * tasks
    expected = [(n, 0 if n < 60 else None, str(n % 4)) for n in range(90)]
    assert rows_of(spark, table) == in_order(expected)


def test_update_that_matches_nothing_commits_nothing(spark: SparkSession, built: str) -> None:
    spark.sql(f"UPDATE delta.`{built}` SET v = 0 WHERE id = 99")
    assert log.versions(built) == [0]


def test_merge_updates_deletes_and_inserts(spark: SparkSession, built: str) -> None:
    spark.sql(
        "CREATE OR REPLACE TEMP VIEW source AS SELECT * FROM VALUES "
        "(1, 11, 'a'), (3, -1, 'b'), (5, NULL, 'c'), (7, 70, 'b'), (8, -1, 'b') s(id, v, p)"
    )
    spark.sql(
        f"""
        MERGE INTO delta.`{built}` t USING source s ON t.id = s.id
        WHEN MATCHED AND s.v < 0 THEN DELETE
        WHEN MATCHED THEN UPDATE SET *
        WHEN NOT MATCHED AND s.v > 0 THEN INSERT *
        WHEN NOT MATCHED BY SOURCE AND t.id > 5 THEN UPDATE SET v = 0
        WHEN NOT MATCHED BY SOURCE AND t.v IS NULL THEN DELETE
        """
    )
    expected = [(1, 11, "a"), (4, 40, "b"), (5, None, "c"), (6, 0, "a"), (7, 70, "b")]
    assert rows_of(spark, built) == in_order(expected)
    assert rows_of(spark, built, version=0) == in_order(ROWS)
    assert log.newest(built) == 1


def test_metadata_keys_of_sparks_plans_are_neither_stored_with_columns_nor_honored(
    spark: SparkSession, tmp_path: Path
) -> None:
    key, value = field("k", "long"), field("y", "string")
    # As older writers have stored it: to Spark, a column with the mark is one of metadata.
    key["metadata"] = {"__metadata_col": "k"}
    older, table = str(tmp_path / "older"), str(tmp_path / "table")
    ForeignTable(older, key, value)
    spark.sql(f"INSERT INTO delta.`{older}` VALUES (1, 'b'), (2, 'b')")
    spark.sql(
        "SELECT b.k, y, struct(b.k) AS nested FROM VALUES (1L), (2L) a(k)"
        " JOIN VALUES (1L, 'b'), (2L, 'b') b(k, y) USING (k)"
    ).write.format("delta").save(table)
    assert "__metadata_col" not in log.metadata(table)["schemaString"]
    for path in (older, table):
        spark.sql(
            f"MERGE INTO delta.`{path}` t USING (SELECT 1L AS k, 'new' AS y) s ON t.k = s.k"
            " WHEN MATCHED THEN UPDATE SET y = s.y"
        )
        assert [row[:2] for row in rows_of(spark, path)] == [(1, "new"), (2, "b")]


def test_merge_in_which_two_rows_match_one_fails_and_commits_nothing(
    spark: SparkSession, built: str
) -> None:
    with pytest.raises(Exception, match="MERGE_CARDINALITY_VIOLATION"):
        spark.sql(
            f"MERGE INTO delta.`{built}` t USING (SELECT 1 k, 1 v UNION ALL SELECT 1, 2) s "
            "ON t.id = s.k WHEN MATCHED THEN UPDATE SET v = s.v"
        )
    assert log.versions(built) == [0]
    assert rows_of(spark, built) == in_order(ROWS)


#: Whatever a join reads is skewed: each task reads what one task before has written for it.
SKEWED = {
    "spark.sql.adaptive.skewJoin.skewedPartitionFactor": "0",
    "spark.sql.adaptive.skewJoin.skewedPartitionThresholdInBytes": "1",
    "spark.sql.adaptive.advisoryPartitionSizeInBytes": "1",
    "spark.sql.adaptive.optimizeSkewsInRebalancePartitions.enabled": "false",
    "spark.sql.autoBroadcastJoinThreshold": "-1",
}


@pytest.mark.parametrize(
    "settings",
    [
        {},
        {"spark.deltaic.merge.repartitionBeforeWrite.enabled": "false"},
        {
            "spark.deltaic.merge.repartitionBeforeWrite.enabled": "false",
            "spark.deltaic.deletionVectors.maxBitmapMergeBytes": "0",
        },
    ],
    ids=["one writer", "merged on the driver", "merged in tasks"],
)
@pytest.mark.parametrize(
    "clauses",
    [
        "WHEN MATCHED THEN UPDATE SET v = s.n",
        "WHEN MATCHED AND s.n = 0 THEN DELETE WHEN MATCHED THEN UPDATE SET v = s.n",
    ],
)
def test_merge_in_which_two_tasks_match_one_row_fails_unless_it_only_deletes(
    spark: SparkSession, table: str, clauses: str, settings: dict[str, str]
) -> None:
    build_table(spark, table, SCHEMA, FILES, partition_by=["p"])
    source = "(SELECT INT(id % 8) AS k, INT(id DIV 8) AS n FROM range(0, 16, 1, 2))"
    merge = f"MERGE INTO delta.`{table}` t USING {source} s ON t.id = s.k"
    insert = "WHEN NOT MATCHED THEN INSERT (id) VALUES (s.k)"
    with session_settings(spark, {**SKEWED, **settings}):
        with pytest.raises(Exception, match="MERGE_CARDINALITY_VIOLATION"):
            spark.sql(f"{merge} {clauses} {insert}")
        await_tasks()
        assert log.versions(table) == [0]
        assert len(log.stored_files(table)) == len(log.active_files(table))
        [counts] = spark.sql(f"{merge} WHEN MATCHED THEN DELETE").collect()
    assert counts.num_deleted_rows == len(ROWS)
    assert rows_of(spark, table) == []
