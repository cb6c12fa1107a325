"""What UPDATE and MERGE assign: casts by store assignment policy, values that differ each time.

The casts yield what delta-spark 4.4.0 yields; tests/peers/test_assignments.py compares them.
"""

from __future__ import annotations

import datetime
from decimal import Decimal
from typing import Any

import pytest
from pyspark.sql import SparkSession

from deltaic import DeltaTable
from deltaic.exceptions import DeltaError, InvalidArgumentError
from tests.support import log
from tests.support.session_settings import session_settings
from tests.support.table_builder import build_table, rows_of

POLICY = "spark.sql.storeAssignmentPolicy"
SCHEMA = (
    "id INT, i INT, b TINYINT, d DATE, ts TIMESTAMP_NTZ, bo BOOLEAN, de DECIMAL(5, 2), st STRING, "
    "s STRUCT<a: INT, b: STRING>, arr ARRAY<INT>, m MAP<STRING, INT>, ars ARRAY<STRUCT<a: INT>>"
)
#: What is assigned and what the column then holds, under ANSI and LEGACY alike.
FITTING: dict[str, tuple[str, Any]] = {
    "i": ("' 12 '", 12),
    "b": ("5L", 5),
    "d": ("'2024-02-03'", datetime.date(2024, 2, 3)),
    "ts": ("'2024-01-01 10:00:00'", datetime.datetime(2024, 1, 1, 10)),
    "bo": ("'true'", True),
    "de": ("'12.344'", Decimal("12.34")),
    "st": ("DATE'2024-01-01'", "2024-01-01"),
    "s": ("named_struct('B', 7, 'a', '1')", (1, "7")),
    "arr": ("array('1', NULL)", [1, None]),
    "m": ("map('a', '1')", {"a": 1}),
    "ars": ("array(named_struct('a', '1'), NULL)", [(1,), None]),
}
#: What does not fit, and what LEGACY makes of it.
MISFITS: dict[str, tuple[str, Any]] = {
    "i": ("'x'", None),
    "b": ("300", 44),
    "d": ("'2024-02-30'", None),
    "bo": ("'maybe'", None),
    "de": ("'1234.5'", None),
    "s.a": ("'q'", None),
    "arr": ("array('x', '2')", [None, 2]),
}


@pytest.fixture
def target(spark: SparkSession, table: str) -> str:
    rows = [(n, *[None] * 7, (0, "b"), None, None, None) for n in (1, 2)]
    build_table(spark, table, SCHEMA, [rows])
    return f"delta.`{table}`"


def columns(spark: SparkSession, target: str, names: Any, key: int = 1) -> list[Any]:
    selected = ", ".join(names)
    return list(spark.sql(f"SELECT {selected} FROM {target} WHERE id = {key}").collect()[0])


@pytest.mark.parametrize("policy", ["ANSI", "LEGACY"])
def test_values_are_cast_to_the_types_of_their_columns(
    spark: SparkSession, target: str, policy: str
) -> None:
    sets = ", ".join(f"{name} = {value}" for name, (value, _) in FITTING.items())
    names, expected = list(FITTING), [held for _, held in FITTING.values()]
    values = ", ".join(value for value, _ in FITTING.values())
    with session_settings(spark, {POLICY: policy}):
        spark.sql(f"UPDATE {target} SET {sets} WHERE id = 1")
        spark.sql(
            f"MERGE INTO {target} t USING (SELECT explode(array('2', '3')) k) s ON t.id = s.k "
            f"WHEN MATCHED THEN UPDATE SET {sets} "
            f"WHEN NOT MATCHED THEN INSERT (id, {', '.join(names)}) VALUES (k, {values})"
        )
    for key in (1, 2, 3):
        assert columns(spark, target, names, key) == expected


def test_what_does_not_fit_is_named_or_is_null_by_the_policy(
    spark: SparkSession, target: str, table: str
) -> None:
    for name, (value, _) in MISFITS.items():
        with pytest.raises(InvalidArgumentError, match="DELTAIC_VALUE_DOES_NOT_FIT") as caught:
            spark.sql(f"UPDATE {target} SET {name} = {value} WHERE id = 1")
        assert f"column {name} of table" in str(caught.value)
        assert table in str(caught.value)
    assert log.newest(table) == 0
    sets = ", ".join(f"{name} = {value}" for name, (value, _) in MISFITS.items())
    with session_settings(spark, {POLICY: "LEGACY"}):
        spark.sql(f"UPDATE {target} SET {sets} WHERE id = 1")
    expected = [held for _, held in MISFITS.values()]
    assert columns(spark, target, MISFITS) == expected
    with session_settings(spark, {POLICY: "STRICT"}):
        spark.sql(f"UPDATE {target} SET de = 2Y, s = NULL, i = b WHERE id = 1")
        for name, value in [("i", "'1'"), ("i", "1L"), ("s.a", "1.5D"), ("m", "map('a', 1L)")]:
            with pytest.raises(InvalidArgumentError, match="storeAssignmentPolicy is STRICT"):
                spark.sql(f"UPDATE {target} SET {name} = {value}")
    assert columns(spark, target, ["de", "s", "i"]) == [Decimal("2.00"), None, 44]


