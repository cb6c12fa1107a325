"""Every pair of operations on one table, each way round: which go together, and what they leave.

What a pair leaves is checked by brute force: an operation is also a function of the table's rows,
and two that both commit must leave what one after the other would have left.
"""

from __future__ import annotations

import dataclasses
import shutil
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from deltaic import DeltaTable
from deltaic.commit.operations import Operation as Name
from deltaic.commit.plan import CommitPlan, Definition
from deltaic.commit.ports import CommitSummary
from deltaic.commit.transaction import commit
from deltaic.exceptions import (
    ConcurrentAppendException,
    ConcurrentDeleteDeleteException,
    ConcurrentDeleteReadException,
    ConcurrentModificationError,
    ConcurrentTransactionException,
    MetadataChangedException,
    ProtocolChangedException,
)
from deltaic.spark.session_api import SessionApi
from tests.support import log
from tests.support.interleave import committed_meanwhile
from tests.support.table_builder import rows_of

#: Rows as (id, p, v), counted.
Rows = Counter[tuple[int, int, str]]

BASE: Rows = Counter((n, 1 if n < 5 else 2, "base") for n in range(1, 9))


@dataclass(frozen=True)
class Operation:
    """One operation, on Spark and on rows.

    Attributes
    ----------
    run
        Takes the session and the table, as SQL names it.
    """

    name: str
    run: Callable[[SparkSession, str], object]
    apply: Callable[[Rows], Rows]

    def __str__(self) -> str:
        return self.name


def sql(text: str) -> Callable[[SparkSession, str], object]:
    return lambda spark, table: spark.sql(text.replace("{t}", table))


def path_of(table: str) -> str:
    return table.removeprefix("delta.`").removesuffix("`")


def changed(rows: Rows, change: Callable[[int, int, str], list[tuple[int, int, str]]]) -> Rows:
    return Counter(new for row in rows.elements() for new in change(*row))


def append(p: int) -> Operation:
    row = (100 * p, p, "appended")
    return Operation(
        "append", sql(f"INSERT INTO {{t}} VALUES {row}"), lambda rows: rows + Counter([row])
    )


def overwrite() -> Operation:
    row = (50, 1, "overwritten")
    return Operation(
        "overwrite", sql(f"INSERT OVERWRITE {{t}} VALUES {row}"), lambda rows: Counter([row])
    )


def overwrite_partition(p: int) -> Operation:
    def run(spark: SparkSession, table: str) -> None:
        rows = spark.sql(f"SELECT {60 + p} AS id, {p} AS p, 'renewed' AS v")
        writer = rows.write.format("delta").mode("overwrite")
        writer.option("partitionOverwriteMode", "dynamic").save(path_of(table))

    def apply(rows: Rows) -> Rows:
        kept = changed(rows, lambda i, q, v: [] if q == p else [(i, q, v)])
        return kept + Counter([(60 + p, p, "renewed")])

    return Operation("overwrite of a partition", run, apply)


def insert_from_itself(p: int) -> Operation:
    return Operation(
        "insert from itself",
        sql(f"INSERT INTO {{t}} SELECT id + 1000, p, v FROM {{t}} WHERE {where(p)}"),
        lambda rows: (
            rows + changed(rows, lambda i, q, v: [(i + 1000, q, v)] if within(p, i, q) else [])
        ),
    )


def where(p: int) -> str:
    """Both select the same rows of the base, by partition or, if there are none, by range."""
    return f"p = {p} AND id BETWEEN {4 * p - 3} AND {4 * p}"


def within(p: int, i: int, q: int) -> bool:
    return q == p and 4 * p - 3 <= i <= 4 * p


def delete(p: int) -> Operation:
    one = 4 * p - 2
    return Operation(
        "delete",
        sql(f"DELETE FROM {{t}} WHERE p = {p} AND id = {one}"),
        lambda rows: changed(rows, lambda i, q, v: [] if (i, q) == (one, p) else [(i, q, v)]),
    )


def update(p: int) -> Operation:
    one = 4 * p - 1
    return Operation(
        "update",
        sql(f"UPDATE {{t}} SET v = concat(v, '+') WHERE p = {p} AND id = {one}"),
        lambda rows: changed(rows, lambda i, q, v: [(i, q, v + "+" * ((i, q) == (one, p)))]),
    )


