"""Our changes of rows against a real OPTIMIZE of delta-spark, whichever commits first."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from deltaic.exceptions import ConcurrentDeleteDeleteException
from tests.support import log
from tests.support.interleave import committed_meanwhile
from tests.support.spark_process import SparkProcess, SparkProcessError
from tests.support.table_builder import rows_of

OPTIMIZE = """
spark.sql(f"OPTIMIZE delta.`{table}` {where}")
result = None
"""

#: Runs until the files are written, and goes on with the commit once a file says so.
OPTIMIZE_WAITING = """
import os, time
from pyspark.java_gateway import ensure_callback_server_started

observers = spark._jvm.org.apache.spark.sql.delta.TransactionExecutionObserver

class Waiting:
    def createChild(self): return self
    def startingTransaction(self, f): return f.apply()
    def preparingCommit(self, f): return f.apply()
    def beginDoCommit(self):
        open(ready, "w").close()
        while not os.path.exists(go):
            time.sleep(0.02)
    def beginBackfill(self): pass
    def beginPostCommit(self): pass
    def transactionCommitted(self): pass
    def transactionAborted(self): pass
    def advanceToNextThreadObserver(self): pass

    class Java:
        implements = ["org.apache.spark.sql.delta.TransactionExecutionObserver"]

ensure_callback_server_started(spark._sc._gateway)
before = observers.getObserver()
observers.setObserver(Waiting())
try:
    spark.sql(f"OPTIMIZE delta.`{table}`")
finally:
    observers.setObserver(before)
