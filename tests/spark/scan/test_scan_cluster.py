"""Executors in processes of their own, with vectors off the heap: what they need must travel."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from tests.spark.conftest import SMALL_ROW_GROUPS
from tests.support import log
from tests.support.checkpoint import write_checkpoint
from tests.support.file_opens import FileOpens
from tests.support.paths import ROOT
from tests.support.spark_process import SparkProcess
from tests.support.table_builder import TableWithOracle, assert_same_rows, build_with_oracle

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


@pytest.fixture(scope="module")
def cluster() -> Iterator[SparkProcess]:
    settings = {
        "spark.executor.memory": "1g",
        "spark.memory.offHeap.enabled": "true",
        "spark.memory.offHeap.size": "128m",
        "spark.sql.columnVector.offheap.enabled": "true",
    }
    with SparkProcess(settings, engine="deltaic", master="local-cluster[2,1,1024]") as process:
        yield process


QUERY = "SELECT k, count(*) n, sum(id) s, max(st.b.c) c FROM {t} GROUP BY k"


@pytest.mark.parametrize("off_heap", ["true", "false"])
def test_executors_apply_deletion_vectors(
    cluster: SparkProcess, readings: TableWithOracle, off_heap: str
):
    answer = cluster.run(
        "spark.conf.set('spark.sql.columnVector.offheap.enabled', off_heap)\n"
        "spark.conf.set('spark.sql.files.maxPartitionBytes', '20000')\n"
        "result = [list(row) for row in spark.sql(query).collect()]",
        query=QUERY.format(t=readings.sql_name),
        off_heap=off_heap,
    )
    expected = readings.spark.sql(QUERY.format(t=readings.oracle())).collect()
    assert_same_rows(map(tuple, answer), map(tuple, expected))


@pytest.mark.parametrize("vectorized", ["true", "false"])
def test_executors_return_files_and_positions(
    cluster: SparkProcess, readings: TableWithOracle, vectorized: str
):
    answer = cluster.run(
        "spark.conf.set('spark.sql.parquet.enableVectorizedReader', vectorized)\n"
        "spark.conf.set('spark.sql.files.maxPartitionBytes', '20000')\n"
        "result = [list(row) for row in spark.sql(query).collect()]",
        query="SELECT id, _metadata.row_index, _metadata.file_path = input_file_name() FROM "
        f"{readings.sql_name} WHERE _metadata.file_size > 0 AND s IS NOT NULL",
        vectorized=vectorized,
    )
    live = readings.live.where("s IS NOT NULL").select("id").collect()
    # Each file of `readings` has 3000 rows, in the order of their ids.
    assert sorted(map(tuple, answer)) == sorted((i, i % 3_000, True) for (i,) in live)


@pytest.mark.protocol("dv-non-functional-4")
@pytest.mark.skipif(sys.platform != "linux", reason="only Linux reports when a file is opened")
def test_an_executor_loads_a_vector_once_for_all_splits_of_its_file(
    cluster: SparkProcess, spark: SparkSession, table: str
):
    rows = spark.range(0, 12_000, 1, 1).selectExpr("id", "hash(id) AS h")
    built = build_with_oracle(spark, table, rows, deletion_vectors=True, options=SMALL_ROW_GROUPS)
    built.delete("h % 3 = 0")
    [vectors] = Path(table).glob("*.bin")
    code = """
spark.conf.set('spark.sql.files.maxPartitionBytes', '4000')
spark.conf.set('spark.sql.files.openCostInBytes', '0')
df = spark.read.format('delta').load(path).where('id >= 0')
result = [df.rdd.getNumPartitions(), df.selectExpr('count(*)', 'sum(h)').collect()[0][:]]
"""
    with FileOpens([vectors]) as opens:
        splits, answer = cluster.run(code, path=table)
        assert splits >= 12
        # There are two executors, and to load a vector takes two looks into the file: at its
        # version and at the vector. Were it not shared, each split would open the file.
        assert 1 <= opens.counts[vectors] <= 4
        assert cluster.run(code, path=table) == [splits, answer]
        assert opens.counts[vectors] <= 4
    assert tuple(answer) == tuple(built.live.selectExpr("count(*)", "sum(h)").collect()[0])


@pytest.mark.protocol("dv-non-functional-4")
@pytest.mark.skipif(sys.platform != "linux", reason="only Linux reports when a file is opened")
@pytest.mark.parametrize("vectorized", ["true", "false"])
def test_a_task_reads_the_vectors_of_all_its_files_at_once(
    cluster: SparkProcess, spark: SparkSession, table: str, vectorized: str
):
    rows = spark.range(0, 12_000, 1, 12).selectExpr("id", "hash(id) AS h")
    built = build_with_oracle(spark, table, rows, deletion_vectors=True)
    built.delete("h % 3 = 0")
    [vectors] = Path(table).glob("*.bin")
    assert sum("deletionVector" in add for add in log.active_files(table)) == 12
    code = """
