"""`DeltaTable`: finding a table, its rows, its history and its detail."""

from __future__ import annotations

import datetime as dt
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from pyspark.sql import functions as F

from deltaic import DeltaTable, __version__
from deltaic.exceptions import DeltaError, InvalidArgumentError, TableStateError
from tests.support import log
from tests.support.session_settings import session_settings
from tests.support.table_builder import BuildWithOracle, TableWithOracle, assert_same_rows

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


@pytest.fixture
def target(spark: SparkSession, build: BuildWithOracle) -> TableWithOracle:
    """A table of three versions: a write, an append, a delete."""
    rows = spark.range(0, 20, 1, 2).selectExpr("id", "id % 4 AS p")
    table: TableWithOracle = build(rows, deletion_vectors=True, partition_by=("p",))
    table.append(rows.where("id = 7"))
    table.delete("id = 3")
    return table


@pytest.fixture
def named(spark: SparkSession, target: TableWithOracle) -> Iterator[str]:
    spark.sql(f"CREATE TABLE delta_table_tests USING delta LOCATION '{target.path}'")
    yield "delta_table_tests"
    spark.sql("DROP TABLE delta_table_tests")


def test_table_is_found_by_path_and_by_name(
    spark: SparkSession, target: TableWithOracle, named: str
):
    for found in (
        DeltaTable.forPath(spark, target.path),
        DeltaTable.forPath(spark, "file://" + target.path),
        DeltaTable.forName(spark, named),
        DeltaTable.forName(spark, f"default.{named}"),
        DeltaTable.forName(spark, target.sql_name),
    ):
        assert_same_rows(found.toDF().collect(), target.live.collect())


def test_path_without_a_table_is_refused_and_named(spark: SparkSession, tmp_path: Path):
    with pytest.raises(DeltaError, match="DELTAIC_NOT_A_TABLE") as caught:
        DeltaTable.forPath(spark, str(tmp_path))
    assert str(tmp_path) in str(caught.value)


@pytest.mark.parametrize("vectors", ["true", "false"])
def test_settings_of_a_file_system_hold_for_all_that_is_done_through_the_table(
    spark: SparkSession, tmp_path: Path, vectors: str
):
    local, path = str(tmp_path / "t"), "viewfs://for-one-table/data/t"
    rows = spark.range(0, 10, 1, 2).selectExpr("id", "0 AS v")
    rows.write.format("delta").option("delta.enableDeletionVectors", vectors).save(local)
    settings = {
        "fs.viewfs.mounttable.for-one-table.link./data": tmp_path.as_uri(),
        # Else others would get the file system that was set up for this table.
        "fs.viewfs.impl.disable.cache": "true",
    }
    with session_settings(spark, {"spark.deltaic.logStore.viewfs.impl": "rename"}):
        with pytest.raises(Exception, match=r"(?i)viewfs"):
            DeltaTable.forPath(spark, path)
        table = DeltaTable.forPath(spark, path, hadoopConf=settings).alias("t")
        table.delete("id = 3")
        table.update("id > 7", {"v": "1"})
        source = spark.createDataFrame([(5, 2), (12, 2)], "id LONG, v INT").alias("s")
        merge = table.merge(source, "t.id = s.id")
        merge.whenMatchedUpdateAll().whenNotMatchedInsertAll().execute()
        table.addFeatureSupport("domainMetadata")
        table.setDomainMetadata("com.example.pipeline", "step 7")
        assert table.domainMetadata() == {"com.example.pipeline": "step 7"}
        assert "domainMetadata" in table.detail().collect()[0].tableFeatures
        assert table.history().count() == len(log.versions(local)) == 6
        expected = [(0, 0), (1, 0), (2, 0), (4, 0), (5, 2), (6, 0), (7, 0), (8, 1), (9, 1), (12, 2)]
        assert_same_rows(map(tuple, table.toDF().collect()), expected)
        assert_same_rows(map(tuple, spark.read.format("delta").load(local).collect()), expected)
        with pytest.raises(Exception, match=r"(?i)viewfs"):
            DeltaTable.forPath(spark, path)


def test_is_delta_table_distinguishes_tables_from_everything_else(
    spark: SparkSession, target: TableWithOracle, tmp_path: Path
):
    spark.range(3).write.parquet(str(tmp_path / "parquet"))
    (tmp_path / "empty" / "_delta_log").mkdir(parents=True)
    assert DeltaTable.isDeltaTable(spark, target.path)
    for other in ("parquet", "empty", "nothing"):
        assert not DeltaTable.isDeltaTable(spark, str(tmp_path / other))


def test_name_of_a_view_or_of_a_table_of_another_format_is_refused(spark: SparkSession):
    spark.sql("CREATE TABLE not_delta USING parquet AS SELECT 1 AS id")
    spark.sql("CREATE VIEW not_a_table AS SELECT 1 AS id")
    try:
        for name, found in (("not_delta", "another format"), ("not_a_table", "a view")):
            with pytest.raises(TableStateError, match=f"{name} names no Delta table.*{found}"):
                DeltaTable.forName(spark, name)
    finally:
        spark.sql("DROP TABLE not_delta")
        spark.sql("DROP VIEW not_a_table")


