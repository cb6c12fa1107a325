"""Python UDFs on columns of a scan: Spark 4.2.0 cannot evaluate them on batches (SPARK-58241)."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

import pytest
from pyspark.errors import AnalysisException
from pyspark.sql.functions import udf

from deltaic import DeltaTable
from tests.support import log
from tests.support.session_settings import session_settings
from tests.support.table_builder import build_table

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

ROWS = [(number, f"s{number}") for number in range(10)]


@pytest.fixture
def negated(spark: SparkSession, table: str) -> Iterator[str]:
    """A table, and the function ``negated`` of SQL."""
    build_table(spark, table, "id BIGINT, s STRING", [ROWS[:5], ROWS[5:]])
    spark.udf.register("negated", udf(lambda number: -number, "bigint"))
    try:
        yield table
    finally:
        spark.sql("DROP TEMPORARY FUNCTION negated")


def total(spark: SparkSession, relation: str) -> int:
    row = spark.sql(f"SELECT sum(negated(id)) AS total FROM {relation}").first()
    assert row is not None
    return int(row.total)


def test_queries_of_a_table_and_of_its_files(spark: SparkSession, negated: str) -> None:
    assert total(spark, f"delta.`{negated}`") == -45
    DeltaTable.forPath(spark, negated).delete("id = 9")
    assert total(spark, f"delta.`{negated}`") == -36
    assert total(spark, f"parquet.`{negated}/*.parquet`") == -45
    nested = f"SELECT negated(negated(id)) AS id, s FROM delta.`{negated}` WHERE negated(id) > -3"
    rows = spark.sql(nested).where("s <> 's1'").collect()
    assert sorted((row.id, row.s) for row in rows) == [(0, "s0"), (2, "s2")]


def test_statements_that_read_and_change_a_table(spark: SparkSession, negated: str) -> None:
    spark.sql(f"INSERT INTO delta.`{negated}` SELECT negated(id), s FROM delta.`{negated}`")
    spark.sql(f"DELETE FROM delta.`{negated}` WHERE negated(id) >= 0")
    spark.sql(f"UPDATE delta.`{negated}` SET id = negated(id)")
    spark.sql(
        f"MERGE INTO delta.`{negated}` t USING (SELECT negated(id) AS id FROM delta.`{negated}`) s"
        " ON t.id = negated(s.id) WHEN MATCHED AND t.id < -7 THEN UPDATE SET s = negated(s.id)"
    )
    rows = [tuple(row) for row in spark.read.format("delta").load(negated).collect()]
    expected = [(-number, s) for number, s in ROWS[1:]]
    expected[-2:] = [(-8, "-8"), (-9, "-9")]
    assert sorted(rows) == sorted(expected)


def test_replaced_rows_of_a_python_condition_need_the_check_of_new_rows_off(
    spark: SparkSession, negated: str
) -> None:
    new = spark.createDataFrame([(-5, "new")], "id BIGINT, s STRING")
    writer = new.write.format("delta").mode("overwrite").option("replaceWhere", "negated(id) < -2")
    with pytest.raises(AnalysisException, match="the Python function negated cannot run"):
        writer.save(negated)
    assert log.newest(negated) == 0
    with session_settings(spark, {"spark.deltaic.replaceWhere.constraintCheck.enabled": "false"}):
        writer.save(negated)
    rows = [tuple(row) for row in spark.read.format("delta").load(negated).collect()]
    assert sorted(rows) == [(-5, "new"), *ROWS[:3]]
