"""Tables whose files stay in the checkpoint: executors prune them, with the same answers."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from deltaic import DeltaTable
from deltaic.exceptions import InvalidArgumentError
from tests.support import log
from tests.support.checkpoint import FORMS, write_checkpoint
from tests.support.jobs import jobs_of
from tests.support.plans import scanned_files, scanned_rows
from tests.support.session_settings import session_settings
from tests.support.table_builder import BuildWithOracle, TableWithOracle, build_with_oracle, rows_of

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

THRESHOLD = "spark.deltaic.snapshot.distributedThresholdBytes"

ROWS = (
    "id",
    "CAST(id % 4 AS INT) AS p",
    "CASE WHEN id % 11 <> 0 THEN concat('name ', lpad(id, 4, '0')) END AS s",
    "id / 4.0D AS amount",
    "named_struct('a', CAST(id % 13 AS INT)) AS st",
)


@pytest.fixture(autouse=True)
def _distributed(spark: SparkSession) -> Iterator[None]:
    with session_settings(spark, {THRESHOLD: "0"}):
        yield


def build_checkpointed(spark: SparkSession, path: str, form: str) -> TableWithOracle:
    """A partitioned table with deletion vectors, a checkpoint, and changes since."""
    rows = spark.range(0, 2_000, 1, 4).selectExpr(*ROWS)
    table = build_with_oracle(spark, path, rows, deletion_vectors=True, partition_by=["p"])
    table.delete("id % 50 = 7")
    table.delete("p = 3 AND id < 500")
    write_checkpoint(path, form)
    table.append(spark.range(2_000, 2_100, 1, 1).selectExpr(*ROWS))
    table.delete("id BETWEEN 1200 AND 1300")
    forget(spark, path)
    return table


def forget(spark: SparkSession, path: str) -> None:
    """Have a table opened from its log: what is in memory may stay there, whatever the setting."""
    jvm = spark._jvm
    assert jvm is not None
    jvm.io.deltaic.replay.DeltaLog.invalidate(jvm.org.apache.hadoop.fs.Path(path))


# How each form is read is tested where checkpoints are.
_IN_CI = ("classic", "parquet-sidecars")
_PARAMS = [f if f in _IN_CI else pytest.param(f, marks=pytest.mark.thorough) for f in FORMS]


@pytest.fixture(scope="module", params=_PARAMS)
def checkpointed(
    request: pytest.FixtureRequest, spark: SparkSession, tmp_path_factory: pytest.TempPathFactory
) -> TableWithOracle:
    with session_settings(spark, {THRESHOLD: "-1"}):
        path = str(tmp_path_factory.mktemp(request.param) / "table")
        return build_checkpointed(spark, path, request.param)


QUERIES = [
    "SELECT * FROM {t}",
    "SELECT count(*), count(s), sum(amount), max(st.a) FROM {t}",
    "SELECT count(*), min(p), max(p), count(p) FROM {t}",
    "SELECT p, count(*) FROM {t} GROUP BY p",
    "SELECT count(*) FROM {t} WHERE p IN (1, 2)",
    "SELECT id FROM {t} WHERE p = 2 AND id BETWEEN 100 AND 300",
    "SELECT id FROM {t} WHERE s LIKE 'name 12%' OR amount > 510",
    "SELECT id, s FROM {t} WHERE s IS NULL AND p <> 0",
    "SELECT id FROM {t} WHERE NOT (id < 1900) AND p + 1 = 2",
    "SELECT a.id FROM {t} a JOIN (SELECT id FROM {t} WHERE s = 'name 1999') b ON a.id = b.id",
]


@pytest.mark.parametrize("query", QUERIES)
def test_queries_have_the_answers_of_plain_rows(checkpointed: TableWithOracle, query: str):
    checkpointed.assert_same_answer(query)


@pytest.mark.parametrize(
    "condition",
    [
        "true",
        "p = 1",
        "id = 1777",
        "id > 1990 AND p < 2",
        "s = 'name 0100'",
        "amount < 1",
        "st.a = 3 AND id < 20",
        "_metadata.file_size > 1",
        "_metadata.file_name < 'part-00002' AND p = 0",
    ],
)
def test_executors_choose_the_files_that_the_driver_chooses(
    spark: SparkSession, checkpointed: TableWithOracle, condition: str
):
    query = f"SELECT id FROM {checkpointed.sql_name} WHERE {condition}"
    chosen = scanned_files(spark.sql(query))
    with session_settings(spark, {THRESHOLD: "-1"}):
        assert chosen == scanned_files(spark.sql(query))


def test_limit_reads_the_files_that_it_needs(spark: SparkSession, checkpointed: TableWithOracle):
    df = spark.sql(f"SELECT id FROM {checkpointed.sql_name} LIMIT 5")
    assert df.count() == 5
    limited = spark.read.format("delta").load(checkpointed.path).select("id").limit(5)
    assert len(scanned_files(limited)) == 1


def test_choosing_is_a_job_above_the_threshold_and_none_below(
    spark: SparkSession, checkpointed: TableWithOracle
):
    query = f"SELECT id FROM {checkpointed.sql_name} WHERE id = 5"
    for threshold, jobs in (("-1", 0), ("1g", 0), ("0", 1)):
        with session_settings(spark, {THRESHOLD: threshold}):
            assert jobs_of(spark, lambda: scanned_files(spark.sql(query))) == jobs


def test_older_versions_are_distributed_too(spark: SparkSession, checkpointed: TableWithOracle):
    version = log.newest(checkpointed.path) - 1
    query = f"SELECT id FROM {checkpointed.sql_name} VERSION AS OF {version} WHERE id < 500"
    assert jobs_of(spark, lambda: scanned_files(spark.sql(query))) == 1
    newer = rows_of(spark, checkpointed.path, version)
    with session_settings(spark, {THRESHOLD: "-1"}):
        assert jobs_of(spark, lambda: scanned_files(spark.sql(query))) == 0
        assert newer == rows_of(spark, checkpointed.path, version)


@pytest.fixture(scope="module")
def keys(spark: SparkSession) -> str:
    """Rows to join with, chosen by a name from which nothing about the key follows."""
    rows = spark.range(0, 2_100, 3, 1).selectExpr("id AS k", "CAST(id % 4 AS INT) AS p")
    rows.selectExpr("*", "concat('key ', k) AS name").createOrReplaceTempView("distributed_keys")
    return "distributed_keys"


@pytest.mark.parametrize(
    ("query", "most"),
    [
        ("SELECT * FROM {t} f JOIN {k} d ON f.p = d.p WHERE d.name = 'key 9'", 550),
        ("SELECT * FROM {t} f JOIN {k} d ON f.id = d.k WHERE d.name = 'key 1776'", 500),
        ("SELECT * FROM {t} WHERE id IN (SELECT k FROM {k} WHERE name = 'key 2022')", 100),
        ("SELECT * FROM {t} WHERE p = (SELECT max(p) - 1 FROM {k})", 550),
    ],
)
def test_join_reads_the_files_that_may_hold_its_keys(
    spark: SparkSession, checkpointed: TableWithOracle, keys: str, query: str, most: int
):
    query = query.replace("{k}", keys)
    read = scanned_rows(spark.sql(query.format(t=checkpointed.sql_name)))
    assert read <= most
    checkpointed.assert_same_answer(query)
    with session_settings(spark, {THRESHOLD: "-1"}):
        assert read == scanned_rows(spark.sql(query.format(t=checkpointed.sql_name)))


def test_optimizer_has_rows_and_partition_values(
    spark: SparkSession, checkpointed: TableWithOracle
):
    with session_settings(spark, {"spark.sql.cbo.enabled": "true"}):
        df = checkpointed.df().where("p < 3").select("p", "id")
        stats = df._jdf.queryExecution().optimizedPlan().stats()
        assert stats.rowCount().get() == checkpointed.live.where("p < 3").count()
        column = stats.attributeStats().toSeq().apply(0)
        assert column._1().name() == "p"
        assert column._2().distinctCount().get() == 3
        assert (column._2().min().get(), column._2().max().get()) == (0, 2)


def test_detail_counts_the_files(spark: SparkSession, checkpointed: TableWithOracle):
    files = log.active_files(checkpointed.path)
    row = DeltaTable.forPath(spark, checkpointed.path).detail().collect()[0]
    assert (row.numFiles, row.sizeInBytes) == (len(files), sum(f["size"] for f in files))


@pytest.fixture
def own(spark: SparkSession, table: str) -> TableWithOracle:
    return build_checkpointed(spark, table, "classic")


def test_rows_are_deleted_updated_and_merged(spark: SparkSession, own: TableWithOracle):
    own.delete("id % 9 = 0 AND p < 2")
    spark.sql(f"UPDATE {own.sql_name} SET amount = -1 WHERE id BETWEEN 40 AND 60")
    spark.sql(
        f"MERGE INTO {own.sql_name} t USING (SELECT id FROM range(1990, 2010)) u ON t.id = u.id "
        "WHEN MATCHED AND t.p = 1 THEN DELETE WHEN MATCHED THEN UPDATE SET s = 'merged'"
    )
    expected = own.live.selectExpr(
        "id",
        "p",
        "CASE WHEN id BETWEEN 1990 AND 2009 THEN 'merged' ELSE s END AS s",
        "CASE WHEN id BETWEEN 40 AND 60 THEN -1D ELSE amount END AS amount",
        "st",
    ).where("NOT (id BETWEEN 1990 AND 2009 AND p = 1)")
    own._now(expected)
    own.assert_same_content()


def test_partitions_are_overwritten(spark: SparkSession, own: TableWithOracle):
    new = spark.range(5_000, 5_004).selectExpr(*ROWS)
    with session_settings(spark, {"spark.sql.sources.partitionOverwriteMode": "dynamic"}):
        df = new.where("p IN (0, 1)")
        df.write.format("delta").mode("overwrite").save(own.path)
    own._now(own.live.where("p NOT IN (0, 1)").unionByName(new.where("p IN (0, 1)")))
    own.assert_same_content()
    removed = log.last_actions(own.path, "remove")
    assert removed and {r["partitionValues"]["p"] for r in removed} == {"0", "1"}


def test_everything_is_overwritten(spark: SparkSession, own: TableWithOracle):
    before = {f["path"] for f in log.active_files(own.path)}
    new = spark.range(3).selectExpr(*ROWS)
    new.write.format("delta").mode("overwrite").save(own.path)
    own._now(new)
    own.assert_same_content()
    assert {r["path"] for r in log.last_actions(own.path, "remove")} == before


def test_a_table_is_replaced(spark: SparkSession, own: TableWithOracle):
    before = {f["path"] for f in log.active_files(own.path)}
    spark.sql(f"CREATE OR REPLACE TABLE {own.sql_name} USING delta AS SELECT 1 AS one")
    assert [tuple(row) for row in own.df().collect()] == [(1,)]
    assert {r["path"] for r in log.last_actions(own.path, "remove")} == before


def test_detail_takes_the_counts_of_the_checksum_file(spark: SparkSession, own: TableWithOracle):
    version = log.newest(own.path)
    checksum = {
        "numFiles": 4711,
        "tableSizeBytes": 17,
        "protocol": log.actions(own.path, 0, "protocol")[0],
        "metadata": log.metadata(own.path),
    }
    Path(own.path, "_delta_log", f"{version:020d}.crc").write_text(json.dumps(checksum))
    forget(spark, own.path)
    row = DeltaTable.forPath(spark, own.path).detail().collect()[0]
    assert (row.numFiles, row.sizeInBytes) == (4711, 17)
    assert row.lastModified.timestamp() == pytest.approx(
        log.commit_path(own.path, version).stat().st_mtime, abs=0.01
    )


@pytest.mark.parametrize("value", ["many", "10 apples"])
def test_a_threshold_that_is_no_size_is_refused(
    spark: SparkSession, build: BuildWithOracle, value: str
):
    built = build(spark.range(3))
    with (
        session_settings(spark, {THRESHOLD: value}),
        pytest.raises(InvalidArgumentError, match=THRESHOLD),
    ):
        DeltaTable.forPath(spark, built.path).detail()
