"""Options of writers that name a table: replaced partitions, properties, idempotent writes."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from pyspark.sql import functions as F

from deltaic.exceptions import InvalidArgumentError, TableStateError
from tests.support import log
from tests.support.databases import own_database
from tests.support.session_settings import session_settings

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession


@pytest.fixture(autouse=True)
def database(spark: SparkSession) -> Iterator[None]:
    with own_database(spark, "writer_options"):
        yield


def rows(spark: SparkSession, start: int, end: int) -> DataFrame:
    return spark.range(start, end).selectExpr("id", "id % 3 AS p")


def ids(spark: SparkSession, name: str) -> list[int]:
    return sorted(row.id for row in spark.table(name).collect())


def test_option_keeps_partitions_without_new_rows_through_each_write_api(
    spark: SparkSession,
) -> None:
    rows(spark, 0, 6).write.format("delta").partitionBy("p").saveAsTable("t")
    writer = rows(spark, 30, 31).write.format("delta").mode("overwrite")
    writer.option("partitionOverwriteMode", "dynamic").insertInto("t")
    assert ids(spark, "t") == [1, 2, 4, 5, 30]
    writer = rows(spark, 31, 32).write.format("delta").mode("overwrite")
    writer.option("partitionOverwriteMode", "Dynamic").saveAsTable("t")
    assert ids(spark, "t") == [2, 5, 30, 31]
    with pytest.raises(InvalidArgumentError, match=r"dyn is not a valid.*partitionOverwriteMode"):
        writer.option("partitionOverwriteMode", "dyn").insertInto("t")
    writer.option("partitionOverwriteMode", "static").insertInto("t")
    assert ids(spark, "t") == [31]


@pytest.mark.parametrize("said", ["option", "session"])
@pytest.mark.parametrize("way", ["createOrReplace", "replace"])
def test_replaced_table_keeps_no_partition_whatever_is_said_of_overwriting(
    spark: SparkSession, said: str, way: str
) -> None:
    rows(spark, 0, 6).write.format("delta").partitionBy("p").saveAsTable("t")
    mode = {"spark.sql.sources.partitionOverwriteMode": "dynamic"} if said == "session" else {}
    with session_settings(spark, mode):
        writer = rows(spark, 30, 31).writeTo("t").using("delta").partitionedBy(F.col("p"))
        if said == "option":
            writer = writer.option("partitionOverwriteMode", "dynamic")
        getattr(writer, way)()
    assert ids(spark, "t") == [30]


def test_options_set_properties_of_the_table_that_a_write_creates(spark: SparkSession) -> None:
    two = spark.range(2)
    vectors, retention = "delta.enableDeletionVectors", "delta.logRetentionDuration"
    two.write.format("delta").option(vectors, "true").saveAsTable("saved")
    created = two.writeTo("created").using("delta").option(vectors, "true")
    created.option(retention, "interval 39 days").tableProperty(
        retention, "interval 33 days"
    ).create()
    two.writeTo("saved").using("delta").option(retention, "interval 34 days").createOrReplace()
    for name, expected in (
        ("created", {vectors: "true", retention: "interval 33 days"}),
        ("saved", {retention: "interval 34 days"}),
    ):
        (detail,) = spark.sql(f"DESCRIBE DETAIL {name}").collect()
        assert detail.properties == expected
    with pytest.raises(InvalidArgumentError, match="enableDeletionVektors"):
        two.write.format("delta").option("delta.enableDeletionVektors", "true").saveAsTable("no")
    assert not spark.catalog.tableExists("no")


def test_write_that_was_made_before_does_not_run_its_query(spark: SparkSession, table: str) -> None:
    def save(version: int, id_column: str) -> None:
        writer = spark.range(3).selectExpr(f"{id_column} AS id").write.format("delta")
        writer.mode("append").option("txnAppId", "app").option("txnVersion", version).save(table)

    save(1, "id")
    save(1, "raise_error('the query ran')")
    save(0, "raise_error('the query ran')")
    with pytest.raises(Exception, match="the query ran"):
        save(2, "CAST(raise_error('the query ran') AS BIGINT)")
    assert log.versions(table) == [0]


def test_write_runs_again_once_the_table_no_longer_keeps_its_progress(
    spark: SparkSession, table: str
) -> None:
    retention = "delta.setTransactionRetentionDuration"

    def save() -> None:
        writer = spark.range(3).write.format("delta").option(retention, "interval 1 millisecond")
        writer.mode("append").option("txnAppId", "app").option("txnVersion", 1).save(table)

    save()
    save()
    assert log.versions(table) == [0, 1]
    spark.sql(f"ALTER TABLE delta.`{table}` SET TBLPROPERTIES ('{retention}' = 'interval 1 day')")
    writer = spark.range(3).write.format("delta").mode("append")
    writer.option("txnAppId", "app").option("txnVersion", 1).save(table)
    assert log.versions(table) == [0, 1, 2]
    assert spark.read.format("delta").load(table).count() == 6


@pytest.mark.protocol("identity-columns-3")
def test_create_if_not_exists_is_true_of_the_table_or_refused(
    spark: SparkSession, table: str
) -> None:
    columns = "a BIGINT GENERATED ALWAYS AS IDENTITY, b INT, c INT GENERATED ALWAYS AS (b + 1)"
    create = f"CREATE TABLE %s ({columns}) USING delta CLUSTER BY (b) LOCATION '{table}'"
    spark.sql(create % "first")
    spark.sql("ALTER TABLE first ADD CONSTRAINT small CHECK (b < 10)")
    spark.sql(create % "second")
    spark.sql(f"CREATE TABLE third USING delta LOCATION '{table}'")
    for changed, reason in (
        (create.replace("CLUSTER BY (b)", "CLUSTER BY (c)"), "clustering"),
        (create.replace("b + 1", "b + 2"), "generationExpression of column c"),
        (create.replace("IDENTITY", "IDENTITY (START WITH 5)"), "identity.start of column a"),
        (create.replace("b INT", "b INT DEFAULT 3"), "CURRENT_DEFAULT of column b"),
        (create.replace("(b + 1)", "(b + 1), CONSTRAINT small CHECK (b < 9)"), "constraint small"),
    ):
        with pytest.raises(InvalidArgumentError, match=rf"CREATE_MISMATCH.*{reason}"):
            spark.sql(changed % "fourth")
    assert log.versions(table) == [0, 1]


def test_options_of_a_statement_are_no_properties(
    spark: SparkSession, table: str, tmp_path: Path
) -> None:
    other = str(tmp_path / "other")
    said = (
        "OPTIONS ('fs.s3a.secret.key' = 'S', 'delta.appendOnly' = 'true') TBLPROPERTIES ('a' = 'b')"
    )
    spark.sql(f"CREATE TABLE t (id BIGINT) USING delta {said} LOCATION '{table}'")
    spark.sql(f"CREATE TABLE other USING delta {said} LOCATION '{other}' AS SELECT 1L AS id")
    for path in (table, other):
        assert log.metadata(path)["configuration"] == {"a": "b", "delta.appendOnly": "true"}
        assert "fs.s3a" not in log.commit_path(path, 0).read_text()
    spark.catalog.createTable("third", path=other, source="delta", maxFilesPerTrigger="10")
    assert ids(spark, "third") == [1]


def test_like_and_an_overwrite_that_repeats_it_keep_clustering(
    spark: SparkSession,
) -> None:
    spark.sql("CREATE TABLE t (id BIGINT, p BIGINT) USING delta CLUSTER BY (id)")
    spark.sql("ALTER TABLE t ADD CONSTRAINT small CHECK (id < 10)")
    spark.sql("CREATE TABLE l LIKE t")
    rows(spark, 0, 3).write.format("delta").clusterBy("ID").mode("overwrite").saveAsTable("t")
    for name in ("t", "l"):
        (detail,) = spark.sql(f"DESCRIBE DETAIL {name}").collect()
        assert detail.clusteringColumns == ["id"]
        assert detail.properties == {"delta.constraints.small": "id < 10"}
    assert ids(spark, "t") == [0, 1, 2]
    with pytest.raises(Exception, match=r"cluster an existing table by other columns"):
        rows(spark, 0, 1).write.format("delta").clusterBy("p").mode("overwrite").saveAsTable("t")
    assert ids(spark, "t") == [0, 1, 2]


def test_save_to_a_path_clusters_a_new_table_and_may_repeat_it(
    spark: SparkSession, tmp_path: Path
) -> None:
    path = str(tmp_path / "t")
    for mode in ("error", "append", "overwrite"):
        rows(spark, 0, 3).write.format("delta").clusterBy("ID").mode(mode).save(path)
    with pytest.raises(Exception, match=r"cluster an existing table by other columns"):
        rows(spark, 0, 1).write.format("delta").clusterBy("p").mode("append").save(path)
    (detail,) = spark.sql(f"DESCRIBE DETAIL delta.`{path}`").collect()
    assert detail.clusteringColumns == ["id"]
    assert "clustering" in detail.tableFeatures
    assert (ids(spark, f"delta.`{path}`"), log.newest(path)) == ([0, 1, 2], 2)


def test_table_is_not_created_over_files_of_others(spark: SparkSession, tmp_path: Path) -> None:
    spark.range(2).write.parquet(str(tmp_path / "parquet"))
    for statement in (
        "(id BIGINT) USING delta LOCATION '{p}'",
        "USING delta LOCATION '{p}' AS SELECT 1 AS id",
    ):
        with pytest.raises(TableStateError, match="LOCATION_NOT_EMPTY"):
            spark.sql("CREATE TABLE t " + statement.format(p=tmp_path / "parquet"))
        assert not spark.catalog.tableExists("t")
        (tmp_path / "empty").mkdir(exist_ok=True)
        spark.sql("CREATE OR REPLACE TABLE u " + statement.format(p=tmp_path / "empty"))
    assert not (tmp_path / "parquet" / "_delta_log").exists()


@pytest.mark.parametrize(
    "statement",
    ["(id BIGINT, p INT) USING delta {at}", "USING delta {at} AS SELECT 1L AS id, 2 AS p"],
)
def test_table_is_created_over_the_empty_directories_of_a_failed_statement(
    spark: SparkSession, tmp_path: Path, statement: str
) -> None:
    empty, used = tmp_path / "empty", tmp_path / "used"
    for path in (empty, used):
        for folder in ("_delta_log", "p=0/q=1", "p=2"):
            (path / folder).mkdir(parents=True)
    (used / "p=0" / "q=1" / "rows.parquet").touch()
    spark.sql("CREATE TABLE t " + statement.format(at=f"PARTITIONED BY (p) LOCATION '{empty}'"))
    assert log.versions(str(empty)) == [0]
    with pytest.raises(TableStateError, match=r"LOCATION_NOT_EMPTY.* p=0/q=1/rows\.parquet"):
        spark.sql("CREATE TABLE u " + statement.format(at=f"LOCATION '{used}'"))


def test_write_reaches_a_file_system_that_its_options_alone_describe(
    spark: SparkSession, tmp_path: Path
) -> None:
    options = {
        "fs.viewfs.mounttable.described.link./data": tmp_path.as_uri(),
        # Else others would get the file system that was set up for this write.
        "fs.viewfs.impl.disable.cache": "true",
        "spark.deltaic.logStore.viewfs.impl": "rename",
    }
    path = "viewfs://described/data/t"
    for version in ("1", "2", "2"):
        writer = spark.range(3).coalesce(1).write.format("delta").mode("append").options(**options)
        writer.option("txnAppId", "app").option("txnVersion", version).save(path)
    assert log.versions(str(tmp_path / "t")) == [0, 1]
    assert spark.read.format("delta").options(**options).load(path).count() == 6
    with pytest.raises(Exception, match=r"(?i)viewfs"):
        spark.range(3).write.format("delta").mode("append").save(path)
