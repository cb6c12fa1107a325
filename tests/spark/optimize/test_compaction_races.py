"""OPTIMIZE and statements that change rows do not fail each other, whichever commits first.

The expected rows are those of a plain dictionary to which the statement is applied.
"""

from __future__ import annotations

import json
import threading
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
from pyspark.sql import Row, SparkSession

from deltaic.exceptions import ConcurrentDeleteDeleteException, ConcurrentModificationError
from tests.support import change_feed, log
from tests.support.delta_rs import by_query, in_order
from tests.support.interleave import committed_meanwhile
from tests.support.table_builder import build_table, rows_of

Rows = dict[int, str]
LINEAGE = "deltaic.lineage"

STATEMENTS: dict[str, tuple[str, Callable[[Rows], Rows]]] = {
    "delete": (
        "DELETE FROM {t} WHERE id % 10 = 3",
        lambda rows: {i: v for i, v in rows.items() if i % 10 != 3},
    ),
    "delete files": (
        "DELETE FROM {t} WHERE id BETWEEN 10 AND 24",
        lambda rows: {i: v for i, v in rows.items() if not 10 <= i <= 24},
    ),
    "update": (
        "UPDATE {t} SET v = 'u' WHERE id % 10 IN (0, 9)",
        lambda rows: {i: "u" if i % 10 in (0, 9) else v for i, v in rows.items()},
    ),
    "merge": (
        "MERGE INTO {t} t USING (SELECT id FROM VALUES (3), (13), (100) s(id)) s ON t.id = s.id"
        " WHEN MATCHED THEN UPDATE SET v = 'm'"
        " WHEN NOT MATCHED THEN INSERT (id, v) VALUES (s.id, 'new')",
        lambda rows: {i: "m" if i in (3, 13) else v for i, v in rows.items()} | {100: "new"},
    ),
}
#: What precedes a compaction, and its statement. Rows that are ordered are found by their row IDs.
COMPACTIONS: dict[str, tuple[Sequence[str], str]] = {
    "compaction": ((), "OPTIMIZE {t}"),
    "z-order": ((), "OPTIMIZE {t} ZORDER BY (v, id)"),
    "clustering": (("ALTER TABLE {t} CLUSTER BY (v, id)",), "OPTIMIZE {t}"),
    "clustering of all": (("ALTER TABLE {t} CLUSTER BY (v, id)",), "OPTIMIZE {t} FULL"),
    "purge": ((), "REORG TABLE {t} APPLY (PURGE)"),
}
IN_ORDER = ("compaction", "purge")
#: Four files of ten rows, of which one row each is deleted.
BASE: Rows = {i: "a" for i in range(40) if i % 10 != 7}


@pytest.fixture(
    scope="module",
    params=["with row tracking", pytest.param("without", marks=pytest.mark.thorough)],
)
def base(
    request: pytest.FixtureRequest, spark: SparkSession, tmp_path_factory: pytest.TempPathFactory
) -> Path:
    path = tmp_path_factory.mktemp("bases") / "base"
    tracked = str(request.param == "with row tracking").lower()
    spark.sql(
        f"CREATE TABLE delta.`{path}` (id INT, v STRING) USING delta TBLPROPERTIES ("
        "'delta.enableDeletionVectors' = 'true', 'delta.enableChangeDataFeed' = 'true',"
        f" 'delta.enableRowTracking' = '{tracked}')"
    )
    for first in range(0, 40, 10):
        spark.sql(
            f"INSERT INTO delta.`{path}`"
            f" SELECT INT(id), 'a' FROM range({first}, {first + 10}, 1, 1)"
        )
    spark.sql(f"DELETE FROM delta.`{path}` WHERE id % 10 = 7")
    return path


def run(spark: SparkSession, table: str, statements: Sequence[str]) -> None:
    for statement in statements:
        spark.sql(statement.replace("{t}", f"delta.`{table}`"))


def values(spark: SparkSession, table: str) -> Rows:
    rows = rows_of(spark, table)
    assert len({row[0] for row in rows}) == len(rows)
    assert in_order(by_query(table)) == in_order(rows)
    return {row[0]: row[1] for row in rows}


def row_ids(spark: SparkSession, table: str) -> dict[int, int]:
    if log.metadata(table)["configuration"]["delta.enableRowTracking"] == "false":
        return {}
    found = spark.sql(f"SELECT id, _metadata.row_id FROM delta.`{table}`")
    return {row[0]: row[1] for row in found.collect()}


def require_kept_ids(before: dict[int, int], after: dict[int, int]) -> None:
    assert {i: n for i, n in after.items() if i in before} == {
        i: n for i, n in before.items() if i in after
    }


