"""pandas on Spark reads, writes and appends to tables, and reads their older versions."""

from __future__ import annotations

from pathlib import Path

from tests.support.spark_process import SparkProcess

CODE = """
import pyspark.pandas as ps

ps.set_option("compute.default_index_type", "distributed-sequence")
frame = ps.DataFrame({"id": [1, 2, 3], "day": ["a", "a", "b"]})
frame.to_delta(path, partition_cols="day")
frame.to_delta(path, mode="append")
rows = lambda df: sorted([int(row.id), row.day] for row in df.to_spark().collect())
result = [rows(ps.read_delta(path)), rows(ps.read_delta(path, version=0))]

from delta.tables import DeltaTable
table = DeltaTable.forPath(spark, path)
table.delete("id < 3")
changed = table.toDF().pandas_api()
result += [rows(changed), int(changed.groupby("day").id.sum()["b"])]
result.append(table.detail().first().partitionColumns)
frame.to_table("pandas_orders", format="delta")
result.append(rows(ps.read_table("pandas_orders")))
spark.sql("DROP TABLE pandas_orders")
"""


def test_frames_are_written_read_and_changed(tools: SparkProcess, tmp_path: Path) -> None:
    rows = [[1, "a"], [2, "a"], [3, "b"]]
    found = tools.run(CODE, path=str(tmp_path / "table"))
    assert found == [sorted(rows * 2), rows, [[3, "b"]] * 2, 6, ["day"], rows]
