"""No expression of the user is evaluated on a deleted row.

The rows with id 0 are deleted, and dividing by it is an error. So a query that divides by `id`
fails as soon as one deleted row reaches it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from pyspark.errors import ArithmeticException
from pyspark.sql import functions as F
from pyspark.sql.types import LongType

from tests.support.plans import deletion_filters
from tests.support.session_settings import session_settings
from tests.support.table_builder import BuildWithOracle, TableWithOracle, build_with_oracle

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

ANSI = {"spark.sql.ansi.enabled": "true"}


@pytest.fixture(scope="module")
def zeros_deleted(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> TableWithOracle:
    """A table of ids -50 to 49 in two files, each with rows of id 0 that are deleted."""
    rows = spark.range(0, 200, 1, 2).selectExpr("id % 100 - 50 AS id", "id % 5 AS k", "id AS n")
    path = str(tmp_path_factory.mktemp("zeros") / "table")
    table = build_with_oracle(spark, path, rows, deletion_vectors=True)
    table.delete("id = 0")
    return table


QUERIES = {
    "WHERE": "SELECT id FROM {t} WHERE 10 / id > 1",
    "WHERE with other conditions": "SELECT id FROM {t} WHERE n >= 0 AND 10 / id > 1 AND k < 9",
    "WHERE IS NOT NULL": "SELECT id FROM {t} WHERE (10 / id) IS NOT NULL",
    "WHERE IS NULL": "SELECT id FROM {t} WHERE (10 / id) IS NULL",
    "OR": "SELECT id FROM {t} WHERE k = 1 OR 10 / id > 2",
    "SELECT": "SELECT 10 / id FROM {t}",
    "SELECT of a filtered subquery": "SELECT x FROM (SELECT 10 / id AS x, k FROM {t}) WHERE x > 1",
    "IN": "SELECT id FROM {t} WHERE 10 / id IN (1, 2, 5)",
    "modulo": "SELECT n % id FROM {t} WHERE n % id = 3",
    "cast": "SELECT CAST(CASE WHEN id = 0 THEN 'x' ELSE '1' END AS INT) FROM {t}",
    "raise_error": "SELECT id FROM {t} WHERE coalesce(IF(id = 0, raise_error('seen'), 1), 1) = 1",
    "aggregate": "SELECT sum(10 / id), max(n DIV id) FROM {t}",
    "FILTER clause": "SELECT count(*) FILTER (WHERE 10 / id > 0) FROM {t}",
    "GROUP BY": "SELECT 100 DIV id, count(*) FROM {t} GROUP BY 100 DIV id",
    "HAVING": "SELECT k, sum(10 / id) s FROM {t} GROUP BY k HAVING s > 0",
    "ORDER BY": "SELECT id FROM {t} ORDER BY 10 / id LIMIT 10",
    "window": "SELECT id, sum(10 / id) OVER (PARTITION BY k) FROM {t}",
    "join condition": "SELECT a.id FROM {t} a JOIN {t} b ON 10 / a.id = 10 / b.id AND a.k = b.k",
    "condition of an outer join": (
        "SELECT a.id, b.n FROM {t} a LEFT JOIN {t} b ON a.n = b.n AND 10 / b.id > 1"
    ),
    "non-equi join": "SELECT count(*) FROM {t} a JOIN {t} b ON 10 / a.id > 100 / b.id",
    "EXISTS": "SELECT id FROM {t} a WHERE EXISTS (SELECT 1 FROM {t} b WHERE b.n = a.n"
    " AND 10 / b.id > 0)",
    "scalar subquery": "SELECT (SELECT max(10 / id) FROM {t})",
    "value of a subquery": "SELECT n FROM {t}"
    " WHERE 10 DIV id = (SELECT count(DISTINCT k) FROM {t})",
    "lambda": "SELECT transform(array(id), x -> 10 / x) FROM {t}",
    "generator": "SELECT explode(array(10 / id)) FROM {t}",
}

MODES = {
    "default": {},
    "row-based": {
        "spark.sql.parquet.enableVectorizedReader": "false",
        "spark.sql.adaptive.enabled": "false",
    },
    "interpreted": {
        "spark.sql.codegen.wholeStage": "false",
        "spark.sql.codegen.factoryMode": "NO_CODEGEN",
    },
}


@pytest.mark.protocol("dv-step-2-reading-the-current-state-2")
@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("query", QUERIES)
def test_query_that_fails_on_a_deleted_row_answers(
    spark: SparkSession, zeros_deleted: TableWithOracle, query: str, mode: str
):
    zeros_deleted.oracle()
    with session_settings(spark, {**ANSI, **MODES[mode]}):
        zeros_deleted.assert_same_answer(QUERIES[query])


@pytest.mark.parametrize("query", ["WHERE", "SELECT", "aggregate", "raise_error"])
def test_the_same_query_fails_where_the_row_is_not_deleted(
    spark: SparkSession, build: BuildWithOracle, query: str
):
    table = build(spark.sql("SELECT 0L id, 0L k, 0L n"), deletion_vectors=True)
    with session_settings(spark, ANSI), pytest.raises(Exception, match=r"DIVIDE_BY_ZERO|seen"):
        spark.sql(QUERIES[query].format(t=table.sql_name)).collect()


@pytest.mark.protocol("deletion-vectors-4", "dv-step-2-reading-the-current-state-2")
def test_python_function_gets_no_deleted_row(spark: SparkSession, zeros_deleted: TableWithOracle):
    @F.udf(LongType())
    def reciprocal(value: int) -> int:
        return 1000 // value

    df = zeros_deleted.df()
    assert deletion_filters(df)
    answer = df.where(reciprocal("id") > 100).select("id").collect()
    assert {row.id for row in answer} == set(range(1, 10))


def test_delete_evaluates_its_condition_on_live_rows_only(
    spark: SparkSession, build: BuildWithOracle
):
    table = build(spark.range(-5, 6, 1, 1).toDF("id"), deletion_vectors=True)
    table.delete("id = 0")
    with session_settings(spark, ANSI):
        table.delete("10 / id > 4")
    assert [row.id for row in table.df().orderBy("id").collect()] == [
        *range(-5, 0),
        3,
        4,
        5,
    ]


def test_delete_whose_condition_fails_leaves_the_table_as_it_was(
    spark: SparkSession, build: BuildWithOracle
):
    table = build(spark.range(10).toDF("id"), deletion_vectors=True)
    with session_settings(spark, ANSI), pytest.raises(ArithmeticException):
        spark.sql(f"DELETE FROM {table.sql_name} WHERE 10 / id > 4").collect()
    table.assert_same_content()