@pytest.mark.parametrize(
    ("name", "value", "message"),
    [
        ("i", "array(1)", "ARRAY<INT> is not cast to INT"),
        ("s", "named_struct('a', 1)", "does not say what b is to be"),
        ("s", "named_struct('a', 1, 'b', 'x', 'c', 1)", "has no field c, but a, b"),
        ("ars", "array(named_struct('x', 1))", "ars.element of table"),
        ("s", "5", "INT is not cast to STRUCT"),
        ("i", "max(id)", "an aggregate function"),
        ("i", "row_number() OVER (ORDER BY id)", "a window function"),
        ("i", "1, i = 2", "Multiple assignments for 'i'"),
    ],
)
def test_what_cannot_be_assigned_is_refused_with_table_and_column(
    spark: SparkSession, target: str, table: str, name: str, value: str, message: str
) -> None:
    for statement in (
        f"UPDATE {target} SET {name} = {value}",
        f"MERGE INTO {target} t USING (SELECT 1 k) s ON t.id = s.k "
        f"WHEN MATCHED THEN UPDATE SET {name} = {value}",
    ):
        with pytest.raises(DeltaError) as caught:
            spark.sql(statement)
        assert message in str(caught.value)
        assert table in str(caught.value)
        assert f"column {name}" in str(caught.value).lower()


def test_nulls_in_columns_without_are_refused_with_table_and_column(
    spark: SparkSession, table: str
) -> None:
    spark.sql(
        f"CREATE TABLE delta.`{table}` (id INT NOT NULL, s STRUCT<a: INT NOT NULL>) USING delta"
    )
    spark.sql(f"INSERT INTO delta.`{table}` VALUES (1, named_struct('a', 1)), (2, NULL)")
    merge = f"MERGE INTO delta.`{table}` t USING (SELECT explode(array(1, 7)) k) s ON t.id = s.k "
    for column, statement in [
        ("id", f"UPDATE delta.`{table}` SET id = nullif(id, 1)"),
        ("s.a", f"UPDATE delta.`{table}` SET s.a = nullif(id, 1) WHERE id = 1"),
        ("s.a", f"UPDATE delta.`{table}` SET s = named_struct('a', nullif(id, 1))"),
        ("id", f"{merge} WHEN MATCHED THEN UPDATE SET id = NULL"),
        ("id", f"{merge} WHEN NOT MATCHED THEN INSERT (id) VALUES (nullif(k, 7))"),
        ("id", f"INSERT INTO delta.`{table}` SELECT nullif(id, 0), NULL FROM range(2)"),
    ]:
        with pytest.raises(DeltaError, match="DELTAIC_NOT_NULL_VIOLATED") as caught:
            spark.sql(statement)
        assert f"Column {column} of table" in str(caught.value), statement
        assert table in str(caught.value)
    assert log.newest(table) == 1
    spark.sql(f"UPDATE delta.`{table}` SET id = NULL WHERE id = 99")
    with pytest.raises(DeltaError, match=r"Column id of table .*No assignment for 'id'"):
        spark.sql(f"{merge} WHEN NOT MATCHED THEN INSERT (s) VALUES (NULL)")