def prepare(spark: SparkSession, base: Path, table: str, order: str) -> str:
    """Copy the table, and return the statement that compacts it."""
    log.copy_table(base, table)
    before, compaction = COMPACTIONS[order]
    run(spark, table, before)
    if order not in IN_ORDER and not row_ids(spark, table):
        pytest.skip("without row tracking, it is a conflict")
    return compaction


@pytest.mark.parametrize("order", COMPACTIONS)
@pytest.mark.parametrize("kind", STATEMENTS)
def test_change_of_rows_follows_a_compaction_that_commits_first(
    spark: SparkSession, base: Path, table: str, kind: str, order: str
) -> None:
    compaction = prepare(spark, base, table, order)
    ids, version = row_ids(spark, table), log.newest(table)
    statement, change = STATEMENTS[kind]
    with committed_meanwhile(lambda: run(spark, table, [compaction])):
        run(spark, table, [statement])
    assert [log.commit_info(table, version + n)["operation"] for n in (1, 2)] == [
        compaction.split()[0], statement.split()[0],
    ]  # fmt: skip
    expected = change(BASE)
    assert values(spark, table) == expected
    require_kept_ids(ids, row_ids(spark, table))
    (compacted,) = (a["path"] for a in log.actions(table, version + 1, "add"))
    removed = {remove["path"] for remove in log.actions(table, version + 2, "remove")}
    assert removed == {compacted}, "no other file is part of the change"
    feed = change_feed.changes(spark, table, startingVersion=version + 1).collect()
    told = {row.id for row in feed}
    assert told == {i for i in {*BASE, *expected} if BASE.get(i) != expected.get(i)}


@pytest.mark.protocol("dv-functional-3", "dv-new-add-action-format-1")
@pytest.mark.parametrize("order", COMPACTIONS)
@pytest.mark.parametrize("kind", STATEMENTS)
def test_compaction_follows_a_change_of_rows_that_commits_first(
    spark: SparkSession, base: Path, table: str, kind: str, order: str
) -> None:
    compaction = prepare(spark, base, table, order)
    ids, version = row_ids(spark, table), log.newest(table)
    statement, change = STATEMENTS[kind]
    with committed_meanwhile(lambda: run(spark, table, [statement])):
        run(spark, table, [compaction])
    assert log.commit_info(table)["operation"] == compaction.split()[0]
    assert log.newest(table) == version + 2
    assert values(spark, table) == change(BASE)
    require_kept_ids(ids, row_ids(spark, table))
    (compacted,) = log.last_actions(table, "add")
    assert compacted["dataChange"] is False
    assert compacted["deletionVector"]["cardinality"] > 0
    assert log.statistics(compacted)["tightBounds"] is False


@pytest.mark.parametrize("order", COMPACTIONS)
def test_several_changes_and_compactions_follow_each_other(
    spark: SparkSession, base: Path, table: str, order: str
) -> None:
    """An UPDATE loses to a DELETE, to a compaction over it, and to a DELETE of what that wrote."""
    compaction = prepare(spark, base, table, order)

    def others() -> None:
        with committed_meanwhile(lambda: run(spark, table, ["DELETE FROM {t} WHERE id % 10 = 1"])):
            run(spark, table, [compaction])
        run(spark, table, ["DELETE FROM {t} WHERE id % 10 = 2"])
        run(spark, table, ["INSERT INTO {t} VALUES (200, 'x')", compaction])
        run(spark, table, ["DELETE FROM {t} WHERE id % 10 = 4"])

    with committed_meanwhile(others):
        run(spark, table, ["UPDATE {t} SET v = 'u' WHERE id % 10 = 3 AND id < 100"])
    left = {i: v for i, v in BASE.items() if i % 10 not in (1, 2, 4)}
    expected = {i: "u" if i % 10 == 3 else v for i, v in left.items()} | {200: "x"}
    assert values(spark, table) == expected


def test_compaction_loses_to_several_changes(spark: SparkSession, base: Path, table: str) -> None:
    log.copy_table(base, table)

    def others() -> None:
        run(spark, table, ["DELETE FROM {t} WHERE id BETWEEN 10 AND 19"])
        run(spark, table, ["DELETE FROM {t} WHERE id = 3", "UPDATE {t} SET v = 'u' WHERE id = 4"])

    with committed_meanwhile(others):
        (result,) = spark.sql(f"OPTIMIZE delta.`{table}`").collect()
    (compacted,) = log.last_actions(table, "add")
    lineage = json.loads(compacted["tags"][LINEAGE])
    # The second input was removed by another commit, and three of the others had a vector.
    assert sorted(lineage["rows"]) == [-9, 9, 9, 9]
    removes = log.last_actions(table, "remove")
    require_metrics_of(result.metrics, removes, log.commit_info(table)["operationMetrics"])
    assert len(removes) == 3
    expected = {i: "u" if i == 4 else v for i, v in BASE.items() if i != 3 and not 10 <= i < 20}
    assert values(spark, table) == expected
    run(spark, table, ["OPTIMIZE {t}"])
    assert values(spark, table) == expected


