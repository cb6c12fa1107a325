"""What DML reads, shown by tables that lack the rest, and what it records in the history."""

from __future__ import annotations

import itertools
import json
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from deltaic import DeltaTable
from tests.support import log
from tests.support.lost_files import lose_files
from tests.support.session_settings import session_settings
from tests.support.table_builder import build_table, rows_of

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

Key = tuple[int | None, str | None]
Matches = Callable[[Key, Key], bool]

SCHEMA = "id INT, v INT"
#: Ids 0 to 9, 10 to 19 and so on, a file each.
FILES = [[(10 * file + row, 0) for row in range(10)] for file in range(6)]

#: Two files apart have the keys.
SOURCE = "(SELECT * FROM VALUES (12, 1), (45, 2) s(id, v))"
UPSERT = "WHEN MATCHED THEN UPDATE SET * WHEN NOT MATCHED THEN INSERT *"


@pytest.mark.parametrize(
    "clauses",
    [
        "ON t.id = s.id AND t.v IN (SELECT k FROM range(9) AS o(k)) WHEN MATCHED THEN DELETE",
        "ON t.id = s.id WHEN MATCHED AND s.v > (SELECT max(k) FROM range(9) AS o(k)) THEN DELETE",
        "ON t.id = s.id WHEN NOT MATCHED AND EXISTS (SELECT 1 FROM range(9) AS o(k) WHERE k = s.v)"
        " THEN INSERT *",
        "ON t.id = s.id WHEN MATCHED THEN UPDATE"
        " SET v = (SELECT max(k) FROM range(9) AS o(k) WHERE k < s.v)",
    ],
)
def test_subqueries_that_a_merge_cannot_have_are_refused_before_anything_is_written(
    spark: SparkSession, table: str, clauses: str
) -> None:
    """Conditions may have none, as with delta-spark, and values none that is correlated."""
    build_table(spark, table, SCHEMA, FILES[:1])
    before = log.contents(table)
    with pytest.raises(Exception, match=r"UNSUPPORTED_(MERGE_CONDITION\.)?SUBQUERY"):
        spark.sql(f"MERGE INTO delta.`{table}` t USING {SOURCE} s {clauses}")
    assert log.contents(table) == before


def test_scalar_subqueries_give_values_to_a_merge(spark: SparkSession, table: str) -> None:
    build_table(spark, table, SCHEMA, FILES[:2])
    spark.sql(
        f"MERGE INTO delta.`{table}` t USING {SOURCE} s ON t.id = s.id"
        " WHEN MATCHED THEN UPDATE SET v = (SELECT max(k) FROM range(9) AS o(k))"
        " WHEN NOT MATCHED THEN INSERT (id, v) VALUES (s.id, -(SELECT min(id) FROM range(4, 9)))"
    )
    changed = [row for row in rows_of(spark, table) if row[1] != 0]
    assert sorted(changed) == [(12, 8), (45, -4)]


@pytest.mark.parametrize(
    ("statement", "ids"),
    [
        ("UPDATE {t} SET v = 5 WHERE id = 3", {0}),
        ("UPDATE {t} SET v = 5 WHERE id BETWEEN 12 AND 25 AND v = 0", {10, 20}),
        (
            f"MERGE INTO {{t}} t USING {SOURCE} s ON t.id = 3 AND s.v = 1 WHEN MATCHED THEN DELETE",
            {0},
        ),
        (f"MERGE INTO {{t}} t USING {SOURCE} s ON t.id = s.id AND t.id < 20 {UPSERT}", {0, 10}),
        (
            f"MERGE INTO {{t}} t USING {SOURCE} s ON t.v + 1 = s.v AND t.id IN (11, 58)"
            " WHEN MATCHED THEN UPDATE SET v = 5",
            {10, 50},
        ),
    ],
)
def test_conditions_on_the_table_leave_out_files_whatever_the_source(
    spark: SparkSession, table: str, statement: str, ids: set[int]
) -> None:
    build_table(spark, table, SCHEMA, FILES)
    lose_files(table, but=ids)
    with session_settings(spark, {"spark.deltaic.rowLevel.keyPruning.maxSourceBytes": "-1"}):
        spark.sql(statement.replace("{t}", f"delta.`{table}`"))
    assert log.newest(table) == 1


