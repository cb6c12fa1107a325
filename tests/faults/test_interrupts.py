"""Statements that Ctrl-C interrupts leave the table as it was, and can be run again."""

from __future__ import annotations

import os
import threading
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from tests.support import log
from tests.support.interrupts import Point, interrupt, interrupt_at, run_interruptible
from tests.support.spark_process import SparkProcess
from tests.support.table_builder import build_three_versions, rows_of
from tests.support.vacuumed import UNCHECKED, backdate, changed_table, stored

CANCELLED = ["DELTAIC_STATEMENT_CANCELLED"]
TABLES = ("deltaic.spark.ports", "JvmTableAccess")
UNUSED = ("deltaic.spark.unused_files", "JvmUnusedFiles")


@pytest.fixture(scope="module")
def other() -> Iterator[SparkProcess]:
    with SparkProcess(UNCHECKED, engine="deltaic") as process:
        yield process


@pytest.mark.parametrize(
    ("point", "committed"),
    [
        pytest.param(Point(*TABLES, "find_unused_files", after=True), [], id="found"),
        pytest.param(
            Point(*UNUSED, "delete", after=False), ["VACUUM START", "VACUUM END"], id="started"
        ),
    ],
)
def test_vacuum_interrupted_between_two_phases_deletes_nothing(
    spark: SparkSession, other: SparkProcess, table: str, point: Point, committed: list[str]
) -> None:
    changed_table(spark, table)
    before, newest, rows = stored(table), log.newest(table), rows_of(spark, table)
    time.sleep(0.01)
    statement = f"VACUUM delta.`{table}` RETAIN 0 HOURS"
    assert interrupt_at(other, statement, point) == CANCELLED
    assert stored(table) == before
    versions = range(newest + 1, log.newest(table) + 1)
    infos = [log.commit_info(table, version) for version in versions]
    assert [info["operation"] for info in infos] == committed
    if infos:
        assert infos[-1]["operationParameters"] == {"status": "FAILED"}
    assert run_interruptible(other, statement) == "finished"
    assert stored(table) < before
    assert rows_of(spark, table) == rows


@pytest.mark.parametrize(
    "point",
    [
        pytest.param(Point(*TABLES, "snapshot", after=True), id="planned"),
        pytest.param(Point(*TABLES, "prepare_restore", after=False), id="before files are read"),
    ],
)
def test_restore_interrupted_between_two_phases_commits_nothing(
    spark: SparkSession, other: SparkProcess, table: str, point: Point
) -> None:
    build_three_versions(spark, table, "id INT, v STRING")
    before, expected = log.contents(table), rows_of(spark, table, 0)
    statement = f"RESTORE TABLE delta.`{table}` TO VERSION AS OF 0"
    assert interrupt_at(other, statement, point) == CANCELLED
    assert log.contents(table) == before
    assert run_interruptible(other, statement) == "finished"
    assert rows_of(spark, table) == expected


def test_vacuum_interrupted_while_it_deletes_deletes_nothing_more(
    spark: SparkSession, other: SparkProcess, table: str
) -> None:
    changed_table(spark, table)
    folder, count = Path(table, "_p=garbage"), 30_000
    folder.mkdir()
    for n in range(count):
        (folder / f"part-{n}.parquet").touch()
    backdate(table, 500)
    rows = rows_of(spark, table)
    statement = f"VACUUM delta.`{table}`"

    def interrupt_once_begun() -> None:
        while len(os.listdir(folder)) == count:
            pass
        interrupt(other)

    thread = threading.Thread(target=interrupt_once_begun)
    thread.start()
    assert run_interruptible(other, statement) == "interrupted"
    thread.join()
    deadline = time.monotonic() + 60
    while log.commit_info(table)["operation"] != "VACUUM END":
        assert time.monotonic() < deadline
        time.sleep(0.05)
    assert log.commit_info(table)["operationParameters"] == {"status": "FAILED"}
    left = len(os.listdir(folder))
    time.sleep(0.5)
    assert 0 < len(os.listdir(folder)) == left
    assert run_interruptible(other, statement) == "finished"
    # The directory has just been changed.
    assert os.listdir(folder) == []
    assert rows_of(spark, table) == rows
