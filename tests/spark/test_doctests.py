"""The examples in the docstrings of the public API run, and print what they say they print."""

from __future__ import annotations

import doctest
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

import deltaic.builders
import deltaic.tables

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

EXAMPLES = [
    example
    for module in (deltaic.tables, deltaic.builders)
    for example in doctest.DocTestFinder().find(module)
    if example.examples
]


def test_every_public_method_has_an_example() -> None:
    classes = (deltaic.tables.DeltaTable, deltaic.builders.DeltaTableBuilder)
    public = {name for c in classes for name in vars(c) if not name.startswith("_")}
    shown = {example.name.rpartition(".")[2] for example in EXAMPLES}
    assert public <= shown


@pytest.mark.parametrize("example", EXAMPLES, ids=lambda example: example.name)
def test_example_prints_what_it_says(
    example: doctest.DocTest, spark: SparkSession, tmp_path: Path
) -> None:
    source = "".join(line.source for line in example.examples)
    path = str(tmp_path / "t")
    ten = spark.range(0, 10, 1, 1)
    if "path" in source:
        ten.write.format("delta").option("delta.enableDeletionVectors", "true").save(path)
    spark.sql("CREATE DATABASE IF NOT EXISTS sales")
    if "sales.orders" in source:
        ten.write.format("delta").mode("overwrite").saveAsTable("sales.orders")
    example.globs.update(spark=spark, path=path, DeltaTable=deltaic.tables.DeltaTable)
    runner = doctest.DocTestRunner(verbose=False, optionflags=doctest.ELLIPSIS)
    try:
        outcome = runner.run(example)
    finally:
        spark.sql("DROP DATABASE sales CASCADE")
    assert outcome.failed == 0
    assert outcome.attempted > 0