@pytest.mark.parametrize(
    ("statement", "touched"),
    [
        (f"MERGE INTO {{t}} t USING {SOURCE} s ON t.id = s.id {UPSERT}", 2),
        (f"MERGE INTO {{t}} t USING {SOURCE} s ON t.id = s.id + 0L AND t.v = 0 {UPSERT}", 2),
        (f"MERGE INTO {{t}} t USING {SOURCE} s ON s.id = t.id WHEN MATCHED THEN DELETE", 2),
        (
            f"MERGE INTO {{t}} t USING {SOURCE} s ON CAST(s.id AS BIGINT) = t.id"
            " WHEN MATCHED THEN DELETE",
            2,
        ),
        (f"MERGE INTO {{t}} t USING {SOURCE} s ON t.id = s.id WHEN NOT MATCHED THEN INSERT *", 0),
        (
            f"MERGE INTO {{t}} t USING {SOURCE} s ON t.id = s.id WHEN NOT MATCHED AND s.v > 1"
            " THEN INSERT * WHEN NOT MATCHED THEN INSERT (id) VALUES (s.v)",
            0,
        ),
        (
            "MERGE INTO {t} t USING (SELECT id AS k, v FROM {s} WHERE v > 0) s"
            " ON t.id = s.k WHEN MATCHED THEN UPDATE SET v = s.v",
            2,
        ),
        (
            "MERGE INTO {t} t USING (SELECT * FROM VALUES (1, 1) s(id, v) WHERE id > 5) s"
            f" ON t.id = s.id {UPSERT}",
            0,
        ),
        (f"DELETE FROM {{t}} WHERE v = 0 AND id IN (SELECT id FROM {SOURCE})", 2),
        (f"UPDATE {{t}} SET v = 9 WHERE id IN (SELECT id FROM {SOURCE})", 2),
        (f"UPDATE {{t}} SET v = 9 WHERE (id, v) IN (SELECT id, v - v FROM {SOURCE})", 2),
    ],
)
def test_files_without_a_key_of_the_source_are_not_read(
    spark: SparkSession, table: str, statement: str, touched: int
) -> None:
    build_table(spark, table, SCHEMA, FILES)
    assert lose_files(table, but={10, 40}) == 4
    source = f"{table}_source"
    if "{s}" in statement:
        build_table(spark, source, SCHEMA, [[(1, 0), (12, 1)], [(45, 2), (59, 0)]])
    named = statement.replace("{t}", f"delta.`{table}`").replace("{s}", f"delta.`{source}`")
    spark.sql(named)
    assert log.newest(table) == min(touched, 1)
    assert len(log.actions(table, log.newest(table), "remove")) == touched


@pytest.mark.parametrize(
    ("setting", "value"),
    [
        ("spark.deltaic.rowLevel.keyPruning.maxBroadcastBytes", "-1"),
        ("spark.sql.exchange.reuse", "false"),
    ],
)
def test_keys_that_are_not_broadcast_prune_by_their_min_and_max(
    spark: SparkSession, table: str, setting: str, value: str
) -> None:
    build_table(spark, table, SCHEMA, FILES)
    lose_files(table, but={10, 20})
    source = "(SELECT * FROM VALUES (12, 1), (25, 2) s(id, v))"
    with session_settings(spark, {setting: value}):
        spark.sql(f"MERGE INTO delta.`{table}` t USING {source} s ON t.id = s.id {UPSERT}")
    assert len(log.actions(table, 1, "remove")) == 2


