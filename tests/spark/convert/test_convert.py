"""CONVERT TO DELTA of folders: what is converted, what the result says, and what is refused."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from pyspark.errors import AnalysisException
from pyspark.sql.types import IntegerType, StringType, StructField, StructType

from deltaic import DeltaTable
from deltaic.exceptions import DeltaError, InvalidArgumentError, TableStateError
from tests.support import log
from tests.support.interleave import committed_meanwhile
from tests.support.maintenance import await_maintenance
from tests.support.session_settings import session_settings
from tests.support.table_builder import in_order, rows_of

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


def parquet(spark: SparkSession, path: str, *columns: str, files: int = 2) -> list[Any]:
    """Write a folder of Parquet files without any part of Deltaic, and return its rows."""
    df = spark.range(0, 10, 1, files).selectExpr(*(columns or ("id", "id * 2 AS v")))
    df.write.mode("append").parquet(path)
    return in_order(tuple(row) for row in spark.read.parquet(path).collect())


def convert(spark: SparkSession, path: str, rest: str = "") -> list[tuple[Any, ...]]:
    return [tuple(row) for row in spark.sql(f"CONVERT TO DELTA parquet.`{path}` {rest}").collect()]


def refused(spark: SparkSession, path: str, rest: str = "") -> DeltaError:
    """Return the error of a conversion, which must leave the folder as it was."""
    await_maintenance(spark)
    before = sorted(Path(path).rglob("*")) if Path(path).exists() else []
    with pytest.raises(DeltaError) as raised:
        convert(spark, path, rest)
    after = sorted(Path(path).rglob("*")) if Path(path).exists() else []
    assert after == before, "nothing is written"
    return raised.value


def test_files_become_the_first_version_and_stay_where_they_are(
    spark: SparkSession, table: str
) -> None:
    rows = parquet(spark, table)
    files = {str(f): f.read_bytes() for f in Path(table).rglob("*.parquet")}
    assert convert(spark, table) == [(2, "", False)]
    assert rows_of(spark, table) == rows
    assert {str(f): f.read_bytes() for f in Path(table).rglob("*.parquet")} == files
    assert {add["path"] for add in log.active_files(table)} == {Path(f).name for f in files}
    (entry,) = DeltaTable.forPath(spark, table).history().collect()
    assert entry.operation == "CONVERT"
    assert entry.operationMetrics == {"numConvertedFiles": "2"}
    assert entry.operationParameters == {
        "numFiles": "2",
        "partitionedBy": "[]",
        "collectStats": "true",
        "sourceFormat": "parquet",
    }
    spark.sql(f"DELETE FROM delta.`{table}` WHERE id < 5")
    assert rows_of(spark, table) == [row for row in rows if row[0] >= 5]


def test_method_returns_the_table(spark: SparkSession, table: str) -> None:
    spark.range(4).selectExpr("id", "CAST(id % 2 AS INT) p", "'x' q").write.partitionBy(
        "p", "q"
    ).parquet(table)
    by = StructType([StructField("p", IntegerType()), StructField("q", StringType())])
    converted = DeltaTable.convertToDelta(spark, f"parquet.`{table}`", by)
    assert converted.toDF().count() == 4
    assert converted.detail().collect()[0].partitionColumns == ["p", "q"]
    again = DeltaTable.convertToDelta(spark, f"parquet.`{table}`", "p INT, q STRING")
    assert again.history().count() == 1
    assert DeltaTable.convertToDelta(spark, f"delta.`{table}`").toDF().count() == 4


@pytest.mark.parametrize("partitioning", [1, ["p INT"]])
def test_partitioning_of_another_type_is_refused(
    spark: SparkSession, table: str, partitioning: Any
) -> None:
    with pytest.raises(TypeError, match="partitionSchema"):
        DeltaTable.convertToDelta(spark, f"parquet.`{table}`", partitioning)


def test_delta_table_is_left_alone_and_has_no_result(spark: SparkSession, table: str) -> None:
    parquet(spark, table)
    convert(spark, table)
    assert convert(spark, table, "PARTITIONED BY (other INT)") == []
    assert spark.sql(f"CONVERT TO DELTA delta.`{table}`").collect() == []
    assert log.versions(table) == [0]


def test_hidden_files_and_directories_are_skipped(spark: SparkSession, table: str) -> None:
    rows = parquet(spark, table)
    for name in ("_temporary/0", ".staging", "_delta_index"):
        parquet(spark, f"{table}/{name}")
    Path(table, "_started_1").write_text("x")
    Path(table, ".part.crc").write_bytes(b"x")
    Path(table, "part.parquet._COPYING_").write_bytes(b"x")
    convert(spark, table)
    assert rows_of(spark, table) == rows


def test_partition_column_may_begin_with_an_underscore(spark: SparkSession, table: str) -> None:
    df = spark.range(0, 4, 1, 1).selectExpr("id", "CAST(id % 2 AS INT) _p")
    df.write.partitionBy("_p").parquet(table)
    assert convert(spark, table) == [(2, "_p INT", True)]
    assert {row[1] for row in rows_of(spark, table)} == {0, 1}


def test_files_in_plain_directories_are_converted(spark: SparkSession, table: str) -> None:
    rows = parquet(spark, f"{table}/a/b") + parquet(spark, f"{table}/c")
    convert(spark, table)
    assert rows_of(spark, table) == in_order(rows)


def test_empty_and_missing_folders_are_refused(spark: SparkSession, table: str) -> None:
    assert refused(spark, table).condition == "DELTAIC_CONVERT_NO_FILES"
    Path(table, "p=1").mkdir(parents=True)
    Path(table, "_SUCCESS").touch()
    problem = refused(spark, table)
    assert isinstance(problem, TableStateError)
    assert problem.condition == "DELTAIC_CONVERT_NO_FILES" and table in str(problem)


@pytest.mark.parametrize("content", [b"", b"no Parquet file at all", b"PAR1" + b"x" * 40 + b"PAR1"])
@pytest.mark.parametrize("files", [2, 1001])
def test_file_that_is_no_parquet_is_named_and_nothing_is_written(
    spark: SparkSession, table: str, content: bytes, files: int
) -> None:
    parquet(spark, table, files=1)
    (one,) = Path(table).glob("*.parquet")
    for number in range(files - 1):
        (one.parent / f"copy-{number}.parquet").hardlink_to(one)
    Path(table, "notes.txt").write_bytes(content)
    problem = refused(spark, table)
    assert problem.condition == "DELTAIC_CONVERT_FILE_INVALID"
    assert problem.parameters["file"].endswith(f"{table}/notes.txt")
    Path(table, "notes.txt").unlink()
    assert convert(spark, table)[0][0] == files


def test_folder_that_a_stream_wrote_has_the_files_of_its_log(
    spark: SparkSession, table: str, tmp_path: Path
) -> None:
    parquet(spark, f"{tmp_path}/source")
    for _ in range(2):
        stream = spark.readStream.schema("id BIGINT, v BIGINT").parquet(f"{tmp_path}/source")
        writer = stream.selectExpr("id", "v", "id % 2 AS p").writeStream.format("parquet")
        writer = writer.partitionBy("p").option("checkpointLocation", f"{tmp_path}/checkpoint")
        writer.trigger(availableNow=True).start(table).awaitTermination()
    rows = in_order(tuple(row) for row in spark.read.parquet(table).collect())
    stray = next(Path(table).rglob("*.parquet"))
    shutil.copy(stray, stray.with_name("of-a-failed-batch.parquet"))
    shutil.copytree(table, f"{table}-all")
    convert(spark, table, "PARTITIONED BY (p BIGINT)")
    assert rows_of(spark, table) == rows
    with session_settings(spark, {"spark.databricks.delta.convert.useMetadataLog": "false"}):
        convert(spark, f"{table}-all")
    assert len(rows_of(spark, f"{table}-all")) > len(rows)


def test_log_of_another_table_below_the_folder_is_refused(spark: SparkSession, table: str) -> None:
    parquet(spark, f"{table}/a")
    convert(spark, f"{table}/a")
    problem = refused(spark, table)
    assert "_delta_log" in problem.parameters["file"]


def test_folder_inside_a_table_is_refused(spark: SparkSession, table: str) -> None:
    spark.range(4).selectExpr("id", "id % 2 p").write.partitionBy("p").parquet(table)
    convert(spark, table)
    problem = refused(spark, f"{table}/p=1")
    assert problem.condition == "DELTAIC_PATH_INSIDE_TABLE"


@pytest.mark.parametrize(
    ("name", "reason"),
    [
        ("json.`{path}`", "json files are not converted"),
        ("`{path}`", "a path without the format"),
        ("parquet.`data/orders`", "a path has to be absolute"),
        ("DELTA.`./orders`", "a path has to be absolute"),
        ("convert_view", "it is a view"),
        ("convert_temporary", "it is a view"),
        ("convert_json", "format json"),
    ],
)
def test_what_is_no_parquet_table_is_refused(
    spark: SparkSession, table: str, name: str, reason: str
) -> None:
    parquet(spark, table)
    spark.sql("CREATE VIEW convert_view AS SELECT 1 AS one")
    spark.sql("CREATE TEMPORARY VIEW convert_temporary AS SELECT 1 AS one")
    spark.sql("CREATE TABLE convert_json (id INT) USING json")
    try:
        with pytest.raises(InvalidArgumentError, match=reason) as raised:
            spark.sql(f"CONVERT TO DELTA {name.format(path=table)}")
        assert raised.value.condition == "DELTAIC_CONVERT_SOURCE_INVALID"
    finally:
        spark.sql("DROP VIEW convert_view")
        spark.sql("DROP VIEW convert_temporary")
        spark.sql("DROP TABLE convert_json")
    with pytest.raises(AnalysisException, match="TABLE_OR_VIEW_NOT_FOUND"):
        spark.sql("CONVERT TO DELTA no_such_table")
    with pytest.raises(AnalysisException, match="DELTAIC_NOT_A_TABLE"):
        spark.sql(f"CONVERT TO DELTA delta.`{table}`")


@pytest.mark.parametrize("name", ["a b", "a,b", "a=b", "n(1)"])
def test_column_that_needs_column_mapping_is_refused_by_its_name(
    spark: SparkSession, table: str, name: str
) -> None:
    parquet(spark, table, "id", f"struct(id AS `{name}`) AS s")
    problem = refused(spark, table)
    assert problem.condition == "DELTAIC_CONVERT_COLUMN_NAME"
    assert problem.parameters["column"] == f"s.{name}"
    assert "withColumnRenamed" in str(problem)


def test_names_that_differ_only_in_case_are_refused(spark: SparkSession, table: str) -> None:
    with session_settings(spark, {"spark.sql.caseSensitive": "true"}):
        parquet(spark, table, "id", "id AS Id")
        problem = refused(spark, table)
    assert problem.condition == "DELTAIC_CONVERT_FILE_INVALID"
    assert "id, Id" in str(problem)


def test_two_spellings_of_a_name_in_two_files_are_refused(spark: SparkSession, table: str) -> None:
    parquet(spark, table, "id", "id AS value", files=1)
    parquet(spark, table, "id", "id AS Value", files=1)
    problem = refused(spark, table)
    assert problem.condition == "DELTAIC_CONVERT_NAMES_DIFFER"
    spelled = {problem.parameters["column"], problem.parameters["otherColumn"]}
    assert spelled == {"value", "Value"}
    assert problem.parameters["file"] != problem.parameters["otherFile"]


def test_of_two_conversions_at_once_one_wins(spark: SparkSession, table: str) -> None:
    rows = parquet(spark, table)
    with committed_meanwhile(lambda: convert(spark, table)):
        assert convert(spark, table) == []
    assert log.versions(table) == [0]
    assert rows_of(spark, table) == rows


def test_folder_stays_parquet_if_the_commit_is_not_made(spark: SparkSession, table: str) -> None:
    rows = parquet(spark, table)

    def fail() -> None:
        raise OSError("the process is gone")

    with pytest.raises(DeltaError), committed_meanwhile(fail):
        convert(spark, table)
    assert not DeltaTable.isDeltaTable(spark, table)
    assert in_order(tuple(row) for row in spark.read.parquet(table).collect()) == rows
    assert convert(spark, table) == [(2, "", False)]


def test_default_properties_of_the_session_apply(spark: SparkSession, table: str) -> None:
    rows = parquet(spark, table)
    prefix = "spark.databricks.delta.properties.defaults"
    defaults = {
        f"{prefix}.enableDeletionVectors": "true",
        f"{prefix}.enableRowTracking": "true",
        f"{prefix}.enableInCommitTimestamps": "true",
        f"{prefix}.enableChangeDataFeed": "true",
        f"{prefix}.dataSkippingNumIndexedCols": "1",
    }
    with session_settings(spark, defaults):
        assert refused(spark, table, "NO STATISTICS").condition == "DELTAIC_CONVERT_PROPERTY_UNMET"
        convert(spark, table)
    adds = log.active_files(table)
    assert [add["baseRowId"] for add in adds] in ([0, 5], [5, 0])
    assert all(log.statistics(add)["nullCount"] == {"id": 0} for add in adds)
    spark.sql(f"DELETE FROM delta.`{table}` WHERE id = 3")
    assert rows_of(spark, table) == [row for row in rows if row[0] != 3]
    assert any("deletionVector" in add for add in log.active_files(table))


def test_statement_with_comments_and_its_words_as_names(spark: SparkSession) -> None:
    spark.sql("CREATE TABLE statistics (no INT, partitioned INT) USING parquet")
    try:
        spark.sql("INSERT INTO statistics VALUES (1, 2)")
        spark.sql("/* why */ convert -- not\n to DELTA statistics no STATISTICS;")
        assert spark.table("statistics").collect() == [(1, 2)]
        assert spark.sql("DESCRIBE HISTORY statistics").count() == 1
    finally:
        spark.sql("DROP TABLE statistics")


def test_other_words_after_the_statement_are_an_error(spark: SparkSession, table: str) -> None:
    parquet(spark, table)
    for rest in ("PARTITIONED BY", "PARTITIONED BY ()", "WITH STATISTICS", "NO"):
        with pytest.raises(AnalysisException):
            convert(spark, table, rest)
    assert not DeltaTable.isDeltaTable(spark, table)


def test_a_log_that_cannot_be_read_is_an_error(spark: SparkSession, table: str) -> None:
    parquet(spark, table)
    Path(table, "_delta_log").mkdir()
    log.write_commit(table, 5, {"commitInfo": {}})
    with pytest.raises(DeltaError):
        convert(spark, table)
