"""A MERGE whose source is not repeatable."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from tests.spark.rowlevel.test_merge_plans import FILES, SCHEMA, UPSERT
from tests.support import log
from tests.support.lost_files import lose_files
from tests.support.session_settings import session_settings
from tests.support.table_builder import build_table, rows_of

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

STORING = {"spark.deltaic.merge.materializeSource.minTableBytes": "0"}


@pytest.mark.parametrize("clauses", [UPSERT, "WHEN NOT MATCHED THEN INSERT *"])
def test_source_that_is_not_repeatable_is_materialized_once_and_prunes(
    spark: SparkSession, table: str, clauses: str
) -> None:
    build_table(spark, table, SCHEMA, FILES)
    lose_files(table, but={10, 40})
    kept_before = len(spark.sparkContext._jsc.getPersistentRDDs())
    values = spark.createDataFrame([(12, 1), (45, 2)], "id INT, v INT")
    new = spark.range(1000).where("rand() < 0.1").selectExpr("INT(id + 12000) AS id", "3 AS v")
    values.union(new.groupBy("id").agg({"v": "max"})).createOrReplaceTempView("unsure")
    merge = f"MERGE INTO delta.`{table}` t USING unsure s ON t.id = s.id {clauses}"
    assert "MergeFromMaterializedSource" not in spark.sql(f"EXPLAIN {merge}").collect()[0][0]
    with session_settings(spark, STORING):
        assert "MergeFromMaterializedSource" in spark.sql(f"EXPLAIN {merge}").collect()[0][0]
        (counts,) = spark.sql(merge).collect()
    metrics = log.commit_info(table, 1)["operationMetrics"]
    assert 0 < int(metrics["materializeSourceTimeMs"]) <= int(metrics["executionTimeMs"])
    inserted = int(metrics["numTargetRowsInserted"])
    assert int(metrics["numSourceRows"]) == inserted + 2
    assert counts.num_inserted_rows == inserted
    assert counts.num_updated_rows == (2 if clauses == UPSERT else 0)
    assert len(spark.sparkContext._jsc.getPersistentRDDs()) == kept_before


@pytest.mark.parametrize(
    "own",
    [
        "SELECT id, max(v) + 5 AS v FROM {t} WHERE id > 15 GROUP BY id",
        "SELECT * FROM VALUES (16, 5), (17, 5), (18, 5), (19, 5) s(id, v)"
        " WHERE id IN (SELECT id FROM {t})",
    ],
)
def test_source_that_reads_the_target_is_not_materialized(
    spark: SparkSession, table: str, own: str
) -> None:
    build_table(spark, table, SCHEMA, FILES[:2])
    source = own.format(t=f"delta.`{table}`")
    merge = f"MERGE INTO delta.`{table}` t USING ({source}) s ON t.id = s.id {UPSERT}"
    with session_settings(spark, STORING):
        assert "MergeFromMaterializedSource" not in spark.sql(f"EXPLAIN {merge}").collect()[0][0]
        spark.sql(merge)
    assert dict(rows_of(spark, table)) == {row: 5 * (row > 15) for row in range(20)}
    assert log.commit_info(table, 1)["operationMetrics"]["materializeSourceTimeMs"] == "0"


def test_files_are_materialized_if_they_or_a_user_defined_function_may_differ(
    spark: SparkSession, table: str
) -> None:
    build_table(spark, table, SCHEMA, FILES)
    lose_files(table, but={10, 40})
    rows = spark.sql("SELECT * FROM VALUES (12, 1), (45, 2) s(id, v)").coalesce(1)
    rows.write.parquet(f"{table}-parquet")
    rows.write.csv(f"{table}-csv")
    spark.udf.register("same", lambda x: x, "INT")
    merge = f"MERGE INTO delta.`{table}` t USING once_or_twice s ON t.id = s.id {UPSERT}"

    def is_stored(source: DataFrame, key: str = "id", **settings: str) -> bool:
        source.selectExpr(f"{key} AS id", "v").createOrReplaceTempView("once_or_twice")
        with session_settings(spark, {**STORING, **settings}):
            return "MergeFromMaterializedSource" in spark.sql(f"EXPLAIN {merge}").collect()[0][0]

    files = spark.read.schema(SCHEMA)
    plain = files.parquet(f"{table}-parquet")
    assert not is_stored(plain)
    assert is_stored(files.csv(f"{table}-csv"))
    for setting in ("ignoreMissingFiles", "ignoreCorruptFiles"):
        assert is_stored(plain, **{f"spark.sql.files.{setting}": "true"})
        lenient = spark.read.schema(SCHEMA).option(setting, "true")
        assert is_stored(lenient.parquet(f"{table}-parquet"))
    assert is_stored(plain, "same(id)")
    with session_settings(spark, STORING):
        spark.sql(merge)
    spark.catalog.dropTempView("once_or_twice")
    assert len(log.actions(table, 1, "remove")) == 2
