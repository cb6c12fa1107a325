"""The small table of several scenarios: 10 files of 10,000 rows each, disjoint ids."""

from __future__ import annotations

from pyspark.sql import DataFrame, SparkSession

from bench.lab import Answer, Lab, collect

NAME = "small"
ROWS = 100_000
SCHEMA = "id BIGINT, category INT, amount BIGINT, name STRING"

_FILES = 10


def rows(spark: SparkSession, first_id: int, end_id: int, files: int) -> DataFrame:
    """Return the rows with ids from `first_id` inclusive to `end_id` exclusive."""
    return spark.range(first_id, end_id, 1, files).selectExpr(
        "id",
        "CAST(id % 17 AS INT) AS category",
        "id * 7919 % 100003 AS amount",
        "concat('name-', id) AS name",
    )


def prepare(lab: Lab) -> str:
    """Return the path of the engine's small table; create it if it is missing."""

    def make(path: str) -> None:
        lab.create(path, SCHEMA)
        lab.append(rows(lab.spark, 0, ROWS, _FILES), path)

    return lab.prepared(NAME, make)


def query(lab: Lab, path: str) -> Answer:
    """Run a small query that needs data files, not only the log."""
    return collect(
        lab.read(path, SCHEMA)
        .where("category <> 3")
        .selectExpr("count(*)", "sum(amount)", "max(name)")
    )
