"""The metrics of our scans and writes in Spark's UI, compared with the actions in the log."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import pytest

from tests.spark.scan.test_distributed_snapshot import THRESHOLD, forget
from tests.support import log
from tests.support.checkpoint import write_checkpoint
from tests.support.interleave import committed_meanwhile
from tests.support.jobs import jobs_of
from tests.support.session_settings import session_settings
from tests.support.table_builder import build_table

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

SCHEMA = "id INT, p INT"
UNITS = {"B": 1, "KiB": 1024}


def metrics_of(spark: SparkSession, action: Callable[[], object]) -> dict[str, str]:
    """Return the metrics of the action's first query that has them, by their names in the UI."""
    return {name: values[0] for name, values in all_metrics_of(spark, action).items()}


def all_metrics_of(spark: SparkSession, action: Callable[[], object]) -> dict[str, list[str]]:
    """Return the values of each metric, of all nodes of the plans, in the order of the queries."""
    store = spark._jsparkSession.sharedState().statusStore()
    before = {execution.executionId() for execution in items(store.executionsList())}
    action()
    spark.sparkContext._jsc.sc().listenerBus().waitUntilEmpty()
    found: dict[str, list[str]] = {}
    for execution in items(store.executionsList()):
        number = execution.executionId()
        if number in before:
            continue
        values = store.executionMetrics(number)
        for node in items(store.planGraph(number).allNodes()):
            for metric in items(node.metrics()):
                value = values.get(metric.accumulatorId())
                if value.isDefined():
                    found.setdefault(metric.name(), []).append(value.get())
    return found


def items(sequence: Any) -> list[Any]:
    indexed = sequence.toIndexedSeq()
    return [indexed.apply(i) for i in range(indexed.size())]


def size(shown: str) -> float:
    number, unit = shown.split()
    return float(number) * UNITS[unit]


@pytest.fixture
def four_files(spark: SparkSession, table: str) -> str:
    """Partitions 0 and 1, each of two files with the ids 0 to 9 and 10 to 19."""
    rows = [[(start + i, p) for i in range(10)] for p in (0, 1) for start in (0, 10)]
    build_table(spark, table, SCHEMA, rows, partition_by=["p"])
    return table


def test_scan_counts_what_it_skips_and_why(spark: SparkSession, four_files: str) -> None:
    spark.sql(f"DELETE FROM delta.`{four_files}` WHERE id IN (12, 13)")
    query = spark.read.format("delta").load(four_files).where("p = 1 AND id > 11")
    shown = metrics_of(spark, query.collect)
    assert {
        name: shown[f"number of {name}"]
        for name in (
            "files read",
            "files skipped by partition values",
            "files skipped by statistics",
            "files skipped by runtime filters",
            "deletion vectors of files read",
            "rows deleted by these vectors",
        )
    } == {
        "files read": "1",
        "files skipped by partition values": "2",
        "files skipped by statistics": "1",
        "files skipped by runtime filters": "0",
        "deletion vectors of files read": "1",
        "rows deleted by these vectors": "2",
    }
    sizes = {add["path"]: add["size"] for add in log.active_files(four_files)}
    in_p0 = sum(bytes for path, bytes in sizes.items() if path.startswith("p=0"))
    assert size(shown["size of files skipped by partition values"]) == in_p0
    read = size(shown["size of files read"])
    assert read in sizes.values()
    assert size(shown["size of files skipped by statistics"]) + read == sum(sizes.values()) - in_p0


def test_scans_of_one_query_count_their_own_files(spark: SparkSession, four_files: str) -> None:
    rows = spark.read.format("delta").load(four_files)
    both = rows.where("p = 0").union(rows.where("p = 1 AND id > 11")).union(rows)
    every = all_metrics_of(spark, both.collect)
    names = ("files read", "files skipped by partition values", "files skipped by statistics")
    counts = {name: sorted(every[f"number of {name}"]) for name in names}
    assert counts == {
        "files read": ["1", "2", "4"],
        "files skipped by partition values": ["0", "2", "2"],
        "files skipped by statistics": ["0", "0", "1"],
    }


