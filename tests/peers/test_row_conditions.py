"""delta-spark and Deltaic accept and refuse the same rows, by tables that either has made."""

from __future__ import annotations

from typing import Any

import pytest
from pyspark.sql import SparkSession

from tests.support.quick import quick_and_thorough
from tests.support.spark_process import SparkProcess
from tests.support.table_builder import in_order, rows_of

#: Runs statements one by one; what failed is False.
TRY = """
result = []
for statement in statements:
    try:
        spark.sql(statement)
        result.append(True)
    except Exception as problem:
        result.append(False)
        print(statement, str(problem)[:300], flush=True)
"""
READ = "result = sorted(map(repr, spark.read.format('delta').load(path).collect()))"

#: Statements that make a table at `{t}`, and statements that one engine or the other tries on it.
CASES: dict[str, tuple[list[str], list[str]]] = {
    "check": (
        [
            "CREATE TABLE {t} (id INT, s STRUCT<a: INT>, m MAP<STRING, INT>) USING delta",
            "ALTER TABLE {t} ADD CONSTRAINT c1 CHECK (id > 0 AND s.a <> 5)",
            "ALTER TABLE {t} ADD CONSTRAINT C2 CHECK (m['k'] IS NULL OR m['k'] < 10)",
        ],
        [
            "INSERT INTO {t} VALUES (1, named_struct('a', 1), map('k', 1))",
            "INSERT INTO {t} VALUES (0, named_struct('a', 1), map('k', 1))",
            "INSERT INTO {t} VALUES (NULL, named_struct('a', 1), NULL)",
            "INSERT INTO {t} VALUES (2, NULL, NULL)",
            "INSERT INTO {t} VALUES (3, named_struct('a', 1), map('k', 10))",
            "INSERT INTO {t} VALUES (4, named_struct('a', 1), map('j', 10))",
            "UPDATE {t} SET id = id - 1 WHERE id = 1",
            "UPDATE {t} SET id = id + 10 WHERE id = 1",
            "ALTER TABLE {t} ADD CONSTRAINT c3 CHECK (id > 5)",
            "ALTER TABLE {t} ADD CONSTRAINT c3 CHECK (m['k'] > 0)",
            "ALTER TABLE {t} ADD CONSTRAINT c3 CHECK (id < 50)",
            "ALTER TABLE {t} ADD CONSTRAINT c3 CHECK (id < 60)",
            "INSERT INTO {t} VALUES (51, named_struct('a', 1), map('j', 10))",
            "ALTER TABLE {t} DROP CONSTRAINT c3",
            "ALTER TABLE {t} DROP CONSTRAINT c3",
            "INSERT INTO {t} VALUES (52, named_struct('a', 1), map('j', 10))",
        ],
    ),
    "not null": (
        ["CREATE TABLE {t} (id INT NOT NULL, s STRUCT<a: INT NOT NULL>) USING delta"],
        [
            "INSERT INTO {t} VALUES (1, named_struct('a', 1))",
            "INSERT INTO {t} VALUES (NULL, named_struct('a', 1))",
        ],
    ),
    "defaults": (
        [
            "CREATE TABLE {t} (id INT, v INT DEFAULT 7, s STRING DEFAULT 'xy') USING delta "
            "TBLPROPERTIES ('delta.feature.allowColumnDefaults' = 'supported')"
        ],
        [
            "INSERT INTO {t} VALUES (1, DEFAULT, DEFAULT)",
            "INSERT INTO {t} (id) VALUES (2)",
            "INSERT INTO {t} (id, s) VALUES (3, DEFAULT)",
            "INSERT INTO {t} VALUES (4, NULL, NULL)",
            "UPDATE {t} SET v = DEFAULT WHERE id = 4",
        ],
    ),
    "generated": (
        [
            "CREATE TABLE {t} (id INT, ts TIMESTAMP, g BIGINT GENERATED ALWAYS AS (id * 2), "
            "d DATE GENERATED ALWAYS AS (CAST(ts AS DATE))) USING delta PARTITIONED BY (d)"
        ],
        [
            "INSERT INTO {t} (id, ts) VALUES (1, TIMESTAMP'2024-01-01 10:00:00')",
            "INSERT INTO {t} VALUES (2, TIMESTAMP'2024-01-01 10:00:00', 4, DATE'2024-01-01')",
            "INSERT INTO {t} VALUES (2, TIMESTAMP'2024-01-01 10:00:00', 5, DATE'2024-01-01')",
            "INSERT INTO {t} VALUES (3, TIMESTAMP'2024-01-01 10:00:00', 6, DATE'2024-01-02')",
            "INSERT INTO {t} VALUES (4, NULL, 8, NULL)",
            "INSERT INTO {t} VALUES (5, NULL, NULL, NULL)",
            "UPDATE {t} SET id = id + 10 WHERE id = 1",
            "UPDATE {t} SET ts = TIMESTAMP'2024-02-01 10:00:00' WHERE id = 2",
            "UPDATE {t} SET g = 1",
            "ALTER TABLE {t} SET TBLPROPERTIES ('mine' = '1')",
            "MERGE INTO {t} USING (SELECT 9 k) ON id = k "
            "WHEN NOT MATCHED THEN INSERT (id, ts) VALUES (k, TIMESTAMP'2024-01-09 00:00:00')",
            "MERGE INTO {t} USING (SELECT 11 k) ON id = k WHEN MATCHED THEN UPDATE SET id = 12",
        ],
    ),
}


