"""OPTIMIZE of clustered tables: what is clustered, what is left alone, and how much is written."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import pytest

from deltaic import DeltaTable
from deltaic.exceptions import InvalidArgumentError
from tests.support import log
from tests.support.delta_rs import by_query, in_order
from tests.support.session_settings import session_settings
from tests.support.table_builder import rows_of

if TYPE_CHECKING:
    from pyspark.sql import Row, SparkSession

#: Files and tasks so small that a few thousand rows are many of both.
SMALL_FILES = {
    "spark.deltaic.optimize.maxFileSize": "32k",
    "spark.deltaic.optimize.minTaskSize": "1k",
}


@pytest.fixture(scope="module", autouse=True)
def small_files(spark: SparkSession) -> Any:
    with session_settings(spark, SMALL_FILES):
        yield


def cluster(spark: SparkSession, table: str, rest: str = "") -> Row:
    (result,) = spark.sql(f"OPTIMIZE delta.`{table}` {rest}").collect()
    metrics: Row = result.metrics
    return metrics


def create(spark: SparkSession, table: str, columns: str = "x, y") -> None:
    spark.sql(
        f"CREATE TABLE delta.`{table}` (x BIGINT, y BIGINT, other STRING) USING delta"
        f" CLUSTER BY ({columns}) TBLPROPERTIES ('delta.enableDeletionVectors' = 'true')"
    )


def insert(spark: SparkSession, table: str, rows: int, *, x_from: int = 0, files: int = 1) -> None:
    """Append points whose `x` begins at a value; rows are in no order."""
    spark.sql(
        f"INSERT INTO delta.`{table}` SELECT /*+ REPARTITION({files}) */ {x_from} + id % 100,"
        f" id DIV 100, uuid() FROM range({rows})"
    )


def cubes(table: str) -> dict[str | None, list[dict[str, Any]]]:
    """Return the files by the cubes that their tags name; None for files that are not clustered."""
    found: dict[str | None, list[dict[str, Any]]] = {}
    for add in log.active_files(table):
        found.setdefault((add.get("tags") or {}).get("ZCUBE_ID"), []).append(add)
    return found


def cluster_two_cubes(spark: SparkSession, table: str) -> None:
    """Append 2,000 rows twice and cluster each time, without merging them."""
    for x_from in (0, 50):
        insert(spark, table, 2_000, x_from=x_from)
        with session_settings(
            spark, {"spark.deltaic.optimize.clustering.maxWriteAmplification": "1"}
        ):
            cluster(spark, table)
    assert len(cubes(table)) == 2


def size(files: list[dict[str, Any]]) -> int:
    return sum(add["size"] for add in files)


@pytest.mark.protocol("writer-clustered-table-4")
def test_rows_are_clustered_once(spark: SparkSession, table: str) -> None:
    create(spark, table)
    insert(spark, table, 5_000, files=4)
    before = rows_of(spark, table)
    metrics = cluster(spark, table)
    assert rows_of(spark, table) == before
    assert in_order(by_query(table)) == in_order(before)
    assert (metrics.numFilesRemoved, metrics.clusteringStats.numOutputZCubes) == (4, 1)
    (cube,) = cubes(table).values()
    assert len(cube) == metrics.numFilesAdded >= 4
    for add in cube:
        assert add["clusteringProvider"] == "liquid"
        assert json.loads(add["tags"]["ZCUBE_ZORDER_BY"]) == ["x", "y"]
    info = log.commit_info(table)
    assert info["operation"] == "OPTIMIZE"
    assert info["operationParameters"]["clusterBy"] == '["x","y"]'
    assert info["operationParameters"]["isFull"] is False
    boxes = [log.statistics(add) for add in cube]
    points = [(x, y) for x in range(0, 100, 5) for y in range(0, 50, 5)]
    touched = sum(
        s["minValues"]["x"] <= x <= s["maxValues"]["x"]
        and s["minValues"]["y"] <= y <= s["maxValues"]["y"]
        for x, y in points
        for s in boxes
    )
    assert touched / len(points) <= 2, "a query of one point reads two of all files on average"
    version = log.newest(table)
    again = cluster(spark, table)
    assert (again.numFilesAdded, again.numFilesRemoved, again.totalConsideredFiles) == (
        0, 0, len(cube),
    )  # fmt: skip
    assert log.newest(table) == version


def test_new_rows_join_small_cubes_within_the_bound(spark: SparkSession, table: str) -> None:
    """Each run writes at most four times the bytes that are new since the last one."""
    create(spark, table)
    for turn in range(8):
        insert(spark, table, 400, x_from=turn)
        new = size(cubes(table)[None])
        before = {add["path"] for add in log.active_files(table)}
        cluster(spark, table)
        written = [add for add in log.active_files(table) if add["path"] not in before]
        removed = log.last_actions(table, "remove")
        assert sum(remove["size"] for remove in removed) <= 4 * new
        assert size(written) <= 4.5 * new
        assert None not in cubes(table)
    assert len(cubes(table)) <= 4
    assert spark.table(f"delta.`{table}`").count() == 8 * 400


def test_files_that_new_rows_do_not_overlap_stay(spark: SparkSession, table: str) -> None:
    create(spark, table, "x")
    insert(spark, table, 8_000, files=2)
    cluster(spark, table)
    old = {add["path"]: log.statistics(add) for add in log.active_files(table)}
    spark.sql(f"INSERT INTO delta.`{table}` SELECT 50, id, uuid() FROM range(0, 1000, 1, 1)")
    metrics = cluster(spark, table)
    removed = {remove["path"] for remove in log.last_actions(table, "remove")} & old.keys()
    assert metrics.clusteringStats.mergedFiles.numFiles == len(removed) + 1
    assert removed == {
        path for path, s in old.items() if s["minValues"]["x"] <= 50 <= s["maxValues"]["x"]
    }
    with session_settings(spark, {"spark.deltaic.optimize.clustering.maxWriteAmplification": "1"}):
        spark.sql(f"INSERT INTO delta.`{table}` SELECT 50, id, uuid() FROM range(0, 1000, 1, 1)")
        assert cluster(spark, table).numFilesRemoved == 1


CUBE_SIZE = "optimize.clustering.mergeStrategy.minCubeSize"


@pytest.mark.parametrize("prefix", ["spark.deltaic.", "spark.databricks.delta."])
def test_cubes_of_the_minimum_size_are_left_alone(
    spark: SparkSession, table: str, prefix: str
) -> None:
    create(spark, table, "x")
    insert(spark, table, 400)
    cluster(spark, table)
    (cube,) = cubes(table)
    for threshold, merged in ((size(cubes(table)[cube]), False), (1 << 40, True)):
        insert(spark, table, 400)
        with session_settings(spark, {f"{prefix}{CUBE_SIZE}.threshold": str(threshold)}):
            assert (cluster(spark, table).numFilesRemoved > 1) is merged
        assert (cube in cubes(table)) is not merged
    for wrong in ("-1", "large"):
        with (
            session_settings(spark, {f"{prefix}{CUBE_SIZE}.threshold": wrong}),
            pytest.raises(InvalidArgumentError, match=r"minCubeSize\.threshold"),
        ):
            cluster(spark, table)


def test_cubes_have_the_target_size(spark: SparkSession, table: str) -> None:
    create(spark, table, "x")
    for x_from in range(0, 400, 100):
        insert(spark, table, 400, x_from=x_from)
    before = rows_of(spark, table)
    two = 2 * min(add["size"] for add in log.active_files(table))
    settings = {f"spark.databricks.delta.{CUBE_SIZE}.targetCubeSize": str(two - 1)}
    with session_settings(spark, settings):
        metrics = cluster(spark, table)
    assert metrics.clusteringStats.numOutputZCubes == len(cubes(table)) == 2
    assert rows_of(spark, table) == before
    # No target is smaller than the minimum.
    settings[f"spark.deltaic.{CUBE_SIZE}.threshold"] = "1g"
    with session_settings(spark, settings):
        cluster(spark, table, "FULL")
    assert len(cubes(table)) == 1
    assert rows_of(spark, table) == before


def test_full_clusters_all_files(spark: SparkSession, table: str) -> None:
    create(spark, table)
    cluster_two_cubes(spark, table)
    files = len(log.active_files(table))
    before = rows_of(spark, table)
    metrics = cluster(spark, table, "FULL")
    assert metrics.numFilesRemoved == files
    assert metrics.clusteringStats.inputNumZCubes == 2
    assert len(cubes(table)) == 1
    assert log.commit_info(table)["operationParameters"]["isFull"] is True
    assert rows_of(spark, table) == before


@pytest.mark.protocol("writer-clustered-table-5")
@pytest.mark.parametrize("full", ["", "FULL"])
def test_files_of_another_implementation_stay(spark: SparkSession, table: str, full: str) -> None:
    create(spark, table)
    cluster_two_cubes(spark, table)
    version = log.newest(table) + 1
    [first, *others] = log.active_files(table)
    foreign = {**first, "clusteringProvider": "other", "dataChange": False}
    log.write_commit(table, version, {"add": foreign})
    insert(spark, table, 2_000)
    before = rows_of(spark, table)
    cluster(spark, table, full)
    removed = {remove["path"] for remove in log.last_actions(table, "remove")}
    assert first["path"] not in removed and removed
    if full:
        assert removed >= {add["path"] for add in others}
    assert rows_of(spark, table) == before


def test_other_clustering_columns_apply_to_new_rows(spark: SparkSession, table: str) -> None:
    create(spark, table, "x")
    insert(spark, table, 2_000)
    cluster(spark, table)
    old = {add["path"] for add in log.active_files(table)}
    spark.sql(f"ALTER TABLE delta.`{table}` CLUSTER BY (y, x)")
    assert cluster(spark, table).numFilesRemoved == 0
    insert(spark, table, 2_000)
    assert cluster(spark, table).numFilesRemoved == 1
    now = {add["path"]: add["tags"]["ZCUBE_ZORDER_BY"] for add in log.active_files(table)}
    assert {now.pop(path) for path in old} == {'["x"]'}
    assert set(now.values()) == {'["y","x"]'}
    cluster(spark, table, "FULL")
    assert {c["tags"]["ZCUBE_ZORDER_BY"] for c in log.active_files(table)} == {'["y","x"]'}


def test_deleted_rows_leave_clustered_files(spark: SparkSession, table: str) -> None:
    create(spark, table)
    insert(spark, table, 4_000, files=2)
    cluster(spark, table)
    spark.sql(f"DELETE FROM delta.`{table}` WHERE other < '4'")
    before = rows_of(spark, table)
    assert cluster(spark, table).deletionVectorStats.numDeletionVectorsRemoved > 0
    assert rows_of(spark, table) == before
    assert all("deletionVector" not in add for add in log.active_files(table))
    assert None not in cubes(table)


def test_deleted_rows_do_not_pull_other_files_into_a_run(spark: SparkSession, table: str) -> None:
    """The bound is on what is new, and a file of deleted rows is not."""
    create(spark, table, "x")
    cluster_two_cubes(spark, table)
    spark.sql(f"DELETE FROM delta.`{table}` WHERE x < 10")
    heavy = {add["path"] for add in log.active_files(table) if "deletionVector" in add}
    before = rows_of(spark, table)
    cluster(spark, table)
    assert {remove["path"] for remove in log.last_actions(table, "remove")} == heavy
    assert rows_of(spark, table) == before


def test_python_clusters_all_files(spark: SparkSession, table: str) -> None:
    create(spark, table, "x")
    insert(spark, table, 2_000)
    cluster(spark, table)
    builder = DeltaTable.forPath(spark, table).optimize()
    removed = [
        builder.executeCompaction(full=full).collect()[0].metrics.numFilesRemoved
        for full in (False, True)
    ]
    assert removed[0] == 0 < removed[1]
    with pytest.raises(InvalidArgumentError, match="full"):
        builder.executeCompaction(full="yes")  # type: ignore[arg-type]


@pytest.mark.protocol("writer-clustered-table-4")
def test_a_purge_leaves_rows_clustered(spark: SparkSession, table: str) -> None:
    create(spark, table)
    insert(spark, table, 2_000)
    cluster(spark, table)
    (cube,) = cubes(table)
    spark.sql(f"DELETE FROM delta.`{table}` WHERE other < '08'")
    spark.sql(f"REORG TABLE delta.`{table}` APPLY (PURGE)")
    assert set(cubes(table)) == {cube}
    assert all("deletionVector" not in add for add in log.active_files(table))
    insert(spark, table, 100)
    before = rows_of(spark, table)
    with session_settings(spark, {"spark.deltaic.optimize.clustering.maxWriteAmplification": "1"}):
        assert cluster(spark, table).numFilesRemoved == 1
    assert rows_of(spark, table) == before


def test_mapped_and_nested_columns(spark: SparkSession, table: str) -> None:
    name = f"delta.`{table}`"
    spark.sql(
        f"CREATE TABLE {name} (id INT, n STRUCT<`a.b`: INT>) USING delta CLUSTER BY (n.`a.b`)"
        " TBLPROPERTIES ('delta.columnMapping.mode' = 'name')"
    )
    spark.sql(f"ALTER TABLE {name} RENAME COLUMN n TO `new name`")
    for first in (0, 3):
        spark.sql(
            f"INSERT INTO {name} SELECT INT(id), named_struct('a.b', INT(-id))"
            f" FROM range({first}, {first + 3})"
        )
    before = rows_of(spark, table)
    assert cluster(spark, table).numFilesRemoved >= 2
    assert rows_of(spark, table) == before
    (add,) = log.active_files(table)
    assert json.loads(add["tags"]["ZCUBE_ZORDER_BY"]) == ["`new name`.`a.b`"]


@pytest.mark.parametrize("clause", ["WHERE true", "ZORDER BY (x)"])
def test_clauses_of_other_tables_are_refused(spark: SparkSession, table: str, clause: str) -> None:
    create(spark, table)
    insert(spark, table, 10)
    with pytest.raises(InvalidArgumentError, match=rf"no {clause.rsplit(' ', 1)[0]} for table"):
        cluster(spark, table, clause)
    assert log.newest(table) == 1


def test_no_full_without_clustering(spark: SparkSession, table: str) -> None:
    create(spark, table)
    insert(spark, table, 10)
    spark.sql(f"ALTER TABLE delta.`{table}` CLUSTER BY NONE")
    with pytest.raises(InvalidArgumentError, match="FULL"):
        cluster(spark, table, "FULL")
    assert DeltaTable.forPath(spark, table).optimize().executeCompaction().count() == 1
