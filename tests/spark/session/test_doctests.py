"""The examples in the docstrings of the public API run, and print what they show."""

from __future__ import annotations

import doctest
import shutil
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from deltaic.tables import (
    DeltaMergeBuilder,
    DeltaOptimizeBuilder,
    DeltaTable,
    DeltaTableBuilder,
    IdentityGenerator,
)
from tests.support.maintenance import await_maintenance

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

PUBLIC = (
    DeltaTable,
    DeltaMergeBuilder,
    DeltaOptimizeBuilder,
    DeltaTableBuilder,
    IdentityGenerator,
)

#: The public classes and those that they inherit from.
CLASSES: tuple[type, ...] = tuple(
    dict.fromkeys(base for public in PUBLIC for base in public.__mro__ if base is not object)
)
EXAMPLES: dict[type, list[doctest.DocTest]] = {
    found: [e for e in doctest.DocTestFinder().find(found) if e.examples] for found in CLASSES
}


@pytest.mark.parametrize("documented", CLASSES)
def test_every_public_method_has_an_example(documented: type) -> None:
    public = {
        name
        for name in vars(documented)
        if not name.startswith("_") and callable(getattr(documented, name))
    }
    assert public <= {example.name.rpartition(".")[2] for example in EXAMPLES[documented]}


ONE_BY_ONE = [
    example
    for documented in CLASSES
    if documented is not DeltaMergeBuilder
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
    example.globs.update(spark=spark, path=path, DeltaTable=DeltaTable)
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
    await_maintenance(spark)
    for example in EXAMPLES[DeltaMergeBuilder]:
        path = str(shutil.copytree(tmp_path / "ten", tmp_path / example.name))
        example.globs.update(spark=spark, path=path, DeltaTable=DeltaTable)
        outcome = doctest.DocTestRunner(verbose=False).run(example)
        assert outcome.failed == 0, example.name
        assert outcome.attempted > 0
