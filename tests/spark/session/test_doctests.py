"""The examples in the docstrings of the public API run, and print what they show."""

from __future__ import annotations

import doctest
import shutil
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

import deltaic.builders
import deltaic.merge
import deltaic.optimize
import deltaic.table_definition
import deltaic.tables

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

CLASSES: tuple[type, ...] = (
    deltaic.tables.DeltaTable,
    deltaic.merge.DeltaMergeBuilder,
    deltaic.builders.DefinitionBuilder,
    deltaic.tables.DeltaTableBuilder,
    deltaic.table_definition.TableDefinition,
    deltaic.optimize.DeltaOptimizeBuilder,
    deltaic.optimize.TableRewrites,
)
EXAMPLES: dict[type, list[doctest.DocTest]] = {
    found: [e for e in doctest.DocTestFinder().find(found) if e.examples] for found in CLASSES
}


@pytest.mark.parametrize("documented", CLASSES)
def test_every_public_method_has_an_example(documented: type) -> None:
    public = {name for name in vars(documented) if not name.startswith("_")}
    assert public <= {example.name.rpartition(".")[2] for example in EXAMPLES[documented]}


ONE_BY_ONE = [
    example
    for documented in CLASSES
    if documented is not deltaic.merge.DeltaMergeBuilder
    for example in EXAMPLES[documented]
]


@pytest.mark.parametrize("example", ONE_BY_ONE, ids=lambda example: example.name)
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


def test_examples_of_merge_print_what_they_say(spark: SparkSession, tmp_path: Path) -> None:
    ten = spark.range(0, 10, 1, 1).write.format("delta")
    ten.option("delta.enableDeletionVectors", "true").save(str(tmp_path / "ten"))
    for example in EXAMPLES[deltaic.merge.DeltaMergeBuilder]:
        path = str(shutil.copytree(tmp_path / "ten", tmp_path / example.name))
        example.globs.update(spark=spark, path=path, DeltaTable=deltaic.tables.DeltaTable)
        outcome = doctest.DocTestRunner(verbose=False).run(example)
        assert outcome.failed == 0, example.name
        assert outcome.attempted > 0
