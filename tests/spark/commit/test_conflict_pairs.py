"""Every pair of operations on one table, in both orders: which conflict, and what they leave.

What a pair leaves is checked by brute force: an operation is also a function of the table's rows,
and two that both commit must leave what one after the other would have left.
"""

from __future__ import annotations

import itertools
from collections import Counter
from collections.abc import Callable
from contextlib import nullcontext
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from deltaic import DeltaTable
from deltaic.exceptions import (
    ConcurrentModificationError,
    ProtocolChangedException,
)
from tests.support import log
from tests.support.interleave import committed_meanwhile
from tests.support.pair_checks import ERRORS, MAX_DELETED_RATIO, build_base, check
from tests.support.pair_operations import (
    Operation,
    Rows,
    append,
    changed,
    defines,
    delete,
    delete_half,
    insert_from_itself,
    merge,
    merge_of_the_rest,
    overwrite,
    overwrite_partition,
    path_of,
    replace_columns,
    replace_row,
    set_domain,
    sql,
    update,
)
from tests.support.table_builder import rows_of

A = append(1)
O = overwrite()  # noqa: E741
P = overwrite_partition(1)
S = insert_from_itself(1)
D = delete(1)
U = update(1)
I = merge(1, matched=False)  # noqa: E741
M = merge(1, matched=True)
C = Operation("columns", replace_columns, lambda rows: Counter([(70, 1, "replaced")]))
K = defines("property", "ALTER TABLE {t} SET TBLPROPERTIES ('team' = 'us')")
G = Operation("domain", set_domain, lambda rows: rows)
ALL = [A, O, P, S, D, U, I, M, C, K, G]

#: What becomes of the row's operation when the column's has committed first, at the default
#: isolation level, Serializable. All operations are about the partition p = 1, which has one file.
#: DELETE, UPDATE and INSERT look for ids, too, and so do not read files with other ids. A MERGE
#: looks for its keys in the rows that the other has deleted and added: the one that only inserts
#: shares a new id with either.
OUTCOMES = """
                            A  O  P  S  D  U  I  M  C  K  G
append                      .  .  .  .  .  .  .  .  m  m  .
overwrite                   a  d  d  a  d  d  a  d  m  m  .
overwrite of a partition    a  d  d  a  d  d  a  d  m  m  .
insert from itself          .  r  r  .  r  r  .  r  m  m  .
delete                      .  d  d  .  d  .  .  .  m  m  .
update                      .  d  d  .  .  d  .  .  m  m  .
merge that inserts          .  .  .  .  .  .  a  a  m  m  .
merge                       .  d  d  .  .  .  a  d  m  m  .
columns                     m  m  m  m  m  m  m  m  m  m  .
property                    .  .  .  .  .  .  .  .  m  m  .
domain                      .  .  .  .  .  .  .  .  m  m  t
"""


#: Each operation is tried after these, and these after each; the other pairs take as long, and are
#: left to `make test-thorough`. All of them are in tests/conflicts, on a log in memory.
SAMPLED = (A, D)


def marks(mine: Operation, theirs: Operation) -> list[pytest.MarkDecorator]:
    sampled = mine in SAMPLED or theirs in SAMPLED or mine is theirs
    return [] if sampled else [pytest.mark.thorough]


def pairs() -> list[object]:
    lines = OUTCOMES.strip("\n").split("\n")[1:]
    assert [line[:28].strip() for line in lines] == [operation.name for operation in ALL]
    return [
        pytest.param(
            mine, theirs, ERRORS[code], id=f"{mine} after {theirs}", marks=marks(mine, theirs)
        )
        for mine, line in zip(ALL, lines, strict=True)
        for theirs, code in zip(ALL, line[28:].split(), strict=True)
    ]