def test_values_that_differ_each_time_are_computed_once_for_each_row(
    spark: SparkSession, table: str
) -> None:
    make = DeltaTable.create(spark).location(table).property("delta.enableChangeDataFeed", "true")
    make.addColumn("id", "INT").addColumn("v", "STRING").addColumn("w", "STRING").addColumn(
        "g", "STRING", generatedAlwaysAs="CASE WHEN id % 2 = 0 THEN upper(v) ELSE v END"
    ).execute()
    spark.sql(f"INSERT INTO delta.`{table}` (id, v) SELECT CAST(id AS INT), '' FROM range(6)")
    target = f"delta.`{table}`"
    for statement in (
        f"MERGE INTO {target} t USING (SELECT CAST(id AS INT) k FROM range(4, 10)) s ON t.id = k "
        "WHEN MATCHED THEN UPDATE SET v = concat(k, uuid()), w = rand() "
        "WHEN NOT MATCHED THEN INSERT (id, v, w) VALUES (k, uuid(), uuid()) "
        "WHEN NOT MATCHED BY SOURCE THEN UPDATE SET v = uuid(), w = uuid()",
        f"MERGE INTO {target} t USING (SELECT explode(array(20, 21)) k) s ON t.id = k "
        "WHEN NOT MATCHED THEN INSERT (id, v, w) VALUES (k, uuid(), uuid())",
        # What fails for a row whose clause is not taken is not computed for it.
        f"MERGE INTO {target} t USING (SELECT explode(array(20, 21)) k) s ON t.id = k "
        "WHEN MATCHED AND k < 21 THEN UPDATE SET v = concat(uuid(), 1 DIV (21 - k)), w = rand()",
        f"MERGE INTO {target} t USING (SELECT explode(array(30, 31)) k) s ON t.id = k "
        "WHEN NOT MATCHED AND k = 30 THEN INSERT (id, v, w) VALUES (k, uuid(), uuid()) "
        "WHEN NOT MATCHED THEN INSERT (id, v, w) VALUES (k, uuid(), 'w')",
        f"UPDATE {target} SET v = uuid(), w = uuid()",
    ):
        spark.sql(statement)
        rows = rows_of(spark, table)
        drawn = [value for row in rows for value in row[1:3]]
        assert len(set(drawn)) == len(drawn)
        assert all(g == (v.upper() if key % 2 == 0 else v) for key, v, _, g in rows)
        feed = spark.read.option("readChangeFeed", "true").format("delta")
        changes = feed.option("startingVersion", log.newest(table)).load(table)
        after = changes.where("_change_type IN ('insert', 'update_postimage')")
        assert {tuple(row) for row in after.select("id", "v", "w", "g").collect()} <= set(rows)
    assert len(rows) == 14


def test_conditions_that_differ_each_time_are_refused(
    spark: SparkSession, target: str, table: str
) -> None:
    merge = f"MERGE INTO {target} t USING (SELECT 1 k) s ON t.id = s.k"
    for statement in (
        f"{merge} AND rand() < 2 WHEN MATCHED THEN DELETE",
        f"{merge} WHEN MATCHED AND rand() < 2 THEN DELETE",
        f"{merge} WHEN NOT MATCHED AND rand() < 2 THEN INSERT (id) VALUES (k)",
    ):
        with pytest.raises(Exception, match=r"NON_DETERMINISTIC.*rand\("):
            spark.sql(statement)
    assert log.newest(table) == 0


def test_generated_columns_see_structs_as_they_are_stored(spark: SparkSession, table: str) -> None:
    make = DeltaTable.create(spark).location(table).addColumn("id", "INT")
    make = make.addColumn("s", "STRUCT<a: INT, b: INT>")
    make.addColumn("g", "INT", generatedAlwaysAs="s.a * 10 + s.b").execute()
    spark.sql(f"INSERT INTO delta.`{table}` (id) VALUES (1)")
    spark.sql(f"UPDATE delta.`{table}` SET s = named_struct('b', '1', 'a', 2L)")
    spark.sql(
        f"MERGE INTO delta.`{table}` t USING (SELECT 2 k) s ON t.id = s.k "
        "WHEN NOT MATCHED THEN INSERT (id, s) VALUES (k, named_struct('b', 3, 'a', '4'))"
    )
    found = spark.sql(f"SELECT s.a, s.b, g FROM delta.`{table}` ORDER BY id").collect()
    assert [tuple(row) for row in found] == [(2, 1, 21), (4, 3, 43)]


@pytest.mark.parametrize(
    "change",
    [
        "UPDATE {t} SET s.n = named_struct('b', 'x', 'a', 1)",
        "MERGE INTO {t} USING (SELECT 5 AS c, named_struct('b', 'x', 'a', 1) AS n) ON k = c"
        " WHEN MATCHED THEN UPDATE SET s.n = n",
    ],
)
def test_generated_columns_see_structs_in_structs_as_they_are_stored(
    spark: SparkSession, table: str, change: str
) -> None:
    spark.sql(
        f"CREATE TABLE delta.`{table}` (s STRUCT<n: STRUCT<a: INT, b: STRING>>, k INT,"
        " g INT GENERATED ALWAYS AS (s.n.a)) USING delta"
    )
    spark.sql(
        f"INSERT INTO delta.`{table}` (s, k)"
        " VALUES (named_struct('n', named_struct('a', 0, 'b', '')), 5)"
    )
    spark.sql(change.format(t=f"delta.`{table}`"))
    assert rows_of(spark, table) == [(((1, "x"),), 5, 1)]
