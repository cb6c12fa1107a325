"""A query that writes a table goes on in the other engine, mid-stream: each row is there once."""

from __future__ import annotations

from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from tests.support import log
from tests.support.delta_rs import by_query
from tests.support.streams import forget_batch, last_batch, run_in_either
from tests.support.table_builder import append_file, build_table, in_order

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from tests.support.spark_process import SparkProcess

PROGRAM = """
reader = spark.readStream.format("delta").option("maxFilesPerTrigger", 1)
rows = reader.load(source)
if mode == "complete":
    rows = rows.groupBy("v").count()
query = (
    rows.writeStream.format("delta").outputMode(mode).trigger(availableNow=True)
    .option("checkpointLocation", checkpoint).start(table)
)
query.awaitTermination()
result = str(query.id)
"""


@pytest.mark.parametrize("mode", ["append", "complete"])
@pytest.mark.parametrize("first", ["ours", "theirs"])
def test_each_engine_goes_on_with_a_query_of_the_other(
    spark: SparkSession,
    delta_spark: SparkProcess,
    table: str,
    tmp_path: Path,
    first: str,
    mode: str,
) -> None:
    source, checkpoint = str(tmp_path / "source"), tmp_path / "checkpoint"
    arguments = {"table": table, "source": source, "mode": mode, "checkpoint": str(checkpoint)}
    names = ["ours", "theirs"] if first == "ours" else ["theirs", "ours"]
    engines = [
        partial(run_in_either, spark, delta_spark, name, PROGRAM, **arguments) for name in names
    ]
    build_table(spark, source, "id INT, v STRING", [[(1, "a")], [(2, "b")]])
    queries = {engines[0]()}
    # The commit of the table is there, that of the query is lost: the next run begins with it.
    forget_batch(checkpoint, last_batch(checkpoint))
    versions = log.versions(table)
    queries.add(engines[1]())
    assert log.versions(table) == versions, "the batch was written again"
    for i, engine in enumerate(engines * 2):
        append_file(spark, source, "id INT, v STRING", [(10 + i, "a")])
        queries.add(engine())
    assert len(queries) == 1
    epochs = [log.commit_info(table, v)["operationParameters"] for v in log.versions(table)]
    assert [int(epoch["epochId"]) for epoch in epochs] == list(range(6))
    assert {epoch["outputMode"] for epoch in epochs} == {mode.capitalize()}
    assert len({frozenset(epoch) for epoch in epochs}) == 1, "the parameters have other names"
    metrics = [log.commit_info(table, v)["operationMetrics"] for v in log.versions(table)]
    assert len({frozenset(found) for found in metrics}) == 1, "the metrics have other names"
    rows = in_order(map(tuple, spark.read.format("delta").load(table).collect()))
    if mode == "append":
        assert rows == in_order([(1, "a"), (2, "b"), *((10 + i, "a") for i in range(4))])
    else:
        assert rows == [("a", 5), ("b", 1)]
    read = "result = [list(row) for row in spark.read.format('delta').load(table).collect()]"
    assert in_order(map(tuple, delta_spark.run(read, table=table))) == rows
    assert in_order(by_query(table)) == rows
