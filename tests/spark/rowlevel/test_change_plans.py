"""What DELETE, UPDATE and MERGE run: the plans of SQL and builders, their scans, joins and jobs."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import pytest

from deltaic import DeltaTable
from tests.support import log
from tests.support.executions import executed_plans
from tests.support.jobs import jobs_of
from tests.support.lost_files import lose_files
from tests.support.plans import PlanNode, nodes_below
from tests.support.table_builder import build_table, rows_of

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from deltaic.merge import DeltaMergeBuilder

SCHEMA = "id INT, v INT, w STRING"
FILES = [[(10 * file + row, 0, "a") for row in range(10)] for file in range(3)]
SOURCE = "SELECT * FROM VALUES (12, 1, 'm'), (99, 2, 'm') AS s(id, v, w)"
WRITES = {"WriteDeltaExec", "InsertOnlyMergeExec", "MetadataOnlyDeleteExec"}


def named(table: str) -> str:
    return f"delta.`{table}`"


def merging(spark: SparkSession, table: str) -> DeltaMergeBuilder:
    return (
        DeltaTable.forPath(spark, table)
        .alias("t")
        .merge(spark.sql(SOURCE).alias("s"), "t.id = s.id")
    )


MERGE = f"MERGE INTO {{t}} t USING ({SOURCE}) s ON t.id = s.id "
IN_SUBQUERY = "id IN (SELECT id FROM VALUES (3), (12) AS k(id))"
Run = Callable[["SparkSession", str], object]

#: The same statement in SQL and by builders.
PAIRS: dict[str, tuple[str, Run]] = {
    "delete": (
        "DELETE FROM {t} WHERE v = 0 AND id % 7 = 3",
        lambda spark, t: DeltaTable.forPath(spark, t).delete("v = 0 AND id % 7 = 3"),
    ),
    "update": (
        "UPDATE {t} SET v = v + 1, w = 'u' WHERE id % 7 = 3",
        lambda spark, t: DeltaTable.forPath(spark, t).update(
            "id % 7 = 3", {"v": "v + 1", "w": "'u'"}
        ),
    ),
    "upsert": (
        MERGE + "WHEN MATCHED THEN UPDATE SET * WHEN NOT MATCHED THEN INSERT *",
        lambda spark, t: (
            merging(spark, t).whenMatchedUpdateAll().whenNotMatchedInsertAll().execute()
        ),
    ),
    "four clauses": (
        MERGE + "WHEN MATCHED AND s.v = 2 THEN DELETE WHEN MATCHED THEN UPDATE SET w = s.w"
        " WHEN NOT MATCHED AND s.id > 5 THEN INSERT (id, v) VALUES (s.id, s.v)"
        " WHEN NOT MATCHED BY SOURCE AND t.id = 1 THEN UPDATE SET v = -1",
        lambda spark, t: (
            merging(spark, t)
            .whenMatchedDelete("s.v = 2")
            .whenMatchedUpdate(set={"w": "s.w"})
            .whenNotMatchedInsert("s.id > 5", {"id": "s.id", "v": "s.v"})
            .whenNotMatchedBySourceUpdate("t.id = 1", {"v": "-1"})
            .execute()
        ),
    ),
    "delete by a subquery": (
        f"DELETE FROM {{t}} WHERE {IN_SUBQUERY}",
        lambda spark, t: DeltaTable.forPath(spark, t).delete(IN_SUBQUERY),
    ),
    "update by a subquery": (
        f"UPDATE {{t}} SET v = 7 WHERE {IN_SUBQUERY}",
        lambda spark, t: DeltaTable.forPath(spark, t).update(IN_SUBQUERY, {"v": "7"}),
    ),
    "rows that the source lacks": (
        MERGE
        + "WHEN MATCHED THEN UPDATE SET * WHEN NOT MATCHED BY SOURCE AND t.id < 5 THEN DELETE",
        lambda spark, t: (
            merging(spark, t)
            .whenMatchedUpdateAll()
            .whenNotMatchedBySourceDelete("t.id < 5")
            .execute()
        ),
    ),
    "insert": (
        MERGE + "WHEN NOT MATCHED THEN INSERT *",
        lambda spark, t: merging(spark, t).whenNotMatchedInsertAll().execute(),
    ),
}


def changes(spark: SparkSession, action: Callable[[], object]) -> list[Any]:
    """Run a statement and return the plan of what it changed, which is one."""
    return [
        plan
        for plan in executed_plans(spark, action)
        if any(node.kind in WRITES for node in nodes_below(plan))
    ]


def shape(plan: Any, table: str) -> str:
    """Return a plan as text; ids that differ from plan to plan are renumbered from 1."""
    known: dict[str, str] = {}
    text = plan.toString().replace(table, "T")
    text = text.replace("spark_catalog.delta.`T`", "T").replace("delta.`file:T`", "T")
    text = re.sub(r"(plan_id=|\[id=#|RDD\[|@)[0-9a-f]+", r"\1", text)
    return re.sub(r"#\d+L?", lambda found: known.setdefault(found[0], f"#{len(known) + 1}"), text)


@pytest.mark.parametrize("kind", PAIRS)
def test_builders_run_the_plan_of_the_same_statement_in_sql(
    spark: SparkSession, table: str, kind: str
) -> None:
    statement, build = PAIRS[kind]
    other = f"{table}_twin"
    for path in (table, other):
        build_table(spark, path, SCHEMA, FILES)
    (in_sql,) = changes(spark, lambda: spark.sql(statement.replace("{t}", named(table))))
    (built,) = changes(spark, lambda: build(spark, other))
    assert shape(in_sql, table) == shape(built, other)
    assert Counter(rows_of(spark, table)) == Counter(rows_of(spark, other))
    assert log.newest(table) == log.newest(other) == 1


def joins(nodes: list[PlanNode]) -> list[str]:
    """Return how rows are joined."""
    return [
        next(name for name in ("LeftSemi", "LeftAnti", "RightOuter", "Inner") if name in node.text)
        for node in nodes
        if node.kind.endswith("JoinExec")
    ]


def scans_of(nodes: list[PlanNode], table: str) -> list[str]:
    """Return which columns each scan of the table reads."""
    found = [n.node.scan() for n in nodes if n.kind == "BatchScanExec"]
    return [scan.readSchema().simpleString() for scan in found if table in scan.description()]


@pytest.mark.parametrize(
    ("kind", "joined"),
    [
        ("delete", []),
        ("update", []),
        # The semi join with broadcast keys prunes files and rows.
        ("upsert", ["LeftSemi", "RightOuter"]),
        ("insert", ["LeftAnti", "LeftSemi"]),
    ],
)
def test_each_change_reads_its_table_once_and_joins_it_once(
    spark: SparkSession, table: str, kind: str, joined: list[str]
) -> None:
    build_table(spark, table, SCHEMA, FILES)
    statement = PAIRS[kind][0].replace("{t}", named(table))
    (plan,) = changes(spark, lambda: spark.sql(statement))
    nodes = nodes_below(plan)
    (columns,) = scans_of(nodes, table)
    assert sorted(joins(nodes)) == joined
    assert ("_row_index" in columns or "row_index" in columns) == (kind != "insert"), columns
    if kind == "insert":
        assert any(node.kind == "InsertOnlyMergeExec" for node in nodes)
        assert not log.actions(table, 1, "remove")
        assert all("deletionVector" not in add for add in log.actions(table, 1, "add"))
        assert "w:" not in columns and "v:" not in columns


@pytest.mark.parametrize(
    ("statement", "jobs"),
    [
        ("DELETE FROM {t} WHERE id % 7 = 3", 1),
        ("UPDATE {t} SET v = 1 WHERE id % 7 = 3", 1),
        ("DELETE FROM {t} WHERE id < 10", 0),
        ("DELETE FROM {t} WHERE id > 1000", 0),
    ],
)
def test_delete_and_update_run_a_job_at_most(
    spark: SparkSession, table: str, statement: str, jobs: int
) -> None:
    """None where the log shows which rows are deleted."""
    build_table(spark, table, SCHEMA, FILES)
    assert jobs_of(spark, lambda: spark.sql(statement.replace("{t}", named(table)))) == jobs


def test_merge_whose_source_is_an_empty_relation_runs_no_job(
    spark: SparkSession, table: str
) -> None:
    build_table(spark, table, SCHEMA, FILES)
    lose_files(table)
    for clauses in ("WHEN MATCHED THEN DELETE ", ""):
        merge = (
            f"MERGE INTO {named(table)} t USING ({SOURCE} WHERE id > 1000) s ON t.id = s.id"
            f" {clauses}WHEN NOT MATCHED THEN INSERT *"
        )
        assert jobs_of(spark, lambda merge=merge: spark.sql(merge)) <= 1  # type: ignore[misc]
    assert log.newest(table) == 0


@pytest.mark.protocol("deletion-vectors-3")
@pytest.mark.parametrize("kind", ["delete", "update", "upsert", "rows that the source lacks"])
def test_without_vectors_the_plan_is_the_same_and_the_touched_files_are_copied(
    spark: SparkSession, table: str, kind: str
) -> None:
    statement, _ = PAIRS[kind]
    other = f"{table}_twin"
    build_table(spark, table, SCHEMA, FILES, deletion_vectors=False)
    build_table(spark, other, SCHEMA, FILES)
    before = {add["path"] for add in log.active_files(table)}
    (plan,) = changes(spark, lambda: spark.sql(statement.replace("{t}", named(table))))
    (with_vectors,) = changes(spark, lambda: spark.sql(statement.replace("{t}", named(other))))
    assert shape(plan, table) == shape(with_vectors, other)
    assert Counter(rows_of(spark, table)) == Counter(rows_of(spark, other))
    removed = {remove["path"] for remove in log.actions(other, 1, "remove")}
    assert len(log.actions(table, 1, "remove")) == len(removed)
    after = log.active_files(table)
    assert len(before - {add["path"] for add in after}) == len(removed)
    assert not any("deletionVector" in add for add in after)
    assert log.versions(table) == [0, 1]


@pytest.mark.parametrize(
    "statement",
    ["DELETE FROM {t} WHERE id % 7 = 3", "UPDATE {t} SET v = 1 WHERE id % 7 = 3"],
)
def test_without_vectors_one_more_job_copies_the_touched_files(
    spark: SparkSession, table: str, statement: str
) -> None:
    build_table(spark, table, SCHEMA, FILES, deletion_vectors=False)
    assert jobs_of(spark, lambda: spark.sql(statement.replace("{t}", named(table)))) == 2
