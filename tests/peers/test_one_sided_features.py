"""Tables whose protocol lists a feature for writers only, or for readers only."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from tests.support import log
from tests.support.foreign_table import ForeignTable, mapped
from tests.support.oracle_reads import assert_same_reads
from tests.support.table_builder import rows_of

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from tests.support.spark_process import SparkProcess

BY_NAME = {"delta.columnMapping.mode": "name", "delta.columnMapping.maxColumnId": "1"}
WRITERS_OF_READER_1 = {
    "minReaderVersion": 1,
    "minWriterVersion": 7,
    "writerFeatures": ["columnMapping"],
}
WRITERS = {
    "minReaderVersion": 3,
    "minWriterVersion": 7,
    "readerFeatures": [],
    "writerFeatures": ["columnMapping"],
}
READERS = {
    "minReaderVersion": 3,
    "minWriterVersion": 7,
    "readerFeatures": ["columnMapping"],
    "writerFeatures": [],
}
READER_VERSION = {"minReaderVersion": 2, "minWriterVersion": 2}


def one_sided(path: str, protocol: dict[str, Any]) -> None:
    table = ForeignTable(path, mapped("id", "integer", 1), protocol=protocol, properties=BY_NAME)
    table.add(pa.table({"col-1": pa.array([1], pa.int32())}))


@pytest.fixture
def made_by_delta_spark_3_1(shared: Path, tmp_path: Path) -> str:
    """A copy of a table whose reader features were left empty when its versions were raised."""
    path = tmp_path / "iceberg_compat_v1"
    shutil.copytree(shared / "tables" / "tables" / "dat__iceberg_compat_v1", path)
    for file in [path, *path.rglob("*")]:
        file.chmod(0o755)
    return str(path)


@pytest.mark.protocol("iceberg-compatibility-v1-1", "writer-column-mapping-3")
def test_table_of_delta_spark_3_1_is_read_and_written_as_delta_spark_does(
    spark: SparkSession, delta_spark: SparkProcess, made_by_delta_spark_3_1: str
) -> None:
    table = made_by_delta_spark_3_1
    queries = [
        "SELECT * FROM {t}",
        "SELECT `int` FROM {t} WHERE letter = 'b'",
        "SELECT max(`date`) FROM {t}",
    ]
    assert_same_reads(spark, delta_spark, table, queries)
    spark.sql(f"INSERT INTO delta.`{table}` VALUES ('z', 7, DATE'2020-01-01')")
    spark.sql(f"UPDATE delta.`{table}` SET `int` = 8 WHERE letter = 'z'")
    spark.sql(f"DELETE FROM delta.`{table}` WHERE `int` < 100")
    rows = assert_same_reads(spark, delta_spark, table, queries)[0]
    assert len(rows) == 3
    # A write leaves the protocol alone, as delta-spark's does; a new definition completes it.
    assert not any(log.actions(table, version, "protocol") for version in (3, 4, 5))
    spark.sql(f"ALTER TABLE delta.`{table}` ADD COLUMNS (late INT)")
    protocol = log.last_actions(table, "protocol")[0]
    assert protocol["readerFeatures"] == ["columnMapping"]
    assert sorted(protocol["writerFeatures"]) == ["columnMapping", "icebergCompatV1"]
    assert_same_reads(spark, delta_spark, table, queries)


@pytest.mark.parametrize("protocol", [WRITERS, WRITERS_OF_READER_1, READER_VERSION])
def test_column_mapping_that_one_side_lists_holds_for_files(
    spark: SparkSession, delta_spark: SparkProcess, table: str, protocol: dict[str, Any]
) -> None:
    one_sided(table, protocol)
    spark.sql(f"INSERT INTO delta.`{table}` VALUES (2)")
    assert rows_of(spark, table) == [(1,), (2,)]
    (add,) = log.last_actions(table, "add")
    assert pq.read_schema(log.data_path(table, add)).names == ["col-1"]
    assert json.loads(add["stats"])["minValues"] == {"col-1": 2}
    assert_same_reads(spark, delta_spark, table, ["SELECT id FROM {t} WHERE id = 2"])


@pytest.mark.protocol("supported-features-3")
def test_column_mapping_of_the_readers_alone_holds_for_files(
    spark: SparkSession, table: str
) -> None:
    """delta-spark refuses such a table: the protocol does not list the feature for writers."""
    one_sided(table, READERS)
    spark.sql(f"INSERT INTO delta.`{table}` VALUES (2)")
    assert rows_of(spark, table) == [(1,), (2,)]
    spark.sql(f"ALTER TABLE delta.`{table}` RENAME COLUMN id TO number")
    (protocol,) = log.last_actions(table, "protocol")
    assert protocol["writerFeatures"] == protocol["readerFeatures"] == ["columnMapping"]
    assert rows_of(spark, table) == [(1,), (2,)]


@pytest.mark.protocol("deletion-vectors-2")
@pytest.mark.parametrize("side", ["readerFeatures", "writerFeatures"])
def test_no_deletion_vector_is_written_where_one_side_knows_nothing_of_them(
    spark: SparkSession, table: str, side: str
) -> None:
    spark.range(10).coalesce(1).write.format("delta").option(
        "delta.enableDeletionVectors", "true"
    ).save(table)
    spark.sql(f"DELETE FROM delta.`{table}` WHERE id = 1")
    (protocol,) = log.actions(table, 0, "protocol")
    commit = {"protocol": {**protocol, side: [f for f in protocol[side] if f != "deletionVectors"]}}
    log.write_commit(table, 2, commit)
    spark.sql(f"DELETE FROM delta.`{table}` WHERE id = 2")
    (add,) = log.last_actions(table, "add")
    assert "deletionVector" not in add
    assert rows_of(spark, table) == [(i,) for i in range(10) if i not in (1, 2)]
