"""A table is dropped while a task of its auto compaction is about to write a file."""

from __future__ import annotations

from pathlib import Path

from tests.support.faulty import start_faulty

#: The task is held right before it creates its file, while another thread drops the table.
DROP = """
import os, threading, time

faults = spark._jvm.io.deltaic.faults.Faults
spark.conf.set("spark.deltaic.maintenance.background", "true")
spark.conf.set("spark.deltaic.autoCompact.minNumFiles", "2")
spark.sql(
    "CREATE TABLE compacted (id BIGINT) USING delta"
    " TBLPROPERTIES ('delta.autoOptimize.autoCompact' = 'true')"
)
path = spark.sql("DESCRIBE DETAIL compacted").first().location.removeprefix("file:")
spark.sql("INSERT INTO compacted VALUES (1)")
faults.arm("create", "/compacted/part-", 2, "stall " + held)
spark.sql("INSERT INTO compacted VALUES (2)")


def await_that(condition):
    deadline = time.monotonic() + 60
    while not condition():
        assert time.monotonic() < deadline
        time.sleep(0.01)


await_that(lambda: os.path.exists(held + ".reached"))
drop = threading.Thread(target=lambda: spark.sql("DROP TABLE compacted"))
drop.start()
time.sleep(1)
waits = drop.is_alive()
open(held, "w").close()
drop.join(60)
tracker = spark.sparkContext._jsc.sc().statusTracker()
await_that(lambda: not any(e.numRunningTasks() for e in tracker.getExecutorInfos()))
time.sleep(0.5)
faults.disarm()
result = [waits, os.path.exists(path)]
"""


def test_dropped_table_does_not_come_back(faults_jar: Path, tmp_path: Path) -> None:
    # A session of its own: the code changes settings.
    with start_faulty(faults_jar) as process:
        waits, exists = process.run(DROP, held=str(tmp_path / "held"))
    assert not exists, "the task has created the folder again"
    assert waits, "DROP did not wait for the task"
