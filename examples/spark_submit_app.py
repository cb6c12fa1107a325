"""A job that uses only Spark: ``spark-submit`` provides the jar and the settings (see the README).

It uses only SQL and DataFrames, so it runs unchanged on any engine for the format ``delta``.
"""

from __future__ import annotations

import sys

from pyspark.sql import SparkSession


def main(table: str) -> None:
    """Write a table at a path, delete from it, and print how many rows are left."""
    spark = SparkSession.builder.appName("deltaic-submit").getOrCreate()
    spark.range(1000).selectExpr("id", "id % 10 AS bucket").write.format("delta").mode(
        "overwrite"
    ).save(table)
    spark.sql(f"DELETE FROM delta.`{table}` WHERE bucket = 3")
    left = spark.read.format("delta").load(table)
    print(f"{left.count()} rows left in {table}")
    spark.stop()


if __name__ == "__main__":
    if len(sys.argv) != 2:
        sys.exit("usage: spark_submit_app.py TABLE_FOLDER")
    main(sys.argv[1])
