"""OPTIMIZE in batches, with few tasks at a time, and interrupted."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from deltaic.exceptions import InvalidArgumentError
from tests.support import log
from tests.support.delta_rs import by_arrow, by_query, in_order
from tests.support.interleave import committed_meanwhile
from tests.support.jobs import await_tasks, failures_of_cancelled, most_tasks
from tests.support.quick import quick_and_thorough
from tests.support.session_settings import session_settings
from tests.support.table_builder import build_table, rows_of

if TYPE_CHECKING:
    from pyspark.sql import Row, SparkSession

SCHEMA = "id BIGINT, p INT, s STRING"
FILES = [[(n * 10 + i, i % 4, f"text {n * 10 + i}") for i in range(8)] for n in range(4)]
BATCH_SIZE = "spark.databricks.delta.optimize.batchSize"


def optimize(spark: SparkSession, table: str) -> Row:
    (result,) = spark.sql(f"OPTIMIZE delta.`{table}`").collect()
    metrics: Row = result.metrics
    return metrics


def test_each_batch_is_a_commit_of_whole_partitions(spark: SparkSession, table: str) -> None:
    properties = {"delta.enableRowTracking": "true"}
    build_table(
        spark, table, SCHEMA, FILES,
        deletion_vectors=False, partition_by=["p"], properties=properties,
    )  # fmt: skip
    before = rows_of(spark, table)
    of_partition = sum(
        add["size"] for add in log.active_files(table) if add["partitionValues"]["p"] == "0"
    )
    settings = {BATCH_SIZE: str(of_partition + 1), "spark.deltaic.optimize.maxFileSize": "64k"}
    with session_settings(spark, settings):
        metrics = optimize(spark, table)
    assert (metrics.numBatches, metrics.numFilesRemoved, metrics.numFilesAdded) == (2, 16, 4)
    assert metrics.partitionsOptimized == 4
    assert [log.commit_info(table, v)["operation"] for v in (1, 2)] == ["OPTIMIZE", "OPTIMIZE"]
    assert log.newest(table) == 2
    assert [len(log.actions(table, v, "remove")) for v in (1, 2)] == [8, 8]
    assert rows_of(spark, table) == before == [tuple(r) for r in in_order(by_arrow(table))]


def test_partition_is_split_only_where_each_batch_writes_whole_files(
    spark: SparkSession, table: str
) -> None:
    build_table(spark, table, SCHEMA, FILES)
    before = rows_of(spark, table)
    size = max(add["size"] for add in log.active_files(table))
    with session_settings(spark, {BATCH_SIZE: "1"}):
        assert optimize(spark, table).numBatches == 1
    assert len(log.active_files(table)) == 1
    assert rows_of(spark, table) == before
    build_table(spark, f"{table}-2", SCHEMA, [*FILES, *FILES])
    settings = {BATCH_SIZE: "1", "spark.deltaic.optimize.maxFileSize": str(4 * size)}
    with session_settings(spark, settings):
        metrics = optimize(spark, f"{table}-2")
    assert (metrics.numBatches, metrics.numFilesRemoved) == (2, 8)
    removed = [len(log.actions(f"{table}-2", v, "remove")) for v in (1, 2)]
    assert min(removed) >= 3 and sum(removed) == 8
    assert rows_of(spark, f"{table}-2") == in_order([*before, *before])


def test_batches_before_one_that_fails_stay(spark: SparkSession, table: str) -> None:
    build_table(spark, table, SCHEMA, FILES, partition_by=["p"])
    last = [add for add in log.active_files(table) if add["partitionValues"]["p"] == "3"]
    before = [row for row in rows_of(spark, table) if row[1] < 3]
    log.data_path(table, last[0]).write_bytes(b"no Parquet file")
    stored = log.files_in(table, ".parquet")
    with session_settings(spark, {BATCH_SIZE: "1"}), pytest.raises(Exception, match=r"(?i)parquet"):
        optimize(spark, table)
    await_tasks()
    assert log.newest(table) == 3
    assert sorted(a["partitionValues"]["p"] for a in log.active_files(table)) == [
        "0", "1", "2", *["3"] * 4,
    ]  # fmt: skip
    assert len(log.files_in(table, ".parquet") - stored) == 3, "nothing is left of the last batch"
    found = spark.read.format("delta").load(table).where("p < 3").collect()
    assert in_order(tuple(row) for row in found) == before


def test_later_batches_follow_what_others_commit_meanwhile(spark: SparkSession, table: str) -> None:
    build_table(spark, table, SCHEMA, FILES, partition_by=["p"])
    before = rows_of(spark, table)

    def others() -> None:
        spark.sql(f"DELETE FROM delta.`{table}` WHERE id IN (2, 11, 23)")
        spark.sql(f"INSERT INTO delta.`{table}` VALUES (100, 3, 'new')")

    with session_settings(spark, {BATCH_SIZE: "1"}), committed_meanwhile(others):
        assert optimize(spark, table).numBatches == 4
    kept = [row for row in before if row[0] not in (2, 11, 23)]
    assert rows_of(spark, table) == in_order([*kept, (100, 3, "new")])


def test_few_tasks_write_what_many_would(spark: SparkSession, table: str) -> None:
    build_table(spark, table, SCHEMA, FILES, partition_by=["p"])
    before = rows_of(spark, table)
    with session_settings(spark, {"spark.databricks.delta.optimize.maxThreads": "1"}):
        assert most_tasks(spark, lambda: optimize(spark, table)) == 1
    assert len(log.active_files(table)) == 4 and rows_of(spark, table) == before
    for wrong in ("0", "few"):
        with (
            session_settings(spark, {"spark.deltaic.optimize.maxThreads": wrong}),
            pytest.raises(InvalidArgumentError, match="maxThreads"),
        ):
            optimize(spark, table)


@pytest.mark.parametrize("order", ["ZORDER BY (s, id)", "clustering"])
def test_few_tasks_order_what_many_would(spark: SparkSession, table: str, order: str) -> None:
    partition_by = ["p"] if order != "clustering" else ()
    build_table(spark, table, SCHEMA, FILES, partition_by=partition_by)
    if order == "clustering":
        spark.sql(f"ALTER TABLE delta.`{table}` CLUSTER BY (s, id)")
    rest = "" if order == "clustering" else order
    before = rows_of(spark, table)
    small = {"spark.deltaic.optimize.minTaskSize": "1", "spark.deltaic.optimize.maxFileSize": "2k"}
    with session_settings(spark, {**small, "spark.databricks.delta.optimize.maxThreads": "2"}):
        tasks = most_tasks(spark, lambda: spark.sql(f"OPTIMIZE delta.`{table}` {rest}"))
    assert tasks == 2
    assert rows_of(spark, table) == before
    assert in_order(by_query(table)) == in_order(before)


#: A statement, and what precedes it.
CANCELLED = {
    "compaction": ([], "OPTIMIZE {t}"),
    "z-order": ([], "OPTIMIZE {t} ZORDER BY (s, id)"),
    "clustering": (["ALTER TABLE {t} CLUSTER BY (s)"], "OPTIMIZE {t}"),
    "purge": (["DELETE FROM {t} WHERE id % 100 = 3"], "REORG TABLE {t} APPLY (PURGE)"),
}


@pytest.mark.parametrize("case", quick_and_thorough(CANCELLED, "compaction", "z-order"))
def test_cancelled_command_leaves_the_table_as_it_was(
    spark: SparkSession, table: str, case: str
) -> None:
    rows = spark.range(0, 800_000, 1, 40).selectExpr("id", "sha2(STRING(id), 512) AS s")
    rows.write.format("delta").option("delta.enableDeletionVectors", "true").save(table)
    before, statement = CANCELLED[case]
    for one in before:
        spark.sql(one.replace("{t}", f"delta.`{table}`"))
    expected = rows.where("id % 100 <> 3") if case == "purge" else rows
    stored, versions = log.files_in(table, ".parquet"), log.versions(table)
    named = statement.replace("{t}", f"delta.`{table}`")
    group = f"cancelled-{case}"
    with session_settings(spark, {"spark.deltaic.optimize.minTaskSize": "64k"}):
        failures = failures_of_cancelled(
            spark,
            group,
            lambda: spark.sql(named).collect(),
            lambda: running_tasks(spark, group) > 0,
        )
    assert [group in str(problem) for problem in failures] == [True]
    assert log.versions(table) == versions
    assert log.files_in(table, ".parquet") == stored
    (result,) = spark.sql(named).collect()
    assert result.metrics.numFilesRemoved == 40
    found = spark.read.format("delta").load(table)
    assert found.exceptAll(expected).isEmpty() and found.count() == expected.count()


def running_tasks(spark: SparkSession, group: str) -> int:
    status = spark.sparkContext.statusTracker()
    jobs = [status.getJobInfo(job) for job in status.getJobIdsForGroup(group)]
    stages = [status.getStageInfo(s) for job in jobs if job is not None for s in job.stageIds]
    return sum(stage.numCompletedTasks > 0 for stage in stages if stage is not None)
