"""Create a Delta table, change it, and read an earlier version.

Run: ``python examples/quickstart.py [folder]``.
"""

from __future__ import annotations

import sys
import tempfile
from pathlib import Path

from pyspark.sql import SparkSession

from deltaic import DeltaTable, configure_spark


def main(folder: Path) -> None:
    """Append, delete and time travel, from Python and from SQL."""
    table = str(folder / "numbers")
    spark = configure_spark(SparkSession.builder.master("local[2]")).getOrCreate()

    spark.range(10).write.format("delta").save(table)
    spark.range(10, 20).write.format("delta").mode("append").save(table)
    DeltaTable.forPath(spark, table).delete("id % 2 = 1")
    spark.sql(f"DELETE FROM delta.`{table}` WHERE id >= 16")

    print(
        "now:    ", [row.id for row in spark.read.format("delta").load(table).sort("id").collect()]
    )
    at_first = spark.sql(f"SELECT id FROM delta.`{table}` VERSION AS OF 0 ORDER BY id")
    print("at first:", [row.id for row in at_first.collect()])
    DeltaTable.forPath(spark, table).history().select("version", "timestamp", "operation").show()
    spark.stop()


if __name__ == "__main__":
    if len(sys.argv) > 1:
        main(Path(sys.argv[1]).absolute())
    else:
        with tempfile.TemporaryDirectory() as temporary:
            main(Path(temporary))