def ours(spark: SparkSession, statements: list[str]) -> list[bool]:
    results = []
    for statement in statements:
        try:
            spark.sql(statement)
            results.append(True)
        except Exception as problem:
            print(statement, str(problem)[:300])
            results.append(False)
    return results


#: Who makes the table. delta-spark has no SQL for generated columns.
MADE = [
    (case, maker)
    for case in CASES
    for maker in ("ours", "theirs")
    if (case, maker) != ("generated", "theirs")
]


@pytest.mark.protocol("check-constraints-10", "check-constraints-4", "generated-columns-3")
@pytest.mark.parametrize(("case", "maker"), quick_and_thorough(MADE, ("check", "theirs")))
def test_same_rows_are_accepted_and_refused(
    spark: SparkSession, delta_spark: SparkProcess, tmp_path: Any, case: str, maker: str
) -> None:
    create, tried = CASES[case]
    paths = {engine: str(tmp_path / engine) for engine in ("deltaic", "delta-spark")}

    def at(path: str, statements: list[str]) -> list[str]:
        return [s.replace("{t}", f"delta.`{path}`") for s in statements]

    for path in paths.values():
        made = at(path, create)
        if maker == "ours":
            assert all(ours(spark, made))
        else:
            assert all(delta_spark.run(TRY, statements=made))
    mine = ours(spark, at(paths["deltaic"], tried))
    expected = delta_spark.run(TRY, statements=at(paths["delta-spark"], tried))
    assert dict(zip(tried, mine, strict=True)) == dict(zip(tried, expected, strict=True))
    for path in paths.values():
        theirs = delta_spark.run(READ, path=path)
        assert sorted(map(repr, spark.read.format("delta").load(path).collect())) == theirs
    assert rows_of(spark, paths["deltaic"]) == in_order(rows_of(spark, paths["delta-spark"]))


MAPPED = (
    "CREATE TABLE {t} (id INT, `a b` STRUCT<x: INT>, p STRING) USING delta PARTITIONED BY (p) "
    "TBLPROPERTIES ('delta.columnMapping.mode' = '%s', 'delta.enableDeletionVectors' = 'true')"
)


@pytest.mark.thorough
@pytest.mark.parametrize("mode", ["name", "id"])
def test_mapped_table_is_written_by_both_in_turns(
    spark: SparkSession, delta_spark: SparkProcess, table: str, mode: str
) -> None:
    def at(*statements: str) -> list[str]:
        return [s.replace("{t}", f"delta.`{table}`") for s in statements]

    assert all(
        ours(
            spark,
            at(
                MAPPED % mode,
                "INSERT INTO {t} VALUES (1, named_struct('x', 1), 'a'), (2, NULL, 'b')",
                "UPDATE {t} SET `a b`.x = 7 WHERE id = 1",
            ),
        )
    )
    assert all(
        delta_spark.run(
            TRY,
            statements=at(
                "INSERT INTO {t} VALUES (3, named_struct('x', 3), 'c')",
                "ALTER TABLE {t} RENAME COLUMN id TO `new id`",
                "ALTER TABLE {t} ADD COLUMN (extra INT)",
                "DELETE FROM {t} WHERE `new id` = 2",
            ),
        )
    )
    assert all(
        ours(
            spark,
            at(
                "INSERT INTO {t} VALUES (4, named_struct('x', 4), 'a', 40)",
                "MERGE INTO {t} t USING (SELECT 3 k) ON t.`new id` = k "
                "WHEN MATCHED THEN UPDATE SET extra = 30, p = 'd'",
            ),
        )
    )
    rows = rows_of(spark, table)
    assert rows == [(1, (7,), "a", None), (3, (3,), "d", 30), (4, (4,), "a", 40)]
    mine = sorted(map(repr, spark.read.format("delta").load(table).collect()))
    assert delta_spark.run(READ, path=table) == mine


@pytest.mark.protocol("identity-columns-9")
@pytest.mark.thorough
@pytest.mark.parametrize("first", ["ours", "theirs"])
def test_identity_values_stay_unique_when_both_write(
    spark: SparkSession, delta_spark: SparkProcess, table: str, first: str
) -> None:
    create = (
        f"CREATE TABLE delta.`{table}` (id BIGINT GENERATED ALWAYS AS IDENTITY "
        "(START WITH 3 INCREMENT BY 2), v INT) USING delta"
    )
    insert = f"INSERT INTO delta.`{table}` (v) SELECT CAST(id AS INT) FROM range(0, 10, 1, 3)"
    if first == "ours":
        assert all(ours(spark, [create, insert]))
        assert all(delta_spark.run(TRY, statements=[insert]))
        assert all(ours(spark, [insert]))
    else:
        # delta-spark has no SQL for identity columns; its builder has.
        delta_spark.run(
            """
from delta.tables import DeltaTable, IdentityGenerator
(DeltaTable.create(spark).location(path)
    .addColumn("id", "BIGINT", generatedAlwaysAs=IdentityGenerator(3, 2))
    .addColumn("v", "INT").execute())
result = None
""",
            path=table,
        )
        assert all(delta_spark.run(TRY, statements=[insert]))
        assert all(ours(spark, [insert]))
        assert all(delta_spark.run(TRY, statements=[insert]))
    values = [row[0] for row in rows_of(spark, table)]
    assert len(set(values)) == len(values) == 30
    assert all(value >= 3 and value % 2 == 1 for value in values)