def require_metrics_of(result: Row, removes: list[log.Action], history: dict[str, str]) -> None:
    """Both the result and the history count the files and vectors that the log removes."""
    sizes = [remove["size"] for remove in removes]
    vectors = [remove["deletionVector"] for remove in removes if "deletionVector" in remove]
    assert result.numFilesRemoved == result.filesRemoved.totalFiles == len(removes)
    assert result.filesRemoved.totalSize == sum(sizes)
    assert result.filesRemoved.avg == sum(sizes) / len(sizes)
    assert (result.filesRemoved.min, result.filesRemoved.max) == (min(sizes), max(sizes))
    found = result.deletionVectorStats
    assert found.numDeletionVectorsRemoved == len(vectors) > 0
    assert found.numDeletionVectorRowsRemoved == sum(vector["cardinality"] for vector in vectors)
    assert history["numRemovedFiles"] == str(len(removes))
    assert history["numRemovedBytes"] == str(sum(sizes))
    assert history["numDeletionVectorsRemoved"] == str(len(vectors))


@pytest.mark.parametrize("order", COMPACTIONS)
def test_change_follows_a_compaction_that_was_rebased(
    spark: SparkSession, base: Path, table: str, order: str
) -> None:
    """The compacted file holds rows that its inputs, as its commit removes them, no longer had."""
    compaction = prepare(spark, base, table, order)

    def others() -> None:
        deletes = ["DELETE FROM {t} WHERE id BETWEEN 10 AND 19", "DELETE FROM {t} WHERE id = 21"]
        with committed_meanwhile(lambda: run(spark, table, deletes)):
            run(spark, table, [compaction])

    with committed_meanwhile(others):
        run(spark, table, ["DELETE FROM {t} WHERE id IN (2, 23, 39)"])
    gone = {*range(10, 20), 21, 2, 23, 39}
    assert values(spark, table) == {i: v for i, v in BASE.items() if i not in gone}


def test_both_change_the_same_row(spark: SparkSession, base: Path, table: str) -> None:
    log.copy_table(base, table)

    def others() -> None:
        run(spark, table, ["DELETE FROM {t} WHERE id = 3", "OPTIMIZE {t}"])

    with (
        committed_meanwhile(others),
        pytest.raises(ConcurrentModificationError, match="1 row of the file"),
    ):
        run(spark, table, ["UPDATE {t} SET v = 'u' WHERE id IN (3, 4)"])
    assert values(spark, table) == {i: v for i, v in BASE.items() if i != 3}


def test_second_of_two_compactions_of_the_same_files_commits_nothing(
    spark: SparkSession, base: Path, table: str
) -> None:
    log.copy_table(base, table)
    before = log.newest(table)
    with committed_meanwhile(lambda: run(spark, table, ["OPTIMIZE {t}"])):
        metrics = spark.sql(f"OPTIMIZE delta.`{table}`").first().metrics  # type: ignore[union-attr]
    assert (metrics.numFilesAdded, metrics.numFilesRemoved) == (0, 0)
    assert values(spark, table) == BASE and log.newest(table) == before + 1
    assert len(log.files_in(table, ".parquet")) == 4 + 1, "the loser's file is deleted"


