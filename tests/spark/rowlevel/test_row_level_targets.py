"""The targets of DELETE, UPDATE and MERGE besides tables, and the errors of other targets."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from pyspark.errors import AnalysisException
from pyspark.sql import functions as F

from deltaic.exceptions import TableStateError
from tests.support import log
from tests.support.table_builder import build_table

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

STATEMENTS = [
    "DELETE FROM {target} WHERE id = 1",
    "UPDATE {target} SET id = 5 WHERE id = 1",
    "MERGE INTO {target} AS t USING (SELECT 1 AS k) s ON t.id = s.k WHEN MATCHED THEN DELETE",
]


@pytest.fixture
def rows(spark: SparkSession, table: str) -> str:
    build_table(spark, table, "id INT, v STRING", [[(1, "a"), (2, "b")]], deletion_vectors=False)
    return table


@pytest.fixture
def files(spark: SparkSession, tmp_path: Path) -> str:
    """Parquet files without a table."""
    path = str(tmp_path / "parquet")
    spark.range(3).write.parquet(path)
    return path


@pytest.fixture(autouse=True)
def _no_view(spark: SparkSession) -> Iterator[None]:
    yield
    spark.catalog.dropTempView("shown")


def assert_refused(spark: SparkSession, statement: str, name: str, found: str) -> None:
    with pytest.raises(AnalysisException) as raised:
        spark.sql(statement)
    problem = raised.value
    assert isinstance(problem, TableStateError), problem
    assert problem.condition == "DELTAIC_NAME_IS_NOT_A_TABLE"
    assert problem.getSqlState() == "42P01"
    assert problem.parameters == {"name": name, "found": found}


@pytest.mark.parametrize("statement", STATEMENTS)
def test_view_without_a_table_behind_it_is_refused(
    spark: SparkSession, files: str, statement: str
) -> None:
    found = "a temporary view without a Delta table behind it"
    for df in (
        spark.range(3),
        spark.read.parquet(files),
        spark.createDataFrame([(1,)], "id INT"),
        spark.sql("SELECT id FROM VALUES (1) AS x(id)"),
    ):
        df.createOrReplaceTempView("shown")
        assert_refused(spark, statement.format(target="shown"), "shown", found)
    script = f"BEGIN {statement.format(target='shown')}; END"
    assert_refused(spark, script, "shown", found)
    spark.range(3).createOrReplaceGlobalTempView("shown_to_all")
    name = "global_temp.shown_to_all"
    assert_refused(spark, statement.format(target=name), name, found)
    spark.catalog.dropGlobalTempView("shown_to_all")


@pytest.mark.parametrize("statement", STATEMENTS)
def test_files_of_another_format_are_refused_by_their_path(
    spark: SparkSession, files: str, statement: str
) -> None:
    name = f"parquet.`file:{files}`"
    found = "files of another format"
    assert_refused(spark, statement.format(target=f"parquet.`{files}`"), name, found)


def test_merge_into_of_a_dataframe_refuses_a_view_without_a_table(spark: SparkSession) -> None:
    spark.range(3).createOrReplaceTempView("shown")
    source = spark.range(2).alias("s")
    with pytest.raises(AnalysisException, match="shown names no Delta table"):
        source.mergeInto("shown", F.expr("shown.id = s.id")).whenMatched().delete().merge()


@pytest.mark.parametrize("statement", STATEMENTS)
def test_table_of_the_catalog_in_another_format_is_refused_by_spark_which_names_it(
    spark: SparkSession, statement: str
) -> None:
    spark.sql("CREATE TABLE targets_parquet USING parquet AS SELECT 1 AS id")
    try:
        with pytest.raises(Exception, match="`targets_parquet` does not support"):
            spark.sql(statement.format(target="targets_parquet"))
        spark.sql("SELECT * FROM targets_parquet WHERE id > 0").createOrReplaceTempView("shown")
        found = "a temporary view without a Delta table behind it"
        assert_refused(spark, statement.format(target="shown"), "shown", found)
    finally:
        spark.sql("DROP TABLE targets_parquet")


@pytest.mark.parametrize(
    ("query", "does"),
    [
        ("SELECT * FROM {t} WHERE id > 0", "WHERE"),
        ("SELECT DISTINCT * FROM {t}", "DISTINCT"),
        ("SELECT * FROM {t} LIMIT 1", "LIMIT"),
        ("SELECT * FROM {t} UNION ALL SELECT * FROM {t}", "UNION"),
        ("SELECT * FROM {t} ORDER BY id", "ORDER BY"),
        ("SELECT id, count(*) AS n FROM {t} GROUP BY id HAVING n > 0", "GROUP BY"),
        ("SELECT max(id) AS id FROM {t}", "an aggregate function"),
        ("SELECT a.id FROM {t} a JOIN range(3) b ON a.id = b.id", "JOIN"),
        ("SELECT id, rank() OVER (ORDER BY id) AS r FROM {t}", "a window function"),
        ("SELECT id + 1 AS id FROM {t}", "the expression (id + 1)"),
        ("SELECT id, v, id AS again FROM {t}", "the column id twice"),
    ],
)
def test_view_or_with_query_that_does_more_is_refused_by_what_it_does(
    spark: SparkSession, rows: str, query: str, does: str
) -> None:
    named = f"delta.`file:{rows}`"
    tail = f" with {does}, which does not just show columns of the table {named}"
    query = query.format(t=f"delta.`{rows}`")
    spark.sql(query).createOrReplaceTempView("shown")
    for statement in STATEMENTS:
        by_view = statement.format(target="shown")
        assert_refused(spark, by_view, "shown", "a temporary view" + tail)
        by_query = f"WITH q AS ({query}) " + statement.format(target="q")
        assert_refused(spark, by_query, "q", "a query of the WITH clause" + tail)
    assert log.versions(rows) == [0]


@pytest.mark.parametrize(
    ("query", "id", "v"),
    [
        ("q AS (SELECT * FROM {t})", "id", "v"),
        ("Q AS (SELECT v, id FROM {t})", "id", "v"),
        ("q(x, y) AS (SELECT * FROM {t})", "x", "y"),
        ("p AS (SELECT v AS b, id AS a FROM {t}), q AS (SELECT a, b FROM p)", "a", "b"),
        ("q AS (TABLE {t})", "id", "v"),
    ],
)
def test_query_of_the_with_clause_that_shows_columns_is_changed_like_a_view_of_them(
    spark: SparkSession, rows: str, query: str, id: str, v: str
) -> None:
    clause = "WITH " + query.format(t=f"delta.`{rows}`")
    spark.sql(f"{clause} DELETE FROM q WHERE {id} = 1")
    spark.sql(f"{clause} UPDATE q SET {v} = 'c' WHERE {id} = 2")
    spark.sql(
        f"{clause}, s AS (SELECT 2 AS k, 'd' AS n UNION ALL SELECT 3, 'e') MERGE INTO q AS t"
        f" USING s ON t.{id} = s.k WHEN MATCHED THEN UPDATE SET {v} = s.n"
        f" WHEN NOT MATCHED THEN INSERT ({id}, {v}) VALUES (s.k, s.n)"
    )
    answer = spark.read.format("delta").load(rows).orderBy("id").collect()
    assert [tuple(row) for row in answer] == [(2, "d"), (3, "e")]
    assert log.versions(rows) == [0, 1, 2, 3]


def test_query_of_the_with_clause_stands_before_a_table_or_view_of_its_name(
    spark: SparkSession, rows: str
) -> None:
    spark.range(3).createOrReplaceTempView("shown")
    spark.sql(f"WITH shown AS (SELECT id FROM delta.`{rows}`) DELETE FROM shown WHERE id = 1")
    assert spark.read.format("delta").load(rows).count() == 1
    found = "a query of the WITH clause without a Delta table behind it"
    assert_refused(spark, "WITH q AS (SELECT 1 AS id) DELETE FROM q WHERE id = 1", "q", found)
    spark.sql(
        f"WITH q AS (SELECT 2 AS id) DELETE FROM delta.`{rows}` WHERE id IN (SELECT id FROM q)"
    )
    assert spark.read.format("delta").load(rows).count() == 0