@pytest.fixture(scope="module")
def bases(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Build the tables that each pair gets a copy of."""
    folder = tmp_path_factory.mktemp("bases")
    by_partition = "PARTITIONED BY (p)"
    build_base(spark, folder / "partitioned", by_partition)
    build_base(spark, folder / "flat", "")
    build_base(spark, folder / "heavily_deleted", by_partition, {MAX_DELETED_RATIO: "0.3"})
    build_base(
        spark, folder / "mapped", by_partition, {"delta.columnMapping.mode": "name"}, "x INT"
    )
    return folder


@pytest.mark.parametrize(("mine", "theirs", "expected"), pairs())
def test_pair_about_the_same_rows(
    spark: SparkSession,
    bases: Path,
    table: str,
    mine: Operation,
    theirs: Operation,
    expected: type[ConcurrentModificationError] | None,
) -> None:
    check(spark, bases / "partitioned", table, mine, theirs, expected, either_order=False)


def replaced(p: int) -> Callable[[Rows], Rows]:
    row = (80, p, "replaced")
    return lambda rows: (
        changed(rows, lambda i, q, v: [] if q == p else [(i, q, v)]) + Counter([row])
    )


def append_with_column(spark: SparkSession, table: str) -> None:
    rows = spark.sql("SELECT 90 AS id, 1 AS p, 'evolved' AS v, 0 AS w")
    rows.write.format("delta").mode("append").option("mergeSchema", "true").save(path_of(table))


def append_of_application(spark: SparkSession, table: str) -> None:
    """Each call is another version of the application, later than those before it."""
    rows = spark.sql("SELECT 95 AS id, 1 AS p, 'by app' AS v")
    writer = rows.write.format("delta").mode("append").option("txnAppId", "app")
    writer.option("txnVersion", str(100 + next(_calls))).save(path_of(table))


_calls = itertools.count()

TRUNCATE = Operation("TRUNCATE", sql("TRUNCATE TABLE {t}"), lambda rows: Counter())
REPLACE_WHERE = Operation(
    "REPLACE WHERE",
    sql("INSERT INTO {t} REPLACE WHERE p = 1 VALUES (80, 1, 'replaced')"),
    replaced(1),
)
REPLACE_USING = Operation(
    "REPLACE USING",
    sql("INSERT INTO {t} REPLACE USING (p) VALUES (80, 1, 'replaced')"),
    replaced(1),
)
EVOLVE = Operation(
    "append with a column", append_with_column, lambda rows: rows + Counter([(90, 1, "evolved")])
)
BY_APP = Operation(
    "append of an application",
    append_of_application,
    lambda rows: rows + Counter([(95, 1, "by app")]),
)
REST = merge_of_the_rest()
ROW = replace_row()
HALF = delete_half()
ADD_COLUMN = defines("ADD COLUMN", "ALTER TABLE {t} ADD COLUMN w INT")
RENAME = defines("RENAME COLUMN", "ALTER TABLE {t} RENAME COLUMN x TO y")
DROP = defines("DROP COLUMN", "ALTER TABLE {t} DROP COLUMN x")
CHECK = defines("ADD CONSTRAINT", "ALTER TABLE {t} ADD CONSTRAINT c CHECK (id > 0)")
CLUSTER = defines("CLUSTER BY", "ALTER TABLE {t} CLUSTER BY (id)")
UPGRADE = Operation(
    "UPGRADE PROTOCOL",
    lambda spark, table: DeltaTable.forPath(spark, path_of(table)).addFeatureSupport(
        "checkConstraints"
    ),
    lambda rows: rows,
)

#: What the matrix above does not have, by a table of each kind: the operation, one that meets it,
#: and what becomes of each of the two when it comes second.
MORE = [
    ("partitioned", TRUNCATE, P, "d", "d"),
    ("partitioned", REPLACE_WHERE, P, "d", "d"),
    ("partitioned", REPLACE_USING, P, "d", "d"),
    ("partitioned", EVOLVE, D, ".", "m"),
    ("partitioned", BY_APP, BY_APP, "t", "t"),
    ("partitioned", ADD_COLUMN, D, ".", "m"),
    ("mapped", RENAME, D, ".", "m"),
    ("mapped", DROP, D, ".", "m"),
    # A MERGE with WHEN NOT MATCHED BY SOURCE depends on all rows that the other adds.
    ("partitioned", REST, A, "a", "."),
    ("partitioned", REST, D, ".", "."),
    ("partitioned", REST, U, "a", "."),
    ("partitioned", ROW, D, ".", "."),
    ("partitioned", ROW, U, ".", "."),
    ("partitioned", ROW, A, ".", "."),
    # A file that one of the two rewrites is changed as a whole.
    ("heavily_deleted", HALF, D, "d", "d"),
    ("heavily_deleted", HALF, U, "d", "d"),
    ("heavily_deleted", HALF, A, ".", "."),
    # The constraint adds its feature, as clustering does.
    ("partitioned", CHECK, A, "a", "p"),
    ("flat", CLUSTER, D, ".", "p"),
    ("partitioned", UPGRADE, D, ".", "p"),
]


def more_pairs() -> list[object]:
    return [
        pytest.param(base, mine, theirs, ERRORS[code], id=f"{mine} after {theirs}")
        for base, one, other, one_second, other_second in MORE
        for mine, theirs, code in dict.fromkeys(
            ((one, other, one_second), (other, one, other_second))
        )
    ]


@pytest.mark.parametrize(("base", "mine", "theirs", "expected"), more_pairs())
def test_pair_with_a_statement_beyond_rows(
    spark: SparkSession,
    bases: Path,
    table: str,
    base: str,
    mine: Operation,
    theirs: Operation,
    expected: type[ConcurrentModificationError] | None,
) -> None:
    check(spark, bases / base, table, mine, theirs, expected)


ONE_SIDE = [P, S, D, U, I, M]
OTHER_SIDE = [
    overwrite_partition(2),
    insert_from_itself(2),
    delete(2),
    update(2),
    merge(2, matched=False),
    merge(2, matched=True),
]


TWO_SIDES = [
    pytest.param(
        mine,
        theirs,
        id=f"{mine}-{theirs}",
        marks=[] if i == j or (i + j) % 6 == 1 else [pytest.mark.thorough],
    )
    for i, mine in enumerate(ONE_SIDE)
    for j, theirs in enumerate(OTHER_SIDE)
]


@pytest.mark.parametrize(("mine", "theirs"), TWO_SIDES)
def test_pair_about_two_partitions_does_not_conflict(
    spark: SparkSession, bases: Path, table: str, mine: Operation, theirs: Operation
) -> None:
    check(spark, bases / "partitioned", table, mine, theirs, None, either_order=False)


@pytest.mark.parametrize("theirs", OTHER_SIDE[1:4], ids=str)
@pytest.mark.parametrize("mine", ONE_SIDE[1:4], ids=str)
def test_pair_about_two_ranges_of_a_table_without_partitions_does_not_conflict(
    spark: SparkSession, bases: Path, table: str, mine: Operation, theirs: Operation
) -> None:
    check(spark, bases / "flat", table, mine, theirs, None)


def first_write(mode: str) -> Callable[[SparkSession, str], object]:
    def run(spark: SparkSession, table: str) -> None:
        spark.range(2).write.format("delta").mode(mode).save(path_of(table))

    return run


CREATIONS = {
    "append": first_write("append"),
    "overwrite": first_write("overwrite"),
    "error if exists": first_write("errorifexists"),
    "CTAS": sql("CREATE TABLE {t} USING delta AS SELECT id FROM range(2)"),
    "create": sql("CREATE TABLE {t} (id BIGINT) USING delta"),
}


#: Who creates second, and who has created first.
CREATORS = [
    pytest.param(
        mine,
        theirs,
        marks=[] if theirs in (mine, "append") else [pytest.mark.thorough],
    )
    for mine in CREATIONS
    for theirs in CREATIONS
]


@pytest.mark.parametrize(("mine", "theirs"), CREATORS)
def test_pair_that_creates_one_table(
    spark: SparkSession, table: str, mine: str, theirs: str
) -> None:
    """An append follows, and CREATE TABLE is content with a table that is as it says.

    A statement that comes when the other has written files already is refused: that the files are
    about to be a table's, it cannot know.
    """
    named = f"delta.`{table}`"
    problem: ConcurrentModificationError | None = None
    refused = theirs in ("CTAS", "create") and mine != "create"

    def meanwhile() -> None:
        with pytest.raises(Exception, match="LOCATION_NOT_EMPTY") if refused else nullcontext():
            CREATIONS[theirs](spark, named)

    with committed_meanwhile(meanwhile):
        try:
            CREATIONS[mine](spark, named)
        except ProtocolChangedException as caught:
            problem = caught
    assert (problem is None) == (refused or mine in ("append", "create"))
    rows = [] if theirs == "create" and not refused else [0, 1]
    follows = mine == "append" and not refused
    if follows:
        rows = sorted([*rows, 0, 1])
    assert sorted(row[0] for row in rows_of(spark, table)) == rows
    assert log.versions(table) == ([0, 1] if follows else [0])
    assert len(log.files_in(table, ".parquet")) == len(log.active_files(table))
