"""Two operations on one table, one committed while the other runs: both commit or a typed error.

The first operation is held inside its own query: a function in it waits until the second has
committed. So every interleaving here happens each time.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

import pytest
from pyspark.sql import Column, SparkSession
from pyspark.sql import functions as F
from pyspark.sql.types import BooleanType

from deltaic import DeltaTable
from deltaic.exceptions import (
    ConcurrentAppendException,
    ConcurrentDeleteDeleteException,
    ConcurrentDeleteReadException,
    DeltaError,
    MetadataChangedException,
    ProtocolChangedException,
)
from tests.support import log
from tests.support.spark_process import SparkProcess
from tests.support.table_builder import build_table, rows_of

Operation = Callable[[SparkSession, str, Column], None]

#: Either says that the other operation took a file away from this one.
DELETED = (ConcurrentDeleteDeleteException, ConcurrentDeleteReadException)


@dataclass
class Held:
    """An operation that waits, in the middle of its query, to be released."""

    folder: Path
    error: BaseException | None = None
    _thread: threading.Thread | None = None
    _files: list[Path] = field(default_factory=list)

    def condition(self) -> Column:
        """Return a condition that is true, once it is released."""
        started, released = self.folder / "started", self.folder / "released"
        self._files = [started, released]

        def hold() -> bool:
            started.touch()
            while not released.exists():
                time.sleep(0.01)
            return True

        return F.udf(lambda _: hold(), BooleanType())(F.col("id"))

    def start(self, run: Callable[[], None]) -> None:
        def target() -> None:
            try:
                run()
            except BaseException as problem:
                self.error = problem

        self._thread = threading.Thread(target=target)
        self._thread.start()
        self._wait_until_started()

    def _wait_until_started(self) -> None:
        assert self._thread is not None
        deadline = time.monotonic() + 120
        while not self._files[0].exists():
            assert self._thread.is_alive(), f"ended without waiting: {self.error!r}"
            assert time.monotonic() < deadline, "the operation does not start"
            time.sleep(0.01)

    def release(self) -> BaseException | None:
        """Let the operation go on to its end and return what it failed with."""
        assert self._thread is not None
        self._files[1].touch()
        self._thread.join(120)
        assert not self._thread.is_alive(), "the operation does not end"
        return self.error


@pytest.fixture
def held(tmp_path: Path) -> Held:
    folder = tmp_path / "held"
    folder.mkdir()
    return Held(folder)


def delete_where(sql: str) -> Operation:
    def run(spark: SparkSession, table: str, hold: Column) -> None:
        DeltaTable.forPath(spark, table).delete(F.expr(sql) & hold)

    return run


def write(mode: str, start: int, count: int) -> Operation:
    def run(spark: SparkSession, table: str, hold: Column) -> None:
        rows = spark.range(start, start + count).coalesce(1).where(hold)
        rows.write.format("delta").mode(mode).save(table)

    return run


def statement(sql: str) -> Callable[[SparkSession, str], None]:
    def run(spark: SparkSession, table: str) -> None:
        spark.sql(sql.replace("{t}", f"delta.`{table}`"))

    return run


def merge_delete(spark: SparkSession, table: str, hold: Column) -> None:
    spark.range(3, 4).where(hold).createOrReplaceTempView("held_source")
    spark.sql(
        f"MERGE INTO delta.`{table}` t USING held_source s ON t.id = s.id WHEN MATCHED THEN DELETE"
    )


def merge_insert(spark: SparkSession, table: str, hold: Column) -> None:
    # Under another name, or Spark would infer the condition for the target, too.
    source = spark.range(50, 51, 1, 1).where(hold).selectExpr("abs(id) AS id")
    source.createOrReplaceTempView("held_source")
    spark.sql(
        f"MERGE INTO delta.`{table}` t USING held_source s ON t.id = s.id"
        " WHEN NOT MATCHED THEN INSERT *"
    )


def insert_from_itself(spark: SparkSession, table: str, hold: Column) -> None:
    spark.read.format("delta").load(table).where(F.expr("id < 5") & hold).createOrReplaceTempView(
        "held_source"
    )
    spark.sql(f"INSERT INTO delta.`{table}` SELECT id + 100 FROM held_source")


FIRST = range(10)
SECOND = range(10, 20)


def without(*gone: int) -> list[int]:
    return [n for n in (*FIRST, *SECOND) if n not in gone]


@pytest.fixture(params=[True, False], ids=["vectors", "rewrite"])
def built(request: pytest.FixtureRequest, spark: SparkSession, table: str) -> str:
    files = [[(n,) for n in FIRST], [(n,) for n in SECOND]]
    build_table(spark, table, "id BIGINT", files, deletion_vectors=bool(request.param))
    return table


def ids(spark: SparkSession, table: str) -> list[int]:
    return sorted(row[0] for row in rows_of(spark, table))


@pytest.mark.parametrize(
    ("mine", "theirs", "left"),
    [
        (delete_where("id = 3"), "DELETE FROM {t} WHERE id = 3", without(3)),
        (delete_where("id = 3"), "DELETE FROM {t} WHERE id < 10", list(SECOND)),
        (delete_where("id < 10"), "DELETE FROM {t} WHERE id = 5", without(5)),
        (delete_where("id = 3"), "INSERT OVERWRITE {t} VALUES (70)", [70]),
        (merge_delete, "DELETE FROM {t} WHERE id = 3", without(3)),
        (write("overwrite", 80, 1), "DELETE FROM {t} WHERE id = 3", without(3)),
    ],
    ids=[
        "delete, then delete of the same row",
        "delete, then delete of the file",
        "delete of the file, then delete in it",
        "delete, then overwrite",
        "merge, then delete",
        "overwrite, then delete",
    ],
)
def test_operations_on_the_same_file_conflict_and_the_first_to_commit_stands(
    spark: SparkSession, built: str, held: Held, mine: Operation, theirs: str, left: list[int]
) -> None:
    hold = held.condition()
    held.start(lambda: mine(spark, built, hold))
    statement(theirs)(spark, built)
    files = log.files_in(built, "")
    error = held.release()
    assert isinstance(error, DELETED), repr(error)
    assert built in str(error)
    assert log.versions(built) == [0, 1]
    assert ids(spark, built) == left
    assert log.files_in(built, ".parquet") <= files, "the loser left data files behind"


INSERT_50_IF_ABSENT = (
    "MERGE INTO {t} t USING (SELECT 50L AS id) s ON t.id = s.id WHEN NOT MATCHED THEN INSERT *"
)


@pytest.mark.parametrize(
    ("mine", "theirs", "expected", "left"),
    [
        (merge_insert, INSERT_50_IF_ABSENT, ConcurrentAppendException, [*without(), 50]),
        (
            insert_from_itself,
            "DELETE FROM {t} WHERE id = 3",
            ConcurrentDeleteReadException,
            without(3),
        ),
    ],
    ids=["the same row inserted if absent", "insert from itself, then delete"],
)
def test_append_that_read_the_table_conflicts_with_changes_of_what_it_read(
    spark: SparkSession,
    built: str,
    held: Held,
    mine: Operation,
    theirs: str,
    expected: type[DeltaError],
    left: list[int],
) -> None:
    hold = held.condition()
    held.start(lambda: mine(spark, built, hold))
    statement(theirs)(spark, built)
    assert log.commit_info(built)["isBlindAppend"] is False
    assert isinstance(held.release(), expected), repr(held.error)
    assert log.versions(built) == [0, 1]
    assert ids(spark, built) == left


@pytest.mark.parametrize(
    ("mine", "theirs", "left"),
    [
        (delete_where("id = 3"), "DELETE FROM {t} WHERE id = 13", without(3, 13)),
        (delete_where("id = 3"), "DELETE FROM {t} WHERE id >= 10", [n for n in FIRST if n != 3]),
        (delete_where("id = 3"), "INSERT INTO {t} VALUES (2), (99)", sorted([*without(3), 2, 99])),
        (write("append", 50, 2), "DELETE FROM {t} WHERE id = 3", [*without(3), 50, 51]),
        (write("append", 50, 2), "INSERT INTO {t} VALUES (99)", [*without(), 50, 51, 99]),
        (write("append", 50, 1), "INSERT OVERWRITE {t} VALUES (70)", [50, 70]),
        (
            insert_from_itself,
            "DELETE FROM {t} WHERE id = 13",
            sorted([*without(13), *range(100, 105)]),
        ),
    ],
    ids=[
        "deletes in different files",
        "delete, then delete of another file",
        "delete, then append of other rows",
        "append, then delete",
        "append, then append",
        "append, then overwrite",
        "insert of rows of one file, then delete in another",
    ],
)
def test_operations_that_do_not_conflict_both_commit(
    spark: SparkSession, built: str, held: Held, mine: Operation, theirs: str, left: list[int]
) -> None:
    hold = held.condition()
    held.start(lambda: mine(spark, built, hold))
    statement(theirs)(spark, built)
    error = held.release()
    assert error is None, repr(error)
    assert log.versions(built) == [0, 1, 2]
    assert ids(spark, built) == left


def test_retry_after_a_lost_race_keeps_the_vectors_of_both(
    spark: SparkSession, table: str, held: Held
) -> None:
    files = [[(n,) for n in FIRST], [(n,) for n in SECOND]]
    build_table(spark, table, "id BIGINT", files)
    hold = held.condition()
    held.start(lambda: delete_where("id = 3")(spark, table, hold))
    for n in (13, 14, 15):
        spark.sql(f"DELETE FROM delta.`{table}` WHERE id = {n}")
    assert held.release() is None
    assert log.versions(table) == [0, 1, 2, 3, 4]
    cardinalities = [add["deletionVector"]["cardinality"] for add in log.active_files(table)]
    assert sorted(cardinalities) == [1, 3]
    assert ids(spark, table) == without(3, 13, 14, 15)


@pytest.mark.thorough
@pytest.mark.parametrize(
    ("theirs", "left"),
    [
        ("DELETE FROM {t} WHERE id = 5", without(5)),
        ("UPDATE {t} SET id = 50 WHERE id = 5", [*without(5), 50]),
    ],
)
def test_delete_of_another_row_than_delta_spark_changed_conflicts_unless_there_are_vectors(
    spark: SparkSession,
    delta_spark: SparkProcess,
    built: str,
    held: Held,
    theirs: str,
    left: list[int],
) -> None:
    hold = held.condition()
    held.start(lambda: delete_where("id = 3")(spark, built, hold))
    code = "spark.sql(statement)\nresult = None"
    delta_spark.run(code, statement=theirs.replace("{t}", f"delta.`{built}`"))
    error = held.release()
    if log.metadata(built)["configuration"]["delta.enableDeletionVectors"] == "true":
        assert error is None, repr(error)
        left = [n for n in left if n != 3]
    else:
        assert isinstance(error, DELETED)
    assert ids(spark, built) == left


def test_of_two_first_appends_the_later_follows_the_one_that_created_the_table(
    spark: SparkSession, table: str, held: Held
) -> None:
    hold = held.condition()
    held.start(lambda: write("append", 50, 2)(spark, table, hold))
    spark.range(3).coalesce(1).write.format("delta").save(table)
    assert held.release() is None, repr(held.error)
    assert [len(log.actions(table, v, "metaData")) for v in log.versions(table)] == [1, 0]
    assert ids(spark, table) == [0, 1, 2, 50, 51]


@pytest.mark.parametrize("mode", ["overwrite", "errorifexists"])
def test_of_two_creators_of_a_table_one_gets_an_error(
    spark: SparkSession, table: str, held: Held, mode: str
) -> None:
    hold = held.condition()
    held.start(lambda: write(mode, 50, 2)(spark, table, hold))
    spark.range(3).coalesce(1).write.format("delta").save(table)
    error = held.release()
    assert isinstance(error, ProtocolChangedException), repr(error)
    assert log.versions(table) == [0]
    assert ids(spark, table) == [0, 1, 2]
    assert log.files_in(table, ".parquet") == {f["path"] for f in log.active_files(table)}


@pytest.mark.parametrize(
    ("action", "expected"),
    [("metaData", MetadataChangedException), ("protocol", ProtocolChangedException)],
)
@pytest.mark.parametrize(
    "mine", [delete_where("id = 3"), write("append", 50, 1)], ids=["delete", "append"]
)
def test_a_changed_definition_conflicts_with_every_write(
    spark: SparkSession,
    table: str,
    held: Held,
    mine: Operation,
    action: str,
    expected: type[DeltaError],
) -> None:
    build_table(spark, table, "id BIGINT", [[(n,) for n in FIRST]])
    [definition] = log.actions(table, 0, action)
    changes = {"configuration": {"my.own": "1"}} if action == "metaData" else {}
    hold = held.condition()
    held.start(lambda: mine(spark, table, hold))
    log.write_commit(table, 1, {action: {**definition, **changes}})
    assert isinstance(held.release(), expected)
    assert log.versions(table) == [0, 1]
