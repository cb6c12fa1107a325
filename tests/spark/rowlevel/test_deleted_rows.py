"""A MERGE that inserts what has no match, and rows of the table that others delete meanwhile.

A row that matched and was left alone has kept its source row from being inserted: without it, the
MERGE would have done something else. No other row affects it (docs/decisions/0021).
"""

from __future__ import annotations

import random
from collections.abc import Callable, Sequence
from contextlib import nullcontext
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from pyspark.sql import functions as F

from deltaic import DeltaTable
from deltaic.exceptions import (
    ConcurrentAppendException,
    ConcurrentDeleteDeleteException,
    ConcurrentDeleteReadException,
    ConcurrentModificationError,
)
from tests.support import log
from tests.support.interleave import committed_meanwhile
from tests.support.table_builder import build_table, rows_of

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

SCHEMA = "p INT, id INT, v INT"

#: Two files, the bounds of both around all ids of the source.
FILES = [[(0, i, 0) for i in (*range(10), 90)], [(1, i, 0) for i in (*range(10, 20), -1, 91)]]

Row = tuple[int, int | None, int]

#: Row 1 matches and is left alone where a condition says so, row 2 is updated, 77 inserted.
SOURCE: list[Row] = [(7, 1, 0), (7, 2, 5), (7, 77, 5)]


@dataclass(frozen=True)
class Kind:
    """A MERGE and how its source comes about."""

    on: str = "t.id = s.id"
    updates: bool = True
    stable: bool = True
    rows: Sequence[Row] = tuple(SOURCE)

    def run(self, spark: SparkSession, table: str) -> None:
        source = self.source(spark)
        merge = DeltaTable.forPath(spark, table).alias("t").merge(source.alias("s"), self.on)
        if self.updates:
            merge = merge.whenMatchedUpdate("s.v > 0", set={"v": "s.v"})
        merge.whenNotMatchedInsertAll().execute()

    def source(self, spark: SparkSession) -> DataFrame:
        if not self.stable:  # An RDD: it could have other rows when it is read again.
            return spark.createDataFrame(list(self.rows), SCHEMA)
        values = ", ".join(map(str, self.rows))
        return spark.sql(f"SELECT * FROM VALUES {values} AS s(p, id, v)")


KINDS = {
    "conditional": Kind(),
    "conditional, by keys": Kind(stable=False),
    "inserts": Kind(updates=False),
    "inserts, by keys": Kind(updates=False, stable=False),
    "without keys": Kind(on="t.id <= s.id AND t.id >= s.id"),
}


