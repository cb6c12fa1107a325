"""DELETE removes exactly the rows for which the condition is true, by SQL and by the API."""

from __future__ import annotations

import random
from collections.abc import Callable
from pathlib import Path

import pytest
from pyspark.errors import AnalysisException
from pyspark.sql import SparkSession
from pyspark.sql import functions as F

from deltaic import DeltaTable
from tests.support import log
from tests.support.table_builder import Row, build_table, in_order, rows_of

SCHEMA = "id INT, v INT, s STRING, p STRING, st STRUCT<x: INT>, a ARRAY<INT>"

#: Two files and three partitions, one of them null; nulls in every nullable place.
ROWS: list[Row] = [
    (1, 5, "ab", "a", (1,), [1, 2]),
    (2, None, "b", "a", (None,), [3]),
    (3, 7, None, "b", (2,), []),
    (4, 1, "a%", "b", None, None),
    (5, None, None, None, (2,), [3, None]),
    (6, 9, "", None, (3,), [None]),
    (7, 0, "ab", "a", (2,), [3, 1]),
    (8, 5, "zz", "b", (1,), [4]),
    (9, 2, None, "a", (5,), None),
    (10, -3, "ä", None, (None,), [0]),
]

Truth = Callable[[Row], "bool | None"]


def v(row: Row) -> int | None:
    return row[1]  # type: ignore[no-any-return]


def x(row: Row) -> int | None:
    return row[4] and row[4][0]  # type: ignore[no-any-return]


def at_most(limit: int, value: int | None) -> bool:
    return value is not None and value <= limit


#: SQL, and whether the condition is true for a row: unknown counts as not true.
CONDITIONS: list[tuple[str, Truth]] = [
    ("id = 3", lambda r: r[0] == 3),
    ("v > 4", lambda r: v(r) is not None and not at_most(4, v(r))),
    ("NOT (v > 4)", lambda r: at_most(4, v(r))),
    ("v IS NULL", lambda r: v(r) is None),
    ("v <=> NULL OR id = 1", lambda r: v(r) is None or r[0] == 1),
    ("v IN (1, 2, NULL)", lambda r: v(r) in (1, 2)),
    ("v NOT IN (1, 2, NULL)", lambda r: False),
    ("v = NULL", lambda r: False),
    (
        "NOT (v > 4 AND s = 'ab')",
        lambda r: r[2] not in (None, "ab") or at_most(4, v(r)),
    ),
    (
        "s LIKE 'a%' OR v < 3",
        lambda r: (r[2] or "").startswith("a") or at_most(2, v(r)),
    ),
    ("coalesce(v, 0) = 0", lambda r: (v(r) or 0) == 0),
    ("p = 'a'", lambda r: r[3] == "a"),
    ("p IS NULL", lambda r: r[3] is None),
    ("p <> 'a'", lambda r: r[3] not in (None, "a")),
    ("p = 'b' AND id > 4", lambda r: r[3] == "b" and r[0] > 4),
    ("p = 'b' OR id = 1", lambda r: r[3] == "b" or r[0] == 1),
    ("st.x = 2", lambda r: x(r) == 2),
    ("st IS NULL", lambda r: r[4] is None),
    ("array_contains(a, 3)", lambda r: 3 in (r[5] or [])),
    ("true", lambda r: True),
    ("false", lambda r: False),
    ("CAST(NULL AS BOOLEAN)", lambda r: False),
]


@pytest.fixture(scope="module", params=[True, False], ids=["vectors", "rewrite"])
def original(
    request: pytest.FixtureRequest, spark: SparkSession, tmp_path_factory: pytest.TempPathFactory
) -> Path:
    """The table that each test changes a copy of: with deletion vectors, and without."""
    path = tmp_path_factory.mktemp("delete") / "original"
    half = len(ROWS) // 2
    build_table(
        spark,
        str(path),
        SCHEMA,
        [ROWS[:half], ROWS[half:]],
        partition_by=["p"],
        deletion_vectors=bool(request.param),
    )
    return path


@pytest.fixture
def copied(original: Path, table: str) -> str:
    log.copy_table(original, table)
    return table


def flat(rows: list[Row]) -> list[Row]:
    """Rows with structs as tuples: a Row of Spark equals one but prints otherwise."""
    return in_order((*r[:4], tuple(r[4]) if r[4] is not None else None, r[5]) for r in rows)


def left(condition: Truth) -> list[Row]:
    return flat([row for row in ROWS if not condition(row)])


@pytest.mark.parametrize(("sql", "condition"), CONDITIONS, ids=[sql for sql, _ in CONDITIONS])
def test_delete_removes_the_rows_for_which_the_condition_is_true(
    spark: SparkSession, copied: str, sql: str, condition: Truth
) -> None:
    spark.sql(f"DELETE FROM delta.`{copied}` WHERE {sql}")
    assert flat(rows_of(spark, copied)) == left(condition)
    assert flat(rows_of(spark, copied, version=0)) == flat(ROWS), "the older version has changed"
    matched = any(condition(row) for row in ROWS)
    assert log.versions(copied) == ([0, 1] if matched else [0])


