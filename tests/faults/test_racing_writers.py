"""Processes that append, delete and checkpoint one table for a while, and one that is killed."""

from __future__ import annotations

import json
import os
import random
import signal
import time
from collections import Counter
from concurrent.futures import Future, ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession

from tests.support import log
from tests.support.spark_process import SparkProcess, SparkProcessError
from tests.support.table_builder import build_table, rows_of
from tests.support.valid_logs import require_valid_logs

WRITERS = 4
SECONDS = 45

#: Appends and deletes until the time is up. What became of each operation is on disk before the
#: next one begins, so that it can be read after this process has died. That includes the number of
#: changed rows that was returned. The tag is the commit's metadata.
WORK = """
import json, random, time
from deltaic.exceptions import ConcurrentModificationError

chance = random.Random(me)
deadline = time.monotonic() + seconds
with open(journal, "w") as out:
    n = 0
    while time.monotonic() < deadline:
        tag = f"{me}-{n}"
        spark.conf.set("spark.deltaic.commitInfo.userMetadata", tag)
        if chance.random() < 0.6:
            first = (me * 100_000 + n) * 10
            operation = ["append", first, first + 5]
        else:
            first = (chance.randrange(writers) * 100_000 + chance.randrange(n + 1)) * 10
            operation = ["delete", first + chance.randrange(5), first + 5]
        kind, low, high = operation
        print(json.dumps([tag, "begun", operation, None]), file=out, flush=True)
        try:
            if kind == "append":
                df = spark.range(low, high, 1, 1)
                df.write.format("delta").mode("append").save(table)
                changed = high - low
            else:
                statement = f"DELETE FROM delta.`{table}` WHERE id >= {low} AND id < {high}"
                changed = spark.sql(statement).collect()[0][0]
            outcome = "done"
        except ConcurrentModificationError as problem:
            outcome, changed = problem.condition, None
        print(json.dumps([tag, outcome, operation, changed]), file=out, flush=True)
        n += 1
result = n
"""

SETTINGS = {"spark.driver.memory": "700m", "spark.deltaic.logCompaction.interval": "4"}


@pytest.mark.protocol("creation-of-new-log-entries-1", "multi-part-checkpoint-1")
def test_racing_processes_lose_no_commit_and_the_log_replays_to_the_table(
    spark: SparkSession, tmp_path: Path, figures: Counter[str]
) -> None:
    table = str(tmp_path / "table")
    properties = {
        "delta.isolationLevel": "Serializable",
        "delta.checkpointInterval": "5",
        "delta.enableRowTracking": "true",
    }
    build_table(spark, table, "id BIGINT", [[(-1,)]], properties=properties)
    journals = [tmp_path / f"journal-{n}" for n in range(WRITERS)]
    processes = [
        SparkProcess(SETTINGS, engine="deltaic", master="local[1]") for _ in range(WRITERS)
    ]
    try:
        with ThreadPoolExecutor(WRITERS) as pool:
            pids = list(pool.map(_warm, processes))
            running = [
                pool.submit(
                    process.run,
                    WORK,
                    me=n,
                    table=table,
                    journal=str(journals[n]),
                    writers=WRITERS,
                    seconds=SECONDS,
                )
                for n, process in enumerate(processes)
            ]
            _kill_one_on_the_way(pids[0], running[0], figures)
            for future in running[1:]:
                future.result()
    finally:
        for process in processes:
            process.close()
    operations = [json.loads(line) for path in journals for line in path.read_text().splitlines()]
    acknowledged = _hold_against_log(table, operations)
    figures["commits"] += acknowledged
    assert acknowledged > WRITERS * 5, "they did write"
    rows, lost = _replayed(table, operations)
    figures["losses"] += len(lost)
    assert not lost, f"acknowledged, and lost: {lost}"
    assert sorted(row[0] for row in rows_of(spark, table)) == rows
    assert list(Path(table, "_delta_log").glob("*.checkpoint.parquet"))
    assert list(Path(table, "_delta_log").glob("*.compacted.json"))
    require_valid_logs(tmp_path)


def _warm(process: SparkProcess) -> int:
    pid: Any = process.run(
        "spark.range(1).count()\nresult = spark._jvm.java.lang.ProcessHandle.current().pid()"
    )
    return int(pid)


def _kill_one_on_the_way(pid: int, running: Future[Any], figures: Counter[str]) -> None:
    time.sleep(SECONDS * random.uniform(0.4, 0.7))
    os.kill(pid, signal.SIGKILL)
    try:
        running.result()
    except SparkProcessError:
        figures["kills"] += 1


def _tags(table: str) -> list[str | None]:
    """Return who made each version; the first made the table."""
    versions = log.versions(table)
    assert versions == list(range(len(versions))), "versions have gaps"
    return [log.commit_info(table, v).get("userMetadata") for v in versions]


def _hold_against_log(table: str, operations: list[Any]) -> int:
    """Check what each version says of its maker, and return how many were acknowledged."""
    made = Counter(_tags(table))
    outcomes = {tag: outcome for tag, outcome, _, _ in operations}
    assert all(count == 1 for tag, count in made.items() if tag), "a commit is there twice"
    assert set(filter(None, made)) <= set(outcomes), "a commit that nobody made"
    for tag, outcome in outcomes.items():
        if outcome not in ("done", "begun"):
            assert made[tag] == 0, f"{tag} failed with {outcome} and is there"
    return sum(outcome == "done" and made[tag] == 1 for tag, outcome in outcomes.items())


def _replayed(table: str, operations: list[Any]) -> tuple[list[int], list[str]]:
    """Do the operations one after the other, in the order of their versions.

    Returns
    -------
    list of int
        The rows that are left.
    list of str
        What was acknowledged and is not there: an operation that has changed rows and made no
        version, or one whose version changes other rows than were reported.
    """
    by_tag = {tag: (operation, changed) for tag, _, operation, changed in operations}
    tags = [tag for tag in _tags(table) if tag is not None]
    lost = [tag for tag, (_, changed) in by_tag.items() if changed and tag not in tags]
    rows = {-1}
    for tag in tags:
        (kind, low, high), changed = by_tag[tag]
        ids = set(range(low, high))
        touched = len(ids if kind == "append" else ids & rows)
        if changed not in (None, touched):
            lost.append(f"{tag}, which changed {touched} rows and reported {changed}")
        rows = rows | ids if kind == "append" else rows - ids
    return sorted(rows), lost
