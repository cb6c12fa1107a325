"""MERGE whose source has columns that the table lacks."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

import pytest

from deltaic import DeltaTable
from tests.support import log
from tests.support.session_settings import session_settings
from tests.support.table_builder import Row, build_table, rows_of

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

AUTO_MERGE = "spark.databricks.delta.schema.autoMerge.enabled"
SCHEMA = "id INT, v INT, st STRUCT<a: INT, b: INT>"
FILES: list[list[Row]] = [[(1, 10, (1, 1)), (2, 20, (2, 2))], [(3, 30, None), (4, 40, (4, 4))]]
#: A column and a field are new, a column and a field of the table are missing.
SOURCE = (
    "SELECT 'x' AS extra, 2 AS id, named_struct('c', 22, 'a', 21) AS st"
    " UNION ALL SELECT 'y', 5, named_struct('c', 55, 'a', 51)"
)
STARS = "ON t.id = s.id WHEN MATCHED THEN UPDATE SET * WHEN NOT MATCHED THEN INSERT *"
MergeStars = Callable[["SparkSession", str], None]


def by_clause(spark: SparkSession, table: str) -> None:
    merge = f"MERGE WITH SCHEMA EVOLUTION INTO delta.`{table}` t USING ({SOURCE}) s {STARS}"
    spark.sql(f"EXPLAIN {merge}").collect()
    assert log.newest(table) == 0
    assert "extra" not in DeltaTable.forPath(spark, table).toDF().columns
    spark.sql(merge)


def by_session(spark: SparkSession, table: str) -> None:
    with session_settings(spark, {AUTO_MERGE: "true"}):
        spark.sql(f"MERGE INTO delta.`{table}` t USING ({SOURCE}) s {STARS}")


def by_builder(spark: SparkSession, table: str) -> None:
    target = DeltaTable.forPath(spark, table).alias("t")
    merge = target.merge(spark.sql(SOURCE).alias("s"), "t.id = s.id").withSchemaEvolution()
    merge.whenMatchedUpdateAll().whenNotMatchedInsertAll().execute()


@pytest.mark.protocol("requirements-for-writers-delta-log-entries-2")
@pytest.mark.parametrize("merge", [by_clause, by_session, by_builder])
def test_stars_add_columns_and_fields_with_the_rows_in_one_commit(
    spark: SparkSession, table: str, merge: MergeStars
) -> None:
    properties = {
        "delta.columnMapping.mode": "name",
        "delta.enableChangeDataFeed": "true",
        "delta.enableRowTracking": "true",
    }
    build_table(spark, table, SCHEMA, FILES, properties=properties)
    ids = row_ids(spark, table)
    merge(spark, table)
    assert log.versions(table) == [0, 1]
    assert len(log.actions(table, 1, "metaData")) == 1
    assert sorted(map(repr, rows_of(spark, table))) == sorted(
        map(
            repr,
            [
                (1, 10, spark_row(1, 1, None), None),
                (2, 20, spark_row(21, 2, 22), "x"),
                (3, 30, None, None),
                (4, 40, spark_row(4, 4, None), None),
                (5, None, spark_row(51, None, 55), "y"),
            ],
        )
    )
    assert spark.read.format("delta").load(table).columns == ["id", "v", "st", "extra"]
    after = row_ids(spark, table)
    assert {key: after[key] for key in ids} == ids
    feed = spark.read.option("readChangeFeed", "true").option("startingVersion", "1")
    changes = feed.format("delta").load(table).selectExpr("_change_type", "id", "extra").collect()
    assert sorted(map(tuple, changes)) == [
        ("insert", 5, "y"),
        ("update_postimage", 2, "x"),
        ("update_preimage", 2, None),
    ]


def row_ids(spark: SparkSession, table: str) -> dict[int, int]:
    rows = spark.sql(f"SELECT id, _metadata.row_id AS row FROM delta.`{table}`").collect()
    return {row["id"]: row["row"] for row in rows}


def spark_row(a: int, b: int | None, c: int | None) -> object:
    from pyspark.sql import Row

    return Row(a=a, b=b, c=c)


def test_only_what_clauses_assign_is_added(spark: SparkSession, table: str) -> None:
    build_table(spark, table, SCHEMA, FILES, deletion_vectors=False)
    merge = "MERGE WITH SCHEMA EVOLUTION INTO delta.`{t}` t USING ({s}) s ON t.id = s.id {c}"

    def run(source: str, clauses: str) -> list[str]:
        spark.sql(merge.format(t=table, s=source, c=clauses))
        return spark.read.format("delta").load(table).columns

    assert run(SOURCE, "WHEN MATCHED THEN UPDATE SET v = s.id") == ["id", "v", "st"]
    # Rows that no row of the source matches keep what they have, which is nothing of the new.
    clauses = (
        "WHEN MATCHED AND s.n > 0 THEN UPDATE SET t.n = s.n + 1 WHEN NOT MATCHED THEN "
        "INSERT (id, m) VALUES (s.id, s.m) WHEN NOT MATCHED BY SOURCE THEN UPDATE SET v = 0"
    )
    source = "SELECT 1 AS id, 7 AS n, 8 AS m, 9 AS o UNION ALL SELECT 6, 7, 8, 9"
    assert run(source, clauses) == ["id", "v", "st", "n", "m"]
    rows = spark.read.format("delta").load(table).select("id", "v", "n", "m").collect()
    assert sorted(map(tuple, rows)) == [
        (1, 10, 8, None),
        (2, 0, None, None),
        (3, 0, None, None),
        (4, 0, None, None),
        (6, None, None, 8),
    ]
    with pytest.raises(Exception, match="nowhere"):
        run(source, "WHEN MATCHED THEN UPDATE SET nowhere = 1")
    assert log.newest(table) == 2


def test_merge_that_only_inserts_adds_columns_and_widens_types(
    spark: SparkSession, table: str
) -> None:
    properties = {"delta.enableTypeWidening": "true"}
    build_table(spark, table, "id INT, v INT", [[(1, 1), (2, 2)]], properties=properties)
    with session_settings(spark, {AUTO_MERGE: "true"}):
        counts = spark.sql(
            f"MERGE INTO delta.`{table}` t USING (SELECT 2L AS id, 3L AS v, 'a' AS n"
            " UNION ALL SELECT 5000000000, 5, 'b') s ON t.id = s.id WHEN NOT MATCHED THEN INSERT *"
        ).collect()
    assert [tuple(row) for row in counts] == [(1, 0, 0, 1)]
    assert rows_of(spark, table) == [(1, 1, None), (2, 2, None), (5_000_000_000, 5, "b")]
    assert (log.newest(table), log.commit_info(table, 1)["operation"]) == (1, "MERGE")
    # The table itself as the source, and a column that one clause computes from two others.
    spark.sql(
        f"MERGE WITH SCHEMA EVOLUTION INTO delta.`{table}` t USING (SELECT *, v * 2 AS w FROM "
        f"delta.`{table}`) s ON t.id = s.id WHEN MATCHED AND s.id < 3 THEN UPDATE SET *"
    )
    assert rows_of(spark, table) == [
        (1, 1, None, 2),
        (2, 2, None, 4),
        (5_000_000_000, 5, "b", None),
    ]
