"""Tables with a change data feed take the writes whose changes their file actions tell."""

from __future__ import annotations

from typing import Any

import pytest
from pyspark.sql import SparkSession

from deltaic.exceptions import InvalidArgumentError, TableStateError
from tests.support import log
from tests.support.table_builder import append_file, build_table, in_order, rows_of

SCHEMA = "id INT, p STRING"
ROWS = [(1, "a"), (2, "a"), (3, "b")]
FEED = {"delta.enableChangeDataFeed": "true"}


@pytest.fixture(params=[True, False], ids=["vectors", "rewrite"])
def feeding(request: pytest.FixtureRequest, spark: SparkSession, table: str) -> str:
    vectors = bool(request.param)
    build_table(
        spark,
        table,
        SCHEMA,
        [ROWS],
        partition_by=["p"],
        deletion_vectors=vectors,
        properties=FEED,
    )
    return table


def has_vectors(table: str) -> bool:
    return bool(log.metadata(table)["configuration"]["delta.enableDeletionVectors"] == "true")


def changes(spark: SparkSession, table: str, version: int) -> list[tuple[Any, ...]]:
    reader = spark.read.format("delta").option("readChangeFeed", "true")
    frame = reader.option("startingVersion", version).option("endingVersion", version).load(table)
    return in_order(tuple(r) for r in frame.select("id", "p", "_change_type").collect())


def test_appends_overwrites_and_deletes_of_whole_files_are_told(
    spark: SparkSession, feeding: str
) -> None:
    append_file(spark, feeding, SCHEMA, [(4, "c")])
    assert changes(spark, feeding, 1) == [(4, "c", "insert")]
    spark.sql(f"DELETE FROM delta.`{feeding}` WHERE p = 'b'")
    assert changes(spark, feeding, 2) == [(3, "b", "delete")]
    frame = spark.createDataFrame([(9, "a")], SCHEMA)
    writer = frame.write.format("delta").mode("overwrite")
    writer.option("partitionOverwriteMode", "dynamic").save(feeding)
    expected = [(1, "a", "delete"), (2, "a", "delete"), (9, "a", "insert")]
    assert changes(spark, feeding, 3) == in_order(expected)


def test_delete_of_single_rows_is_told_by_vectors_alone(spark: SparkSession, feeding: str) -> None:
    statement = f"DELETE FROM delta.`{feeding}` WHERE id = 1"
    if has_vectors(feeding):
        spark.sql(statement)
        assert changes(spark, feeding, 1) == [(1, "a", "delete")]
    else:
        with pytest.raises(TableStateError, match=r"DELTAIC_CHANGE_DATA_FILES_NEEDED.*copied"):
            spark.sql(statement)
        assert rows_of(spark, feeding) == ROWS
        assert len(log.stored_files(feeding)) == 2


@pytest.mark.parametrize(
    "statement",
    [
        "UPDATE {t} SET id = id + 10 WHERE id = 1",
        "MERGE INTO {t} t USING (SELECT 1 k) s ON t.id = s.k WHEN MATCHED THEN UPDATE SET p = 'z' "
        "WHEN NOT MATCHED THEN INSERT (id) VALUES (k)",
    ],
)
def test_updated_rows_are_refused_and_nothing_is_left_behind(
    spark: SparkSession, feeding: str, statement: str
) -> None:
    with pytest.raises(TableStateError, match=r"DELTAIC_CHANGE_DATA_FILES_NEEDED"):
        spark.sql(statement.format(t=f"delta.`{feeding}`"))
    assert log.newest(feeding) == 0
    assert len(log.stored_files(feeding)) == 2


def test_merge_that_only_inserts_is_an_append(spark: SparkSession, feeding: str) -> None:
    spark.sql(
        f"MERGE INTO delta.`{feeding}` t USING (SELECT explode(array(1, 8)) k) s ON t.id = s.k "
        "WHEN NOT MATCHED THEN INSERT (id, p) VALUES (k, 'm')"
    )
    assert changes(spark, feeding, 1) == [(8, "m", "insert")]


def test_feed_is_switched_on_later(spark: SparkSession, table: str) -> None:
    build_table(spark, table, SCHEMA, [ROWS])
    spark.sql(
        f"ALTER TABLE delta.`{table}` SET TBLPROPERTIES ('delta.enableChangeDataFeed' = 'true')"
    )
    spark.sql(f"DELETE FROM delta.`{table}` WHERE id = 2")
    assert changes(spark, table, 2) == [(2, "a", "delete")]


def test_columns_of_the_feed_are_refused(spark: SparkSession, table: str) -> None:
    frame = spark.sql("SELECT 1 id, 'x' _change_type")
    with pytest.raises(InvalidArgumentError, match="_change_type"):
        frame.write.format("delta").options(**FEED).save(table)
