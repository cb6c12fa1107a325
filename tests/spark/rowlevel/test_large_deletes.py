"""A DELETE of millions of scattered rows, in a process with one GiB of heap."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.support import log
from tests.support.spark_process import SparkProcess

ROWS = 20_000_000
FILES = 500

BUILD = """
spark.range(0, rows, 1, files).write.format("delta").option(
    "delta.enableDeletionVectors", "true"
).save(table)
result = None
"""

DELETE = """
import time

beans = spark._jvm.java.lang.management.ManagementFactory.getMemoryPoolMXBeans()
pools = [bean for bean in beans if bean.getType().name() == "HEAP"]
spark._jvm.System.gc()
for pool in pools:
    pool.resetPeakUsage()
started = time.monotonic()
deleted = spark.sql(f"DELETE FROM delta.`{table}` WHERE {condition}").first()[0]
seconds = time.monotonic() - started
peak = sum(pool.getPeakUsage().getUsed() for pool in pools)
left = spark.sql(f"SELECT count(*), sum(id) FROM delta.`{table}`").first()
expected = spark.range(rows).where(f"NOT ({condition})").selectExpr("count(*)", "sum(id)").first()
result = {
    "deleted": deleted,
    "left": list(left),
    "expected": list(expected),
    "seconds": seconds,
    "peak_mb": peak >> 20,
    "max_mb": spark._jvm.Runtime.getRuntime().maxMemory() >> 20,
}
"""


@pytest.mark.thorough
@pytest.mark.parametrize("merge_bytes", ["1g", "256k"], ids=["on the driver", "in tasks"])
def test_delete_of_five_million_rows_of_500_files_fits_a_gibibyte(
    tmp_path: Path, merge_bytes: str
) -> None:
    """The heap is that of driver and tasks together; a second DELETE merges with old vectors."""
    table = str(tmp_path / "table")
    settings = {
        "spark.driver.memory": "1g",
        "spark.deltaic.deletionVectors.maxBitmapMergeBytes": merge_bytes,
    }
    with SparkProcess(settings, engine="deltaic", timeout_s=1800) as process:
        process.run(BUILD, table=table, rows=ROWS, files=FILES)
        # A fourth of the rows, by a hash; then rows of all files again, by another.
        for version, condition in enumerate(
            ("pmod(hash(id), 4) = 0", "pmod(hash(id), 4) = 0 OR pmod(hash(id, 7), 50) = 0"), 1
        ):
            found = process.run(DELETE, table=table, rows=ROWS, condition=condition)
            print(found)
            assert found["left"] == found["expected"]
            assert found["max_mb"] <= 1024
            adds = log.actions(table, version, "add")
            assert len(adds) == FILES
            cardinality = sum(add["deletionVector"]["cardinality"] for add in adds)
            assert cardinality == ROWS - found["left"][0]
            if version == 1:
                assert found["deleted"] == cardinality >= 4_900_000
