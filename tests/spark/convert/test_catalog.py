"""CONVERT TO DELTA of tables of the session catalog, which are Delta tables there afterwards."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING
from urllib.parse import unquote, urlparse

import pytest

from deltaic import DeltaTable
from deltaic.exceptions import DeltaError, InvalidArgumentError
from tests.support import log
from tests.support.databases import own_database
from tests.support.hive import hive_settings
from tests.support.session_settings import session_settings
from tests.support.spark_process import SparkProcess
from tests.support.table_builder import in_order

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


@pytest.fixture(autouse=True)
def database(spark: SparkSession) -> Iterator[None]:
    with own_database(spark, "converted"):
        yield


def location(spark: SparkSession, name: str) -> str:
    described = spark.sql(f"DESCRIBE EXTENDED {name}").where("col_name = 'Location'")
    return unquote(urlparse(described.collect()[0][1]).path)


def provider(spark: SparkSession, name: str) -> str:
    described = spark.sql(f"DESCRIBE EXTENDED {name}").where("col_name = 'Provider'")
    return str(described.collect()[0][1]).lower()


def refused(spark: SparkSession, statement: str) -> DeltaError:
    with pytest.raises(DeltaError) as raised:
        spark.sql(statement)
    return raised.value


@pytest.mark.parametrize("external", [False, True])
def test_table_becomes_a_delta_table_with_its_rows(
    spark: SparkSession, table: str, external: bool
) -> None:
    where = f"LOCATION '{table}'" if external else ""
    spark.sql(
        "CREATE TABLE t (id BIGINT COMMENT 'key', v STRING, y INT, m STRING) USING parquet "
        f"PARTITIONED BY (y, m) {where} COMMENT 'of tests' TBLPROPERTIES ('team' = 'me')"
    )
    spark.sql(
        "INSERT INTO t SELECT id, 'v', 2020 + id % 2, IF(id % 3 = 0, NULL, 'a b/c') FROM range(12)"
    )
    rows = in_order(tuple(row) for row in spark.table("t").collect())
    columns = spark.table("t").schema
    path = location(spark, "t")
    (row,) = spark.sql("CONVERT TO DELTA t").collect()
    assert tuple(row)[1:] == ("y INT, m STRING", False)
    assert provider(spark, "t") == "delta"
    assert location(spark, "t") == path
    assert in_order(tuple(row) for row in spark.table("t").collect()) == rows
    assert spark.table("t").schema == columns
    detail = DeltaTable.forName(spark, "t").detail().collect()[0]
    assert detail.partitionColumns == ["y", "m"]
    assert detail.properties == {"team": "me"}
    assert detail.description == "of tests"
    (entry,) = DeltaTable.forName(spark, "t").history().collect()
    assert entry.operationParameters["catalogTable"] == "`spark_catalog`.`converted`.`t`"
    spark.sql("UPDATE t SET v = 'w' WHERE id = 3")
    spark.sql("INSERT INTO t VALUES (100, 'x', 2030, 'z')")
    assert spark.table("t").count() == 13
    assert spark.sql("SHOW PARTITIONS t").count() == 5
    assert spark.sql("CONVERT TO DELTA converted.t").collect() == []
    spark.sql("DROP TABLE t")
    assert Path(path).exists() is external


def test_method_returns_the_table_of_the_catalog(spark: SparkSession) -> None:
    spark.sql("CREATE TABLE t USING parquet AS SELECT id FROM range(5)")
    converted = DeltaTable.convertToDelta(spark, "spark_catalog.converted.t")
    assert converted.toDF().count() == 5
    assert converted.detail().collect()[0].name == "spark_catalog.converted.t"


def test_only_partitions_of_the_catalog_are_converted(spark: SparkSession, table: str) -> None:
    source = spark.range(6).selectExpr("id", "id % 3 AS p")
    source.write.partitionBy("p").parquet(table)
    spark.sql(
        f"CREATE TABLE t (id BIGINT, p BIGINT) USING parquet PARTITIONED BY (p) LOCATION '{table}'"
    )
    assert refused(spark, "CONVERT TO DELTA t").condition == "DELTAIC_CONVERT_NO_FILES"
    spark.sql("ALTER TABLE t ADD PARTITION (p = 1)")
    spark.sql(f"ALTER TABLE t ADD PARTITION (p = 9) LOCATION '{table}/p=2'")
    rows = in_order(tuple(row) for row in spark.table("t").collect())
    assert {row[1] for row in rows} == {1, 9}
    spark.sql("CONVERT TO DELTA t")
    assert in_order(tuple(row) for row in spark.table("t").collect()) == rows


def test_all_directories_are_converted_if_a_setting_says_so(
    spark: SparkSession, table: str
) -> None:
    spark.range(6).selectExpr("id", "id % 3 AS p").write.partitionBy("p").parquet(table)
    spark.sql(
        f"CREATE TABLE t (id BIGINT, p BIGINT) USING parquet PARTITIONED BY (p) LOCATION '{table}'"
    )
    with session_settings(spark, {"spark.databricks.delta.convert.useCatalogPartitions": "false"}):
        spark.sql("CONVERT TO DELTA t")
    assert spark.table("t").count() == 6


def test_partition_outside_of_the_directory_is_refused(spark: SparkSession, table: str) -> None:
    spark.range(2).write.parquet(f"{table}/elsewhere")
    spark.sql("CREATE TABLE t (id BIGINT, p INT) USING parquet PARTITIONED BY (p)")
    spark.sql(f"ALTER TABLE t ADD PARTITION (p = 1) LOCATION '{table}/elsewhere'")
    problem = refused(spark, "CONVERT TO DELTA t")
    assert problem.condition == "DELTAIC_CONVERT_FILE_INVALID"
    assert "elsewhere" in problem.parameters["file"]
    assert provider(spark, "t") == "parquet"


def test_columns_are_those_of_the_catalog(spark: SparkSession, table: str) -> None:
    spark.sql("SELECT 1 AS a, 'x' AS b, 2 AS hidden").write.parquet(table)
    spark.sql(f"CREATE TABLE t (b STRING, c DATE, a BIGINT) USING parquet LOCATION '{table}'")
    with session_settings(spark, {"spark.databricks.delta.convert.useCatalogSchema": "true"}):
        spark.sql("CONVERT TO DELTA t")
    assert spark.table("t").schema.simpleString() == "struct<b:string,c:date,a:bigint>"
    assert spark.table("t").collect() == [("x", None, 1)]
    (add,) = log.active_files(table)
    assert log.statistics(add)["nullCount"] == {"b": 0, "c": 1, "a": 0}


def test_columns_are_those_of_the_files_if_a_setting_says_so(
    spark: SparkSession, table: str
) -> None:
    spark.sql("SELECT 1 AS a, 'x' AS b").write.parquet(table)
    spark.sql(f"CREATE TABLE t (b STRING) USING parquet LOCATION '{table}'")
    with session_settings(spark, {"spark.databricks.delta.convert.useCatalogSchema": "false"}):
        spark.sql("CONVERT TO DELTA t")
    assert spark.table("t").collect() == [(1, "x")]


def test_names_are_spelled_as_in_the_files(spark: SparkSession, table: str) -> None:
    spark.sql("SELECT 1 AS Id, named_struct('Inner', 2) AS St").write.parquet(table)
    columns = "id INT, st STRUCT<inner: INT>"
    spark.sql(f"CREATE TABLE t ({columns}) USING parquet LOCATION '{table}'")
    spark.sql("CONVERT TO DELTA t")
    assert spark.table("t").schema.simpleString() == "struct<Id:int,St:struct<Inner:int>>"
    assert spark.sql("SELECT id, st.inner FROM t").collect() == [(1, 2)]


def test_file_of_another_type_than_the_catalog_is_refused(spark: SparkSession, table: str) -> None:
    spark.sql("SELECT 'x' AS a").write.parquet(table)
    spark.sql(f"CREATE TABLE t (a INT) USING parquet LOCATION '{table}'")
    problem = refused(spark, "CONVERT TO DELTA t")
    assert problem.condition == "DELTAIC_CONVERT_TYPES_DIFFER"
    assert (problem.parameters["type"], problem.parameters["file"]) == ("INT", "the catalog")
    assert problem.parameters["otherFile"].endswith(".parquet")


def test_other_partition_columns_than_those_of_the_catalog_are_refused(
    spark: SparkSession,
) -> None:
    spark.sql("CREATE TABLE t (id BIGINT, p INT) USING parquet PARTITIONED BY (p)")
    spark.sql("INSERT INTO t VALUES (1, 1)")
    with pytest.raises(InvalidArgumentError) as raised:
        spark.sql("CONVERT TO DELTA t PARTITIONED BY (p STRING)")
    assert raised.value.condition == "DELTAIC_CONVERT_PARTITIONING_DIFFERS"
    spark.sql("CONVERT TO DELTA t PARTITIONED BY (P INT)")
    assert spark.table("t").collect() == [(1, 1)]


def test_files_that_were_converted_by_path_are_registered(spark: SparkSession, table: str) -> None:
    spark.range(5).write.parquet(table)
    spark.sql(f"CREATE TABLE t (id BIGINT) USING parquet LOCATION '{table}'")
    spark.sql(f"CONVERT TO DELTA parquet.`{table}`")
    assert provider(spark, "t") == "parquet"
    assert spark.sql("CONVERT TO DELTA t").collect() == []
    assert provider(spark, "t") == "delta"
    assert log.versions(table) == [0]
    assert spark.table("t").count() == 5


def test_default_of_an_added_column_is_refused(spark: SparkSession) -> None:
    spark.sql("CREATE TABLE t (id BIGINT) USING parquet")
    spark.sql("INSERT INTO t VALUES (1)")
    spark.sql("ALTER TABLE t ADD COLUMN v INT DEFAULT 7")
    assert spark.table("t").collect() == [(1, 7)]
    problem = refused(spark, "CONVERT TO DELTA t")
    assert problem.condition == "DELTAIC_CONVERT_FILE_INVALID"
    assert "column v" in str(problem)


def test_property_that_the_files_do_not_meet_is_refused(spark: SparkSession) -> None:
    spark.sql(
        "CREATE TABLE t (id BIGINT) USING parquet "
        "TBLPROPERTIES ('delta.columnMapping.mode' = 'name')"
    )
    spark.sql("INSERT INTO t VALUES (1)")
    assert refused(spark, "CONVERT TO DELTA t").condition == "DELTAIC_CONVERT_PROPERTY_UNMET"
    assert provider(spark, "t") == "parquet"


IN_HIVE = """
def rows(name):
    return sorted(repr(tuple(row)) for row in spark.table(name).collect())

