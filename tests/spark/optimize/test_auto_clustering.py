"""Auto compaction of clustered tables: small new files become a cube, within a bound."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

import pytest

from tests.support import change_feed, log
from tests.support.delta_rs import by_query, in_order
from tests.support.interleave import before_compaction_commits, committed_meanwhile
from tests.support.maintenance import await_maintenance
from tests.support.session_settings import session_settings
from tests.support.table_builder import rows_of

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

MIN_FILES = "spark.deltaic.autoCompact.minNumFiles"
MAX_FILE = "spark.deltaic.autoCompact.maxFileSize"
MIN_FILE = "spark.deltaic.autoCompact.minFileSize"
#: Compactions run before their commits return.
INLINE = {"spark.deltaic.maintenance.background": "false", MIN_FILES: "4"}


@pytest.fixture(autouse=True)
def inline(spark: SparkSession) -> Iterator[None]:
    with session_settings(spark, INLINE):
        yield


def create(spark: SparkSession, table: str, columns: str = "x, y", **properties: str) -> None:
    listed = ", ".join(
        f"'delta.{name}' = '{value}'"
        for name, value in {"autoOptimize.autoCompact": "true", **properties}.items()
    )
    spark.sql(
        f"CREATE TABLE delta.`{table}` (x BIGINT, y BIGINT, other STRING) USING delta"
        f" CLUSTER BY ({columns}) TBLPROPERTIES ({listed})"
    )


def insert(spark: SparkSession, table: str, first: int, rows: int = 100) -> None:
    """Append a file with points that are spread over a square of 1,000 by 1,000."""
    spark.sql(
        f"INSERT INTO delta.`{table}` SELECT id * 7919 % 1000, id * 104729 % 1000, uuid()"
        f" FROM range({first}, {first + rows}, 1, 1)"
    )


def is_clustered(add: dict[str, Any]) -> bool:
    return add.get("clusteringProvider") == "liquid" and "ZCUBE_ID" in (add.get("tags") or {})


def cubes(table: str) -> set[str]:
    return {add["tags"]["ZCUBE_ID"] for add in log.active_files(table) if is_clustered(add)}


def new_files(table: str) -> list[dict[str, Any]]:
    return [add for add in log.active_files(table) if not is_clustered(add)]


def size(files: list[dict[str, Any]]) -> int:
    return sum(file["size"] for file in files)


@pytest.mark.protocol("writer-clustered-table-4")
def test_small_new_files_are_clustered_when_there_are_enough(
    spark: SparkSession, table: str
) -> None:
    create(spark, table)
    for turn in range(3):
        insert(spark, table, 1000 * turn, rows=1000)
    assert cubes(table) == set() and log.newest(table) == 3
    sizes = {MAX_FILE: "24k", MIN_FILE: "1m", "spark.deltaic.optimize.minTaskSize": "1k"}
    with session_settings(spark, sizes):
        insert(spark, table, 3000, rows=1000)
    assert log.newest(table) == 5
    info = log.commit_info(table)
    assert info["operation"] == "OPTIMIZE"
    assert info["operationParameters"] == {
        "predicate": "[]", "zOrderBy": "[]", "clusterBy": '["x","y"]', "auto": True,
        "isFull": False,
    }  # fmt: skip
    files = log.active_files(table)
    assert len(cubes(table)) == 1 and all(map(is_clustered, files)) and len(files) >= 6
    for add in files:
        assert add["dataChange"] is False
        assert json.loads(add["tags"]["ZCUBE_ZORDER_BY"]) == ["x", "y"]
    # A box of a hundredth of the square is in few of the files.
    boxes = [log.statistics(add) for add in files]
    read = sum(
        s["minValues"]["x"] <= x + 99
        and x <= s["maxValues"]["x"]
        and s["minValues"]["y"] <= y + 99
        and y <= s["maxValues"]["y"]
        for s in boxes
        for x in range(0, 1000, 100)
        for y in range(0, 1000, 100)
    )
    assert read / 100 < 0.5 * len(files)
    assert in_order(rows_of(spark, table)) == in_order(by_query(table))
    assert rows_of(spark, table) == rows_of(spark, table, 4)
    spark.sql(f"OPTIMIZE delta.`{table}`")
    assert log.newest(table) == 5, "the next OPTIMIZE leaves it alone"


def test_what_is_written_is_bounded_and_few_files_stay(spark: SparkSession, table: str) -> None:
    create(spark, table, "x")
    for turn in range(24):
        before = log.newest(table)
        new = size(new_files(table))
        insert(spark, table, 100 * turn)
        new += size(log.actions(table, before + 1, "add"))
        if log.newest(table) > before + 1:
            assert log.newest(table) == before + 2
            assert size(log.actions(table, before + 2, "remove")) <= 4 * new
            assert size(log.actions(table, before + 2, "add")) <= 4.5 * new
        assert len(new_files(table)) < 4
    assert 1 <= len(cubes(table)) <= 3
    assert spark.table(f"delta.`{table}`").count() == 2400


def test_only_small_files_are_rewritten(spark: SparkSession, table: str) -> None:
    """Large new files are left to OPTIMIZE, as are large clustered ones."""
    create(spark, table, "x")
    with session_settings(spark, {"spark.deltaic.autoCompact.enabled": "false"}):
        insert(spark, table, 0, rows=3000)
        spark.sql(f"OPTIMIZE delta.`{table}`")
        insert(spark, table, 3000, rows=3000)
    large = {add["path"] for add in log.active_files(table)}
    smallest = min(add["size"] for add in log.active_files(table))
    with session_settings(spark, {MIN_FILE: str(smallest), MAX_FILE: "10m"}):
        for turn in range(4):
            insert(spark, table, 10_000 + 100 * turn)
    assert log.commit_info(table)["operationParameters"]["auto"] is True
    assert len(log.last_actions(table, "remove")) == 4
    assert large < {add["path"] for add in log.active_files(table)}


def test_files_that_others_have_clustered_are_left_alone(spark: SparkSession, table: str) -> None:
    create(spark, table, "x")
    with session_settings(spark, {"spark.deltaic.autoCompact.enabled": "false"}):
        for turn in range(4):
            insert(spark, table, 100 * turn)
    foreign = [{**add, "clusteringProvider": "other"} for add in log.active_files(table)]
    version = log.newest(table) + 1
    log.write_commit(table, version, *({"add": {**add, "dataChange": False}} for add in foreign))
    insert(spark, table, 1000)
    assert log.newest(table) == version + 1
    for turn in range(3):
        insert(spark, table, 2000 + 100 * turn)
    removed = {remove["path"] for remove in log.last_actions(table, "remove")}
    assert len(removed) == 4 and not removed & {add["path"] for add in foreign}


@pytest.mark.parametrize(
    "properties",
    [
        {"enableDeletionVectors": "true"},
        {"enableDeletionVectors": "false"},
        {"enableDeletionVectors": "true", "enableRowTracking": "true"},
    ],
    ids=["vectors", "no vectors", "row tracking"],
)
@pytest.mark.parametrize("kind", ["delete", "update", "merge"])
def test_it_fails_no_statement_that_commits_later(
    spark: SparkSession, table: str, properties: dict[str, str], kind: str
) -> None:
    """With row tracking, row IDs find the rows; without, the statement reverts the clustering."""
    create(spark, table, "x", enableChangeDataFeed="true", **properties)
    for turn in range(3):
        insert(spark, table, 100 * turn)
    name = f"delta.`{table}`"
    before = rows_of(spark, table)

    def others() -> None:
        spark.sql(f"INSERT INTO {name} VALUES (5000, 1, 'added')")
        assert log.commit_info(table)["operation"] == "OPTIMIZE"

    statement = {
        "delete": f"DELETE FROM {name} WHERE x < 50",
        "update": f"UPDATE {name} SET other = 'u' WHERE x < 50",
        "merge": f"MERGE INTO {name} t USING (SELECT explode(sequence(0, 49)) AS k) s ON t.x = s.k"
        " WHEN MATCHED THEN UPDATE SET other = 'u'",
    }[kind]
    with committed_meanwhile(others):
        spark.sql(statement).collect()
    version = 3 + 2 + 1
    assert log.newest(table) >= version
    changed = [row for row in before if row[0] < 50]
    assert changed
    expected = [row for row in before if row[0] >= 50]
    if kind != "delete":
        expected += [(row[0], row[1], "u") for row in changed]
    expected.append((5000, 1, "added"))
    assert in_order(rows_of(spark, table)) == in_order(expected) == in_order(by_query(table))
    again = [add for add in log.actions(table, version, "add") if not add["dataChange"]]
    assert bool(again) is ("enableRowTracking" not in properties), "it is taken back"
    feed = change_feed.changes(spark, table, startingVersion=version, endingVersion=version)
    told = feed.where("_change_type IN ('delete', 'update_preimage')").select("x", "y", "other")
    assert in_order(tuple(row) for row in told.collect()) == in_order(changed)
    # What was taken back is clustered by a later commit.
    for turn in range(4):
        insert(spark, table, 10_000 + 100 * turn)
    await_maintenance(spark)
    assert len(new_files(table)) < 4 and cubes(table)
    assert in_order(rows_of(spark, table)) == in_order(by_query(table))


@pytest.mark.parametrize("vectors", ["true", "false"])
def test_it_gives_way_to_a_statement_that_commits_first(
    spark: SparkSession, table: str, vectors: str
) -> None:
    create(spark, table, "x", enableDeletionVectors=vectors)
    for turn in range(3):
        insert(spark, table, 100 * turn)

    def theirs() -> None:
        with session_settings(spark, {"spark.deltaic.autoCompact.enabled": "false"}):
            spark.sql(f"DELETE FROM delta.`{table}` WHERE x < 50")

    with before_compaction_commits(theirs):
        insert(spark, table, 300)
    assert log.commit_info(table)["operation"] == "DELETE"
    assert not cubes(table)
    rows = rows_of(spark, table)
    assert len(rows) == 400 - sum(i * 7919 % 1000 < 50 for i in range(400))
    assert in_order(rows) == in_order(by_query(table))
