"""Processes that write one table at the same time: nothing is lost, doubled or overwritten."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession

from tests.support import log
from tests.support.spark_process import SparkProcess
from tests.support.table_builder import build_table, rows_of

WRITERS = 2  # `make test-faults` has more of them
APPENDS = 8

#: Waits for the others, then runs `operation` for each item and returns what became of each. An
#: error that is not a conflict fails the test.
RACE = """
import hashlib, pathlib, time
from deltaic.exceptions import ConcurrentModificationError

pathlib.Path(meeting, str(me)).touch()
while len(list(pathlib.Path(meeting).iterdir())) < writers:
    time.sleep(0.005)

def seen():
    files = pathlib.Path(table, "_delta_log").glob("*.json")
    return {file.name: hashlib.sha256(file.read_bytes()).hexdigest() for file in files}

outcomes, seen_files = [], []
for item in items:
    try:
        OPERATION
        outcomes.append([item, "committed"])
        seen_files.append(seen())
    except ConcurrentModificationError as problem:
        outcomes.append([item, type(problem).__name__])
result = {"outcomes": outcomes, "seen": seen_files}
"""
APPEND = "spark.range(item, item + 3).coalesce(1).write.format('delta').mode('append').save(table)"
OVERWRITE = (
    "spark.range(item, item + 3).selectExpr('id', f'{me} AS p').coalesce(1).write.format('delta')"
    ".mode('overwrite').option('partitionOverwriteMode', 'dynamic').save(table)"
    " if me % 2 else "
    "spark.range(item, item + 3).selectExpr('id', f'{me} AS p').coalesce(1).write.format('delta')"
    ".mode('append').save(table)"
)
ROWS = "id % {writers} = {item % writers} AND id BETWEEN {item} AND {item + 2 * writers}"
DELETE = f"spark.sql(f'DELETE FROM delta.`{{table}}` WHERE {ROWS}')"
UPDATE = f"spark.sql(f'UPDATE delta.`{{table}}` SET n = n + 1 WHERE {ROWS}')"


@pytest.fixture(scope="module")
def writers() -> Iterator[list[SparkProcess]]:
    """Start the processes, and their sessions, before any of them races."""
    settings = {"spark.driver.memory": "700m"}
    processes = [
        SparkProcess(settings, engine="deltaic", master="local[1]") for _ in range(WRITERS)
    ]
    with ThreadPoolExecutor(WRITERS) as pool:
        list(pool.map(lambda process: process.run("result = spark.range(1).count()"), processes))
    yield processes
    for process in processes:
        process.close()


def race(
    writers: list[SparkProcess], table: str, operation: str, items: list[list[int]]
) -> list[dict[str, Any]]:
    """Let each writer do its items, all at the same time."""
    meeting = Path(table).parent / "meeting"
    meeting.mkdir()
    code = RACE.replace("OPERATION", operation)

    def run(me: int) -> Any:
        return writers[me].run(
            code,
            me=me,
            table=table,
            meeting=str(meeting),
            writers=len(writers),
            items=items[me],
        )

    with ThreadPoolExecutor(len(writers)) as pool:
        return list(pool.map(run, range(len(writers))))


def assert_log_was_never_overwritten(table: str, results: list[dict[str, Any]]) -> None:
    """Each commit file that any writer saw, at any time, is there now with the same content."""
    versions = log.versions(table)
    assert versions == list(range(len(versions))), "versions have gaps"
    for result in results:
        for seen in result["seen"]:
            for name, digest in seen.items():
                content = Path(table, "_delta_log", name).read_bytes()
                assert hashlib.sha256(content).hexdigest() == digest, f"{name} has changed"
    ids = [log.actions(table, v, "commitInfo")[0]["txnId"] for v in versions]
    assert len(set(ids)) == len(ids), "two versions hold the same commit"


def committed(results: list[dict[str, Any]]) -> list[int]:
    outcomes = (outcome for result in results for outcome in result["outcomes"])
    return [item for item, what in outcomes if what == "committed"]


@pytest.mark.protocol("requirements-for-writers-data-files-1")
@pytest.mark.protocol("requirements-for-writers-data-files-2")
def test_every_acknowledged_append_of_racing_processes_is_there_once(
    spark: SparkSession, writers: list[SparkProcess], table: str
) -> None:
    build_table(spark, table, "id BIGINT", [[(-1,)]])
    items = [[(w * APPENDS + i) * 10 for i in range(APPENDS)] for w in range(WRITERS)]
    results = race(writers, table, APPEND, items)
    everything = [item for part in items for item in part]
    assert sorted(committed(results)) == everything, "appends never conflict"
    assert_log_was_never_overwritten(table, results)
    assert len(log.versions(table)) == 1 + len(everything)
    expected = [-1, *(item + k for item in everything for k in range(3))]
    assert sorted(row[0] for row in rows_of(spark, table)) == expected
    assert log.files_in(table, ".parquet") == {add["path"] for add in log.active_files(table)}


def test_racing_first_appends_all_succeed_and_one_of_them_creates_the_table(
    spark: SparkSession, writers: list[SparkProcess], table: str
) -> None:
    items = [[(w * 3 + i) * 10 for i in range(3)] for w in range(WRITERS)]
    results = race(writers, table, APPEND, items)
    everything = [item for part in items for item in part]
    assert sorted(committed(results)) == everything
    assert_log_was_never_overwritten(table, results)
    with_metadata = [v for v in log.versions(table) if log.actions(table, v, "metaData")]
    assert with_metadata == [0], "the table was created twice"
    expected = [item + k for item in everything for k in range(3)]
    assert sorted(row[0] for row in rows_of(spark, table)) == expected


def test_racing_appends_and_overwrites_of_own_partitions_all_succeed(
    spark: SparkSession, writers: list[SparkProcess], table: str
) -> None:
    """Writers with an even number append to their partition, the others overwrite theirs."""
    spark.sql(
        f"CREATE TABLE delta.`{table}` (id BIGINT, p INT) USING delta PARTITIONED BY (p)"
        " TBLPROPERTIES ('delta.enableRowTracking' = 'true',"
        " 'delta.enableInCommitTimestamps' = 'true', 'delta.isolationLevel' = 'Serializable')"
    )
    items = [[(w * 5 + i) * 10 for i in range(5)] for w in range(WRITERS)]
    results = race(writers, table, OVERWRITE, items)
    everything = [item for part in items for item in part]
    assert sorted(committed(results)) == everything, "nobody disturbs anybody"
    assert_log_was_never_overwritten(table, results)
    assert len(log.versions(table)) == 1 + len(everything)
    kept = [item for w, part in enumerate(items) for item in (part[-1:] if w % 2 else part)]
    expected = [item + k for item in kept for k in range(3)]
    assert sorted(row[0] for row in rows_of(spark, table)) == expected


@pytest.mark.parametrize("operation", [DELETE, UPDATE], ids=["deletes", "updates"])
def test_racing_changes_of_other_rows_of_one_file_are_each_made_once(
    spark: SparkSession, writers: list[SparkProcess], table: str, operation: str
) -> None:
    """Each writer has every fourth row: no statistics keep one writer's rows from another's."""
    rows = list(range(WRITERS * 6))
    build_table(spark, table, "id BIGINT, n BIGINT", [[(i, 0) for i in rows]])
    groups = [[w + WRITERS * 3 * k for k in range(2)] for w in range(WRITERS)]
    results = race(writers, table, operation, groups)
    assert sorted(committed(results)) == sorted(item for part in groups for item in part)
    changed = {item + WRITERS * k for part in groups for item in part for k in range(3)}
    assert changed == set(rows)
    expected = [] if operation == DELETE else [(i, 1) for i in rows]
    assert sorted(tuple(row) for row in rows_of(spark, table)) == expected
    assert_log_was_never_overwritten(table, results)
    assert len(log.versions(table)) == 1 + 2 * WRITERS
