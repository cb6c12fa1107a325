"""DELETE, UPDATE and MERGE of temporary views that show columns of a table."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

import pytest
from pyspark.errors import AnalysisException
from pyspark.sql import functions as F

from deltaic.exceptions import DeltaError
from tests.support import log

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

COLUMNS = (
    "key INT, hidden STRING, value INT DEFAULT 7, other INT DEFAULT 5,"
    " twice INT GENERATED ALWAYS AS (value * 2)"
)
NAMES = [column.split()[0] for column in COLUMNS.split(", ")]
ROWS = "(1, 'one', 10, 1), (2, 'two', 20, 2), (3, 'three', 30, 3)"
SOURCE = "(SELECT * FROM VALUES (2, 200), (3, 300), (9, 900) AS s(k, n))"

#: By a view of key and value, and what the same is of the table itself.
STATEMENTS = [
    ("DELETE FROM v WHERE key = 1 OR value > 25", None),
    ("DELETE FROM v", None),
    ("DELETE FROM v WHERE EXISTS (SELECT 1 FROM v o WHERE o.key = v.key + 1)", None),
    ("UPDATE v SET value = value + 1 WHERE key < 3", None),
    ("UPDATE v AS x SET x.value = DEFAULT, key = x.value WHERE x.key = 2", None),
    ("UPDATE v SET value = (SELECT max(k) FROM {s}) WHERE key IN (SELECT k FROM {s})", None),
    ("UPDATE v SET value = 0 WHERE _metadata.row_index >= 0 AND key = 3", None),
    (
        "MERGE INTO v USING {s} s ON v.key = s.k WHEN MATCHED AND k = 2 THEN DELETE"
        " WHEN MATCHED THEN UPDATE SET value = n + v.value"
        " WHEN NOT MATCHED THEN INSERT (key, value) VALUES (k, n)",
        None,
    ),
    (
        "MERGE INTO v t USING (SELECT k AS key, n AS value, 'no' AS hidden, 0 AS other FROM {s}) s"
        " ON t.key = s.key WHEN MATCHED THEN UPDATE SET * WHEN NOT MATCHED THEN INSERT *",
        "MERGE INTO v t USING (SELECT k AS key, n AS value FROM {s}) s ON t.key = s.key"
        " WHEN MATCHED THEN UPDATE SET key = s.key, value = s.value"
        " WHEN NOT MATCHED THEN INSERT (key, value) VALUES (s.key, s.value)",
    ),
    (
        "MERGE INTO v t USING (SELECT value AS k, key AS n FROM v) s ON t.key = s.k"
        " WHEN NOT MATCHED THEN INSERT (key, value) VALUES (k, DEFAULT)",
        None,
    ),
    (
        "MERGE INTO v t USING {s} s ON t.key = s.k WHEN MATCHED THEN UPDATE SET t.value = s.n"
        " WHEN NOT MATCHED BY SOURCE AND t.value < 25 THEN UPDATE SET key = -t.key"
        " WHEN NOT MATCHED BY SOURCE THEN DELETE",
        None,
    ),
]


def create(spark: SparkSession, path: str, properties: str = "") -> None:
    spark.sql(
        f"CREATE TABLE delta.`{path}` ({COLUMNS}) USING delta TBLPROPERTIES"
        f" ('delta.feature.allowColumnDefaults' = 'supported'{properties})"
    )
    spark.sql(f"INSERT INTO delta.`{path}` (key, hidden, value, other) VALUES {ROWS}")


def show(spark: SparkSession, kind: str, path: str, columns: str = "key, value") -> None:
    """Make `v` a temporary view of some columns of a table."""
    names = [name.strip() for name in columns.split(",")]
    if kind == "dataset":
        spark.read.format("delta").load(path).selectExpr(*names).createOrReplaceTempView("v")
    elif kind == "statement":
        spark.sql(f"CREATE OR REPLACE TEMP VIEW v AS SELECT {columns} FROM delta.`{path}` t")
    else:
        spark.sql(f"CREATE OR REPLACE TEMP VIEW inner_v AS SELECT * FROM delta.`{path}`")
        spark.table("inner_v").selectExpr(*names, "hidden AS h").createOrReplaceTempView("middle_v")
        shown = ", ".join(name.split(" AS ")[-1] for name in names)
        spark.sql(f"CREATE OR REPLACE TEMP VIEW v AS SELECT {shown} FROM middle_v")


def content(spark: SparkSession, path: str) -> list[tuple[object, ...]]:
    rows = spark.read.format("delta").load(path).select(*NAMES).collect()
    return sorted((tuple(row) for row in rows), key=str)


def assert_refused(
    spark: SparkSession, path: str, statement: str, error: type[Exception], says: str
) -> None:
    """Expect an error of a statement on a table that `create` made, which stays as it is."""
    with pytest.raises(error, match=says):
        spark.sql(statement)
    assert log.newest(path) == 1


@pytest.fixture(autouse=True)
def _no_views(spark: SparkSession) -> Iterator[None]:
    yield
    for name in ("v", "middle_v", "inner_v"):
        spark.catalog.dropTempView(name)


@pytest.mark.parametrize("kind", ["dataset", "statement", "nested"])
@pytest.mark.parametrize("properties", ["", ", 'delta.enableDeletionVectors' = 'true'"])
def test_view_of_some_columns_is_changed_like_the_table_and_keeps_the_others(
    spark: SparkSession, table: str, kind: str, properties: str
) -> None:
    for number, (by_view, by_table) in enumerate(STATEMENTS):
        changed, expected = f"{table}-{number}", f"{table}-{number}-by-path"
        for path in (changed, expected):
            create(spark, path, properties)
        show(spark, kind, changed)
        said = spark.sql(by_view.replace("{s}", SOURCE)).collect()
        # The same table under the same name: a view of all columns is the table.
        spark.read.format("delta").load(expected).createOrReplaceTempView("v")
        same = spark.sql((by_table or by_view).replace("{s}", SOURCE)).collect()
        assert said == same, by_view
        assert content(spark, changed) == content(spark, expected), by_view
        assert content(spark, changed) != content(spark, f"{table}-{number}@v1"), by_view


@pytest.mark.parametrize("kind", ["dataset", "statement", "nested"])
def test_rows_inserted_by_view_have_defaults_in_other_columns_and_updated_ones_keep_them(
    spark: SparkSession, table: str, kind: str
) -> None:
    create(spark, table)
    show(spark, kind, table)
    spark.sql(
        "MERGE INTO v USING (SELECT 2 AS key, 21 AS value UNION ALL SELECT 4, 40) s"
        " ON v.key = s.key WHEN MATCHED THEN UPDATE SET * WHEN NOT MATCHED THEN INSERT *"
    )
    assert content(spark, table) == [
        (1, "one", 10, 1, 20),
        (2, "two", 21, 2, 42),
        (3, "three", 30, 3, 60),
        (4, None, 40, 5, 80),
    ]


@pytest.mark.parametrize("kind", ["dataset", "statement", "nested"])
def test_columns_that_a_view_names_otherwise_are_changed_by_those_names(
    spark: SparkSession, table: str, kind: str
) -> None:
    create(spark, table)
    show(spark, kind, table, "value AS key, key AS value, other AS extra")
    spark.sql("UPDATE v SET value = value + 100, extra = key WHERE key = 20 AND value = 2")
    assert "(value = 20)" in log.commit_info(table, 2)["operationParameters"]["predicate"]
    spark.sql("DELETE FROM v WHERE key = 10")
    spark.sql(
        "MERGE INTO v USING (SELECT 30 AS key, 4 AS value, 0 AS extra UNION ALL SELECT 50, 5, 0) s"
        " ON v.key = s.key WHEN MATCHED THEN UPDATE SET value = s.value"
        " WHEN NOT MATCHED THEN INSERT *"
    )
    assert content(spark, table) == [
        (102, "two", 20, 20, 40),
        (4, "three", 30, 3, 60),
        (5, None, 50, 0, 100),
    ]


def test_merge_into_of_a_dataframe_takes_a_view_of_some_columns(
    spark: SparkSession, table: str
) -> None:
    spark.sql("SELECT 1 AS key, 'x' AS hidden, 10 AS value").write.format("delta").save(table)
    show(spark, "dataset", table)
    source = spark.sql("SELECT 1 AS key, 11 AS value UNION ALL SELECT 2, 20").alias("s")
    merge = source.mergeInto("v", F.expr("v.key = s.key")).whenMatched().updateAll()
    merge.whenNotMatched().insertAll().merge()
    rows = spark.read.format("delta").load(table).collect()
    assert sorted(map(tuple, rows)) == [(1, "x", 11), (2, None, 20)]


def test_column_that_a_view_leaves_out_is_not_visible_to_its_statements(
    spark: SparkSession, table: str
) -> None:
    create(spark, table)
    show(spark, "dataset", table)
    for statement in [
        "DELETE FROM v WHERE hidden = 'one'",
        "UPDATE v SET hidden = 'x'",
        "UPDATE v SET value = other",
        "MERGE INTO v USING (SELECT 1 AS k) s ON other = k WHEN MATCHED THEN DELETE",
        "MERGE INTO v USING (SELECT 1 AS k) s ON key = k"
        " WHEN NOT MATCHED THEN INSERT (key, hidden) VALUES (k, 'x')",
    ]:
        assert_refused(spark, table, statement, AnalysisException, "UNRESOLVED_COLUMN")


def test_row_that_lacks_a_column_that_must_not_be_null_is_refused(
    spark: SparkSession, table: str
) -> None:
    spark.sql(f"CREATE TABLE delta.`{table}` (key INT, must INT NOT NULL, value INT) USING delta")
    spark.sql(f"INSERT INTO delta.`{table}` VALUES (1, 1, 1)")
    show(spark, "dataset", table)
    spark.sql("UPDATE v SET value = 5 WHERE key = 1")
    with pytest.raises(DeltaError, match="No assignment for 'must'"):
        spark.sql(
            "MERGE INTO v USING (SELECT 2 AS key, 5 AS value) s ON v.key = s.key"
            " WHEN MATCHED THEN UPDATE SET * WHEN NOT MATCHED THEN INSERT *"
        )
    rows = spark.read.format("delta").load(table).collect()
    assert [tuple(row) for row in rows] == [(1, 1, 5)]


@pytest.mark.parametrize("kind", ["dataset", "statement", "nested"])
def test_view_leaves_out_columns_that_have_come_since(
    spark: SparkSession, table: str, kind: str
) -> None:
    create(spark, table)
    show(spark, kind, table)
    spark.sql(f"ALTER TABLE delta.`{table}` ADD COLUMNS (late INT)")
    spark.sql(f"UPDATE delta.`{table}` SET late = key")
    spark.sql("UPDATE v SET value = 0 WHERE key = 1")
    df = spark.read.format("delta").load(table)
    assert sorted(map(tuple, df.select("value", "late").collect())) == [(0, 1), (20, 2), (30, 3)]


@pytest.mark.parametrize(
    "columns",
    [
        "key, value, value AS again",
        "key, value + 1 AS value",
        "key, CAST(value AS BIGINT) AS value",
    ],
)
def test_view_that_does_more_than_show_columns_is_refused(
    spark: SparkSession, table: str, columns: str
) -> None:
    create(spark, table)
    show(spark, "dataset", table, columns)
    for statement in [
        "DELETE FROM v WHERE key = 1",
        "UPDATE v SET key = 1",
        "MERGE INTO v USING (SELECT 1 AS k) s ON key = k WHEN MATCHED THEN DELETE",
    ]:
        assert_refused(spark, table, statement, DeltaError, "does not just show columns")


def test_schema_evolution_by_a_view_of_some_columns_is_refused(
    spark: SparkSession, table: str
) -> None:
    create(spark, table)
    show(spark, "dataset", table)
    statement = (
        "MERGE WITH SCHEMA EVOLUTION INTO v USING (SELECT 1 AS key, 'x' AS hidden) s"
        " ON v.key = s.key WHEN NOT MATCHED THEN INSERT *"
    )
    assert_refused(spark, table, statement, DeltaError, "schema evolution into a temporary view")


def test_view_of_a_column_that_is_another_one_now_is_refused(
    spark: SparkSession, table: str
) -> None:
    create(spark, table, ", 'delta.columnMapping.mode' = 'name'")
    show(spark, "dataset", table, "key, hidden")
    spark.sql(f"ALTER TABLE delta.`{table}` DROP COLUMN hidden")
    spark.sql(f"ALTER TABLE delta.`{table}` ADD COLUMN hidden STRING")
    with pytest.raises(DeltaError, match="SCHEMA_CHANGED"):
        spark.sql("UPDATE v SET hidden = 'x'")