@pytest.mark.parametrize("clauses", [UPSERT, "WHEN NOT MATCHED THEN INSERT *"])
def test_rows_without_a_key_are_dropped_before_the_shuffle_and_only_keys_are_read(
    spark: SparkSession, table: str, clauses: str
) -> None:
    build_table(spark, table, SCHEMA, FILES, deletion_vectors=True)
    spark.sql(f"DELETE FROM delta.`{table}` WHERE id = 44")
    merge = f"MERGE INTO delta.`{table}` t USING {SOURCE} s ON t.id = s.id {clauses}"
    with session_settings(spark, {"spark.sql.autoBroadcastJoinThreshold": "1k"}):
        plan = str(spark.sql(f"EXPLAIN {merge}").collect()[0][0])
    (scan,) = (line for line in plan.splitlines() if f"deltaic file:{table}" in line)
    read = scan[scan.index("struct<") : scan.index("filters:")]
    assert "id:int" in read and "v:int" not in read
    assert "dynamicpruning" in scan
    before = plan[: plan.index(scan)].splitlines()
    semi = next(i for i, line in enumerate(before) if "LeftSemi, BuildRight" in line)
    assert "BroadcastHashJoin" in before[semi]
    shuffles = [i for i, line in enumerate(before) if "Exchange hashpartitioning" in line]
    assert shuffles and max(shuffles) < semi, "the semi join feeds the shuffle"


KEYED = "a INT, b STRING, v INT"
KEYS = list(itertools.product((None, 0, 1, 2, 3), (None, "x", "y")))
#: One number that the table's column cannot hold.
NEW_KEYS = [*KEYS[::2], (2**32 + 1, "x"), (7, None), (7, "x")]


@pytest.mark.parametrize(
    ("condition", "matches"),
    [
        ("t.a = s.a AND t.b = s.b", lambda t, s: None not in t and t == s),
        ("t.a = s.a AND t.b <=> s.b", lambda t, s: t[0] is not None and t == s),
        ("t.a + 1 = s.a AND t.v = 0", lambda t, s: t[0] is not None and t[0] + 1 == s[0]),
    ],
)
@pytest.mark.parametrize("broadcast", ["10m", "-1"])
def test_merge_by_keys_gives_what_comparing_all_rows_gives(
    spark: SparkSession, table: str, condition: str, matches: Matches, broadcast: str
) -> None:
    build_table(spark, table, KEYED, [[(*key, 0) for key in KEYS[i::3]] for i in range(3)])
    one_each = "t.a + 1" in condition
    keys = list({key[0]: key for key in NEW_KEYS}.values()) if one_each else NEW_KEYS
    values = ", ".join(
        f"({'NULL' if a is None else a}, {'NULL' if b is None else repr(b)})" for a, b in keys
    )
    source = f"(SELECT CAST(a AS BIGINT) AS a, b FROM VALUES {values} AS s(a, b))"
    with session_settings(
        spark, {"spark.deltaic.rowLevel.keyPruning.maxBroadcastBytes": broadcast}
    ):
        spark.sql(
            f"MERGE INTO delta.`{table}` t USING {source} s ON {condition}"
            " WHEN MATCHED THEN UPDATE SET v = 1"
            " WHEN NOT MATCHED THEN INSERT (a, b, v) VALUES (try_cast(s.a AS INT), s.b, 2)"
        )
    expected = [(*t, int(any(matches(t, s) for s in keys))) for t in KEYS]
    for a, b in keys:
        if not any(matches(t, (a, b)) for t in KEYS):
            expected.append((None if a == 2**32 + 1 else a, b, 2))
    assert Counter(rows_of(spark, table)) == Counter(expected)


GUARDED = "kind STRING, txt STRING, k INT, v INT"
FEW = range(4)


