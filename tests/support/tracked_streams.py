"""Streams whose schema is tracked, run to their end over each change of the schema."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Any

from tests.support.streams import stream_of
from tests.support.table_builder import build_table

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

MAPPED = {
    "delta.columnMapping.mode": "name",
    "delta.enableTypeWidening": "true",
    "delta.enableChangeDataFeed": "true",
    "delta.enableDeletionVectors": "true",
}
ALL_ALLOWED = {
    "allowSourceColumnRename": "always",
    "allowSourceColumnDrop": "always",
    "allowSourceColumnTypeChange": "always",
}
TRACKED = "DELTAIC_STREAM_SCHEMA_TRACKED"
INITIALIZED = "DELTAIC_STREAM_SCHEMA_TRACKING_INITIALIZED"
NOT_ALLOWED = "DELTAIC_STREAM_SCHEMA_CHANGE_NOT_ALLOWED"


def tracked(spark: SparkSession, table: str, checkpoint: Path, **options: Any) -> DataFrame:
    return stream_of(spark, table, schemaTrackingLocation=str(checkpoint), **options)


def mapped(spark: SparkSession, table: str) -> None:
    build_table(spark, table, "id INT, v STRING, n INT", [[(1, "a", 10)]], properties=MAPPED)


def alter(spark: SparkSession, table: str, change: str) -> None:
    spark.sql(f"ALTER TABLE delta.`{table}` {change}")


def insert(spark: SparkSession, table: str, row: tuple[Any, ...]) -> None:
    spark.sql(f"INSERT INTO delta.`{table}` VALUES {row}")


def read_to_the_end(
    spark: SparkSession, table: str, checkpoint: Path, **options: Any
) -> tuple[list[tuple[list[str], tuple[Any, ...]]], int]:
    """Start the query again after each failure; return columns and rows, and the failures."""
    from pyspark.errors import PySparkException

    found: list[tuple[list[str], tuple[Any, ...]]] = []
    for failures in range(20):
        df = tracked(spark, table, checkpoint, **options)

        def keep(batch: DataFrame, _: int) -> None:
            found.extend((batch.columns, tuple(row)) for row in batch.collect())

        writer = df.writeStream.foreachBatch(keep).option("checkpointLocation", str(checkpoint))
        query = writer.trigger(availableNow=True).start()
        try:
            query.awaitTermination()
            return found, failures
        except PySparkException as problem:
            assert TRACKED in str(problem) or INITIALIZED in str(problem), problem
    raise AssertionError("the stream does not end")


def entries(checkpoint: Path) -> list[dict[str, Any]]:
    """The entries of the only schema tracking log."""
    (log,) = checkpoint.glob("_schema_log_*")
    files = sorted(
        (file for file in log.iterdir() if file.name.isdigit()), key=lambda f: int(f.name)
    )
    texts = [file.read_text(encoding="utf-8").split("\n") for file in files]
    assert all(text[0] == "v1" for text in texts)
    return [json.loads(text[1]) for text in texts]
