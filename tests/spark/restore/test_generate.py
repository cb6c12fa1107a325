"""GENERATE: manifests for engines that do not read the log."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from pyspark.errors import AnalysisException

from deltaic import DeltaTable
from deltaic.exceptions import InvalidArgumentError, TableStateError
from tests.support import log
from tests.support.table_builder import build_table

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

MODE = "symlink_format_manifest"


def manifests(table: str) -> dict[str, set[str]]:
    """Return the names of the listed files, by the folder of the manifest."""
    root = Path(table, f"_{MODE}")
    return {
        str(file.parent.relative_to(root)): {Path(p).name for p in file.read_text().splitlines()}
        for file in root.rglob("manifest")
    }


def files(table: str) -> dict[str, set[str]]:
    found: dict[str, set[str]] = {}
    for add in log.active_files(table):
        path = Path(add["path"])
        found.setdefault(str(path.parent), set()).add(path.name)
    return found


def build(spark: SparkSession, table: str) -> None:
    rows = [[(1, "a"), (2, "b")], [(3, "b"), (4, "c")]]
    build_table(spark, table, "id INT, p STRING", rows, deletion_vectors=False, partition_by=["p"])


@pytest.mark.parametrize(
    "statement", [f"GENERATE {MODE} FOR TABLE", f"generate `{MODE.upper()}` for table"]
)
def test_statement_lists_the_files_of_each_partition(
    spark: SparkSession, table: str, statement: str
) -> None:
    build(spark, table)
    spark.sql(f"{statement} delta.`{table}`;")
    assert manifests(table) == files(table) and len(files(table)) == 3
    assert log.versions(table) == [0]


def test_method_deletes_manifests_of_partitions_that_are_gone(
    spark: SparkSession, table: str
) -> None:
    build(spark, table)
    api = DeltaTable.forPath(spark, table)
    api.generate(MODE)
    api.delete("p = 'a'")
    api.update("id = 4", {"p": "'d'"})
    assert manifests(table) != files(table)
    api.generate(MODE)
    assert manifests(table) == files(table)


def test_empty_table_has_an_empty_manifest(spark: SparkSession, table: str) -> None:
    spark.sql(f"CREATE TABLE delta.`{table}` (id INT) USING delta")
    DeltaTable.forPath(spark, table).generate(MODE)
    assert manifests(table) == {".": set()}


def test_other_mode_is_refused_by_name(spark: SparkSession, table: str) -> None:
    build(spark, table)
    with pytest.raises(InvalidArgumentError, match="GENERATE iceberg_metadata"):
        DeltaTable.forPath(spark, table).generate("iceberg_metadata")
    with pytest.raises(InvalidArgumentError) as raised:
        spark.sql(f"GENERATE symlink FOR TABLE delta.`{table}`")
    assert raised.value.getCondition() == "DELTAIC_GENERATE_MODE_UNSUPPORTED"
    assert not Path(table, f"_{MODE}").exists()


@pytest.mark.protocol("dv-functional-6")
def test_deletion_vectors_are_refused_and_no_manifest_changes(
    spark: SparkSession, table: str
) -> None:
    build_table(spark, table, "id INT", [[(1,), (2,), (3,)]])
    api = DeltaTable.forPath(spark, table)
    api.generate(MODE)
    before = manifests(table)
    api.delete("id = 1")
    with pytest.raises(TableStateError, match="has a deletion vector") as raised:
        spark.sql(f"GENERATE {MODE} FOR TABLE delta.`{table}`")
    assert raised.value.condition == "DELTAIC_MANIFEST_OF_DELETION_VECTORS"
    assert manifests(table) == before
    assert "REORG TABLE ... APPLY (PURGE)" in str(raised.value)
    spark.sql(f"REORG TABLE delta.`{table}` APPLY (PURGE)")
    api.generate(MODE)
    assert manifests(table) == files(table), "what the error advises works"


def test_column_mapping_is_refused(spark: SparkSession, table: str) -> None:
    mapped = {"delta.columnMapping.mode": "name"}
    build_table(spark, table, "id INT", [[(1,)]], deletion_vectors=False, properties=mapped)
    with pytest.raises(TableStateError, match="column mapping") as raised:
        DeltaTable.forPath(spark, table).generate(MODE)
    assert raised.value.condition == "DELTAIC_MANIFEST_OF_COLUMN_MAPPING"
    assert "write its rows to a table without delta.columnMapping.mode" in str(raised.value)
    assert not Path(table, f"_{MODE}").exists()


def test_missing_table_is_refused(spark: SparkSession, table: str) -> None:
    with pytest.raises(AnalysisException):
        spark.sql(f"GENERATE {MODE} FOR TABLE delta.`{table}`")
