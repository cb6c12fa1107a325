"""REORG TABLE ... APPLY (UPGRADE UNIFORM ...): table and files become compatible with Iceberg."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import pyarrow.parquet as pq
import pytest

from deltaic import DeltaTable
from deltaic.exceptions import (
    ConcurrentModificationError,
    InvalidArgumentError,
    ProtocolChangedException,
)
from tests.support import log
from tests.support.interleave import committed_meanwhile
from tests.support.table_builder import append_file, build_table, in_order, rows_of

if TYPE_CHECKING:
    from pyspark.sql import Row, SparkSession

SCHEMA = "id BIGINT, p INT, s STRUCT<a: INT, b: STRING>"
FILES = [[(n * 10 + i, n % 2, (i, f"text {i}")) for i in range(10)] for n in range(4)]
TRACKED = {"delta.enableRowTracking": "true"}


def upgrade(spark: SparkSession, table: str, version: int | str) -> Row:
    (result,) = spark.sql(
        f"REORG TABLE delta.`{table}` APPLY (UPGRADE UNIFORM (ICEBERG_COMPAT_VERSION = {version}))"
    ).collect()
    assert result.path == f"file:{table}"
    metrics: Row = result.metrics
    return metrics


def tags(table: str) -> list[str | None]:
    return [
        (add.get("tags") or {}).get("ICEBERG_COMPAT_VERSION") for add in log.active_files(table)
    ]


def compatibility(table: str) -> dict[str, str]:
    """Return the properties of a table that an upgrade changes."""
    names = ("Iceberg", "columnMapping.mode", "enableDeletionVectors")
    configuration = log.metadata(table)["configuration"]
    return {k: v for k, v in configuration.items() if any(name in k for name in names)}


@pytest.mark.parametrize("version", [1, 2, 3])
def test_table_without_column_mapping_becomes_compatible_in_one_commit(
    spark: SparkSession, table: str, version: int
) -> None:
    properties = TRACKED if version == 3 else {}
    build_table(
        spark,
        table,
        SCHEMA,
        FILES,
        deletion_vectors=version > 1,
        partition_by=("p",),
        properties=properties,
    )
    spark.sql(f"DELETE FROM delta.`{table}` WHERE id IN (3, 13, 14)")
    before, first = rows_of(spark, table), log.newest(table)
    metrics = upgrade(spark, table, version)
    assert (metrics.numFilesRemoved, metrics.numFilesAdded) == (4, 2)
    assert rows_of(spark, table) == before
    assert log.versions(table)[-1] == first + 1
    expected = {
        f"delta.enableIcebergCompatV{version}": "true",
        "delta.columnMapping.mode": "name",
        "delta.enableDeletionVectors": str(version == 3).lower(),
    }
    assert compatibility(table) == expected
    assert tags(table) == [str(version)] * 2
    for add in log.active_files(table):
        assert "deletionVector" not in add
        columns = pq.read_schema(log.data_path(table, add))
        assert columns.field("p").metadata[b"PARQUET:field_id"] == b"2"
        assert log.statistics(add)["numRecords"]
    info = log.commit_info(table)
    assert info["operation"] == "REORG TABLE UPGRADE UNIFORM"
    assert info["operationParameters"] == {
        "properties": f'{{"delta.enableIcebergCompatV{version}":"true"}}'
    }
    assert info["operationMetrics"]["numRemovedFiles"] == "4"
    for kind in ("add", "remove"):
        assert not any(change["dataChange"] for change in log.actions(table, first + 1, kind))
    if version == 3:
        ids = "SELECT id, _metadata.row_id FROM delta.`{t}`".replace("{t}", table)
        older = f"delta.`{table}` VERSION AS OF {first}"
        assert sorted(spark.sql(ids).collect()) == sorted(
            spark.sql(ids.replace(f"delta.`{table}`", older)).collect()
        )
        assert info["tags"] == {"delta.rowTracking.preserved": "true"}
    append_file(spark, table, SCHEMA, [(100, 1, (1, "new"))])
    assert tags(table) == [str(version)] * 3
    assert upgrade(spark, table, version).numFilesRemoved == 0
    assert log.versions(table)[-1] == first + 2, "nothing is left to be upgraded"


def test_newer_version_replaces_an_older_one(spark: SparkSession, table: str) -> None:
    properties = {"delta.enableIcebergCompatV1": "true", **TRACKED}
    build_table(spark, table, SCHEMA, FILES, deletion_vectors=False, properties=properties)
    rows = rows_of(spark, table)
    for version in (2, 3, 2):
        assert upgrade(spark, table, version).numFilesAdded == 1
        assert tags(table) == [str(version)]
        enabled = [k for k, v in compatibility(table).items() if "Iceberg" in k and v == "true"]
        assert enabled == [f"delta.enableIcebergCompatV{version}"]
        assert rows_of(spark, table) == rows


def test_only_files_without_the_tag_or_with_vectors_are_rewritten(
    spark: SparkSession, table: str
) -> None:
    name = f"delta.`{table}`"
    build_table(spark, table, SCHEMA, FILES, properties={"delta.enableDeletionVectors": "false"})
    upgrade(spark, table, 2)
    for values in (
        "'delta.enableIcebergCompatV2' = 'false'",
        "'delta.enableDeletionVectors' = 'true'",
    ):
        spark.sql(f"ALTER TABLE {name} SET TBLPROPERTIES ({values})")
    append_file(spark, table, SCHEMA, [(100, 0, None)])
    append_file(spark, table, SCHEMA, [(101, 1, None), (102, 1, None)])
    tagged = tags(table)
    spark.sql(f"DELETE FROM {name} WHERE id = 5")
    rows = rows_of(spark, table)
    metrics = upgrade(spark, table, 2)
    assert tagged.count("2") == 1
    assert metrics.numFilesRemoved == 3
    assert metrics.deletionVectorStats.numDeletionVectorRowsRemoved == 1
    assert rows_of(spark, table) == rows


def test_table_without_files_or_columns_of_data_becomes_compatible(
    spark: SparkSession, table: str
) -> None:
    spark.sql(f"CREATE TABLE delta.`{table}` (a INT, m MAP<STRING, ARRAY<INT>>) USING delta")
    spark.sql(f"REORG delta.`{table}` APPLY (UPGRADE UNIFORM (ICEBERG_COMPAT_VERSION = 2))")
    assert compatibility(table)["delta.enableIcebergCompatV2"] == "true"
    spark.sql(f"INSERT INTO delta.`{table}` VALUES (1, map('k', array(1, 2)))")
    assert rows_of(spark, table) == [(1, {"k": [1, 2]})]
    columns = json.loads(log.metadata(table)["schemaString"])["fields"]
    nested = columns[1]["metadata"]["parquet.field.nested.ids"]
    assert sorted(nested.values()) == [3, 4, 5]


REFUSED: dict[str, tuple[dict[str, Any], int | str, str]] = {
    "feature of vectors": ({}, 1, "must not have the feature deletionVectors"),
    "no row tracking": ({}, 3, "delta.enableRowTracking must be true"),
    "unknown version": ({}, 4, "ICEBERG_COMPAT_VERSION = 4 of .* is none of 1, 2, 3"),
    "huge version": ({}, "9" * 30, "is none of 1, 2, 3"),
    "version zero": ({}, "02", "is none of 1, 2, 3"),
}


@pytest.mark.parametrize("case", REFUSED)
def test_table_that_iceberg_could_not_have_stays_as_it_is(
    spark: SparkSession, table: str, case: str
) -> None:
    properties, version, reason = REFUSED[case]
    build_table(spark, table, SCHEMA, FILES, properties=properties)
    with pytest.raises(InvalidArgumentError, match=reason):
        upgrade(spark, table, version)
    assert log.versions(table) == [0]


def test_types_that_iceberg_lacks_are_named(spark: SparkSession, table: str) -> None:
    spark.sql(f"CREATE TABLE delta.`{table}` (id BIGINT, v VOID) USING delta")
    with pytest.raises(InvalidArgumentError, match="column v has the type void"):
        upgrade(spark, table, 2)
    assert log.versions(table) == [0]


@pytest.mark.parametrize(
    ("statement", "reason"),
    [
        ("WHERE p = 1 APPLY (UPGRADE UNIFORM (ICEBERG_COMPAT_VERSION = 2))", "not supported for"),
        ("APPLY (UPGRADE UNIFORM (ICEBERG_COMPAT_VERSION = x))", "not supported for"),
        ("APPLY (UPGRADE UNIFORM)", "not supported for"),
    ],
)
def test_statements_that_are_not_complete_say_how_it_is_written(
    spark: SparkSession, table: str, statement: str, reason: str
) -> None:
    build_table(spark, table, SCHEMA, FILES)
    with pytest.raises(InvalidArgumentError, match=reason) as raised:
        spark.sql(f"REORG TABLE delta.`{table}` {statement}")
    assert "APPLY (UPGRADE UNIFORM (ICEBERG_COMPAT_VERSION = 2))" in str(raised.value)
    assert log.versions(table) == [0]


def test_concurrent_writes_conflict_in_both_orders(spark: SparkSession, table: str) -> None:
    build_table(spark, table, SCHEMA, FILES, deletion_vectors=False)
    before = rows_of(spark, table)
    append = [(100, 1, (1, "new"))]
    with (
        pytest.raises(
            ConcurrentModificationError,
            match="changes the columns",
        ),
        committed_meanwhile(lambda: append_file(spark, table, SCHEMA, append)),
    ):
        upgrade(spark, table, 2)
    assert rows_of(spark, table) == in_order([*before, (100, 1, (1, "new"))])
    assert "delta.columnMapping.mode" not in compatibility(table)
    with (
        pytest.raises(ProtocolChangedException),
        committed_meanwhile(lambda: upgrade(spark, table, 2)),
    ):
        append_file(spark, table, SCHEMA, [(101, 1, None)])
    assert tags(table) == ["2"]
    assert rows_of(spark, table) == in_order([*before, (100, 1, (1, "new"))])


def test_names_of_tables_and_columns_may_be_the_words_of_the_statement(
    spark: SparkSession,
) -> None:
    spark.sql("CREATE TABLE uniform (iceberg_compat_version INT) USING delta")
    try:
        spark.sql("INSERT INTO uniform VALUES (1)")
        spark.sql("REORG TABLE uniform APPLY (UPGRADE UNIFORM (ICEBERG_COMPAT_VERSION = 2))")
        assert DeltaTable.forName(spark, "uniform").toDF().first() == (1,)
    finally:
        spark.sql("DROP TABLE uniform")


def test_clustered_files_stay_clustered(spark: SparkSession, table: str) -> None:
    name = f"delta.`{table}`"
    spark.sql(
        f"CREATE TABLE {name} (id BIGINT, v INT) USING delta CLUSTER BY (id)"
        " TBLPROPERTIES ('delta.enableDeletionVectors' = 'false')"
    )
    spark.sql(f"INSERT INTO {name} SELECT id, 1 FROM range(100)")
    spark.sql(f"OPTIMIZE {name} FULL")
    (before,) = log.active_files(table)
    upgrade(spark, table, 2)
    (after,) = log.active_files(table)
    assert after["path"] != before["path"]
    cube = {key: value for key, value in before["tags"].items() if key.startswith("ZCUBE")}
    assert cube
    assert cube.items() <= after["tags"].items()
    assert after["clusteringProvider"] == before["clusteringProvider"] == "liquid"
    version = log.newest(table)
    spark.sql(f"OPTIMIZE {name}")
    assert log.newest(table) == version, "nothing is left to be clustered"
