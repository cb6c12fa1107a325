"""Streams of clients of a server with the plugins, and `DeltaTable` in the batches of one."""

from __future__ import annotations

from pathlib import Path

from tests.support import log
from tests.support.spark_process import SparkProcess

COPY = """
def run(df):
    writer = df.writeStream.format("delta").option("checkpointLocation", path + "-checkpoint")
    query = writer.trigger(availableNow=True).start(path + "-copy")
    query.awaitTermination()

from deltaic.tables import DeltaTable
table = DeltaTable.createOrReplace(spark).location(path).addColumn("id", "BIGINT").execute()
stream = spark.readStream.format("delta").option("skipChangeCommits", "true").load(path)
result = []
for first in (0, 10):
    spark.range(first, first + 5).write.format("delta").mode("append").save(path)
    table.delete(f"id = {first + 1}")
    run(stream)
    copied = DeltaTable.forPath(spark, path + "-copy")
    result.append([copied.toDF().count(), copied.history(1).first().operation])
"""


def test_stream_of_a_table_that_methods_change(
    connect_client: SparkProcess, tmp_path: Path
) -> None:
    found = connect_client.run(COPY, path=str(tmp_path / "table"))
    # The first batch is the snapshot, later ones are commits.
    assert found == [[4, "STREAMING UPDATE"], [9, "STREAMING UPDATE"]]


MERGE = """
from deltaic.tables import DeltaTable

def upsert(batch, number):
    from deltaic.tables import DeltaTable as Tables
    newest = batch.groupBy("key").max("value").withColumnRenamed("max(value)", "value").alias("s")
    table = Tables.forPath(batch.sparkSession, path).alias("t")
    merge = table.merge(newest, "t.key = s.key").whenMatchedUpdateAll().whenNotMatchedInsertAll()
    merge.idempotent("upserts", number).execute()

builder = DeltaTable.create(spark).location(path).addColumn("key", "BIGINT")
builder.addColumn("value", "BIGINT").execute()
source = spark.readStream.format("delta").option("maxFilesPerTrigger", 1).load(path + "-source")
for n in range(3):
    rows = spark.range(n, n + 4).selectExpr("id AS key", f"id * 10 + {n} AS value").coalesce(1)
    rows.write.format("delta").mode("append").save(path + "-source")
query = source.writeStream.foreachBatch(upsert).trigger(availableNow=True)
query = query.option("checkpointLocation", path + "-checkpoint").start()
query.awaitTermination()
problem = query.exception()
result = [None if problem is None else str(problem)]
result += [list(row) for row in DeltaTable.forPath(spark, path).toDF().orderBy("key").collect()]
"""


def test_batches_are_merged_by_the_session_of_the_server(
    connect_client: SparkProcess, tmp_path: Path
) -> None:
    path = tmp_path / "table"
    problem, *rows = connect_client.run(MERGE, path=str(path))
    assert problem is None
    assert rows == [[0, 0], [1, 11], [2, 22], [3, 32], [4, 42], [5, 52]]
    assert [log.commit_info(path, version)["operation"] for version in log.versions(path)] == [
        "CREATE TABLE",
        "MERGE",
        "MERGE",
        "MERGE",
    ]
