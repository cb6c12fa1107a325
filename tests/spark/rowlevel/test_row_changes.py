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


def counts(df: Any) -> dict[str, int]:
    (row,) = df.collect()
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


@pytest.mark.parametrize("found", ["target", "named"])
def test_columns_of_the_tables_own_dataframe_are_columns_of_its_changes(
    spark: SparkSession, request: pytest.FixtureRequest, table: str, found: str
) -> None:
    target: DeltaTable = request.getfixturevalue(found)
    before = target.toDF()
    assert len(before.collect()) == 4
    target.update(before["id"] == 1, {"v": before["v"] + target.toDF()["id"]})
    target.delete(before.id == 3)
    assert [row.id for row in before.orderBy("id").collect()] == [1, 2, 4]
    assert sorted(row.id for row in target.toDF().collect()) == [1, 2, 4]
    source = spark.createDataFrame([(4, 44), (5, 55)], "id INT, w INT")
    (
        target.merge(source, before["id"] == source["id"])
        .whenMatchedUpdate(before["v"] > 0, {"v": source["w"]})
        .whenNotMatchedInsert(values={"id": source["id"], "v": source["w"]})
        .execute()
    )
    rows = [(row.id, row.v) for row in target.toDF().orderBy("id").collect()]
    assert rows == [(1, 11), (2, None), (4, 44), (5, 55)]
    spark.sql(f"ALTER TABLE delta.`{table}` ADD COLUMN added INT")
    target.update(target.toDF()["id"] == 5, {"added": target.alias("t").toDF()["v"]})
    assert [row.added for row in target.toDF().orderBy("id").collect()] == [None] * 3 + [55]


def test_source_made_of_the_tables_own_dataframe_has_columns_of_its_own(
    spark: SparkSession, target: DeltaTable, table: str
) -> None:
    rows = target.toDF()
    source = rows.where(rows["v"] > 10)
    (
        target.alias("t")
        .merge(source, F.col("t.id") == source["id"] + 1)
        .whenMatchedUpdate(set={"v": source["v"]})
        .execute()
    )
    assert [row[1] for row in content(spark, table)] == [10, None, 30, 30]


def test_column_that_target_and_source_have_is_never_taken_for_the_same(
    spark: SparkSession, target: DeltaTable, table: str
) -> None:
    before = target.toDF()
    keys = before.groupBy("id").agg(F.max("v").alias("most"))
    for named in (target.toDF()["id"], before["id"]):
        merge = target.merge(keys, named == keys["id"]).whenMatchedDelete()
        with pytest.raises(AnalysisException, match="AMBIGUOUS"):
            merge.execute()
    merge = target.merge(before.alias("s"), before["id"] == F.col("s.id")).whenMatchedDelete()
    with pytest.raises(AnalysisException, match="AMBIGUOUS"):
        merge.execute()
    assert log.newest(table) == 0
    other = before.where("v = 30").selectExpr("id AS k", "v AS w")
    target.merge(other, before["id"] == other["k"]).whenMatchedUpdate(
        set={"v": other["w"] + target.toDF()["v"]}
    ).execute()
    assert [row[1] for row in content(spark, table)] == [10, None, 60, 40]


def test_columns_of_the_dataframe_stay_valid_while_identity_values_are_generated(
    spark: SparkSession, table: str
) -> None:
    spark.sql(
        f"CREATE TABLE delta.`{table}` (n BIGINT GENERATED ALWAYS AS IDENTITY, v INT) USING delta"
    )
    target = DeltaTable.forPath(spark, table)
    df = target.toDF()
    spark.sql(f"INSERT INTO delta.`{table}` (v) VALUES (1), (2)")
    target.delete(df["v"] == 1)
    assert [row.v for row in df.collect()] == [2]


def test_char_columns_are_columns_of_changes(spark: SparkSession, table: str) -> None:
    spark.sql(f"CREATE TABLE delta.`{table}` (id INT, c CHAR(3)) USING delta")
    spark.sql(f"INSERT INTO delta.`{table}` VALUES (1, 'a'), (2, 'b')")
    target = DeltaTable.forPath(spark, table)
    target.delete(target.toDF()["c"] == "a  ")
    assert [tuple(row) for row in target.toDF().collect()] == [(2, "b  ")]


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


NOT_ALL = "refused names no Delta table, but a temporary view with .* does not just show columns of"


@pytest.mark.parametrize(
    ("view", "statement", "message"),
    [
        ("TEMP VIEW refused AS SELECT * FROM {t} WHERE v > 0", "DELETE FROM refused", NOT_ALL),
        ("TEMP VIEW refused AS SELECT id, v, v AS w FROM {t}", "DELETE FROM refused", NOT_ALL),
        ("TEMP VIEW refused AS SELECT DISTINCT id FROM {t}", "UPDATE refused SET id = 0", NOT_ALL),
        (
            "TEMP VIEW refused AS SELECT id, v + 1 AS v, s FROM {t}",
            "MERGE INTO refused t USING (SELECT 1 k) ON t.id = k WHEN MATCHED THEN DELETE",
            NOT_ALL,
        ),
        ("VIEW refused AS SELECT * FROM {t}", "DELETE FROM refused x", "refused.* but a view"),
        (
            "TEMP VIEW refused AS SELECT * FROM {t} VERSION AS OF 0",
            "DELETE FROM refused",
            "of the older version 0",
        ),
    ],
)
def test_what_cannot_be_changed_is_refused_by_name(
    spark: SparkSession, target: DeltaTable, table: str, view: str, statement: str, message: str
) -> None:
    spark.sql("CREATE " + view.format(t=f"delta.`{table}`"))
    try:
        with pytest.raises(DeltaError, match=message):
            spark.sql(statement)
    finally:
        spark.sql("DROP VIEW refused")
    assert log.newest(table) == 0


