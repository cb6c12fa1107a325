"""Two concurrent MERGEs whose sources are not repeatable: the rows they had are checked."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import nullcontext
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from deltaic import DeltaTable
from deltaic.exceptions import (
    ConcurrentAppendException,
    ConcurrentDeleteDeleteException,
    ConcurrentDeleteReadException,
)
from tests.support import log
from tests.support.interleave import committed_meanwhile
from tests.support.table_builder import build_table, rows_of

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from deltaic.merge import DeltaMergeBuilder

SCHEMA = "a INT, b STRING, d DOUBLE, v INT"
Row = tuple[int | None, str | None, float | None, int]
BASE: list[Row] = [(i, f"k{i}", float(i), 0) for i in range(10)]
NAN = float("nan")


def row(a: int | None, v: int, b: str | None = None, d: float | None = None) -> Row:
    return (a, b, d, v)


@pytest.fixture(scope="module")
def base(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Build a table of one file."""
    path = tmp_path_factory.mktemp("bases") / "base"
    build_table(spark, str(path), SCHEMA, [BASE], deletion_vectors=True)
    return path


def merging(
    spark: SparkSession, table: str, on: str, source: Sequence[Row], wide: bool = False
) -> DeltaMergeBuilder:
    """Return a MERGE of rows that come out of an RDD."""
    df = spark.createDataFrame(list(source), SCHEMA.replace("a INT", "a BIGINT", int(wide)))
    return DeltaTable.forPath(spark, table).alias("t").merge(df.alias("s"), on)


def upsert(spark: SparkSession, table: str, on: str, source: Sequence[Row]) -> None:
    merge = merging(spark, table, on, source, wide=True)
    merge.whenMatchedUpdate(set={"v": "s.v"}).whenNotMatchedInsertAll().execute()


def insert(spark: SparkSession, table: str, on: str, source: Sequence[Row]) -> None:
    merging(spark, table, on, source).whenNotMatchedInsertAll().execute()


A, B, AB, D = "t.a = s.a", "s.b = t.b", "t.a = s.a AND t.b = s.b", "t.d = s.d"

#: The keys of two MERGEs and what becomes of the later one: nothing, or the conflict.
PAIRS = {
    "other rows": (A, [row(2, 1)], [row(4, 2)], None),
    "the same row": (A, [row(2, 1), row(3, 1)], [row(3, 2)], ConcurrentDeleteDeleteException),
    "other new keys": (A, [row(50, 1), row(2, 1)], [row(60, 2), row(4, 2)], None),
    "the same new key": (A, [row(50, 1), row(2, 1)], [row(50, 2)], ConcurrentAppendException),
    "nulls, which equal nothing": (A, [row(None, 1), row(2, 1)], [row(None, 2)], None),
    "only nulls": (A, [row(None, 1)], [row(None, 2), row(7, 2)], None),
    "strings": (B, [row(1, 1, "x"), row(1, 1, "k1")], [row(1, 2, "y"), row(1, 2, "k2")], None),
    "the same string": (B, [row(1, 1, "x")], [row(1, 2, "x")], ConcurrentAppendException),
    "one of two keys": (AB, [row(1, 1, "x"), row(2, 1, "x")], [row(1, 2, "y")], None),
    "both of two keys": (AB, [row(1, 1, "x")], [row(1, 2, "x")], ConcurrentAppendException),
    "zeros": (D, [row(1, 1, d=-0.0)], [row(1, 2, d=0.0)], ConcurrentDeleteDeleteException),
    "no numbers": (D, [row(1, 1, d=NAN)], [row(1, 2, d=NAN)], ConcurrentAppendException),
    "other numbers": (D, [row(1, 1, d=20.5)], [row(1, 2, d=20.25)], None),
    "many keys": (A, [row(i, 1) for i in range(5000, 7000)], [row(4999, 2)], None),
}


#: Both orders where it is not the same thing twice.
ORDERS = [(kind, False) for kind in PAIRS] + [
    (kind, True) for kind in ("other new keys", "the same new key", "only nulls", "many keys")
]


@pytest.mark.parametrize(("kind", "swapped"), ORDERS)
def test_upserts_conflict_where_they_share_a_key(
    spark: SparkSession, base: Path, table: str, kind: str, swapped: bool
) -> None:
    log.copy_table(base, table)
    on, mine, theirs, conflict = PAIRS[kind]
    if swapped:
        mine, theirs = theirs, mine
    raised = pytest.raises(conflict) if conflict else nullcontext()
    with committed_meanwhile(lambda: upsert(spark, table, on, theirs)), raised:
        upsert(spark, table, on, mine)
    assert log.newest(table) == (1 if conflict else 2)
    expected = upserted(BASE, on, theirs)
    if not conflict:
        expected = upserted(expected, on, mine)
    # Python says of NaN that it is not itself.
    assert sorted(map(repr, map(tuple, rows_of(spark, table)))) == sorted(map(repr, expected))


