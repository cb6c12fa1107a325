"""Feeds that cannot be read: changes not recorded, schemas that differ, protocols and files."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from deltaic.exceptions import ProtocolError
from tests.support import log
from tests.support.change_feed import PROPERTY, changes, enable_feed, forget, kinds
from tests.support.session_settings import session_settings
from tests.support.table_builder import build_with_oracle

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


def test_version_that_does_not_record_changes_is_named(spark: SparkSession, table: str):
    target = build_with_oracle(spark, table, spark.range(5))
    target.append(spark.range(5, 6))
    with pytest.raises(Exception, match=r"DELTAIC_CHANGES_NOT_RECORDED.*at version 0"):
        changes(spark, table, startingVersion=0).collect()
    enable_feed(spark, table)
    assert changes(spark, table, startingVersion=0).count() == 6
    metadata = log.actions(table, 0, "metaData")[0]
    metadata["configuration"] = {PROPERTY: "false"}
    log.write_commit(table, 2, {"metaData": metadata})
    forget(spark, table)
    assert changes(spark, table, startingVersion=0, endingVersion=1).count() == 6
    with pytest.raises(Exception, match=r"DELTAIC_CHANGES_NOT_RECORDED.*at version 2"):
        changes(spark, table, startingVersion=0).collect()


def test_schema_that_changed_by_more_than_added_columns_is_an_error_naming_both_versions(
    spark: SparkSession, table: str
):
    spark.range(3).selectExpr("id", "1 AS a").write.format("delta").save(table)
    metadata = {"metaData": log.actions(table, 0, "metaData")[0]}
    changed = json.loads(json.dumps(metadata).replace("integer", "string"))
    log.write_commit(table, 1, changed)
    enable_feed(spark, table)
    with pytest.raises(
        Exception,
        match=r"DELTAIC_CHANGES_SCHEMA_INCOMPATIBLE.*of version 1: .*of version 0 differs",
    ):
        changes(spark, table, startingVersion=0, endingVersion=0).collect()
    shown = changes(spark, table, startingVersion=0, endingVersion=0, versionAsOf=0)
    assert kinds(shown) == {0: {"insert": 3}}
    with pytest.raises(Exception, match="DELTAIC_CHANGES_SCHEMA_INCOMPATIBLE"):
        changes(spark, table, startingVersion=0, versionAsOf=0).collect()
    assert changes(spark, table, startingVersion=1).collect() == []


def test_settings_of_delta_spark_lift_the_check_and_choose_the_columns(
    spark: SparkSession, table: str
):
    prefix = "spark.databricks.delta.changeDataFeed."
    spark.range(3).selectExpr("id", "1 AS a").write.format("delta").save(table)
    metadata = log.actions(table, 0, "metaData")[0]
    fields = [f for f in json.loads(metadata["schemaString"])["fields"] if f["name"] == "id"]
    schema = json.dumps({"type": "struct", "fields": fields})
    log.write_commit(table, 1, {"metaData": {**metadata, "schemaString": schema}})
    enable_feed(spark, table)
    unsafe = f"{prefix}unsafeBatchReadOnIncompatibleSchemaChanges.enabled"
    first = {"startingVersion": 0, "endingVersion": 0}
    with pytest.raises(Exception, match="DELTAIC_CHANGES_SCHEMA_INCOMPATIBLE"):
        changes(spark, table, **first).collect()
    with session_settings(spark, {unsafe: "true"}):
        assert sorted(row.id for row in changes(spark, table, **first).collect()) == [0, 1, 2]

    mapped = f"{table}-mapped"
    writer = spark.range(3).write.format("delta").option("delta.columnMapping.mode", "name")
    writer.option(PROPERTY, "true").save(mapped)
    spark.sql(f"ALTER TABLE delta.`{mapped}` RENAME COLUMN id TO number")
    assert changes(spark, mapped, **first).columns[0] == "id"
    with session_settings(spark, {f"{prefix}defaultSchemaModeForColumnMappingTable": "latest"}):
        latest = changes(spark, mapped, **first)
        assert latest.columns[0] == "number"


def test_setting_reads_a_feed_of_a_table_of_which_all_columns_were_replaced(
    spark: SparkSession, table: str
):
    rows = spark.range(2)
    first = rows.selectExpr("id AS a", "id AS b").write.format("delta")
    first.option(PROPERTY, "true").save(table)
    second = rows.selectExpr("id AS x", "id AS y").write.format("delta").mode("overwrite")
    second.option("overwriteSchema", "true").option(PROPERTY, "true").save(table)
    with pytest.raises(Exception, match="DELTAIC_CHANGES_SCHEMA_INCOMPATIBLE"):
        changes(spark, table, startingVersion=0, versionAsOf=1).collect()
    unsafe = "spark.deltaic.changeDataFeed.unsafeBatchReadOnIncompatibleSchemaChanges.enabled"
    with session_settings(spark, {unsafe: "true"}):
        shown = changes(spark, table, startingVersion=0)
        assert shown.columns[:2] == ["x", "y"]
        read = [(r._commit_version, r._change_type, r.x, r.y) for r in shown.collect()]
    assert sorted(read, key=repr) == [
        (0, "insert", None, None),
        (0, "insert", None, None),
        (1, "delete", None, None),
        (1, "delete", None, None),
        (1, "insert", 0, 0),
        (1, "insert", 1, 1),
    ]
    with pytest.raises(Exception, match="DELTAIC_CHANGES_SCHEMA_INCOMPATIBLE"):
        changes(spark, table, startingVersion=0, versionAsOf=1).collect()


def test_protocol_within_the_range_that_cannot_be_read_is_an_error(spark: SparkSession, table: str):
    build_with_oracle(spark, table, spark.range(3))
    enable_feed(spark, table)
    new = {"minReaderVersion": 3, "minWriterVersion": 7, "writerFeatures": ["zzz"]}
    log.write_commit(table, 1, {"protocol": {**new, "readerFeatures": ["zzz"]}})
    log.write_commit(table, 2, {"protocol": {**new, "readerFeatures": [], "writerFeatures": []}})
    forget(spark, table)
    assert spark.read.format("delta").load(table).count() == 3
    with pytest.raises(Exception, match=r"(?s)UNSUPPORTED_READER_FEATURE.*version 1.*zzz"):
        changes(spark, table, startingVersion=0).collect()


def test_changes_clause_names_the_feature_that_makes_a_table_unreadable(
    spark: SparkSession, table: str
):
    build_with_oracle(spark, table, spark.range(3))
    features = {"readerFeatures": ["zzz"], "writerFeatures": ["zzz"]}
    log.write_commit(
        table, 1, {"protocol": {"minReaderVersion": 3, "minWriterVersion": 7, **features}}
    )
    forget(spark, table)
    with pytest.raises(ProtocolError) as raised:
        spark.sql(f"SELECT * FROM delta.`{table}` CHANGES FROM VERSION 0").collect()
    assert raised.value.getCondition() == "DELTAIC_UNSUPPORTED_READER_FEATURE"
    assert "zzz" in str(raised.value)


def test_commit_or_file_that_is_gone_is_an_error_that_names_it(spark: SparkSession, table: str):
    target = build_with_oracle(spark, table, spark.range(3))
    target.append(spark.range(3, 4))
    enable_feed(spark, table)
    gone = Path(table, log.actions(table, 1, "add")[0]["path"])
    gone.unlink()
    with pytest.raises(Exception, match=rf"DELTAIC_DATA_FILE_MISSING.*{gone.name}"):
        changes(spark, table, startingVersion=0).collect()
    log.commit_path(table, 0).unlink()
    forget(spark, table)
    with pytest.raises(Exception, match=r"DELTAIC_LOG_INCOMPLETE|DELTAIC_VERSION_NOT_FOUND"):
        changes(spark, table, startingVersion=0).collect()