@pytest.fixture(scope="module")
def base(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Build a table of two files, of which each has lost a row."""
    path = tmp_path_factory.mktemp("bases") / "base"
    build_table(spark, str(path), SCHEMA, FILES, deletion_vectors=True)
    spark.sql(f"DELETE FROM delta.`{path}` WHERE id IN (9, 19)")
    return path


def in_turn(spark: SparkSession, table: str, statements: Sequence[str]) -> None:
    for statement in statements:
        spark.sql(statement.replace("{t}", f"delta.`{table}`"))


def rows(spark: SparkSession, table: str) -> list[tuple[int, ...]]:
    return sorted(map(tuple, rows_of(spark, table)))


def check(
    spark: SparkSession,
    base: Path,
    table: str,
    mine: Callable[[SparkSession, str], None],
    theirs: Sequence[str],
    conflict: type[Exception] | None,
) -> None:
    """Run `theirs` before the commit of `mine`: the table is as it is one after the other."""
    serial = f"{table}-serial"
    log.copy_table(base, serial)
    log.copy_table(base, table)
    in_turn(spark, serial, theirs)
    if conflict is None:
        mine(spark, serial)
    raised = pytest.raises(conflict) if conflict else nullcontext()
    with committed_meanwhile(lambda: in_turn(spark, table, theirs)), raised:
        mine(spark, table)
    assert rows(spark, table) == rows(spark, serial)
    assert log.newest(table) == log.newest(serial)


#: What others do, and whether row 1 is gone then, or the file that row 2 is stored in.
WINNERS: dict[str, tuple[list[str], type[Exception] | None]] = {
    "a row without a match": (["DELETE FROM {t} WHERE id = 5"], None),
    "a match that was left alone": (
        ["DELETE FROM {t} WHERE id IN (1, 5)"],
        ConcurrentDeleteReadException,
    ),
    "an update": (["UPDATE {t} SET v = 9 WHERE id IN (4, 15)"], None),
    "an update of a match": (
        ["UPDATE {t} SET v = 9 WHERE id IN (1, 5)"],
        ConcurrentDeleteReadException,
    ),
    "a whole file": (["DELETE FROM {t} WHERE p = 1"], None),
    "one after the other": (
        ["DELETE FROM {t} WHERE id = 5", "DELETE FROM {t} WHERE id = 6 OR p = 1"],
        None,
    ),
    "a match after other rows": (
        ["DELETE FROM {t} WHERE id = 5", "DELETE FROM {t} WHERE id = 1"],
        ConcurrentDeleteReadException,
    ),
    "a row like one that it inserts": (
        ["UPDATE {t} SET id = 77 WHERE id = 5"],
        ConcurrentAppendException,
    ),
    "what another one has added": (
        ["UPDATE {t} SET v = 9 WHERE id = 5", "DELETE FROM {t} WHERE v = 9"],
        None,
    ),
}


@pytest.mark.parametrize("theirs", WINNERS)
@pytest.mark.parametrize("kind", KINDS)
def test_merge_does_not_conflict_with_deletes_of_rows_it_does_not_match(
    spark: SparkSession, base: Path, table: str, kind: str, theirs: str
) -> None:
    statements, conflict = WINNERS[theirs]
    check(spark, base, table, KINDS[kind].run, statements, conflict)


@pytest.mark.parametrize(
    ("deleted", "conflict"), [(5, None), (1, ConcurrentDeleteReadException)], ids=["other", "match"]
)
def test_merge_into_rewritten_files_does_not_conflict_with_rewrites_of_others(
    spark: SparkSession, table: str, tmp_path: Path, deleted: int, conflict: type[Exception] | None
) -> None:
    """Without deletion vectors each of the two removes a file and adds a copy of what is left."""
    base = tmp_path / "base"
    files = [[(p, i, 0) for i in (-1, at, 91)] for p, at in enumerate((1, 2, 5))]
    build_table(spark, str(base), SCHEMA, files, deletion_vectors=False)
    check(
        spark,
        base,
        table,
        KINDS["conditional"].run,
        [f"DELETE FROM {{t}} WHERE id = {deleted}"],
        conflict,
    )


@pytest.mark.parametrize(
    ("theirs", "conflict"),
    [
        ("DELETE FROM {t} WHERE p = 1", None),
        ("DELETE FROM {t} WHERE id = 5", None),
        ("DELETE FROM {t} WHERE id = 1", ConcurrentDeleteReadException),
        ("DELETE FROM {t} WHERE p = 0", ConcurrentDeleteReadException),
    ],
)
@pytest.mark.parametrize("stable", [True, False])
def test_the_condition_on_the_table_alone_applies(
    spark: SparkSession,
    table: str,
    tmp_path: Path,
    theirs: str,
    conflict: type[Exception] | None,
    stable: bool,
) -> None:
    """Partition values evaluate a part of it, which is not evaluated on rows."""
    base = tmp_path / "base"
    files = [[(0, 1, 0), (0, 5, 0), (1, 1, 0), (1, 77, 3)]]
    build_table(spark, str(base), SCHEMA, files, partition_by=["p"])
    merge = Kind("t.p = 0 AND t.v < 3 AND t.id = s.id", updates=False, stable=stable)
    check(spark, base, table, merge.run, [theirs], conflict)


def test_row_that_a_merge_has_changed_is_a_row_that_both_change(
    spark: SparkSession, base: Path, table: str
) -> None:
    theirs = ["DELETE FROM {t} WHERE id IN (2, 5)"]
    check(spark, base, table, KINDS["conditional"].run, theirs, ConcurrentDeleteDeleteException)


@pytest.mark.parametrize("updates", [True, False])
def test_source_that_reads_the_table_conflicts_with_any_deleted_row(
    spark: SparkSession, base: Path, table: str, updates: bool
) -> None:
    """The row does not show what the source has computed from it."""

    def mine(spark: SparkSession, table: str) -> None:
        target = DeltaTable.forPath(spark, table)
        source = target.toDF().agg(
            F.lit(7).alias("p"), F.sum("id").alias("id"), F.lit(1).alias("v")
        )
        merge = target.alias("t").merge(source.alias("s"), "t.id = s.id")
        if updates:
            merge = merge.whenMatchedUpdate("s.v > 5", set={"v": "s.v"})
        merge.whenNotMatchedInsertAll().execute()

    theirs = ["DELETE FROM {t} WHERE id = 5"]
    check(spark, base, table, mine, theirs, ConcurrentDeleteReadException)


def test_merge_of_rows_that_match_nothing_in_the_source_conflicts(
    spark: SparkSession, base: Path, table: str
) -> None:
    """The MERGE depends on those, too."""

    def mine(spark: SparkSession, table: str) -> None:
        source = spark.createDataFrame(SOURCE, SCHEMA)
        merge = DeltaTable.forPath(spark, table).alias("t").merge(source.alias("s"), "t.id = s.id")
        merge = merge.whenMatchedUpdate("s.v > 0", set={"v": "s.v"}).whenNotMatchedInsertAll()
        merge.whenNotMatchedBySourceUpdate("t.id = 6", set={"v": "1"}).execute()

    theirs = ["DELETE FROM {t} WHERE id = 5"]
    check(spark, base, table, mine, theirs, ConcurrentDeleteReadException)


def test_position_of_a_row_in_its_file_cannot_be_evaluated_again(
    spark: SparkSession, base: Path, table: str
) -> None:
    theirs = ["DELETE FROM {t} WHERE id = 1"]
    merge = Kind("t._metadata.row_index = s.id")
    check(spark, base, table, merge.run, theirs, ConcurrentDeleteReadException)


@pytest.mark.parametrize("updates", [True, False])
def test_source_that_is_not_repeatable_and_has_no_keys_conflicts(
    spark: SparkSession, base: Path, table: str, updates: bool
) -> None:
    merge = replace(KINDS["without keys"], updates=updates, stable=False)
    theirs = ["DELETE FROM {t} WHERE id = 5"]
    check(spark, base, table, merge.run, theirs, ConcurrentDeleteReadException)


def test_rows_of_a_file_that_is_gone_are_a_conflict(
    spark: SparkSession, base: Path, table: str
) -> None:
    def theirs() -> None:
        in_turn(spark, table, ["DELETE FROM {t} WHERE p = 1"])
        (removed,) = log.actions(table, log.newest(table), "remove")
        (Path(table) / removed["path"]).unlink()

    log.copy_table(base, table)
    with committed_meanwhile(theirs), pytest.raises(ConcurrentDeleteReadException):
        KINDS["conditional"].run(spark, table)


@pytest.mark.parametrize("updates", [True, False])
def test_user_defined_function_is_not_evaluated_again(
    spark: SparkSession, base: Path, table: str, tmp_path: Path, updates: bool
) -> None:
    """It returned true for row 1 and would return false now: row 1 has prevented an insert."""
    changed = tmp_path / "changed"
    spark.udf.register("says_yes", lambda _: not changed.exists(), "boolean")
    on = "t.id <= s.id AND t.id >= s.id AND says_yes(t.id)"

    def theirs() -> None:
        in_turn(spark, table, ["DELETE FROM {t} WHERE id = 1"])
        changed.touch()

    log.copy_table(base, table)
    with committed_meanwhile(theirs), pytest.raises(ConcurrentDeleteReadException):
        Kind(on, updates=updates).run(spark, table)


@pytest.mark.parametrize("seed", range(6))
@pytest.mark.parametrize("kind", ["conditional", "conditional, by keys", "inserts, by keys"])
def test_merge_commits_if_no_row_that_others_deleted_or_added_has_one_of_its_keys(
    spark: SparkSession, table: str, kind: str, seed: int
) -> None:
    """Rows are numbered by `p`, and several have one key, or none."""
    draw = random.Random(f"{kind} {seed}")
    keys = [*range(24), None]
    files = [[(n, draw.choice(keys), 0) for n in range(start, start + 12)] for start in (0, 12)]
    source = [(100 + n, key, n % 2) for n, key in enumerate(draw.sample(range(26), 4))]
    build_table(spark, table, SCHEMA, files)
    left = {row[0]: row for file in files for row in file}
    deleted = draw.sample(range(24), 2)
    in_turn(spark, table, [f"DELETE FROM {{t}} WHERE p IN ({deleted[0]}, {deleted[1]})"])
    for n in deleted:
        del left[n]

    statements, met = [], set()
    for _ in range(draw.randint(1, 3)):
        chosen = draw.sample(sorted(left), draw.randint(1, 3))
        met |= {left[n][1] for n in chosen}
        where = f"WHERE p IN ({', '.join(map(str, chosen))})"
        if draw.random() < 0.5:
            statements.append(f"DELETE FROM {{t}} {where}")
            for n in chosen:
                del left[n]
        else:
            key = draw.choice(keys)
            met.add(key)
            statements.append(f"UPDATE {{t}} SET id = {'NULL' if key is None else key} {where}")
            left |= {n: (n, key, 0) for n in chosen}

    merge = replace(KINDS[kind], rows=source)
    conflicts = bool(met & {row[1] for row in source})
    raised = pytest.raises(ConcurrentModificationError) if conflicts else nullcontext()
    with committed_meanwhile(lambda: in_turn(spark, table, statements)), raised:
        merge.run(spark, table)
    expected = list(left.values())
    if not conflicts:
        values = {key: v for _, key, v in source if v > 0 and merge.updates}
        held = {row[1] for row in expected}
        expected = [(n, key, values.get(key, v)) for n, key, v in expected]
        expected += [row for row in source if row[1] not in held]
    assert sorted(map(tuple, rows_of(spark, table)), key=repr) == sorted(expected, key=repr)
