"""Run an append concurrently with a MERGE of the same key, at both isolation levels.

At the default level, Serializable, the MERGE fails: it should have read the appended row. At the
level WriteSerializable it commits as if it ran before the append, and the table has the key twice.

Run: ``python examples/isolation_levels.py [folder]``.
"""

from __future__ import annotations

import sys
import tempfile
import threading
import time
from pathlib import Path

from pyspark.sql import SparkSession
from pyspark.sql import functions as F

from deltaic import DeltaTable, configure_spark
from deltaic.exceptions import ConcurrentAppendException


def main(folder: Path) -> None:
    """Run both at each level."""
    spark = configure_spark(SparkSession.builder.master("local[4]")).getOrCreate()
    for level in ("Serializable", "WriteSerializable"):
        outcome = race(spark, folder / level, level)
        rows = spark.read.format("delta").load(str(folder / level)).sort("id").collect()
        print(f"{level}: the MERGE {outcome}: {[row.id for row in rows]}")
    spark.stop()


def race(spark: SparkSession, table: Path, level: str) -> str:
    """Append row 2 while a MERGE inserts it if it is absent; return the outcome of the MERGE."""
    started, appended = Path(f"{table}.started"), Path(f"{table}.appended")
    spark.sql(
        f"CREATE TABLE delta.`{table}` (id BIGINT) USING delta"
        f" TBLPROPERTIES ('delta.isolationLevel' = '{level}')"
    )
    spark.sql(f"INSERT INTO delta.`{table}` VALUES (1)")

    @F.udf("boolean")
    def wait_for_the_append(key: int) -> bool:
        started.touch()
        while not appended.exists():
            time.sleep(0.01)
        return key is not None

    def append() -> None:
        while not started.exists():
            time.sleep(0.01)
        spark.sql(f"INSERT INTO delta.`{table}` VALUES (2)")
        appended.touch()

    appender = threading.Thread(target=append)
    appender.start()
    source = spark.range(2, 3).where(wait_for_the_append("id"))
    target = DeltaTable.forPath(spark, str(table)).alias("t")
    try:
        merge = target.merge(source.alias("s"), "t.id = s.id")
        merge.whenMatchedUpdateAll().whenNotMatchedInsertAll().execute()
        return "commits"
    except ConcurrentAppendException:
        return "fails, ConcurrentAppendException"
    finally:
        appender.join()


if __name__ == "__main__":
    if len(sys.argv) > 1:
        main(Path(sys.argv[1]).absolute())
    else:
        with tempfile.TemporaryDirectory() as temporary:
            main(Path(temporary))
