"""Processes that change rows of one table while others compact it: every change lands once."""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession

from tests.support import log
from tests.support.delta_rs import by_query, in_order
from tests.support.racing_writers import COMPACT, MAINTAIN, WORK, expected_rows
from tests.support.spark_process import SparkProcess
from tests.support.table_builder import build_table, rows_of
from tests.support.valid_logs import require_valid_logs

WRITERS = 3
SECONDS = 45
ROWS = 240
SETTINGS = {"spark.driver.memory": "600m", "spark.deltaic.autoCompact.minNumFiles": "4"}


def build(spark: SparkSession, table: str, *, vectors: bool, tracked: bool) -> None:
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


def race(
    spark: SparkSession,
    folder: Path,
    figures: Counter[str],
    others: Sequence[tuple[str, dict[str, Any]]],
    seconds: int = SECONDS,
) -> tuple[Counter[str], list[Any]]:
    """Let writers and other programs work on the table at once, and check its rows afterwards.

    Returns how many commits of each operation there were, and what the other programs returned.
    """
    table = str(folder / "table")
    begin = log.newest(table)
    processes = [
        SparkProcess(SETTINGS, engine="deltaic", master="local[1]")
        for _ in range(WRITERS + len(others))
    ]
    try:
        with ThreadPoolExecutor(len(processes)) as pool:
            list(pool.map(lambda p: p.run("result = spark.range(1).count()"), processes))
            arguments = {"table": table, "seconds": seconds}
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
            maintaining = [
                pool.submit(process.run, program, **own, **arguments)
                for process, (program, own) in zip(processes[WRITERS:], others, strict=True)
            ]
            results = [future.result() for future in running]
            returned = [future.result() for future in maintaining]
    finally:
        for process in processes:
            process.close()
    versions = [version for version in log.versions(table) if version > begin]
    infos = {version: log.commit_info(table, version) for version in versions}
    by_operation = Counter(
        info["operation"] + " auto" * bool(info["operationParameters"].get("auto"))
        for info in infos.values()
    )
    print(dict(by_operation), returned)
    figures["commits"] += len(infos)
    figures["lost races"] += sum(
        info["readVersion"] < version - 1 for version, info in infos.items()
    )
    found = rows_of(spark, table)
    assert len(found) == len({row[0] for row in found}), "a row is there twice"
    assert {i: n for i, n, _ in found} == expected_rows(results, ROWS)
    assert in_order(by_query(table)) == in_order(found)
    require_valid_logs(folder)
    assert min(by_operation[kind] for kind in ("DELETE", "UPDATE", "MERGE", "WRITE")) > 0
    return by_operation, returned


@pytest.mark.parametrize("tracked", [True, False], ids=["row tracking", "no row tracking"])
@pytest.mark.parametrize("vectors", [True, False], ids=["vectors", "no vectors"])
def test_changes_of_own_rows_and_compactions_all_land_exactly_once(
    spark: SparkSession, tmp_path: Path, figures: Counter[str], vectors: bool, tracked: bool
) -> None:
    """Writers append, too, and their appends start auto compaction; another process compacts.

    Without deletion vectors a statement rewrites files, so each writer has its own partition.
    """
    build(spark, str(tmp_path / "table"), vectors=vectors, tracked=tracked)
    compacts = (COMPACT, {"orders": vectors and tracked})
    by_operation, (compactions,) = race(spark, tmp_path, figures, [compacts])
    assert compactions and by_operation["OPTIMIZE"], by_operation
    assert by_operation["OPTIMIZE auto"], by_operation


def test_changes_and_clustering_purges_and_vacuums_all_land_exactly_once(
    spark: SparkSession, tmp_path: Path, figures: Counter[str]
) -> None:
    """One process clusters and purges, another deletes the files that this leaves."""
    table = str(tmp_path / "table")
    build(spark, table, vectors=True, tracked=True)
    spark.sql(f"ALTER TABLE delta.`{table}` CLUSTER BY (w, id)")
    rewrites = ["OPTIMIZE {t}", "OPTIMIZE {t} FULL", "REORG TABLE {t} APPLY (PURGE)"]
    others = [
        (MAINTAIN, {"statements": rewrites, "vacuums": False}),
        (MAINTAIN, {"statements": [], "vacuums": True}),
    ]
    by_operation, (rewritten, vacuumed) = race(
        spark, tmp_path, figures, others, seconds=2 * SECONDS
    )
    assert set(rewritten) == set(rewrites), "each has rewritten files"
    assert by_operation["OPTIMIZE"] and by_operation["OPTIMIZE auto"] and by_operation["REORG"]
    ends = [
        info
        for info in (log.commit_info(table, version) for version in log.versions(table))
        if info["operation"] == "VACUUM END"
    ]
    assert len(ends) == vacuumed["VACUUM"]
    assert sum(int(info["operationMetrics"]["numDeletedFiles"]) for info in ends) > 0
