"""``df.write.format("delta").save(path)`` in each mode, and what it refuses."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from pyspark.sql import functions as F

from tests.support import log
from tests.support.table_builder import BuildWithOracle, assert_same_rows, build_with_oracle

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession


def rows(spark: SparkSession, start: int, end: int) -> DataFrame:
    return spark.range(start, end, 1, 2).selectExpr("id", "id % 3 AS p", "concat('r', id) AS s")


PARTITIONINGS = pytest.mark.parametrize("partition_by", [(), ("p",), ("p", "s")], ids=str)


@PARTITIONINGS
def test_append_creates_the_table_and_then_adds_rows(
    spark: SparkSession, table: str, partition_by: tuple[str, ...]
):
    for start in (0, 10):
        writer = rows(spark, start, start + 10).write.format("delta").mode("append")
        writer.partitionBy(*partition_by).save(table)
    assert log.versions(table) == [0, 1]
    assert log.metadata(table)["partitionColumns"] == list(partition_by)
    assert_same_rows(spark.read.format("delta").load(table).collect(), rows(spark, 0, 20).collect())


@PARTITIONINGS
def test_overwrite_creates_the_table_and_then_replaces_all_rows(
    spark: SparkSession, table: str, partition_by: tuple[str, ...]
):
    for start in (0, 10):
        writer = rows(spark, start, start + 10).write.format("delta").mode("overwrite")
        writer.partitionBy(*partition_by).save(table)
    assert len(log.last_actions(table, "remove")) == len(log.actions(table, 0, "add"))
    assert_same_rows(
        spark.read.format("delta").load(table).collect(), rows(spark, 10, 20).collect()
    )


@pytest.mark.parametrize("mode", ["error", "errorifexists", None])
def test_error_mode_creates_a_table_and_refuses_one_that_exists(
    spark: SparkSession, table: str, mode: str | None
):
    writer = rows(spark, 0, 5).write.format("delta")
    (writer if mode is None else writer.mode(mode)).save(table)
    before = log.contents(table)
    with pytest.raises(Exception, match="DELTAIC_TABLE_ALREADY_EXISTS") as caught:
        rows(spark, 5, 9).write.format("delta").mode("error").save(table)
    assert table in str(caught.value)
    assert log.contents(table) == before


def test_ignore_mode_creates_a_table_and_leaves_one_that_exists_alone(
    spark: SparkSession, table: str
):
    rows(spark, 0, 5).write.format("delta").mode("ignore").save(table)
    before = log.contents(table)
    rows(spark, 5, 9).write.format("delta").mode("ignore").save(table)
    assert log.contents(table) == before
    assert spark.read.format("delta").load(table).count() == 5


@pytest.mark.parametrize("mode", ["append", "overwrite"])
def test_columns_go_by_name_not_by_position_and_a_missing_one_is_null(
    spark: SparkSession, table: str, mode: str
):
    rows(spark, 0, 1).write.format("delta").save(table)
    changed = rows(spark, 7, 8).selectExpr("s", "id")
    changed.write.format("delta").mode(mode).save(table)
    last = spark.read.format("delta").load(table).where("id = 7").collect()
    assert [row.asDict() for row in last] == [{"id": 7, "p": None, "s": "r7"}]


@pytest.mark.parametrize(
    ("change", "condition"),
    [
        (["*", "1 AS surplus"], "DELTAIC_SCHEMA_MISMATCH.*surplus.*mergeSchema"),
        (["id", "p", "array(s) AS s"], "s"),
        (["named_struct('x', id) AS id", "p", "s"], "id"),
    ],
)
@pytest.mark.parametrize("mode", ["append", "overwrite"])
def test_rows_that_do_not_fit_are_refused_and_the_table_stays_as_it_was(
    spark: SparkSession, table: str, mode: str, change: list[str], condition: str
):
    rows(spark, 0, 3).write.format("delta").save(table)
    before = log.contents(table)
    with pytest.raises(Exception, match=rf"(?s){condition}"):
        rows(spark, 3, 5).selectExpr(*change).write.format("delta").mode(mode).save(table)
    assert log.contents(table) == before


def test_value_that_does_not_fit_its_column_fails_the_write(spark: SparkSession, table: str):
    spark.sql("SELECT 1Y AS b").write.format("delta").save(table)
    before = log.contents(table)
    with pytest.raises(Exception, match=r"OVERFLOW|INCOMPATIBLE"):
        spark.sql("SELECT 1000 AS b").write.format("delta").mode("append").save(table)
    assert log.contents(table) == before


@pytest.mark.parametrize("partition_by", [(), ("s",), ("s", "p")], ids=str)
def test_append_may_name_the_partitioning_of_the_table_or_none_but_no_other(
    spark: SparkSession, table: str, partition_by: tuple[str, ...]
):
    rows(spark, 0, 3).write.format("delta").partitionBy("p").save(table)
    rows(spark, 3, 6).write.format("delta").mode("append").partitionBy("p").save(table)
    writer = rows(spark, 6, 9).write.format("delta").mode("append").partitionBy(*partition_by)
    if partition_by:
        with pytest.raises(Exception, match="DELTAIC_PARTITION_MISMATCH"):
            writer.save(table)
    else:
        writer.save(table)
    count = spark.read.format("delta").load(table).count()
    assert count == (6 if partition_by else 9)


def test_overwrite_schema_replaces_columns_and_partitioning(spark: SparkSession, table: str):
    rows(spark, 0, 9).write.format("delta").partitionBy("p").save(table)
    other = spark.range(4).selectExpr("id AS only", "id % 2 AS q")
    writer = other.write.format("delta").mode("overwrite").option("overwriteSchema", "true")
    writer.partitionBy("q").save(table)
    assert log.metadata(table)["partitionColumns"] == ["q"]
    assert_same_rows(spark.read.format("delta").load(table).collect(), other.collect())


@pytest.mark.parametrize("partition_by", [(), ("p",)], ids=str)
def test_dataframe_without_rows_makes_a_table_with_its_columns(
    spark: SparkSession, table: str, partition_by: tuple[str, ...]
):
    none = rows(spark, 0, 9).where("false")
    none.write.format("delta").partitionBy(*partition_by).save(table)
    df = spark.read.format("delta").load(table)
    assert (df.columns, df.collect()) == (["id", "p", "s"], [])
    assert log.stored_files(table) == set()
    none.write.format("delta").mode("append").save(table)
    rows(spark, 0, 2).write.format("delta").mode("append").save(table)
    assert df.count() == 2
    none.write.format("delta").mode("overwrite").save(table)
    assert df.count() == 0


def test_table_can_be_overwritten_by_a_query_over_itself(
    spark: SparkSession, build: BuildWithOracle
):
    table = build(rows(spark, 0, 30), deletion_vectors=True)
    table.delete("p = 1")
    kept = table.df().where("id > 10").withColumn("s", F.upper("s"))
    kept.write.format("delta").mode("overwrite").save(table.path)
    expected = table.live.where("id > 10").withColumn("s", F.upper("s"))
    assert_same_rows(table.df().collect(), expected.collect())


@pytest.mark.parametrize("value", ["dynamic", "DYNAMIC"])
def test_dynamic_overwrite_replaces_only_partitions_that_get_rows(
    spark: SparkSession, table: str, value: str
):
    rows(spark, 0, 9).write.format("delta").partitionBy("p").save(table)
    writer = rows(spark, 100, 110).where("p = 1").write.format("delta").mode("overwrite")
    writer.option("partitionOverwriteMode", value).save(table)
    expected = [
        *rows(spark, 0, 9).where("p <> 1").collect(),
        *rows(spark, 100, 110).where("p = 1").collect(),
    ]
    assert_same_rows(spark.read.format("delta").load(table).collect(), expected)


def test_max_records_per_file_limits_each_file(spark: SparkSession, table: str):
    spark.range(0, 25, 1, 1).write.format("delta").option("maxRecordsPerFile", 10).save(table)
    records = sorted(log.statistics(add)["numRecords"] for add in log.actions(table, 0, "add"))
    assert records == [5, 10, 10]


@pytest.mark.parametrize("codec", ["zstd", "gzip", "none"])
def test_compression_is_as_asked_for(spark: SparkSession, table: str, codec: str):
    spark.range(5).write.format("delta").option("compression", codec).save(table)
    suffix = {"zstd": ".zstd.parquet", "gzip": ".gz.parquet", "none": ".parquet"}[codec]
    names = [path.name for path in log.stored_files(table)]
    assert names
    assert all(name.endswith("-c000" + suffix) for name in names)
    assert spark.read.format("delta").load(table).count() == 5


def test_write_with_the_id_of_an_earlier_one_is_made_once(spark: SparkSession, table: str):
    for version in (1, 1, 2):
        writer = spark.range(10).write.format("delta").mode("append")
        writer.option("txnAppId", "job").option("txnVersion", version).save(table)
    assert spark.read.format("delta").load(table).count() == 20
    before = len(log.stored_files(table))
    writer = spark.range(10).write.format("delta").mode("append")
    writer.option("txnAppId", "job").option("txnVersion", 1).save(table)
    assert len(log.stored_files(table)) == before


ODD_PATHS = [
    "with space",
    "per%cent",
    "escaped%20space",
    "colon:in:it",
    "equals=1",
    "quote'and\"",
    "hash#tag",
    "question?mark",
    "plus+and&",
    "brackets[x]{y}",
    "star*",
    "comma,semi;",
    "umlaut ä",
    "emoji 🙂",
    "back\\slash",
    "_underscore",
    ".hidden",
]


@pytest.mark.parametrize("name", ODD_PATHS)
def test_path_may_hold_any_character(spark: SparkSession, tmp_path: Path, name: str):
    path = str(tmp_path / name / "table")
    table = build_with_oracle(
        spark, path, rows(spark, 0, 20), deletion_vectors=True, partition_by=("p",)
    )
    assert (tmp_path / name / "table" / "_delta_log").is_dir()
    table.append(rows(spark, 20, 25))
    table.delete("id % 7 = 2")
    table.assert_same_content()
    assert table.assert_same_answer("SELECT id FROM {t} WHERE p = 1 AND id > 3")


def test_path_with_a_backtick_is_quoted_twice_in_sql(spark: SparkSession, tmp_path: Path):
    path = str(tmp_path / "back`tick")
    spark.range(3).write.format("delta").save(path)
    quoted = path.replace("`", "``")
    assert spark.sql(f"SELECT * FROM delta.`{quoted}`").count() == 3


@pytest.mark.parametrize("operation", ["load", "sql", "versionAsOf"])
def test_path_without_a_table_is_named_in_the_error(
    spark: SparkSession, tmp_path: Path, operation: str
):
    path = str(tmp_path / "nothing")
    with pytest.raises(Exception, match=r"DELTAIC_NOT_A_TABLE|TABLE_OR_VIEW_NOT_FOUND") as caught:
        if operation == "load":
            spark.read.format("delta").load(path).collect()
        elif operation == "sql":
            spark.sql(f"SELECT * FROM delta.`{path}`").collect()
        else:
            spark.read.format("delta").option("versionAsOf", 0).load(path).collect()
    assert path in str(caught.value)
    assert not Path(path).exists()


def test_insert_into_a_path_without_a_table_creates_none(spark: SparkSession, tmp_path: Path):
    path = str(tmp_path / "nothing")
    with pytest.raises(Exception, match="DELTAIC_NOT_A_TABLE"):
        spark.sql(f"INSERT INTO delta.`{path}` VALUES (1)")
    assert not Path(path).exists()