@pytest.mark.parametrize("broadcast", ["10m", "-1"])
def test_keys_are_evaluated_only_on_rows_that_meet_the_rest_of_the_condition(
    spark: SparkSession, table: str, broadcast: str
) -> None:
    """They fail for the other rows, whose strings are not numbers."""
    rows = [(kind, f"{sign}{i}", i, 0) for kind, sign in (("num", ""), ("text", "x")) for i in FEW]
    build_table(spark, table, GUARDED, [rows[:3], rows[3:]])
    merge = f"MERGE INTO delta.`{table}` t USING"
    with session_settings(
        spark, {"spark.deltaic.rowLevel.keyPruning.maxBroadcastBytes": broadcast}
    ):
        spark.sql(
            f"{merge} (SELECT * FROM VALUES (1), (3) s(k)) s"
            " ON CAST(t.txt AS INT) = s.k AND t.kind = 'num' WHEN MATCHED THEN UPDATE SET v = 1"
        )
        spark.sql(
            f"{merge} (SELECT * FROM VALUES ('num', '2'), ('text', 'two') s(kind, txt)) s"
            " ON s.kind = 'num' AND t.k = CAST(s.txt AS INT) WHEN MATCHED THEN UPDATE SET v = 2"
        )
        spark.sql(
            f"{merge} (SELECT * FROM VALUES (3), (4) s(k)) s"
            " ON t.kind = 'num' AND CAST(t.txt AS INT) = s.k WHEN NOT MATCHED THEN"
            " INSERT (kind, txt, k, v) VALUES ('num', s.k, s.k, 3)"
        )
        spark.sql(
            f"DELETE FROM delta.`{table}` WHERE CAST(txt AS INT) IN (SELECT k FROM VALUES (0) s(k))"
            " AND kind = 'num'"
        )
    changed = {("num", 1): 1, ("num", 3): 1, ("num", 2): 2, ("text", 2): 2}
    expected = [(*row[:3], changed.get((row[0], row[2]), 0)) for row in rows[1:]]
    assert Counter(rows_of(spark, table)) == Counter([*expected, ("num", "4", 4, 3)])


@pytest.mark.parametrize("key", ["s.k", "unsteady(s.x)"])
def test_user_defined_function_is_called_once_a_row_since_it_may_be_nondeterministic(
    spark: SparkSession, table: str, tmp_path: Path, key: str
) -> None:
    build_table(spark, table, SCHEMA, FILES[:2])
    calls = tmp_path / "calls"

    def unsteady(x: int) -> int:
        with calls.open("a") as file:
            file.write(".")
            return x if file.tell() == 1 else x + 1000

    spark.udf.register("unsteady", unsteady, "INT")
    spark.createDataFrame([(12,)], "x INT").write.parquet(f"{table}-source")
    computed = "unsteady(x)" if key == "s.k" else "x"
    spark.sql(
        f"MERGE INTO delta.`{table}` t"
        f" USING (SELECT x, {computed} AS k FROM parquet.`{table}-source`) s ON t.id = {key}"
        " WHEN MATCHED THEN UPDATE SET v = 1 WHEN NOT MATCHED THEN INSERT (id, v) VALUES (s.x, 2)"
    )
    assert calls.read_text() == "."
    assert Counter(rows_of(spark, table)) == Counter((i, int(i == 12)) for i in range(20))


@pytest.mark.parametrize("source", ["delta", "parquet"])
def test_empty_source_reads_no_file_of_the_table(
    spark: SparkSession, table: str, source: str
) -> None:
    build_table(spark, table, SCHEMA, FILES[:2])
    lose_files(table)
    spark.createDataFrame([], SCHEMA).write.format(source).save(f"{table}-source")
    name, empty = f"delta.`{table}`", f"{source}.`{table}-source`"
    for clauses in (UPSERT, "WHEN MATCHED THEN DELETE", "WHEN NOT MATCHED THEN INSERT *"):
        spark.sql(f"MERGE INTO {name} t USING {empty} s ON t.id = s.id {clauses}")
    spark.sql(f"UPDATE {name} SET v = 1 WHERE id IN (SELECT id FROM {empty})")
    later = log.versions(table)[1:]
    assert not any(log.actions(table, v, kind) for v in later for kind in ("add", "remove"))


