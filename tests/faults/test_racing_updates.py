"""Processes that update rows of one file for a while, each its own: every update lands once."""

from __future__ import annotations

import random
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from pyspark.sql import SparkSession

from tests.support import log
from tests.support.racing_writers import WORK, expected_rows
from tests.support.spark_process import SparkProcess
from tests.support.table_builder import build_table, rows_of
from tests.support.valid_logs import require_valid_logs

WRITERS = 5
SECONDS = 45
ROWS = 400

#: A session's first statements take many times as long as later ones.
WARM_UP = """
spark.range(8).selectExpr("id", "0L AS n").write.format("delta").option(
    "delta.enableDeletionVectors", "true"
).save(f"{table}-{me}")
for warm in (
    "UPDATE {t} SET n = n + 1 WHERE id = 1",
    "MERGE INTO {t} t USING (SELECT explode(array(2, 3)) AS key) s ON t.id = s.key"
    " WHEN MATCHED THEN UPDATE SET n = n + 1",
    "DELETE FROM {t} WHERE id = 4",
):
    spark.sql(warm.replace("{t}", f"delta.`{table}-{me}`"))
"""


def test_racing_updates_of_own_rows_all_land_exactly_once(
    spark: SparkSession, tmp_path: Path, figures: Counter[str]
) -> None:
    table = str(tmp_path / "table")
    properties = {"delta.enableRowTracking": "true", "delta.isolationLevel": "Serializable"}
    files = [[(i, 0) for i in range(ROWS)]]
    build_table(spark, table, "id BIGINT, n BIGINT", files, properties=properties)
    ids = f"SELECT id, _metadata.row_id FROM delta.`{table}`"
    before = dict(map(tuple, spark.sql(ids).collect()))
    processes = [
        SparkProcess({"spark.driver.memory": "600m"}, engine="deltaic", master="local[1]")
        for _ in range(WRITERS)
    ]
    arguments = {
        "table": table, "writers": WRITERS, "rows": ROWS, "seconds": SECONDS,
        "most": 8, "appends": False, "own_partition": False,
    }  # fmt: skip
    try:
        with ThreadPoolExecutor(WRITERS) as pool:
            list(pool.map(lambda p: p.run("result = spark.range(1).count()"), processes))
            running = [
                pool.submit(
                    process.run, WARM_UP + WORK, me=n, seed=random.randrange(1 << 30), **arguments
                )
                for n, process in enumerate(processes)
            ]
            results = [future.result() for future in running]
    finally:
        for process in processes:
            process.close()
    deleted = {i for result in results for i in result[1]}
    infos = {v: log.commit_info(table, v) for v in log.versions(table)[1:]}
    figures["commits"] += len(infos)
    figures["lost races"] += sum(info["readVersion"] < v - 1 for v, info in infos.items())
    assert len(infos) > 3 * WRITERS, "they did write"
    assert figures["lost races"], "they met"
    assert dict(map(tuple, rows_of(spark, table))) == expected_rows(results, ROWS)
    after = dict(map(tuple, spark.sql(ids).collect()))
    assert after == {i: row_id for i, row_id in before.items() if i not in deleted}
    require_valid_logs(tmp_path)
