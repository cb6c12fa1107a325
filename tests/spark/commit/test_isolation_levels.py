"""Which blind appends do not conflict, by the isolation level of the table and the session."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from deltaic.exceptions import ConcurrentAppendException, InvalidArgumentError
from tests.support import log
from tests.support.jobs import jobs_of
from tests.support.pair_checks import ERRORS, build_base, check
from tests.support.pair_operations import (
    Operation,
    Rows,
    append,
    changed,
    delete,
    insert_from_itself,
    merge,
    overwrite,
    overwrite_partition,
    sql,
    update,
)
from tests.support.session_settings import session_settings

O, P = overwrite(), overwrite_partition(1)  # noqa: E741
READERS = [
    O,
    P,
    insert_from_itself(1),
    delete(1),
    update(1),
    merge(1, matched=False),
    merge(1, matched=True),
    append(1),
]


@pytest.fixture(scope="module")
def bases(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Build the tables that each pair gets a copy of."""
    folder = tmp_path_factory.mktemp("bases")
    level = {"delta.isolationLevel": "WriteSerializable"}
    build_base(spark, folder / "partitioned", "PARTITIONED BY (p)")
    build_base(spark, folder / "flat", "")
    build_base(spark, folder / "write serializable", "PARTITIONED BY (p)", level)
    return folder


@pytest.mark.parametrize("mine", READERS, ids=str)
def test_no_operation_conflicts_with_a_blind_append_on_a_write_serializable_table(
    spark: SparkSession, bases: Path, table: str, mine: Operation
) -> None:
    check(spark, bases / "write serializable", table, mine, append(1), None)


ISOLATION = "spark.deltaic.isolationLevel"


@pytest.mark.parametrize("level", [None, "Serializable", "writeserializable"])
def test_session_sets_the_isolation_level_of_a_table_that_sets_none(
    spark: SparkSession, bases: Path, table: str, level: str | None
) -> None:
    conflict = None if level == "writeserializable" else ConcurrentAppendException
    with session_settings(spark, {ISOLATION: level} if level else {}):
        check(spark, bases / "partitioned", table, O, append(1), conflict)


def test_isolation_level_of_the_table_takes_precedence_over_that_of_the_session(
    spark: SparkSession, bases: Path, table: str
) -> None:
    with session_settings(spark, {ISOLATION: "Serializable"}):
        check(spark, bases / "write serializable", table, O, append(1), None)


def test_session_setting_that_is_no_isolation_level_is_refused(
    spark: SparkSession, bases: Path, table: str
) -> None:
    log.copy_table(bases / "flat", table)
    with (
        session_settings(spark, {ISOLATION: "SnapshotIsolation"}),
        pytest.raises(InvalidArgumentError, match=r"isolationLevel.*one of Serializable, Write"),
    ):
        spark.sql(f"INSERT INTO delta.`{table}` VALUES (1, 1, 'a')")
    assert log.newest(table) == 2


@pytest.mark.parametrize(
    "statement",
    [
        "INSERT INTO {t} VALUES (1, 1, 'a')",
        "INSERT OVERWRITE {t} VALUES (1, 1, 'a')",
        "DELETE FROM {t} WHERE id % 2 = 0",
        "UPDATE {t} SET v = 'b' WHERE id % 2 = 0",
        "MERGE INTO {t} t USING (SELECT id FROM range(3)) s ON t.id = s.id"
        " WHEN MATCHED THEN UPDATE SET v = 'b'",
        "CREATE TABLE delta.`{new}` USING delta AS SELECT id FROM range(3)",
    ],
)
def test_session_setting_that_is_no_isolation_level_is_refused_before_data_is_written(
    spark: SparkSession, bases: Path, table: str, statement: str
) -> None:
    log.copy_table(bases / "flat", table)
    text = statement.format(t=f"delta.`{table}`", new=f"{table}-new")

    def refused() -> None:
        with pytest.raises(InvalidArgumentError, match="isolationLevel"):
            spark.sql(text)

    # A broadcast reads the source of a MERGE before Spark asks for the write.
    broadcast = {"spark.sql.autoBroadcastJoinThreshold": "-1"}
    with session_settings(spark, {ISOLATION: "SnapshotIsolation", **broadcast}):
        assert jobs_of(spark, refused) == 0


def upsert(*ids: int) -> Operation:
    """MERGE rows by id, in partition 1."""
    values = ", ".join(f"({i}, 1, 'merged')" for i in ids)

    def apply(rows: Rows) -> Rows:
        after = changed(rows, lambda i, q, v: [(i, q, "merged" if i in ids else v)])
        there = {i for i, _, _ in rows}
        return after + Counter((i, 1, "merged") for i in ids if i not in there)

    return Operation(
        f"upsert of {ids}",
        sql(
            f"MERGE INTO {{t}} t USING (SELECT * FROM VALUES {values} AS s(id, p, v)) s"
            " ON t.id = s.id WHEN MATCHED THEN UPDATE SET * WHEN NOT MATCHED THEN INSERT *"
        ),
        apply,
    )


def append_all(*ids: int) -> Operation:
    """Append rows in one file."""
    rows = [(i, 1, "appended") for i in ids]
    values = ", ".join(map(str, rows))
    return Operation(
        f"append of {ids}",
        sql(f"INSERT INTO {{t}} SELECT /*+ COALESCE(1) */ * FROM VALUES {values}"),
        lambda before: before + Counter(rows),
    )


IDS = (2, 100)
REMOVE = Operation(
    "delete of (2, 100)",
    sql(f"DELETE FROM {{t}} WHERE id IN {IDS}"),
    lambda rows: changed(rows, lambda i, q, v: [] if i in IDS else [(i, q, v)]),
)
CHANGE = Operation(
    "update of (2, 100)",
    sql(f"UPDATE {{t}} SET v = 'updated' WHERE id IN {IDS}"),
    lambda rows: changed(rows, lambda i, q, v: [(i, q, "updated" if i in IDS else v)]),
)


@pytest.mark.parametrize(
    ("mine", "theirs", "code"),
    [
        (upsert(2, 100), append_all(100), "a"),
        # Bounds do not help: the appended keys are around those of the source.
        (upsert(2, 100), append_all(99, 101), "."),
        (upsert(2, 100), append_all(99, 100, 101), "a"),
        (upsert(2, 100), append_all(200), "."),
        (REMOVE, append_all(99, 101), "."),
        (REMOVE, append_all(99, 100, 101), "a"),
        (CHANGE, append_all(99, 101), "."),
        (CHANGE, append_all(99, 100, 101), "a"),
    ],
    ids=str,
)
@pytest.mark.parametrize("base", ["partitioned", "flat"])
def test_blind_append_conflicts_where_its_rows_are_those_that_a_change_looks_for(
    spark: SparkSession,
    bases: Path,
    table: str,
    base: str,
    mine: Operation,
    theirs: Operation,
    code: str,
) -> None:
    check(spark, bases / base, table, mine, theirs, ERRORS[code], either_order=False)