@pytest.mark.parametrize(
    ("theirs", "num_left", "is_left"),
    [
        ("OPTIMIZE {t} WHERE p = 0", 6, lambda i: True),
        ("DELETE FROM {t} WHERE p = 0 AND id = 4", 6, lambda i: i != 4),
        ("DELETE FROM {t}", 0, lambda i: False),
    ],
)
def test_compaction_leaves_out_files_that_others_have_removed(
    spark: SparkSession, table: str, theirs: str, num_left: int, is_left: Callable[[int], bool]
) -> None:
    """A DELETE rewrites files, as there are no deletion vectors. Metrics count what is left."""
    files = [[(10 * file + p, p) for p in (0, 1, 2)] + [(4 + 10 * file, 0)] for file in range(3)]
    build_table(spark, table, "id INT, p INT", files, deletion_vectors=False, partition_by=["p"])
    before = rows_of(spark, table)
    with committed_meanwhile(lambda: run(spark, table, [theirs])):
        metrics = spark.sql(f"OPTIMIZE delta.`{table}`").first().metrics  # type: ignore[union-attr]
    assert rows_of(spark, table) == [row for row in before if is_left(row[0])]
    assert in_order(by_query(table)) == in_order(rows_of(spark, table))
    assert metrics.numFilesRemoved == num_left
    if num_left == 0:
        assert (metrics.numFilesAdded, log.newest(table)) == (0, 1)
        return
    assert log.newest(table) == 2
    adds, removes = (log.actions(table, 2, kind) for kind in ("add", "remove"))
    assert {add["partitionValues"]["p"] for add in adds} == {"1", "2"} and len(removes) == 6
    assert metrics.numFilesAdded == 2
    assert metrics.filesAdded.totalSize == sum(add["size"] for add in adds)
    history = log.commit_info(table, 2)["operationMetrics"]
    assert (history["numAddedFiles"], history["numRemovedFiles"]) == ("2", "6")
    assert history["maxFileSize"] == str(max(add["size"] for add in adds))
    # What was left out is compacted by the next one.
    run(spark, table, ["OPTIMIZE {t}"])
    assert len(log.active_files(table)) == 3


def with_lineage(spark: SparkSession, table: str, tag: str) -> None:
    """Compact the table, and replace the lineage that the commit records."""
    run(spark, table, ["OPTIMIZE {t}"])
    path = log.commit_path(table, log.newest(table))
    lines = [json.loads(line) for line in path.read_text().splitlines()]
    for line in lines:
        if "add" in line:
            line["add"]["tags"][LINEAGE] = tag
    path.write_text("".join(json.dumps(line) + "\n" for line in lines))


@pytest.mark.parametrize(
    "tag",
    ["no JSON", "{}", '{"first": 0, "rows": [9, 9]}', '{"first": 3, "rows": [9, 9, 9, 9]}'],
)
def test_wrong_lineage_is_a_conflict(spark: SparkSession, base: Path, table: str, tag: str) -> None:
    log.copy_table(base, table)
    run(spark, table, ["ALTER TABLE {t} SET TBLPROPERTIES ('delta.enableRowTracking' = 'false')"])
    with (
        committed_meanwhile(lambda: with_lineage(spark, table, tag)),
        pytest.raises(ConcurrentDeleteDeleteException, match="CONCURRENT_COMPACTION"),
    ):
        run(spark, table, ["DELETE FROM {t} WHERE id = 3"])


def test_rows_without_lineage_are_found_by_their_row_ids(
    spark: SparkSession, base: Path, table: str
) -> None:
    log.copy_table(base, table)
    if not row_ids(spark, table):
        pytest.skip("the table has no row tracking")
    with committed_meanwhile(lambda: with_lineage(spark, table, "no JSON")):
        run(spark, table, ["DELETE FROM {t} WHERE id = 3"])
    assert values(spark, table) == {i: v for i, v in BASE.items() if i != 3}


def test_compactions_in_a_loop_fail_no_change_of_other_rows(
    spark: SparkSession, base: Path, table: str
) -> None:
    """Three threads change rows of their own while a fourth compacts the table all the time."""
    log.copy_table(base, table)
    mine = [[i for i in BASE if i % 3 == thread] for thread in range(3)]
    changed = threading.Event()

    def change(thread: int) -> None:
        for turn, i in enumerate(mine[thread][:6]):
            kind = (
                f"DELETE FROM {{t}} WHERE id = {i}",
                f"UPDATE {{t}} SET v = 'thread {thread}' WHERE id = {i}",
                f"MERGE INTO {{t}} t USING (SELECT explode(array({i})) AS id) s ON t.id = s.id"
                f" WHEN MATCHED THEN UPDATE SET v = 'merged {thread}'",
            )[turn % 3]
            run(spark, table, [kind])

    def compact() -> int:
        count = 0
        while not changed.is_set() or count == 0:
            run(spark, table, ["OPTIMIZE {t}"])
            count += 1
        return count

    with ThreadPoolExecutor(4) as threads:
        compactions = threads.submit(compact)
        try:
            for done in [threads.submit(change, thread) for thread in range(3)]:
                done.result()
        finally:
            changed.set()
        assert compactions.result() > 0
    expected = dict(BASE)
    for thread in range(3):
        for turn, i in enumerate(mine[thread][:6]):
            if turn % 3 == 0:
                del expected[i]
            else:
                expected[i] = f"{'thread' if turn % 3 == 1 else 'merged'} {thread}"
    assert values(spark, table) == expected
