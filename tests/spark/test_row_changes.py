"""`DeltaTable.update` and `merge`, and what the statements return, against brute force."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
from pyspark.errors import AnalysisException
from pyspark.sql import SparkSession
from pyspark.sql import functions as F

from deltaic import DeltaTable
from deltaic.exceptions import DeltaError, InvalidArgumentError
from tests.support import log
from tests.support.table_builder import Row, build_table, in_order, rows_of

SCHEMA = "id INT, v INT, s STRUCT<a: INT, `b.c`: STRUCT<d: STRING>>"
FILES: list[list[Row]] = [
    [(1, 10, (1, ("x",))), (2, None, (2, None))],
    [(3, 30, None), (4, 40, (4, ("y",)))],
]
SOURCE = [(1, 11), (3, -1), (5, 50), (6, -1)]


@pytest.fixture
def target(spark: SparkSession, table: str) -> DeltaTable:
    build_table(spark, table, SCHEMA, FILES)
    return DeltaTable.forPath(spark, table)


@pytest.fixture
def named(spark: SparkSession, target: DeltaTable, table: str) -> Iterator[DeltaTable]:
    spark.sql(f"CREATE TABLE row_change_tests USING delta LOCATION '{table}'")
    yield DeltaTable.forName(spark, "row_change_tests")
    spark.sql("DROP TABLE row_change_tests")


def plain(row: Any) -> Any:
    return tuple(plain(value) for value in row) if isinstance(row, tuple) else row


def content(spark: SparkSession, table: str) -> list[Row]:
    return in_order(plain(row) for row in rows_of(spark, table))


def counts(frame: Any) -> dict[str, int]:
    (row,) = frame.collect()
    return dict(row.asDict())


def test_update_sets_columns_and_fields_by_sql_and_by_column(
    spark: SparkSession, target: DeltaTable, table: str
) -> None:
    target.alias("t").update(
        F.col("t.id") < 3, {"t.v": "id * 2", "s.`b.c`.d": F.concat(F.lit("n"), F.col("t.id"))}
    )
    expected = [
        (1, 2, (1, ("n1",))),
        (2, 4, (2, ("n2",))),
        (3, 30, None),
        (4, 40, (4, ("y",))),
    ]
    assert content(spark, table) == in_order(expected)
    target.update(set={"`v`": F.lit(None)})
    assert content(spark, table) == in_order((i, None, s) for i, _, s in expected)
    target.update("id = 99", {"v": "1"})
    assert log.newest(table) == 2
    assert log.commit_info(table, 2)["operation"] == "UPDATE"


def test_merge_takes_the_first_clause_that_holds_for_a_row(
    spark: SparkSession, named: DeltaTable, table: str
) -> None:
    source = spark.createDataFrame(SOURCE, "id INT, w INT").alias("s")
    result = (
        named.alias("t")
        .merge(source, F.col("t.id") == F.col("s.id"))
        .whenMatchedDelete("s.w < 0")
        .whenMatchedUpdate(set={"v": "s.w", "t.s.a": F.col("s.w") + F.col("t.v")})
        .whenNotMatchedInsert(F.col("s.w") > 0, {"id": "s.id", "v": F.col("w")})
        .whenNotMatchedBySourceUpdate("t.v IS NULL", {"v": F.lit(0)})
        .whenNotMatchedBySourceDelete()
        .execute()
    )
    assert counts(result) == {
        "num_affected_rows": 5,
        "num_updated_rows": 2,
        "num_deleted_rows": 2,
        "num_inserted_rows": 1,
    }
    expected = [(1, 11, (21, ("x",))), (2, 0, (2, None)), (5, 50, None)]
    assert content(spark, table) == in_order(expected)
    assert log.newest(table) == 1
    info = log.commit_info(table, 1)
    assert info["operation"] == "MERGE"
    metrics = {
        name.removeprefix("numTargetRows"): int(value)
        for name, value in info["operationMetrics"].items()
        if name.startswith("numTargetRows")
    }
    assert metrics == {
        "Inserted": 1,
        "Updated": 2,
        "MatchedUpdated": 1,
        "NotMatchedBySourceUpdated": 1,
        "Deleted": 2,
        "MatchedDeleted": 1,
        "NotMatchedBySourceDeleted": 1,
        "Copied": 0,
    }


def test_merge_of_a_table_into_itself_by_all_columns(
    spark: SparkSession, target: DeltaTable, table: str
) -> None:
    source = target.toDF().where("id > 2").withColumn("id", F.col("id") + 1)
    merge = target.alias("t").merge(source.alias("s"), "t.id = s.id")
    result = merge.whenMatchedUpdateAll("s.v = 30").whenNotMatchedInsertAll().execute()
    assert counts(result)["num_affected_rows"] == 2
    expected = [*FILES[0], (3, 30, None), (4, 30, None), (5, 40, (4, ("y",)))]
    assert content(spark, table) == in_order(expected)


@pytest.mark.parametrize(
    ("statement", "expected"),
    [
        ("DELETE FROM {t} WHERE id > 2", (2,)),
        ("DELETE FROM {t} WHERE id > 9", (0,)),
        ("WITH one AS (SELECT 1 k) UPDATE {t} SET v = 0 WHERE id IN (SELECT k FROM one)", (1,)),
        ("UPDATE {t} SET v = 0", (4,)),
        (
            "MERGE INTO {t} t USING (SELECT explode(array(1, 7, 8)) k) s ON t.id = k "
            "WHEN NOT MATCHED THEN INSERT (id) VALUES (k)",
            (2, 0, 0, 2),
        ),
        (
            "MERGE INTO {t} t USING (SELECT explode(array(1, 1, 2)) k) s ON t.id = k "
            "WHEN MATCHED THEN DELETE",
            (2, 0, 2, 0),
        ),
    ],
)
def test_statements_return_how_many_rows_they_changed(
    spark: SparkSession, target: DeltaTable, table: str, statement: str, expected: tuple[int, ...]
) -> None:
    before = content(spark, table)
    explained = spark.sql("EXPLAIN " + statement.format(t=f"delta.`{table}`")).collect()
    assert "num_affected_rows" in explained[0][0]
    assert log.newest(table) == 0
    rows = spark.sql(statement.format(t=f"delta.`{table}`")).collect()
    assert [tuple(row) for row in rows] == [expected]
    assert log.newest(table) == (1 if expected[0] else 0)
    if "MATCHED THEN DELETE" in statement:  # pairs of rows are no rows
        metrics = log.commit_info(table, 1)["operationMetrics"]
        assert metrics["numTargetRowsMatchedDeleted"] == str(expected[2])
    changed = len(set(before) ^ set(content(spark, table)))
    assert (changed > 0) == (expected[0] > 0)


@pytest.mark.parametrize(
    ("statement", "told"),
    [
        ("DELETE FROM part WHERE id = 1", "part names no Delta table, but a view"),
        ("UPDATE whole SET v = 0", "whole names no Delta table, but a view"),
        (
            "MERGE INTO whole t USING (SELECT 1 AS id) s ON t.id = s.id WHEN MATCHED THEN DELETE",
            "a view",
        ),
    ],
)
def test_what_cannot_be_changed_is_refused_by_name(
    spark: SparkSession, target: DeltaTable, table: str, statement: str, told: str
) -> None:
    target.toDF().createOrReplaceTempView("whole")
    spark.sql(f"CREATE OR REPLACE TEMP VIEW part AS SELECT id, v FROM delta.`{table}` WHERE v > 0")
    with pytest.raises(DeltaError, match=told):
        spark.sql(statement.format(t=f"delta.`{table}`"))
    assert log.newest(table) == 0
    for view in ("whole", "part"):
        spark.catalog.dropTempView(view)


def test_merge_that_only_inserts_says_so_in_the_history(
    spark: SparkSession, target: DeltaTable, table: str
) -> None:
    merge = target.alias("t").merge(spark.range(4, 8).alias("s"), "t.id = s.id")
    merge.whenNotMatchedInsert(values={"id": "s.id"}).execute()
    info = log.commit_info(table, 1)
    assert (info["operation"], info["isBlindAppend"]) == ("MERGE", False)
    assert info["operationMetrics"]["numTargetRowsInserted"] == "3"
    assert info["operationMetrics"]["numOutputRows"] == "3"
    merge.whenNotMatchedInsert(values={"id": "s.id"}).execute()
    assert log.newest(table) == 1


def test_arguments_that_make_no_sense_are_refused_by_name(
    spark: SparkSession, target: DeltaTable, table: str
) -> None:
    merge = target.alias("t").merge(spark.range(3).alias("s"), "t.id = s.id")
    odd: Any = {"id": 3}
    for refused, named_in_error in [
        (lambda: target.update("id = 1"), "set"),
        (lambda: target.update(odd), "condition"),
        (lambda: target.update(set=odd), "'id'"),
        (lambda: target.update(set={"`v": "1"}), "`v"),
        (lambda: target.merge("t", "true"), "source"),  # type: ignore[arg-type]
        (lambda: merge.execute(), "merge"),
        (lambda: merge.whenMatchedDelete().whenMatchedUpdateAll().execute(), "whenMatchedDelete"),
    ]:
        with pytest.raises(InvalidArgumentError, match="DELTAIC_INVALID_ARGUMENT") as caught:
            refused()
        assert named_in_error in str(caught.value)
    with pytest.raises(AnalysisException, match="nowhere"):
        target.update(set={"nowhere": "1"})
    assert log.newest(table) == 0


@pytest.mark.parametrize("by", ["path", "name"])
def test_tables_with_texts_of_fixed_length_are_changed(
    spark: SparkSession, table: str, by: str
) -> None:
    spark.sql(f"CREATE TABLE fixed_lengths (id INT, c CHAR(4)) USING delta LOCATION '{table}'")
    try:
        spark.sql("INSERT INTO fixed_lengths VALUES (1, 'a'), (2, 'b'), (3, 'c'), (4, 'd')")
        target = (
            DeltaTable.forPath(spark, table)
            if by == "path"
            else DeltaTable.forName(spark, "fixed_lengths")
        )
        target.delete("c = 'a'")
        target.alias("t").update("t.c = 'b'", {"c": "'x'", "id": "t.id * 10"})
        source = spark.createDataFrame([("c", 7), ("e", 8)], "c STRING, n INT").alias("s")
        merge = target.alias("t").merge(source, "t.c = rpad(s.c, 4, ' ')")
        merge = merge.whenMatchedUpdate(set={"id": "s.n"})
        merge.whenNotMatchedInsert(values={"id": "s.n", "c": "s.c"}).execute()
        expected = [(4, "d   "), (7, "c   "), (8, "e   "), (20, "x   ")]
        assert sorted(rows_of(spark, table)) == expected
    finally:
        spark.sql("DROP TABLE fixed_lengths")