@pytest.mark.parametrize(("max_bytes", "jobs"), [("-1", 1), ("0", 3)])
def test_files_are_selected_once_for_scan_and_metrics(
    spark: SparkSession, four_files: str, max_bytes: str, jobs: int
) -> None:
    write_checkpoint(four_files, "classic")
    with session_settings(spark, {THRESHOLD: max_bytes}):
        forget(spark, four_files)
        rows = spark.read.format("delta").load(four_files)
        both = rows.where("p = 0").union(rows.where("p = 1 AND id > 11"))
        started: list[int] = []
        every = all_metrics_of(spark, lambda: started.append(jobs_of(spark, both.collect)))
    assert started == [jobs]
    assert sorted(every["number of files skipped by statistics"]) == ["0", "1"]
    assert sorted(every["number of files skipped by partition values"]) == ["2", "2"]


def test_scan_counts_what_a_join_skips(spark: SparkSession, four_files: str) -> None:
    settings = {
        "spark.deltaic.joinPruning.minFiles": "2",
        "spark.deltaic.joinPruning.minBytes": "0",
    }
    with session_settings(spark, settings):
        small = spark.range(8).selectExpr("CAST(id % 2 AS INT) AS p", "id AS k").where("k > 6")
        joined = spark.read.format("delta").load(four_files).join(small.hint("broadcast"), "p")
        shown = metrics_of(spark, joined.collect)
    assert shown["number of files read"] == "2"
    assert shown["number of files skipped by runtime filters"] == "2"


def test_append_counts_its_files_and_its_commit(spark: SparkSession, four_files: str) -> None:
    rows = spark.sql("SELECT CAST(5 AS INT) id, CAST(i AS INT) p FROM range(3) AS r(i)")
    append = rows.coalesce(1).write.format("delta").mode("append")
    shown = metrics_of(spark, lambda: append.save(four_files))
    added = log.last_actions(four_files, "add")
    assert shown["number of files added"] == str(len(added)) == "3"
    assert size(shown["size of files added"]) == pytest.approx(
        sum(add["size"] for add in added), abs=60
    )
    assert shown["number of files removed"] == "0"
    assert shown["number of commit attempts"] == "1"
    assert re.fullmatch(r"\d+ ms|\d+\.\d s", shown["time to commit"])


def test_overwrite_counts_the_files_that_it_removes(spark: SparkSession, four_files: str) -> None:
    one = spark.sql("SELECT CAST(5 AS INT) id, CAST(7 AS INT) p")
    overwrite = one.write.format("delta").mode("overwrite")
    shown = metrics_of(spark, lambda: overwrite.save(four_files))
    assert (shown["number of files added"], shown["number of files removed"]) == ("1", "4")


@pytest.mark.parametrize(
    ("statement", "added", "removed", "vectors"),
    [
        ("DELETE FROM {t} WHERE id IN (3, 13)", "0", "0", "4"),
        ("DELETE FROM {t} WHERE p = 0", "0", "2", "0"),
        ("UPDATE {t} SET id = 100 WHERE id = 3 AND p = 1", "1", "0", "1"),
        (
            "MERGE INTO {t} t USING (SELECT 3 k) s ON t.id = s.k AND t.p = 0"
            " WHEN MATCHED THEN DELETE WHEN NOT MATCHED THEN INSERT (id, p) VALUES (1, 1)",
            "0",
            "0",
            "1",
        ),
    ],
)
def test_change_of_rows_counts_files_and_vectors(
    spark: SparkSession, four_files: str, statement: str, added: str, removed: str, vectors: str
) -> None:
    shown = metrics_of(spark, lambda: spark.sql(statement.format(t=f"delta.`{four_files}`")))
    assert shown["number of files added"] == added
    assert shown["number of files removed"] == removed
    assert shown["number of deletion vectors written"] == vectors
    assert shown["number of commit attempts"] == "1"


def test_commit_that_lost_to_another_counts_its_attempts(
    spark: SparkSession, four_files: str
) -> None:
    def append() -> None:
        row = spark.sql("SELECT CAST(1 AS INT) id, CAST(1 AS INT) p")
        row.write.format("delta").mode("append").save(four_files)

    def append_after_another() -> None:
        with committed_meanwhile(append):
            append()

    metrics = metrics_of(spark, append_after_another)
    assert metrics["number of commit attempts"] == "2"