found = {}
for name, create in {
    "source": "CREATE TABLE source (Id BIGINT, v STRING, P INT) USING parquet PARTITIONED BY (P)",
    "serde": "CREATE TABLE serde (Id BIGINT, v STRING) PARTITIONED BY (P INT) STORED AS PARQUET",
}.items():
    spark.sql(create)
    spark.sql(f"INSERT INTO {name} PARTITION (P) SELECT id, 'v', id % 3 FROM range(9)")
    spark.sql(f"INSERT INTO {name} PARTITION (P) VALUES (9, 'w', NULL)")
    before = rows(name)
    converted = spark.sql(f"CONVERT TO DELTA {name}").collect()
    spark.sql(f"REFRESH TABLE {name}")
    found[name] = [
        len(converted),
        rows(name) == before,
        spark.sql(f"DESCRIBE DETAIL {name}").first().format,
        spark.table(name).columns,
    ]
    spark.sql(f"DELETE FROM {name} WHERE id < 5")
    spark.sql(f"INSERT INTO {name} VALUES (20, 'x', 5)")
    found[name] += [
        spark.table(name).count(),
        spark.sql(f"DESCRIBE HISTORY {name}").count(),
        spark.sql(f"CONVERT TO DELTA {name}").count(),
    ]
result = found
"""


def test_tables_of_hive(tmp_path: Path) -> None:
    settings = {
        **hive_settings(tmp_path),
        "spark.sql.warehouse.dir": str(tmp_path / "warehouse"),
        "spark.hadoop.hive.exec.dynamic.partition.mode": "nonstrict",
    }
    with SparkProcess(settings, engine="deltaic") as process:
        found = process.run(IN_HIVE)
    for name, (rows, same, form, columns, *counts) in found.items():
        assert (rows, same, form, counts) == (1, True, "delta", [6, 3, 0]), name
        assert [column.lower() for column in columns] == ["id", "v", "p"]
