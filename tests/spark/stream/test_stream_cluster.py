"""Streams whose tasks run in executors of their own: files, vectors and state travel to them."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from tests.support import log
from tests.support.spark_process import SparkProcess
from tests.support.table_builder import in_order

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

PROGRAM = """
def run(df, target, mode="append", **options):
    writer = df.writeStream.format("delta").outputMode(mode).trigger(availableNow=True)
    writer = writer.option("checkpointLocation", target + " checkpoint").options(**options)
    query = writer.start(target)
    query.awaitTermination()
    return sum(p.sink.numOutputRows for p in query.recentProgress)

source = folder + "/source"
rows = spark.range(0, 20000, 1, 4).selectExpr("id", "id % 3 AS part")
writer = rows.write.format("delta").option("delta.enableDeletionVectors", "true")
writer.option("delta.enableChangeDataFeed", "true").save(source)
spark.sql(f"DELETE FROM delta.`{source}` WHERE id % 7 = 2")
stream = lambda **options: spark.readStream.format("delta").options(**options).load(source)
written = [
    run(stream(maxFilesPerTrigger=1), folder + "/copy", **{"delta.checkpointInterval": "2"}),
    run(stream().groupBy("part").count(), folder + "/counts", "complete"),
    run(stream(readChangeFeed="true", startingVersion=0), folder + "/feed"),
]
rows.selectExpr("id + 20000 AS id", "part").write.format("delta").mode("append").save(source)
written.append(run(stream(maxFilesPerTrigger=1), folder + "/copy"))
run(stream().groupBy("part").count(), folder + "/counts", "complete")
executors = spark.sparkContext._jsc.sc().getExecutorMemoryStatus().size() - 1
result = [executors, written]
"""


@pytest.fixture(scope="module")
def cluster() -> Iterator[SparkProcess]:
    with SparkProcess(engine="deltaic", master="local-cluster[2,1,1024]") as process:
        yield process


def test_executors_read_and_write_the_batches_of_streams(
    cluster: SparkProcess, spark: SparkSession, tmp_path: Path
) -> None:
    executors, written = cluster.run(PROGRAM, folder=str(tmp_path))
    left = spark.range(20_000).where("id % 7 <> 2")
    live = left.union(spark.range(20_000, 40_000)).count()
    assert executors == 2
    deleted = 20_000 - left.count()
    assert written == [left.count(), 3, 20_000 + deleted, 20_000]

    def of(name: str, query: str) -> list[tuple[object, ...]]:
        table = spark.read.format("delta").load(str(tmp_path / name))
        return in_order(map(tuple, table.selectExpr(*query.split(", ")).collect()))

    sums = "count(*), count(DISTINCT id), sum(id), sum(part)"
    assert of("copy", sums) == of("source", sums)
    assert of("copy", "count(*)") == [(live,)]
    grouped = spark.read.format("delta").load(str(tmp_path / "source")).groupBy("part").count()
    assert of("counts", "part, count") == in_order(map(tuple, grouped.collect()))
    deletes = "count_if(_change_type = 'delete'), count_if(_change_type = 'insert')"
    assert of("feed", deletes) == [(deleted, 20_000)]
    epochs = [
        log.commit_info(str(tmp_path / "copy"), v)["operationParameters"]["epochId"]
        for v in log.versions(str(tmp_path / "copy"))
    ]
    assert epochs == [str(n) for n in range(len(epochs))]