CHANGES_BY_VIEW = [
    "UPDATE {t} AS x SET v = DEFAULT, x.c = 'z' WHERE x.id = (SELECT max(id) FROM {t}) AND c = 'd'",
    "DELETE FROM {t} WHERE EXISTS (SELECT 1 FROM {t} o WHERE o.id = {t}.id + 1 AND o.v > 20)",
    "MERGE INTO {t} t USING (SELECT id + 2 AS id, c, v FROM {t}) s ON t.id = s.id "
    "WHEN MATCHED THEN UPDATE SET v = t.v + s.v WHEN NOT MATCHED AND s.id > 6 THEN INSERT *",
    "MERGE INTO {t} USING (SELECT 50 AS k) ON {t}.id = k "
    "WHEN NOT MATCHED THEN INSERT (id) VALUES (k)",
    "MERGE WITH SCHEMA EVOLUTION INTO {t} t USING (SELECT 60 AS id, 'e' AS more) s ON t.id = s.id "
    "WHEN NOT MATCHED THEN INSERT *",
]


def view_of_whole_table(spark: SparkSession, kind: str, name: str, path: str) -> str:
    """Create a temporary view of a table; return its name."""
    if kind == "statement, of a name":
        spark.sql(f"CREATE OR REPLACE TEMP VIEW whole AS SELECT * FROM {name} AS x")
    elif kind == "statement, of a path":
        spark.sql(f"CREATE OR REPLACE TEMP VIEW whole AS SELECT id, c, v FROM delta.`{path}`")
    elif kind == "DataFrame of a path":
        spark.read.format("delta").load(path).createOrReplaceTempView("whole")
    else:
        spark.table(name).createOrReplaceTempView("inner_whole")
        spark.sql("CREATE OR REPLACE TEMP VIEW whole AS SELECT * FROM inner_whole")
    return "whole"


def changes_of_one_table(spark: SparkSession, path: str, view: str | None) -> list[Any]:
    """Create a table and change it, by its name unless a view is named.

    Returns what the statements said, and the rows that are left.
    """
    name = "changed_by_view"
    spark.sql(
        f"CREATE TABLE {name} (id INT, c CHAR(3), v INT DEFAULT 7) USING delta LOCATION '{path}' "
        "TBLPROPERTIES ('delta.feature.allowColumnDefaults' = 'supported')"
    )
    try:
        target = name if view is None else view_of_whole_table(spark, view, name, path)
        spark.sql(
            f"INSERT INTO {name} VALUES (1, 'a', 10), (2, 'b', 20), (3, 'c', 30), (5, 'd', 9)"
        )
        said = [spark.sql(s.format(t=target)).collect() for s in CHANGES_BY_VIEW]
        if view is not None:  # it has no column that has come since
            with pytest.raises(AnalysisException, match="UNRESOLVED_COLUMN"):
                spark.sql("UPDATE whole SET more = 'x'")
        return [said, rows_of(spark, path)]
    finally:
        spark.sql(f"DROP TABLE {name}")


@pytest.fixture(scope="module")
def changed_by_name(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> list[Any]:
    return changes_of_one_table(spark, str(tmp_path_factory.mktemp("by_name") / "table"), None)


@pytest.mark.parametrize(
    "view",
    [
        "statement, of a name",
        "statement, of a path",
        "DataFrame of a path",
        "view of a DataFrame of a name",
    ],
)
def test_temporary_view_of_a_whole_table_is_changed_like_the_table(
    spark: SparkSession, table: str, changed_by_name: list[Any], view: str
) -> None:
    assert changes_of_one_table(spark, table, view) == changed_by_name
    assert len(changed_by_name[1]) == 6
    for name in ("whole", "inner_whole"):
        spark.catalog.dropTempView(name)


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
    ]:
        with pytest.raises(InvalidArgumentError, match="DELTAIC_INVALID_ARGUMENT") as caught:
            refused()
        assert named_in_error in str(caught.value)
    for clauses, problem in [
        (merge, "there is none"),
        (merge.whenMatchedDelete().whenMatchedUpdateAll(), "whenMatchedDelete"),
    ]:
        with pytest.raises(AnalysisException, match="DELTAIC_MERGE_CLAUSES_INVALID") as wrong:
            clauses.execute()
        assert problem in str(wrong.value)
    with pytest.raises(AnalysisException, match="nowhere"):
        target.update(set={"nowhere": "1"})
    assert log.newest(table) == 0


@pytest.mark.parametrize("by", ["path", "name"])
def test_tables_with_char_columns_are_changed(spark: SparkSession, table: str, by: str) -> None:
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