def upserted(rows: list[Row], on: str, source: Sequence[Row]) -> list[Row]:
    matches = KEYS[on]
    found = [[s for s in source if matches(t, s)] for t in rows]
    kept = [(*t[:3], of[0][3]) if of else t for t, of in zip(rows, found, strict=True)]
    return kept + [s for s in source if not any(matches(t, s) for t in rows)]


def same(left: object, right: object) -> bool:
    """Say whether SQL takes two values for the same."""
    return left is not None and (left == right or repr(left) == repr(right) == "nan")


KEYS: dict[str, Callable[[Row, Row], bool]] = {
    A: lambda t, s: same(t[0], s[0]),
    B: lambda t, s: same(t[1], s[1]),
    AB: lambda t, s: same(t[0], s[0]) and same(t[1], s[1]),
    D: lambda t, s: same(t[2], s[2]),
}


@pytest.mark.parametrize(
    ("mine", "theirs", "conflict"),
    [
        ([row(50, 1)], [row(60, 2)], None),
        ([row(50, 1), row(None, 1)], [row(60, 2), row(None, 2)], None),
        ([row(50, 1)], [row(60, 2), row(50, 2)], ConcurrentAppendException),
    ],
)
def test_merges_that_only_insert_conflict_where_they_insert_the_same_key(
    spark: SparkSession,
    base: Path,
    table: str,
    mine: list[Row],
    theirs: list[Row],
    conflict: type[Exception] | None,
) -> None:
    log.copy_table(base, table)
    raised = pytest.raises(conflict) if conflict else nullcontext()
    with committed_meanwhile(lambda: insert(spark, table, A, theirs)), raised:
        insert(spark, table, A, mine)
    expected = BASE + theirs + ([] if conflict else mine)
    assert sorted(map(repr, map(tuple, rows_of(spark, table)))) == sorted(map(repr, expected))


def test_what_a_merge_cannot_check_by_its_keys_conflicts(
    spark: SparkSession, base: Path, table: str
) -> None:
    """Keys between others, rows without a match, a source that is not read to its end."""
    log.copy_table(base, table)
    even = [row(i, 1) for i in range(5000, 9000, 2)]
    with (
        committed_meanwhile(lambda: upsert(spark, table, A, [row(6001, 2)])),
        pytest.raises(ConcurrentAppendException),
    ):
        upsert(spark, table, A, even)
    whole = merging(spark, table, A, [row(2, 1)]).whenMatchedUpdate(set={"v": "s.v"})
    with (
        committed_meanwhile(lambda: upsert(spark, table, A, [row(70, 2)])),
        pytest.raises(ConcurrentAppendException),
    ):
        whole.whenNotMatchedInsertAll().whenNotMatchedBySourceDelete("t.a > 60").execute()
    matched = merging(spark, table, A, [row(2, 1)]).whenMatchedDelete()
    with (
        committed_meanwhile(lambda: upsert(spark, table, A, [row(80, 2)])),
        pytest.raises(ConcurrentAppendException),
    ):
        matched.execute()
    # A row that matched and was left alone is gone now: its source row would be inserted.
    some = merging(spark, table, A, [row(3, 1), row(2, 2)])
    some = some.whenMatchedUpdate("s.v > 1", set={"v": "s.v"})
    with (
        committed_meanwhile(lambda: DeltaTable.forPath(spark, table).delete("a = 3")),
        pytest.raises(ConcurrentDeleteReadException),
    ):
        some.whenNotMatchedInsertAll().execute()


def test_keys_of_cached_and_of_random_rows_are_those_that_the_merge_collected(
    spark: SparkSession, base: Path, table: str
) -> None:
    log.copy_table(base, table)
    cached = spark.range(20, 30).selectExpr("INT(id) AS a", "'c' AS b", "0D AS d", "1 AS v").cache()
    drawn = spark.range(1).selectExpr("INT(rand() * 1000) + 100 AS a", "'r' AS b", "0D AS d", "1 v")
    try:
        for source in (cached, drawn):
            merge = DeltaTable.forPath(spark, table).alias("t").merge(source.alias("s"), A)
            theirs = 40 if source is cached else 2000
            with committed_meanwhile(
                lambda key=theirs: upsert(spark, table, A, [row(key, 2)])  # type: ignore[misc]
            ):
                merge.whenMatchedDelete().whenNotMatchedInsertAll().execute()
    finally:
        cached.unpersist()
    assert len(rows_of(spark, table)) == len(BASE) + 10 + 1 + 2
