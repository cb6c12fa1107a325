"""The examples in the docstrings of the public API run, and print what they say they print."""

from __future__ import annotations

import doctest
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

import deltaic.tables

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

EXAMPLES = [example for example in doctest.DocTestFinder().find(deltaic.tables) if example.examples]


def test_every_public_method_has_an_example() -> None:
    public = {name for name in vars(deltaic.tables.DeltaTable) if not name.startswith("_")}
    shown = {example.name.rpartition(".")[2] for example in EXAMPLES}
    assert public <= shown


@pytest.mark.parametrize("example", EXAMPLES, ids=lambda example: example.name)
def test_example_prints_what_it_says(
    example: doctest.DocTest, spark: SparkSession, tmp_path: Path
) -> None:
    path = str(tmp_path / "t")
    ten = spark.range(0, 10, 1, 1)
    ten.write.format("delta").option("delta.enableDeletionVectors", "true").save(path)
    spark.sql("CREATE DATABASE IF NOT EXISTS sales")
    ten.write.format("delta").mode("overwrite").saveAsTable("sales.orders")
    example.globs.update(spark=spark, path=path, DeltaTable=deltaic.tables.DeltaTable)
    try:
        outcome = doctest.DocTestRunner(verbose=False).run(example)
    finally:
        spark.sql("DROP DATABASE sales CASCADE")
    assert outcome.failed == 0
    assert outcome.attempted > 0
