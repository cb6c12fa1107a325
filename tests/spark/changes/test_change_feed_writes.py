"""Writes to tables with a change data feed record their changes, with ``cdc`` files if needed."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession

from deltaic.exceptions import ConcurrentModificationError, InvalidArgumentError
from tests.support import log
from tests.support.interleave import committed_meanwhile
from tests.support.table_builder import append_file, build_table, in_order

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
    df = reader.option("startingVersion", version).option("endingVersion", version).load(table)
    return in_order(tuple(r) for r in df.select("id", "p", "_change_type").collect())


@pytest.mark.protocol("reader-addcdcfile-3")
def test_appends_overwrites_and_deletes_of_whole_files_are_in_the_feed(
    spark: SparkSession, feeding: str
) -> None:
    append_file(spark, feeding, SCHEMA, [(4, "c")])
    assert changes(spark, feeding, 1) == [(4, "c", "insert")]
    spark.sql(f"DELETE FROM delta.`{feeding}` WHERE p = 'b'")
    assert changes(spark, feeding, 2) == [(3, "b", "delete")]
    df = spark.createDataFrame([(9, "a")], SCHEMA)
    writer = df.write.format("delta").mode("overwrite")
    writer.option("partitionOverwriteMode", "dynamic").save(feeding)
    expected = [(1, "a", "delete"), (2, "a", "delete"), (9, "a", "insert")]
    assert changes(spark, feeding, 3) == in_order(expected)


def recorded(table: str, version: int) -> list[str | None]:
    """Return the partition of each change data file; each must be stored in its directory."""
    files = log.actions(table, version, "cdc")
    for file in files:
        assert not file["dataChange"]
        assert file["path"].startswith(f"_change_data/p={file['partitionValues']['p']}/cdc-")
        assert log.data_path(table, file).stat().st_size == file["size"]
    return sorted(file["partitionValues"]["p"] for file in files)


@pytest.mark.protocol("dv-functional-5")
def test_delete_of_single_rows_is_in_vectors_alone(spark: SparkSession, feeding: str) -> None:
    spark.sql(f"DELETE FROM delta.`{feeding}` WHERE id = 1")
    assert changes(spark, feeding, 1) == [(1, "a", "delete")]
    assert recorded(feeding, 1) == ([] if has_vectors(feeding) else ["a"])


@pytest.mark.protocol("add-cdc-file-2")
def test_update_is_recorded_by_the_rows_before_and_after(spark: SparkSession, feeding: str) -> None:
    spark.sql(f"UPDATE delta.`{feeding}` SET id = id + 10, p = 'b' WHERE id = 1")
    assert changes(spark, feeding, 1) == in_order(
        [(1, "a", "update_preimage"), (11, "b", "update_postimage")]
    )
    assert recorded(feeding, 1) == ["a", "b"]
    metrics = log.commit_info(feeding, 1)["operationMetrics"]
    assert metrics["numAddedChangeFiles"] == "2"
    spark.sql(f"UPDATE delta.`{feeding}` SET id = 0 WHERE id = 99")
    assert log.newest(feeding) == 1


@pytest.mark.protocol("add-cdc-file-1", "writer-addcdcfile-2")
def test_merge_records_the_changes_of_all_its_clauses(spark: SparkSession, feeding: str) -> None:
    spark.sql(
        f"MERGE INTO delta.`{feeding}` t USING (SELECT explode(array(1, 2, 7)) k) s ON t.id = k "
        "WHEN MATCHED AND k = 1 THEN DELETE WHEN MATCHED THEN UPDATE SET p = 'z' "
        "WHEN NOT MATCHED THEN INSERT (id, p) VALUES (k, 'n') "
        "WHEN NOT MATCHED BY SOURCE THEN DELETE"
    )
    expected = [
        (1, "a", "delete"),
        (2, "a", "update_preimage"),
        (2, "z", "update_postimage"),
        (3, "b", "delete"),
        (7, "n", "insert"),
    ]
    assert changes(spark, feeding, 1) == in_order(expected)
    assert set(recorded(feeding, 1)) == {"a", "b", "n", "z"}


def test_statement_that_fails_leaves_no_file_behind(spark: SparkSession, feeding: str) -> None:
    before = set(Path(feeding).rglob("*.parquet"))
    table = f"delta.`{feeding}`"
    with pytest.raises(Exception, match="three"):
        spark.sql(f"UPDATE {table} SET id = if(id = 3, raise_error('three'), 0)").collect()

    def delete_too() -> None:
        spark.sql(f"DELETE FROM {table} WHERE id = 1")

    with committed_meanwhile(delete_too), pytest.raises(ConcurrentModificationError):
        spark.sql(f"UPDATE {table} SET id = id + 1 WHERE p = 'a'")
    after = {log.data_path(feeding, file) for file in log.actions(feeding, 1, "cdc")}
    after |= {log.data_path(feeding, file) for file in log.actions(feeding, 1, "add")}
    assert set(Path(feeding).rglob("*.parquet")) == before | after


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


def test_feed_is_on_by_the_older_name_of_its_property(spark: SparkSession, table: str) -> None:
    build_table(spark, table, SCHEMA, [ROWS], properties=FEED)
    metadata = log.metadata(table)
    configuration = {k: v for k, v in metadata["configuration"].items() if k not in FEED}
    configuration["delta.enableChangeDataCapture"] = "true"
    log.write_commit(table, 1, {"metaData": {**metadata, "configuration": configuration}})
    spark.sql(f"UPDATE delta.`{table}` SET id = 11 WHERE id = 1")
    expected = [(1, "a", "update_preimage"), (11, "a", "update_postimage")]
    assert changes(spark, table, 2) == in_order(expected)


def test_columns_of_the_feed_are_refused(spark: SparkSession, table: str) -> None:
    df = spark.sql("SELECT 1 id, 'x' _change_type")
    with pytest.raises(InvalidArgumentError, match="_change_type"):
        df.write.format("delta").options(**FEED).save(table)
