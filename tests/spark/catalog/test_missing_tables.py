"""Tables that are not there, and folders of other files, as tools of others ask for them."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from pyspark.errors import AnalysisException
from pyspark.sql.utils import AnalysisException as OldName  # type: ignore[attr-defined]

from deltaic import DeltaTable
from deltaic.exceptions import TableStateError
from tests.support import log

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


def kedro_exists(spark: SparkSession, path: str) -> bool:
    """Call what kedro's ``DeltaTableDataset`` calls, and check the error as it does."""
    try:
        spark.read.load(path=path, format="delta")
    except OldName as exception:
        problem: Any = exception
        message = problem.desc if hasattr(problem, "desc") else problem.message
        if "Path does not exist:" in message or "is not a Delta table" in message:
            return False
        raise
    return True


def test_kedro_finds_out_whether_a_table_exists(spark: SparkSession, table: str) -> None:
    assert not kedro_exists(spark, table)
    spark.range(3).write.format("delta").save(table)
    assert kedro_exists(spark, table)


def test_missing_table_is_an_analysis_exception_of_the_api(spark: SparkSession, table: str) -> None:
    for call in (
        lambda: DeltaTable.forPath(spark, table),
        lambda: spark.read.format("delta").load(table).collect(),
        lambda: spark.sql(f"SELECT * FROM delta.`{table}`").collect(),
        lambda: spark.sql(f"DELETE FROM delta.`{table}`"),
        lambda: spark.sql(f"DESCRIBE HISTORY '{table}'"),
    ):
        with pytest.raises(AnalysisException) as raised:
            call()
        assert isinstance(raised.value, TableStateError)
        assert raised.value.getCondition() == "DELTAIC_NOT_A_TABLE"


@pytest.fixture
def parquet_folder(spark: SparkSession, table: str) -> str:
    spark.range(10).write.parquet(table)
    return table


def test_table_is_not_created_over_a_folder_of_other_files(
    spark: SparkSession, parquet_folder: str
) -> None:
    """As delta-spark 4.4 does it: a name may not lead to such a folder, a path may be written."""
    location = f"USING delta LOCATION '{parquet_folder}'"
    rows = spark.range(3)
    for call in (
        lambda: spark.sql(f"CREATE TABLE over_files (id BIGINT) {location}"),
        lambda: spark.sql(f"CREATE TABLE over_files {location}"),
        lambda: spark.sql(f"CREATE TABLE over_files {location} AS SELECT 1L AS id"),
        lambda: rows.write.format("delta").option("path", parquet_folder).saveAsTable("over_files"),
        lambda: (
            rows.write.format("delta")
            .mode("append")
            .option("path", parquet_folder)
            .saveAsTable("over_files")
        ),
    ):
        with pytest.raises(AnalysisException) as raised:
            call()
        assert isinstance(raised.value, TableStateError)
        assert raised.value.getCondition() == "DELTAIC_LOCATION_NOT_EMPTY"
        assert not spark.catalog.tableExists("over_files")
        assert not Path(parquet_folder, "_delta_log").exists()
    with pytest.raises(AnalysisException, match="DELTAIC_NOT_A_TABLE"):
        spark.sql(f"INSERT INTO delta.`{parquet_folder}` VALUES (1)")
    rows.write.format("delta").mode("append").save(parquet_folder)
    assert log.versions(parquet_folder) == [0]
    assert spark.read.format("delta").load(parquet_folder).count() == 3