def merge(p: int, matched: bool) -> Operation:
    """MERGE two rows by id within the partition; one is in the base if any is to match."""
    known, new = (4 * p, 300 + p) if matched else (302 + p, 300 + p)
    clause = "WHEN MATCHED THEN UPDATE SET v = s.v" if matched else ""

    def apply(rows: Rows) -> Rows:
        source = {known: "merged", new: "merged"}
        there = {i for i, q, _ in rows if q == p}
        after = changed(
            rows,
            lambda i, q, v: [(i, q, source[i] if matched and q == p and i in source else v)],
        )
        return after + Counter((i, p, v) for i, v in source.items() if i not in there)

    return Operation(
        "merge" if matched else "merge that inserts",
        sql(
            f"MERGE INTO {{t}} t USING (SELECT * FROM VALUES ({known}, 'merged'), ({new}, 'merged')"
            f" AS s(id, v)) s ON t.id = s.id AND t.p = {p} {clause}"
            f" WHEN NOT MATCHED THEN INSERT (id, p, v) VALUES (s.id, {p}, s.v)"
        ),
        apply,
    )


def replace_columns(spark: SparkSession, table: str) -> None:
    rows = spark.sql("SELECT 70 AS id, 1 AS p, 'replaced' AS v, 0 AS w")
    writer = rows.write.format("delta").mode("overwrite").option("overwriteSchema", "true")
    writer.partitionBy("p").save(path_of(table))


def set_property(spark: SparkSession, table: str) -> None:
    tables = SessionApi(spark, "test").tables
    header = tables.header(path_of(table))
    assert header is not None
    configuration = {**header.metadata.configuration, "owner": "me"}
    metadata = dataclasses.replace(header.metadata, configuration=configuration)
    plan = CommitPlan(
        Definition(header.protocol, metadata), header.as_predecessor(), changes_metadata=True
    )
    summary = CommitSummary(
        path_of(table), header.version, Name.SET_TBLPROPERTIES, {}, plan, False, False
    )
    commit(tables.prepare_header_commit(summary), tables)


def set_domain(spark: SparkSession, table: str) -> None:
    DeltaTable.forPath(spark, path_of(table)).setDomainMetadata("app", "{}")


A = append(1)
O = overwrite()  # noqa: E741
P = overwrite_partition(1)
S = insert_from_itself(1)
D = delete(1)
U = update(1)
I = merge(1, matched=False)  # noqa: E741
M = merge(1, matched=True)
C = Operation("columns", replace_columns, lambda rows: Counter([(70, 1, "replaced")]))
K = Operation("property", set_property, lambda rows: rows)
G = Operation("domain", set_domain, lambda rows: rows)
ALL = [A, O, P, S, D, U, I, M, C, K, G]

#: What becomes of the row's operation when the column's has committed first; under the default
#: isolation level. All of them are about the partition p = 1, where there is one file. What DELETE,
#: UPDATE and INSERT look for is bounded by id, too, and so is no matter of files with other ids.
OUTCOMES = """
                            A  O  P  S  D  U  I  M  C  K  G
append                      .  .  .  .  .  .  .  .  m  m  .
overwrite                   .  d  d  a  d  d  a  d  m  m  .
overwrite of a partition    .  d  d  a  d  d  a  d  m  m  .
insert from itself          .  r  r  .  r  r  .  r  m  m  .
delete                      .  d  d  .  d  .  .  .  m  m  .
update                      .  d  d  .  .  d  .  .  m  m  .
merge that inserts          .  r  r  a  r  r  a  r  m  m  .
merge                       .  d  d  .  .  .  a  d  m  m  .
columns                     m  m  m  m  m  m  m  m  m  m  .
property                    .  .  .  .  .  .  .  .  m  m  .
domain                      .  .  .  .  .  .  .  .  m  m  t
"""

ERRORS: dict[str, type[ConcurrentModificationError] | None] = {
    ".": None,
    "a": ConcurrentAppendException,
    "d": ConcurrentDeleteDeleteException,
    "r": ConcurrentDeleteReadException,
    "m": MetadataChangedException,
    "t": ConcurrentTransactionException,
}


def pairs() -> list[object]:
    lines = OUTCOMES.strip("\n").split("\n")[1:]
    assert [line[:28].strip() for line in lines] == [operation.name for operation in ALL]
    return [
        pytest.param(mine, theirs, ERRORS[code], id=f"{mine} after {theirs}")
        for mine, line in zip(ALL, lines, strict=True)
        for theirs, code in zip(ALL, line[28:].split(), strict=True)
    ]


