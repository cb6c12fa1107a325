"""What a stream into a table refuses by name, before a query has written anything."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from pyspark.errors import AnalysisException, PySparkException

from tests.support import log
from tests.support.spark_process import SparkProcess
from tests.support.streams import stream_of, write_stream
from tests.support.table_builder import build_table

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


@pytest.fixture
def source(spark: SparkSession, tmp_path: Path) -> str:
    path = str(tmp_path / "source")
    build_table(spark, path, "id INT", [[(1,)], [(2,)]])
    return path


@pytest.mark.parametrize("named", [False, True])
def test_update_mode_is_refused_with_what_to_use_instead(
    spark: SparkSession, source: str, table: str, tmp_path: Path, named: bool
) -> None:
    counts = stream_of(spark, source).groupBy("id").count()
    target = "updated_by_stream" if named else table
    spark.sql("CREATE TABLE updated_by_stream (id INT, count BIGINT) USING delta")
    try:
        with pytest.raises(AnalysisException, match=r"foreachBatch.*merge"):
            write_stream(counts, target, tmp_path / "checkpoint", mode="update")
        assert spark.table("updated_by_stream").count() == 0
        assert not Path(table).exists()
        assert not spark.streams.active
    finally:
        spark.sql("DROP TABLE updated_by_stream")


@pytest.mark.parametrize("named", [False, True])
def test_continuous_trigger_is_refused_by_name(
    spark: SparkSession, table: str, tmp_path: Path, named: bool
) -> None:
    rows = spark.readStream.format("rate").load()
    writer = rows.writeStream.format("delta").trigger(continuous="1 second")
    writer = writer.option("checkpointLocation", str(tmp_path / "checkpoint"))
    spark.sql("CREATE TABLE untouched (timestamp TIMESTAMP, value BIGINT) USING delta")
    expected = "trigger=continuous: rows are written in batches"
    try:
        with pytest.raises(PySparkException, match=expected) as caught:
            query = writer.toTable("untouched") if named else writer.start(table)
            query.awaitTermination(60)
            query.stop()
        assert ("untouched" if named else table) in str(caught.value)
        assert spark.table("untouched").count() == 0
        assert not Path(table).exists()
    finally:
        spark.sql("DROP TABLE untouched")


def test_continuous_trigger_of_a_query_that_reads_a_table_is_refused(
    spark: SparkSession, source: str, tmp_path: Path
) -> None:
    writer = stream_of(spark, source).writeStream.format("noop").trigger(continuous="1 second")
    with pytest.raises(PySparkException, match=r"(?i)continuous processing"):
        writer.option("checkpointLocation", str(tmp_path / "checkpoint")).start()


@pytest.mark.parametrize(
    ("option", "value", "named"),
    [
        ("replaceWhere", "id = 1", r"replaceWhere=id = 1: .*foreachBatch"),
        ("replaceOn", "id = 1", "replaceOn"),
        ("replaceUsing", "id", "replaceUsing"),
        ("partitionOverwriteMode", "dynamic", r"partitionOverwriteMode=dynamic: .*foreachBatch"),
        ("txnAppId", "mine", r"txnAppId=mine: .*foreachBatch"),
        ("txnVersion", "1", "txnVersion"),
        ("versionAsOf", "0", "versionAsOf"),
        ("mergeSchema", "perhaps", r"mergeSchema[\s\S]*true or false"),
    ],
)
def test_option_that_a_stream_cannot_honour_is_refused_by_name(
    spark: SparkSession,
    source: str,
    table: str,
    tmp_path: Path,
    option: str,
    value: str,
    named: str,
) -> None:
    build_table(spark, table, "id INT", [[(7,)]])
    with pytest.raises(PySparkException, match=named):
        write_stream(stream_of(spark, source), table, tmp_path / "checkpoint", **{option: value})
    assert log.versions(table) == [0]
    with pytest.raises(PySparkException, match=named):
        spark.sql(f"CREATE TABLE IF NOT EXISTS refusing USING delta LOCATION '{table}'")
        write_stream(
            stream_of(spark, source), "refusing", tmp_path / "checkpoint 2", **{option: value}
        )
    spark.sql("DROP TABLE refusing")
    assert log.versions(table) == [0]


def test_session_without_the_extension_is_refused(
    spark: SparkSession, source: str, table: str, tmp_path: Path
) -> None:
    build_table(spark, table, "id INT", [[(7,)]])
    program = """
rows = spark.readStream.format("rate").load().selectExpr("CAST(value AS INT) AS id")
writer = rows.writeStream.format("delta").option("checkpointLocation", checkpoint)
try:
    writer.trigger(availableNow=True).start(table).awaitTermination()
    result = "written"
except Exception as problem:
    result = str(problem)
"""
    settings = {"spark.sql.extensions": ""}
    with SparkProcess(settings=settings, engine="deltaic") as other:
        found = other.run(program, checkpoint=str(tmp_path / "checkpoint"), table=table)
    assert "spark.sql.extensions" in found
    assert log.versions(table) == [0]