@pytest.mark.parametrize("as_column", [False, True], ids=["text", "column"])
def test_api_deletes_by_string_and_by_column(
    spark: SparkSession, copied: str, as_column: bool
) -> None:
    text = "v > 4 AND p = 'a'"
    DeltaTable.forPath(spark, copied).delete(F.expr(text) if as_column else text)
    assert flat(rows_of(spark, copied)) == left(lambda r: r[0] == 1)


def test_api_deletes_all_rows_without_a_condition(spark: SparkSession, copied: str) -> None:
    DeltaTable.forPath(spark, copied).delete()
    assert rows_of(spark, copied) == []
    assert log.active_files(copied) == []


def test_api_condition_may_use_the_alias_of_the_table(spark: SparkSession, copied: str) -> None:
    DeltaTable.forPath(spark, copied).alias("t").delete("t.id = 3")
    assert flat(rows_of(spark, copied)) == left(lambda r: r[0] == 3)


@pytest.mark.parametrize(
    ("sql", "condition"),
    [
        ("id IN (SELECT k FROM other)", lambda r: r[0] in (2, 3)),
        ("id NOT IN (SELECT k FROM other)", lambda r: False),
        ("id NOT IN (SELECT k FROM other WHERE k IS NOT NULL)", lambda r: r[0] not in (2, 3, 77)),
        ("EXISTS (SELECT 1 FROM other o WHERE o.k = t.id)", lambda r: r[0] in (2, 3)),
        ("NOT EXISTS (SELECT 1 FROM other o WHERE o.k = t.id)", lambda r: r[0] not in (2, 3)),
        ("id > (SELECT max(k) - 70 FROM other)", lambda r: r[0] > 7),
        ("v = (SELECT max(v) FROM delta.`{self}`)", lambda r: v(r) == 9),
    ],
)
def test_delete_evaluates_subqueries(
    spark: SparkSession, copied: str, sql: str, condition: Truth
) -> None:
    spark.sql("CREATE TEMP VIEW other AS SELECT * FROM VALUES (2), (3), (77), (NULL) o(k)")
    try:
        spark.sql(f"DELETE FROM delta.`{copied}` AS t WHERE {sql.replace('{self}', copied)}")
    finally:
        spark.catalog.dropTempView("other")
    assert flat(rows_of(spark, copied)) == left(condition)


@pytest.mark.parametrize("nothing", ["id = 11", "v = NULL", "p = 'c'", "id > 3 AND id < 3"])
def test_delete_that_matches_nothing_commits_nothing(
    spark: SparkSession, copied: str, nothing: str
) -> None:
    before = log.files_in(copied, "")
    DeltaTable.forPath(spark, copied).delete(nothing)
    assert log.versions(copied) == [0]
    assert log.files_in(copied, "") == before


@pytest.mark.parametrize("by_sql", [True, False], ids=["sql", "api"])
def test_delete_by_a_column_that_does_not_exist_names_it_and_commits_nothing(
    spark: SparkSession, copied: str, by_sql: bool
) -> None:
    with pytest.raises(AnalysisException, match=r"UNRESOLVED_COLUMN.*`nope`"):
        if by_sql:
            spark.sql(f"DELETE FROM delta.`{copied}` WHERE nope = 1")
        else:
            DeltaTable.forPath(spark, copied).delete("nope = 1")
    assert log.versions(copied) == [0]


@pytest.mark.parametrize("condition", [None, "id > 0"])
def test_delete_from_an_empty_table_commits_nothing(
    spark: SparkSession, table: str, condition: str | None
) -> None:
    spark.sql(f"CREATE TABLE delta.`{table}` (id INT) USING delta")
    DeltaTable.forPath(spark, table).delete(condition)
    assert log.versions(table) == [0]
    assert rows_of(spark, table) == []


def test_delete_from_no_table_says_so(spark: SparkSession, table: str) -> None:
    with pytest.raises(Exception, match=r"TABLE_OR_VIEW_NOT_FOUND|DELTAIC_NOT_A_TABLE"):
        spark.sql(f"DELETE FROM delta.`{table}` WHERE id = 1")
    assert not Path(table).exists()


def test_a_sequence_of_random_deletes_leaves_what_brute_force_leaves(
    spark: SparkSession, table: str
) -> None:
    chance = random.Random(20260101)
    rows: list[Row] = [
        (i, chance.choice([None, *range(20)]), chance.choice("abc")) for i in range(600)
    ]
    build_table(
        spark, table, "id INT, v INT, p STRING", [rows[i::4] for i in range(4)], partition_by=["p"]
    )
    states = [rows]
    for _ in range(8):
        low, value, part = chance.randrange(600), chance.randrange(20), chance.choice("abc")
        sql = f"(id BETWEEN {low} AND {low + 60}) OR (v = {value} AND p <> '{part}')"
        spark.sql(f"DELETE FROM delta.`{table}` WHERE {sql}")
        states.append(
            [
                r
                for r in states[-1]
                if not (low <= r[0] <= low + 60 or (r[1] == value and r[2] != part))
            ]
        )
    for version, state in enumerate(states):
        assert rows_of(spark, table, version=version) == in_order(state), f"version {version}"
    assert rows_of(spark, table) == in_order(states[-1])
