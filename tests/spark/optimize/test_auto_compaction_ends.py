"""A Spark context that is stopped while a table is compacted: the compaction is cancelled."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

import pytest

from tests.support import log
from tests.support.delta_rs import by_query
from tests.support.spark_process import SparkProcess

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

ROWS = 1_200_000

#: Stops the context as soon as the tasks of the compaction run; returns how long that takes.
STOP_WHILE_COMPACTING = """
import time
table_rows = spark.range(0, rows, 1, 12).selectExpr("id", "sha2(STRING(id), 512) AS s")
table_rows.write.format("delta").option("delta.autoOptimize.autoCompact", "true").save(table)
jobs = spark.sparkContext._jsc.sc().statusStore()
deadline = time.monotonic() + 120
def compacts():
    running = jobs.jobsList(None)
    found = [running.apply(i) for i in range(running.size())]
    return any(
        job.description().isDefined() and "auto compaction" in job.description().get()
        for job in found
    )
while not compacts():
    assert time.monotonic() < deadline, "it has not begun"
    time.sleep(0.01)
began = time.monotonic()
spark.stop()
result = time.monotonic() - began
"""


@pytest.mark.thorough
def test_compaction_ends_with_the_context_and_leaves_the_table_as_it_was(
    spark: SparkSession, table: str
) -> None:
    settings = {"spark.deltaic.autoCompact.minNumFiles": "4"}
    with SparkProcess(settings, engine="deltaic") as process:
        assert process.run(STOP_WHILE_COMPACTING, table=table, rows=ROWS) < 30
        deadline = time.monotonic() + 60
        while "auto compaction is cancelled" not in process.log():
            assert time.monotonic() < deadline, process.log()[-4000:]
            time.sleep(0.05)
        began = time.monotonic()
        process.close()
        assert time.monotonic() - began < 25, "the process does not wait for it"
    assert log.versions(table) == [0]
    assert spark.read.format("delta").load(table).count() == ROWS == len(by_query(table))
    spark.sql(f"OPTIMIZE delta.`{table}`")
    assert spark.read.format("delta").load(table).selectExpr("sum(id)").first() == (
        ROWS * (ROWS - 1) // 2,
    )
