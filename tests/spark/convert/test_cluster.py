"""A conversion whose files are listed and read by executors in processes of their own."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING

from tests.support import log
from tests.support.spark_process import SparkProcess

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

CONVERT = """
spark.conf.set("spark.deltaic.convert.distributed.minDirectories", "3")
(row,) = spark.sql(f"CONVERT TO DELTA parquet.`{path}` PARTITIONED BY (p INT, q STRING)").collect()
table = spark.read.format("delta").load(path)
result = [list(row), table.count(), table.where("p = 3 AND id > 20").count()]
"""
REFUSED = """
try:
    spark.sql(f"CONVERT TO DELTA parquet.`{path}`")
except Exception as problem:
    result = [problem.getCondition(), str(problem)]
"""


def test_executors_list_directories_and_read_footers(spark: SparkSession, table: str) -> None:
    rows = spark.range(0, 120, 1, 1).selectExpr(
        "id", "CAST(id AS STRING) s", "id % 12 p", "concat('a b/', id % 2) q"
    )
    rows.write.partitionBy("p", "q").parquet(table)
    originals = list(Path(table).rglob("*.parquet"))
    for one in originals:
        for number in range(50):
            (one.parent / f"copy-{number}.parquet").hardlink_to(one)
    count = 51 * len(originals)
    with SparkProcess(engine="deltaic", master="local-cluster[2,1,1024]") as cluster:
        bad = Path(table, "p=2", "bad.parquet")
        bad.write_bytes(b"no file of Parquet")
        condition, message = cluster.run(REFUSED, path=table)
        assert condition == "DELTAIC_CONVERT_FILE_INVALID" and "bad.parquet" in message
        assert not Path(table, "_delta_log").exists()
        bad.unlink()
        converted, total, selected = cluster.run(CONVERT, path=table)
    assert converted == [count, "p INT, q STRING", False]
    assert (total, selected) == (51 * 120, 51 * 8)
    adds = log.active_files(table)
    assert len({add["path"] for add in adds}) == count
    assert all(json.loads(add["stats"])["numRecords"] == 10 for add in adds)
