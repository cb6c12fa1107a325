"""Keep the numbers of a stream in Delta tables by MERGE, each batch once.

A stream into a table has no output mode update. Merge its batches in ``foreachBatch`` instead.

Run: ``python examples/streaming_totals.py [folder]``.
"""

from __future__ import annotations

import sys
import tempfile
from pathlib import Path

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.streaming.readwriter import DataStreamWriter

from deltaic import DeltaTable, configure_spark


def main(folder: Path) -> None:
    """Stream sales, and keep their number and the total of their amounts of each item."""
    sales, counts, totals = (str(folder / name) for name in ("sales", "counts", "totals"))
    spark = configure_spark(SparkSession.builder.master("local[2]")).getOrCreate()
    spark.conf.set("spark.sql.shuffle.partitions", "2")
    sold = [("apple", 2), ("pear", 1), ("pear", 3)]
    first = spark.createDataFrame(sold, "item STRING, amount BIGINT")
    first.write.format("delta").save(sales)
    spark.sql(f"CREATE TABLE delta.`{counts}` (item STRING, count BIGINT) USING delta")
    spark.sql(f"CREATE TABLE delta.`{totals}` (item STRING, total BIGINT) USING delta")

    def merge_counts(batch: DataFrame, _: int) -> None:
        """Replace the counts that have changed: merged again, they are the same."""
        target = DeltaTable.forPath(batch.sparkSession, counts).alias("t")
        merge = target.merge(batch.alias("s"), "t.item = s.item")
        merge.whenMatchedUpdateAll().whenNotMatchedInsertAll().execute()

    def add_amounts(batch: DataFrame, number: int) -> None:
        """Add the amounts to the totals: merged again, they would be added twice."""
        session = batch.sparkSession  # It belongs to the query: its settings affect no other.
        session.conf.set("spark.deltaic.write.txnAppId", "totals of sales")
        session.conf.set("spark.deltaic.write.txnVersion", str(number))
        batch.createOrReplaceTempView("batch")
        session.sql(f"""
            MERGE INTO delta.`{totals}` t
            USING (SELECT item, sum(amount) AS amount FROM batch GROUP BY item) s
            ON t.item = s.item
            WHEN MATCHED THEN UPDATE SET total = t.total + s.amount
            WHEN NOT MATCHED THEN INSERT (item, total) VALUES (s.item, s.amount)
        """)

    def run(writer: DataStreamWriter, checkpoint: Path) -> None:
        writer = writer.option("checkpointLocation", str(checkpoint)).trigger(availableNow=True)
        writer.start().awaitTermination()

    def stream() -> None:
        rows = spark.readStream.format("delta").load(sales)
        counted = rows.groupBy("item").count().writeStream.outputMode("update")
        run(counted.foreachBatch(merge_counts), folder / "checkpoints" / "counts")
        run(rows.writeStream.foreachBatch(add_amounts), folder / "checkpoints" / "totals")

    stream()
    later = spark.createDataFrame([("pear", 10), ("fig", 5)], first.schema)
    later.write.format("delta").mode("append").save(sales)
    stream()
    # A query that was killed before it had recorded its last batch runs the batch again.
    for query in ("counts", "totals"):
        commits = folder / "checkpoints" / query / "commits"
        for file in ("1", ".1.crc"):
            (commits / file).unlink(missing_ok=True)
    stream()
    for name, table in (("counts", counts), ("totals", totals)):
        found = spark.read.format("delta").load(table).sort("item").collect()
        print(f"{name}:", [tuple(row) for row in found])
    spark.stop()


if __name__ == "__main__":
    if len(sys.argv) > 1:
        main(Path(sys.argv[1]).absolute())
    else:
        with tempfile.TemporaryDirectory() as temporary:
            main(Path(temporary))
