"""Merge the batches of a stream into a Delta table, each once.

Run: ``python examples/streaming_upsert.py [folder]``.
"""

from __future__ import annotations

import sys
import tempfile
from pathlib import Path

from pyspark.sql import DataFrame, SparkSession

from deltaic import DeltaTable, configure_spark


def main(folder: Path) -> None:
    """Stream readings from one table, and keep the newest of each sensor in another."""
    readings, newest = str(folder / "readings"), str(folder / "newest")
    spark = configure_spark(SparkSession.builder.master("local[2]")).getOrCreate()
    first = spark.range(6).selectExpr("id % 3 AS sensor", "id AS reading")
    first.write.format("delta").save(readings)
    spark.sql(f"CREATE TABLE delta.`{newest}` (sensor BIGINT, reading BIGINT) USING delta")

    def upsert(batch: DataFrame, number: int) -> None:
        latest = batch.groupBy("sensor").agg({"reading": "max"}).toDF("sensor", "reading")
        target = DeltaTable.forPath(spark, newest).alias("t")
        (
            target.merge(latest.alias("s"), "t.sensor = s.sensor")
            .whenMatchedUpdateAll("s.reading > t.reading")
            .whenNotMatchedInsertAll()
            .idempotent("newest readings", number)
            .execute()
        )

    def stream() -> None:
        rows = spark.readStream.format("delta").load(readings)
        writer = rows.writeStream.foreachBatch(upsert).trigger(availableNow=True)
        writer.option("checkpointLocation", str(folder / "checkpoint")).start().awaitTermination()

    stream()
    later = spark.createDataFrame([(1, 100), (7, 70)], first.schema)
    later.write.format("delta").mode("append").save(readings)
    stream()
    rows = spark.read.format("delta").load(newest).sort("sensor").collect()
    print("newest:", [tuple(row) for row in rows])
    spark.stop()


if __name__ == "__main__":
    if len(sys.argv) > 1:
        main(Path(sys.argv[1]).absolute())
    else:
        with tempfile.TemporaryDirectory() as temporary:
            main(Path(temporary))