def test_sources_that_are_not_repeatable_and_rows_without_a_match_prune_nothing(
    spark: SparkSession, table: str
) -> None:
    build_table(spark, table, SCHEMA, FILES)
    name = f"delta.`{table}`"
    random = "(SELECT id + CAST(rand() AS INT) AS id, 7 AS v FROM VALUES (12), (45) s(id))"
    spark.sql(f"MERGE INTO {name} t USING {random} s ON t.id = s.id {UPSERT}")
    spark.sql(
        f"MERGE INTO {name} t USING (SELECT 12 AS id) s ON t.id = s.id"
        " WHEN MATCHED THEN UPDATE SET v = 8 WHEN NOT MATCHED BY SOURCE AND t.id > 50 THEN DELETE"
    )
    with session_settings(spark, {"spark.deltaic.rowLevel.keyPruning.maxSourceBytes": "-1"}):
        spark.sql(f"MERGE INTO {name} t USING {SOURCE} s ON t.id = s.id {UPSERT}")
    expected = {row: 0 for rows in FILES for row, _ in rows if row <= 50} | {12: 1, 45: 2}
    assert dict(rows_of(spark, table)) == expected


def test_history_shows_clauses_and_counts_of_a_merge(spark: SparkSession, table: str) -> None:
    build_table(spark, table, SCHEMA, FILES[:2])
    source = spark.range(5, 25, 1, 3).selectExpr("id", "id AS w").where("id % 2 = 0")
    merge = DeltaTable.forPath(spark, table).alias("t").merge(source.alias("s"), "t.id = s.id")
    (
        merge.whenMatchedDelete("s.w < 8")
        .whenMatchedUpdate(set={"v": "s.w"})
        .whenNotMatchedInsert("s.w > 20", {"id": "s.id", "v": "-1"})
        .whenNotMatchedBySourceDelete("t.id = 0")
        .execute()
    )
    info = log.commit_info(table, 1)
    stated = {name: json.loads(text) for name, text in info["operationParameters"].items()}
    assert stated["matchedPredicates"] == [
        {"predicate": "(s.w < CAST(8 AS BIGINT))", "actionType": "delete"},
        {"actionType": "update"},
    ]
    assert [clause["actionType"] for clause in stated["notMatchedPredicates"]] == ["insert"]
    assert stated["notMatchedBySourcePredicates"] == [
        {"predicate": "(t.id = 0)", "actionType": "delete"}
    ]
    (predicate,) = stated["predicate"]
    assert "t.id" in predicate and "s.id" in predicate
    metrics = {name: int(value) for name, value in info["operationMetrics"].items()}
    assert metrics.items() >= EXPECTED_METRICS.items()
    assert metrics["executionTimeMs"] > 0
    # One that only inserts is an append, and records the same.
    merge.whenNotMatchedInsert("s.w > 20", {"id": "s.id", "v": "-1"}).execute()
    merge.whenNotMatchedInsert(values={"id": "s.id"}).execute()
    info = log.commit_info(table, 2)
    assert json.loads(info["operationParameters"]["notMatchedPredicates"]) == [
        {"actionType": "insert"}
    ]
    metrics = {name: int(value) for name, value in info["operationMetrics"].items()}
    assert (metrics["numSourceRows"], metrics["numTargetRowsInserted"]) == (10, 2)
    assert not log.actions(table, 2, "remove")


EXPECTED_METRICS: dict[str, Any] = {
    "numSourceRows": 10,
    "numTargetRowsInserted": 2,
    "numTargetRowsUpdated": 6,
    "numTargetRowsDeleted": 2,
    "numTargetRowsMatchedDeleted": 1,
    "numTargetRowsNotMatchedBySourceDeleted": 1,
    "numTargetRowsCopied": 0,
    "numOutputRows": 8,
}