result = None
"""

SHOW = """
df = spark.sql(f"SELECT id, p, v FROM delta.`{table}` ORDER BY id")
result = [list(row) for row in df.collect()]
"""

IDS = range(40)
Rows = dict[int, str]

#: Statements on ids that end with 3, and what becomes of the value of such a row.
STATEMENTS: dict[str, tuple[str, Callable[[Rows], Rows]]] = {
    "delete": (
        "DELETE FROM {t} WHERE id % 10 = 3",
        lambda rows: {i: v for i, v in rows.items() if i % 10 != 3},
    ),
    "update": (
        "UPDATE {t} SET v = 'u' WHERE id % 10 = 3",
        lambda rows: {i: "u" if i % 10 == 3 else v for i, v in rows.items()},
    ),
    "merge": (
        "MERGE INTO {t} t USING (SELECT id FROM VALUES (3), (13), (100) s(id)) s ON t.id = s.id"
        " WHEN MATCHED THEN UPDATE SET v = 'm'"
        " WHEN NOT MATCHED THEN INSERT (id, p, v) VALUES (s.id, 0, 'new')",
        lambda rows: {i: "m" if i in (3, 13) else v for i, v in rows.items()} | {100: "new"},
    ),
}
BASE: Rows = dict.fromkeys((i for i in IDS if i % 10 != 7), "a")


@pytest.fixture(
    scope="module",
    params=["tracked", pytest.param("not tracked", marks=pytest.mark.thorough)],
)
def base(
    request: pytest.FixtureRequest,
    delta_spark: SparkProcess,
    tmp_path_factory: pytest.TempPathFactory,
) -> Path:
    """Have delta-spark build a table of four files in two partitions, with deleted rows."""
    path = tmp_path_factory.mktemp("bases") / "base"
    tracked = ", 'delta.enableRowTracking' = 'true'" if request.param == "tracked" else ""
    statements = [
        f"CREATE TABLE delta.`{path}` (id INT, p INT, v STRING) USING delta PARTITIONED BY (p)"
        f" TBLPROPERTIES ('delta.enableDeletionVectors' = 'true'{tracked})",
        *(
            f"INSERT INTO delta.`{path}` SELECT INT(id), INT(id % 20 >= 10), 'a'"
            f" FROM range({first}, {first + 20}, 1, 1)"
            for first in (0, 20)
        ),
        f"DELETE FROM delta.`{path}` WHERE id % 10 = 7",
    ]
    delta_spark.run("for one in statements: spark.sql(one)\nresult = None", statements=statements)
    return path


def values(spark: SparkSession, table: str) -> Rows:
    return {row[0]: row[2] for row in rows_of(spark, table)}


def row_ids(spark: SparkSession, table: str) -> dict[int, int]:
    found = spark.sql(f"SELECT id, _metadata.row_id FROM delta.`{table}`")
    return {row[0]: row[1] for row in found.collect()}


def is_tracked(table: str) -> bool:
    return any(add.get("baseRowId") is not None for add in log.active_files(table))


@pytest.mark.parametrize("kind", STATEMENTS)
def test_change_of_rows_that_an_optimize_has_moved(
    spark: SparkSession, delta_spark: SparkProcess, base: Path, table: str, kind: str
) -> None:
    """Row IDs find the rows; without them the statement fails, and finds the rows if run again."""
    log.copy_table(base, table)
    statement, change = STATEMENTS[kind]
    named = statement.replace("{t}", f"delta.`{table}`")
    before = log.newest(table)
    ids = row_ids(spark, table) if is_tracked(table) else {}
    with committed_meanwhile(lambda: delta_spark.run(OPTIMIZE, table=table, where="")):
        if ids:
            spark.sql(named)
        else:
            with pytest.raises(ConcurrentDeleteDeleteException, match="OPTIMIZE"):
                spark.sql(named)
    if ids:
        after = row_ids(spark, table)
        assert {i: n for i, n in after.items() if i in ids} == {
            i: n for i, n in ids.items() if i in after
        }
    else:
        assert log.newest(table) == before + 1
        assert values(spark, table) == BASE
        spark.sql(named)
    assert log.newest(table) == before + 2
    check(spark, delta_spark, table, change(BASE))


def test_optimize_of_other_files_does_not_conflict_with_a_change(
    spark: SparkSession, delta_spark: SparkProcess, base: Path, table: str
) -> None:
    log.copy_table(base, table)
    ids = row_ids(spark, table) if is_tracked(table) else {}
    before = log.newest(table)
    with committed_meanwhile(lambda: delta_spark.run(OPTIMIZE, table=table, where="WHERE p = 1")):
        spark.sql(f"UPDATE delta.`{table}` SET v = 'u' WHERE p = 0 AND id % 10 = 3")
    assert log.newest(table) == before + 2
    changed = {i: "u" if i % 20 == 3 else v for i, v in BASE.items()}
    check(spark, delta_spark, table, changed)
    if ids:
        assert row_ids(spark, table) == ids


@contextmanager
def optimizing(delta_spark: SparkProcess, table: str, signals: Path) -> Iterator[list[str]]:
    """Let an OPTIMIZE write its files, and commit after the block; yield what it failed with."""
    ready, go = signals / "ready", signals / "go"
    failed: list[str] = []

    def run() -> None:
        try:
            delta_spark.run(OPTIMIZE_WAITING, table=table, ready=str(ready), go=str(go))
        except SparkProcessError as problem:
            failed.append(str(problem))

    thread = threading.Thread(target=run)
    thread.start()
    try:
        while not ready.exists() and thread.is_alive():
            time.sleep(0.02)
        yield failed
    finally:
        go.touch()
        thread.join()


@pytest.mark.parametrize("kind", STATEMENTS)
def test_change_that_commits_while_optimize_writes_is_not_lost(
    spark: SparkSession,
    delta_spark: SparkProcess,
    base: Path,
    table: str,
    tmp_path: Path,
    kind: str,
) -> None:
    """OPTIMIZE gives up, or leaves out what changed: the rows are those of the change."""
    log.copy_table(base, table)
    statement, change = STATEMENTS[kind]
    with optimizing(delta_spark, table, tmp_path) as failed:
        assert not failed, failed
        spark.sql(statement.replace("{t}", f"delta.`{table}`"))
        ours = log.newest(table)
    assert log.commit_info(table, ours)["operation"] == kind.upper()
    if failed:
        assert "Concurrent" in failed[0], failed[0]
        assert log.newest(table) == ours
    check(spark, delta_spark, table, change(BASE))


def check(spark: SparkSession, delta_spark: SparkProcess, table: str, expected: Rows) -> None:
    assert values(spark, table) == expected
    theirs = delta_spark.run(SHOW, table=table)
    assert {row[0]: row[2] for row in theirs} == expected and len(theirs) == len(expected)