@pytest.mark.parametrize("session", ["x", 7, object()])
def test_session_that_is_none_is_refused_by_its_argument(session: Any, tmp_path: Path):
    path = str(tmp_path)
    for method in (
        lambda: DeltaTable.forPath(session, path),
        lambda: DeltaTable.forName(session, "a_table"),
        lambda: DeltaTable.isDeltaTable(session, path),
        lambda: DeltaTable.create(session),
        lambda: DeltaTable.createIfNotExists(session),
        lambda: DeltaTable.replace(session),
        lambda: DeltaTable.createOrReplace(session),
        lambda: DeltaTable(session, path).delete(),
    ):
        with pytest.raises(
            TypeError, match=r"sparkSession cannot be .* it is a SparkSession"
        ) as it:
            method()
        assert isinstance(it.value, InvalidArgumentError)
    with pytest.raises(InvalidArgumentError, match="sparkSession cannot be None"):
        DeltaTable.forPath(None, path)  # type: ignore[arg-type]


def test_alias_qualifies_columns(spark: SparkSession, target: TableWithOracle):
    df = DeltaTable.forPath(spark, target.path).alias("t").toDF()
    assert df.where("t.id = 7").select(F.col("t.p")).count() == 2


def test_dataframe_reads_the_newest_version_when_it_runs(
    spark: SparkSession, target: TableWithOracle
):
    df = DeltaTable.forPath(spark, target.path).toDF()
    target.append(target.live.where("id = 5"))
    assert_same_rows(df.collect(), target.live.collect())


def test_history_lists_each_commit_newest_first(spark: SparkSession, target: TableWithOracle):
    history = DeltaTable.forPath(spark, target.path).history()
    rows = history.collect()
    assert [(row.version, row.operation) for row in rows] == [
        (2, "DELETE"),
        (1, "WRITE"),
        (0, "WRITE"),
    ]
    for row in rows:
        info = log.commit_info(target.path, row.version)
        assert row.operationParameters == info["operationParameters"]
        assert row.operationMetrics == info["operationMetrics"]
        assert row.readVersion == (row.version - 1 if row.version else None)
        assert row.isBlindAppend is (row.operation == "WRITE")
        assert row.engineInfo == f"Deltaic/{__version__} Apache-Spark/{spark.version}"
    assert rows[0].operationMetrics["numDeletedRows"] == "1"
    assert rows[2].operationMetrics["numOutputRows"] == "20"


def test_history_has_the_time_of_the_commit_files(spark: SparkSession, target: TableWithOracle):
    for row in DeltaTable.forPath(spark, target.path).history().collect():
        modified = log.commit_path(target.path, row.version).stat().st_mtime
        assert row.timestamp == dt.datetime.fromtimestamp(int(modified * 1000) / 1000)


def test_history_is_limited_to_the_newest(spark: SparkSession, target: TableWithOracle):
    table = DeltaTable.forPath(spark, target.path)
    assert [row.version for row in table.history(2).collect()] == [2, 1]
    assert table.history(0).collect() == []
    with pytest.raises(InvalidArgumentError):
        table.history(-1)


def test_history_shows_commits_without_commit_info(spark: SparkSession, target: TableWithOracle):
    log.write_commit(target.path, 3, {"txn": {"appId": "other", "version": 1}})
    newest = DeltaTable.forPath(spark, target.path).history(1).collect()[0]
    assert (newest.version, newest.operation, newest.operationMetrics) == (3, None, None)


def test_detail_describes_the_table(spark: SparkSession, target: TableWithOracle, named: str):
    detail = DeltaTable.forPath(spark, target.path).detail().collect()
    assert len(detail) == 1
    row = detail[0]
    files = log.active_files(target.path)
    metadata = log.metadata(target.path)
    assert row.format == "delta"
    assert row.id == metadata["id"]
    assert row.location == f"file:{target.path}"
    assert row.partitionColumns == ["p"]
    assert row.numFiles == len(files)
    assert row.sizeInBytes == sum(add["size"] for add in files)
    assert row.properties == {"delta.enableDeletionVectors": "true"}
    assert (row.minReaderVersion, row.minWriterVersion) == (3, 7)
    assert "deletionVectors" in row.tableFeatures
    assert row.createdAt == dt.datetime.fromtimestamp(metadata["createdTime"] / 1000)
    by_name = DeltaTable.forName(spark, named).detail().collect()[0]
    assert by_name.name == f"spark_catalog.default.{named}"
    assert by_name.numFiles == row.numFiles


def test_delete_by_name_and_alias_removes_rows(
    spark: SparkSession, target: TableWithOracle, named: str
):
    DeltaTable.forName(spark, named).alias("t").delete("t.id IN (7, 8)")
    assert_same_rows(spark.table(named).collect(), target.live.where("id NOT IN (7, 8)").collect())
