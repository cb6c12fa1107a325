"""Commits on an object store: put if absent, by a service that several processes share."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest

from tests.s3.conftest import WRITERS, Server, start_writer
from tests.support.spark_process import SparkProcess, SparkProcessError

TABLE = "s3a://bucket/race"
APPENDS = 8

APPEND = """
import time
time.sleep(max(0, start - time.time()))
result = []
for item in items:
    df = spark.range(item, item + 3, 1, 1)
    df.write.format("delta").mode("append").option("delta.checkpointInterval", "10").save(table)
    result.append(item)
"""

LOOK = """
rows = sorted(row[0] for row in spark.read.format("delta").load(table).collect())
history = spark.sql(f"DESCRIBE HISTORY delta.`{table}`").collect()
path = spark._jvm.org.apache.hadoop.fs.Path(table, "_delta_log")
log = path.getFileSystem(spark._jsparkSession.sessionState().newHadoopConf())
names = [status.getPath().getName() for status in log.listStatus(path)]
result = [rows, sorted(row["version"] for row in history), names]
"""


def look(writer: SparkProcess, table: str) -> tuple[list[int], list[int], list[str]]:
    """Return the table's rows, its versions, and the names of the files in its log."""
    rows, versions, names = writer.run(LOOK, table=table)
    return rows, versions, names


@pytest.mark.protocol("creation-of-new-log-entries-2", "file-types-checkpoints-5")
@pytest.mark.protocol("multi-part-checkpoint-1")
def test_every_acknowledged_append_of_racing_processes_is_there_once(
    server: Server, writers: list[SparkProcess], figures: dict[str, int]
) -> None:
    before = server.figures()
    items = [[(w * APPENDS + n) * 10 for n in range(APPENDS)] for w in range(WRITERS)]

    def run(me: int) -> Any:
        return writers[me].run(APPEND, table=TABLE, items=items[me], start=0)

    with ThreadPoolExecutor(WRITERS) as pool:
        acknowledged = list(pool.map(run, range(WRITERS)))
    assert acknowledged == items
    everything = [item for part in items for item in part]
    rows, versions, names = look(writers[0], TABLE)
    assert rows == [item + k for item in everything for k in range(3)]
    assert versions == list(range(len(everything)))
    assert f"{10:020d}.checkpoint.parquet" in names
    assert "_last_checkpoint" in names
    assert not [name for name in names if name.endswith(".tmp")], "nothing is renamed"
    assert server.figures()["refused"] > before["refused"], "they did race"
    figures["commits"] = figures.get("commits", 0) + len(everything)


def test_a_commit_whose_reply_is_lost_is_made_once_and_acknowledged(
    server: Server, writers: list[SparkProcess], figures: dict[str, int]
) -> None:
    table = "s3a://bucket/lost"
    writers[0].run(APPEND, table=table, items=[0], start=0)
    before = server.figures()
    server.lose_reply(1)
    assert writers[0].run(APPEND, table=table, items=[10], start=0) == [10]
    after = server.figures()
    assert (after["lost"], after["refused"]) == (before["lost"] + 1, before["refused"] + 1)
    rows, versions, _ = look(writers[1], table)
    assert (rows, versions) == ([0, 1, 2, 10, 11, 12], [0, 1])
    figures["commits"] = figures.get("commits", 0) + 2


def test_deletes_by_vectors_and_a_v2_checkpoint_are_read_by_another_process(
    writers: list[SparkProcess],
) -> None:
    table = "s3a://bucket/vectors"
    writers[0].run(
        'spark.sql(f"CREATE TABLE delta.`{table}` USING delta TBLPROPERTIES ('
        "'delta.enableDeletionVectors' = 'true', 'delta.checkpointPolicy' = 'v2', "
        "'delta.checkpointInterval' = '1') AS SELECT id FROM range(100)\")\n"
        "spark.sql(f'DELETE FROM delta.`{table}` WHERE id % 10 = 3')",
        table=table,
    )
    rows, versions, names = look(writers[1], table)
    assert rows == [n for n in range(100) if n % 10 != 3]
    assert versions == [0, 1]
    assert "_sidecars" in names


def test_a_file_system_that_may_not_put_conditionally_is_refused_before_data_is_written(
    server: Server,
) -> None:
    table = "s3a://bucket/refused"
    with start_writer(server, spark__hadoop__fs__s3a__create__conditional__enabled="false") as one:
        with pytest.raises(SparkProcessError, match="DELTAIC_LOG_STORE_UNSUPPORTED"):
            one.run(APPEND, table=table, items=[0], start=0)
        exists = one.run(
            "path = spark._jvm.org.apache.hadoop.fs.Path(table)\n"
            "conf = spark._jsparkSession.sessionState().newHadoopConf()\n"
            "result = path.getFileSystem(conf).exists(path)",
            table=table,
        )
        assert not exists
