"""Processes that change rows of one table while others compact it: every change lands once."""

from __future__ import annotations

import random
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from tests.support import log
from tests.support.delta_rs import by_query, in_order
from tests.support.racing_writers import COMPACT, WORK, expected_rows
from tests.support.spark_process import SparkProcess
from tests.support.table_builder import build_table, rows_of
from tests.support.valid_logs import require_valid_logs

WRITERS, COMPACTORS = 3, 1
SECONDS = 45
ROWS = 240


@pytest.mark.parametrize("tracked", [True, False], ids=["row tracking", "no row tracking"])
@pytest.mark.parametrize("vectors", [True, False], ids=["vectors", "no vectors"])
def test_changes_of_own_rows_and_compactions_all_land_exactly_once(
    spark: SparkSession, tmp_path: Path, figures: Counter[str], vectors: bool, tracked: bool
) -> None:
    """Writers append, too, and their appends start auto compaction; another process compacts.

    Without deletion vectors a statement rewrites files, so each writer has its own partition.
    """
    table = str(tmp_path / "table")
    properties = {
        "delta.enableRowTracking": str(tracked).lower(),
        "delta.enableChangeDataFeed": "true",
        "delta.autoOptimize.autoCompact": "true",
        "delta.isolationLevel": "Serializable",
    }
    files = [[(i, 0, i % WRITERS) for i in range(first, ROWS, 6)] for first in range(6)]
    build_table(
        spark,
        table,
        "id BIGINT, n BIGINT, w INT",
        files,
        deletion_vectors=vectors,
        partition_by=() if vectors else ("w",),
        properties=properties,
    )
    settings = {"spark.driver.memory": "600m", "spark.deltaic.autoCompact.minNumFiles": "4"}
    processes = [
        SparkProcess(settings, engine="deltaic", master="local[1]")
        for _ in range(WRITERS + COMPACTORS)
    ]
    try:
        with ThreadPoolExecutor(len(processes)) as pool:
            list(pool.map(lambda p: p.run("result = spark.range(1).count()"), processes))
            arguments = {"table": table, "seconds": SECONDS}
            running = [
                pool.submit(
                    process.run,
                    WORK,
                    me=n,
                    writers=WRITERS,
                    rows=ROWS,
                    most=6,
                    appends=True,
                    own_partition=True,
                    seed=random.randrange(1 << 30),
                    **arguments,
                )
                for n, process in enumerate(processes[:WRITERS])
            ]
            compacting = [
                pool.submit(process.run, COMPACT, orders=vectors and tracked, **arguments)
                for process in processes[WRITERS:]
            ]
            results = [future.result() for future in running]
            compactions = sum(future.result() for future in compacting)
    finally:
        for process in processes:
            process.close()
    infos = [log.commit_info(table, version) for version in log.versions(table)[1:]]
    by_operation = Counter(
        info["operation"] + " auto" * bool(info["operationParameters"].get("auto"))
        for info in infos
    )
    print(dict(by_operation), compactions)
    figures["commits"] += len(infos)
    figures["lost races"] += sum(
        info["readVersion"] < version for version, info in enumerate(infos)
    )
    assert compactions and by_operation["OPTIMIZE"], by_operation
    assert by_operation["OPTIMIZE auto"], by_operation
    assert min(by_operation[kind] for kind in ("DELETE", "UPDATE", "MERGE", "WRITE")) > 0
    found = rows_of(spark, table)
    assert len(found) == len({row[0] for row in found}), "a row is there twice"
    assert {i: n for i, n, _ in found} == expected_rows(results, ROWS)
    assert in_order(by_query(table)) == in_order(found)
    require_valid_logs(tmp_path)