@pytest.fixture(scope="module")
def bases(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Build the tables that each pair gets a copy of."""
    folder = tmp_path_factory.mktemp("bases")
    for name, partitioned, level in (
        ("partitioned", "PARTITIONED BY (p)", "WriteSerializable"),
        ("serializable", "PARTITIONED BY (p)", "Serializable"),
        ("flat", "", "WriteSerializable"),
    ):
        table = f"delta.`{folder / name}`"
        spark.sql(
            f"CREATE TABLE {table} (id INT, p INT, v STRING) USING delta {partitioned}"
            " TBLPROPERTIES ('delta.enableDeletionVectors' = 'true',"
            " 'delta.feature.domainMetadata' = 'supported',"
            f" 'delta.isolationLevel' = '{level}')"
        )
        for p in (1, 2):
            rows = ", ".join(map(str, (row for row in BASE if row[1] == p)))
            spark.sql(f"INSERT INTO {table} SELECT /*+ COALESCE(1) */ * FROM VALUES {rows}")
    return folder


def check(
    spark: SparkSession,
    base: Path,
    table: str,
    mine: Operation,
    theirs: Operation,
    expected: type[ConcurrentModificationError] | None,
    either_order: bool = True,
) -> None:
    shutil.copytree(base, table)
    named = f"delta.`{table}`"
    problem: ConcurrentModificationError | None = None
    with committed_meanwhile(lambda: theirs.run(spark, named)):
        try:
            mine.run(spark, named)
        except ConcurrentModificationError as caught:
            problem = caught
    assert type(problem) is (expected or type(None)), repr(problem)
    left: Rows = Counter((row[0], row[1], row[2]) for row in rows_of(spark, table))
    if problem is not None:
        assert problem.winning_version == 3
        assert problem.winning_operation == log.commit_info(table, 3)["operation"]
        assert table in problem.table and problem.reason
        assert log.newest(table) == 3
        assert left == theirs.apply(BASE)
        return
    assert log.newest(table) == 4
    orders = [mine.apply(theirs.apply(BASE))]
    if either_order:
        orders.append(theirs.apply(mine.apply(BASE)))
    assert left in orders


@pytest.mark.parametrize(("mine", "theirs", "expected"), pairs())
def test_pair_about_the_same_rows(
    spark: SparkSession,
    bases: Path,
    table: str,
    mine: Operation,
    theirs: Operation,
    expected: type[ConcurrentModificationError] | None,
) -> None:
    check(spark, bases / "partitioned", table, mine, theirs, expected)


#: The appended row is outside of what DELETE and UPDATE look for: the file's bounds say so.
SERIALIZABLE = [(O, "a"), (P, "a"), (S, "."), (D, "."), (U, "."), (I, "a"), (M, "a"), (A, ".")]


@pytest.mark.parametrize(("mine", "code"), SERIALIZABLE, ids=lambda value: str(value))
def test_after_a_blind_append_on_a_serializable_table(
    spark: SparkSession, bases: Path, table: str, mine: Operation, code: str
) -> None:
    base = bases / "serializable"
    check(spark, base, table, mine, append(1), ERRORS[code], either_order=False)


ONE_SIDE = [P, S, D, U, I, M]
OTHER_SIDE = [
    overwrite_partition(2),
    insert_from_itself(2),
    delete(2),
    update(2),
    merge(2, matched=False),
    merge(2, matched=True),
]


@pytest.mark.parametrize("theirs", OTHER_SIDE, ids=str)
@pytest.mark.parametrize("mine", ONE_SIDE, ids=str)
def test_pair_about_two_partitions_goes_together(
    spark: SparkSession, bases: Path, table: str, mine: Operation, theirs: Operation
) -> None:
    check(spark, bases / "serializable", table, mine, theirs, None, either_order=False)


@pytest.mark.parametrize("theirs", OTHER_SIDE[1:4], ids=str)
@pytest.mark.parametrize("mine", ONE_SIDE[1:4], ids=str)
def test_pair_about_two_ranges_of_a_table_without_partitions_goes_together(
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


@pytest.mark.parametrize("theirs", CREATIONS)
@pytest.mark.parametrize("mine", CREATIONS)
def test_pair_that_creates_one_table(
    spark: SparkSession, table: str, mine: str, theirs: str
) -> None:
    """An append follows, and CREATE TABLE is content with a table that is as it says."""
    named = f"delta.`{table}`"
    problem: ConcurrentModificationError | None = None
    with committed_meanwhile(lambda: CREATIONS[theirs](spark, named)):
        try:
            CREATIONS[mine](spark, named)
        except ProtocolChangedException as caught:
            problem = caught
    assert (problem is None) == (mine in ("append", "create"))
    rows = [] if theirs == "create" else [0, 1]
    if mine == "append":
        rows = sorted([*rows, 0, 1])
    assert sorted(row[0] for row in rows_of(spark, table)) == rows
    assert log.versions(table) == ([0, 1] if mine == "append" else [0])
    assert len(log.files_in(table, ".parquet")) == len(log.active_files(table))
