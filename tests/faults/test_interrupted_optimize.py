"""Ctrl-C in the program while OPTIMIZE runs: the table stays as it was, at whatever point it is."""

from __future__ import annotations

import os
import signal
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from tests.support import log
from tests.support.faulty import ARM
from tests.support.spark_process import SparkProcess
from tests.support.table_builder import rows_of

#: Runs a statement on the main thread, where PySpark handles the signal.
RUN = (
    ARM
    + """
try:
    spark.sql(statement).collect()
    result = "done"
except BaseException as problem:
    # Py4J closes its connection then, and may fail to: its error has the interrupt as its context.
    causes = [problem]
    while causes[-1].__context__ is not None:
        causes.append(causes[-1].__context__)
    if not any(isinstance(cause, KeyboardInterrupt) for cause in causes):
        raise
    result = "interrupted"
"""
)

#: Where the statement stands still, as `Faults.arm` takes it, while the signal arrives.
POINTS = {
    "in a task": ("create", r"part-.*\.parquet$", 1),
    "before the commit": ("delete", r"part-.*\.parquet$", 1),
}
_SOON_S = 120


@pytest.fixture(scope="module")
def stored(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Write a table whose new file is joined from several parts."""
    path = tmp_path_factory.mktemp("stored") / "table"
    rows = spark.range(0, 40_000, 1, 4).selectExpr("id", "sha2(STRING(id), 256) AS s")
    rows.write.format("delta").save(str(path))
    return path


@pytest.mark.parametrize("point", POINTS)
@pytest.mark.parametrize("order", ["", "ZORDER BY (s, id)"], ids=["compaction", "z-order"])
def test_interrupt_leaves_the_table_as_it_was(
    spark: SparkSession,
    faulty: SparkProcess,
    stored: Path,
    tmp_path: Path,
    point: str,
    order: str,
) -> None:
    table = str(tmp_path / "table")
    log.copy_table(stored, table)
    before, files = rows_of(spark, table), log.files_in(table, ".parquet")
    pid = faulty.run("import os\nresult = os.getpid()")
    faulty.run("spark.conf.set('spark.deltaic.optimize.minTaskSize', '64k')")
    go = tmp_path / "go"
    fault = [*POINTS[point], f"stall {go}"]
    statement = f"OPTIMIZE delta.`{table}` {order}"
    with ThreadPoolExecutor(1) as pool:
        running = pool.submit(faulty.run, RUN, statement=statement, fault=fault)
        wait_for(Path(f"{go}.reached"))
        os.kill(pid, signal.SIGINT)
        assert running.result() == "interrupted"
    go.touch()
    deadline = time.monotonic() + _SOON_S
    while log.files_in(table, ".parquet") != files:
        assert time.monotonic() < deadline, "new files stay"
        time.sleep(0.05)
    time.sleep(1)
    assert log.versions(table) == [0]
    assert rows_of(spark, table) == before
    faulty.run("spark._jvm.io.deltaic.faults.Faults.disarm()")
    again = "result = spark.sql(statement).first().metrics.numFilesAdded"
    assert faulty.run(again, statement=statement) == 1, "the session goes on"
    assert log.versions(table) == [0, 1]
    assert rows_of(spark, table) == before


def wait_for(path: Path) -> None:
    deadline = time.monotonic() + _SOON_S
    while not path.exists():
        assert time.monotonic() < deadline, f"no {path}"
        time.sleep(0.02)