spark.conf.set('spark.sql.files.maxPartitionBytes', '1g')
spark.conf.set('spark.sql.files.minPartitionNum', '1')
spark.conf.set('spark.sql.parquet.enableVectorizedReader', vectorized)
df = spark.read.format('delta').load(path).where('id >= 0')
result = [df.rdd.getNumPartitions(), df.selectExpr('count(*)', 'sum(h)').collect()[0][:]]
spark.conf.unset('spark.sql.files.minPartitionNum')
spark.conf.unset('spark.sql.parquet.enableVectorizedReader')
"""
    with FileOpens([vectors]) as opens:
        tasks, answer = cluster.run(code, path=table, vectorized=vectorized)
        # Two looks into the file: at its version and at the vectors. One by one they would be 24.
        assert 1 <= opens.counts[vectors] <= 2
    assert tasks == 1
    assert tuple(answer) == tuple(built.live.selectExpr("count(*)", "sum(h)").collect()[0])


def test_executors_write_and_delete(cluster: SparkProcess, spark: SparkSession, table: str):
    code = """
rows = spark.range(0, 50000, 1, 4).selectExpr('id', 'id % 4 AS p')
writer = rows.write.format('delta').option('delta.enableDeletionVectors', 'true')
writer.partitionBy('p').save(path)
spark.sql('DELETE FROM delta.`' + path + '` WHERE hash(id) % 3 = 0')
spark.sql('DELETE FROM delta.`' + path + '` WHERE id BETWEEN 100 AND 900')
# What tasks find is too large for the driver.
spark.conf.set('spark.deltaic.deletionVectors.maxBitmapMergeBytes', '1000')
spark.sql('DELETE FROM delta.`' + path + '` WHERE hash(id) % 7 = 1')
spark.conf.unset('spark.deltaic.deletionVectors.maxBitmapMergeBytes')
hosts = spark.sparkContext._jsc.sc().getExecutorMemoryStatus().size()
result = [hosts, spark.read.format('delta').load(path).where('id >= 0').count()]
"""
    executors, count = cluster.run(code, path=table)
    # The driver counts as one.
    assert executors == 3
    expected = spark.range(50_000).where(
        "hash(id) % 3 <> 0 AND hash(id) % 7 <> 1 AND NOT id BETWEEN 100 AND 900"
    )
    assert count == expected.count()
    assert_same_rows(
        spark.read.format("delta").load(table).select("id").collect(), expected.collect()
    )


def test_executors_choose_files_from_the_checkpoint(
    cluster: SparkProcess, spark: SparkSession, table: str
):
    rows = spark.range(0, 1_000, 1, 4).selectExpr("id", "id % 3 AS p", "id / 2.0D AS half")
    target = build_with_oracle(spark, table, rows, deletion_vectors=True, partition_by=["p"])
    target.delete("id % 10 = 1")
    write_checkpoint(table, "json-sidecars")
    target.delete("id BETWEEN 700 AND 800")
    queries = [
        "SELECT * FROM {t} WHERE half > 300 AND p <> 1",
        "SELECT p, count(*) FROM {t} GROUP BY p",
        "SELECT id FROM {t} WHERE _metadata.file_size > 0 AND id = 444",
    ]
    code = """
import sys
sys.path.append(root)
from tests.support.jobs import jobs_of
spark.conf.set('spark.deltaic.snapshot.distributedThresholdBytes', '0')
result = []
for query in queries:
    df = spark.sql(query)
    jobs = jobs_of(spark, df._jdf.queryExecution().executedPlan)
    result.append([jobs, [list(row) for row in df.collect()]])
spark.conf.unset('spark.deltaic.snapshot.distributedThresholdBytes')
"""
    ours = [query.format(t=target.sql_name) for query in queries]
    answers = cluster.run(code, queries=ours, root=str(ROOT))
    for query, (jobs, found) in zip(queries, answers, strict=True):
        assert jobs == 1
        wanted = query.replace("_metadata.file_size > 0 AND", "").format(t=target.oracle())
        assert_same_rows(map(tuple, found), map(tuple, spark.sql(wanted).collect()))
