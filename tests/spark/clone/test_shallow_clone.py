"""Shallow CLONE: a table with the rows and the definition of another, whose files it shares."""

from __future__ import annotations

import json
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from pyspark.errors import AnalysisException, PySparkException

from deltaic import DeltaTable
from deltaic.exceptions import (
    ConcurrentWriteException,
    InvalidArgumentError,
    TableStateError,
)
from tests.support import log
from tests.support.databases import own_database
from tests.support.interleave import committed_meanwhile
from tests.support.session_settings import session_settings
from tests.support.table_builder import append_file, build_table, build_three_versions, rows_of

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

COLUMNS = "id INT, v STRING"
KEEPS_CLONES = "spark.deltaic.vacuum.keepFilesOfShallowClones.enabled"
SHORT = {"spark.deltaic.retentionDurationCheck.enabled": "false"}
DOMAIN = "deltaic.shallowClones"


def build(spark: SparkSession, table: str, **options: Any) -> None:
    build_three_versions(spark, table, COLUMNS, **options)


@pytest.fixture
def database(spark: SparkSession) -> Iterator[str]:
    with own_database(spark, "clones"):
        yield "clones"


def clone(spark: SparkSession, table: str, *clauses: str, verb: str = "CREATE TABLE") -> str:
    """Clone a table to the path beside it, and return the path."""
    target = f"{table}-clone"
    words = " ".join(clauses)
    spark.sql(f"{verb} delta.`{target}` SHALLOW CLONE delta.`{table}` {words}").collect()
    return target


def data_files(table: str) -> list[Path]:
    return [p for p in Path(table).rglob("*.parquet") if "_delta_log" not in p.parts]


@pytest.mark.parametrize("deletion_vectors", [True, False])
@pytest.mark.parametrize("version", [0, 1, 2])
def test_clone_has_the_rows_of_the_version_and_no_files(
    spark: SparkSession, table: str, version: int, deletion_vectors: bool
) -> None:
    build(spark, table, deletion_vectors=deletion_vectors)
    target = clone(spark, table, f"VERSION AS OF {version}")
    assert rows_of(spark, target) == rows_of(spark, table, version)
    assert data_files(target) == []
    assert all(f["path"].startswith("file:/") for f in log.active_files(target))
    vectors = [f["deletionVector"] for f in log.active_files(target) if f.get("deletionVector")]
    assert len(vectors) == (2 if deletion_vectors and version > 0 else 0)
    assert {v["storageType"] for v in vectors} <= {"p"}


def test_changes_of_either_table_do_not_affect_the_other(spark: SparkSession, table: str) -> None:
    build(spark, table)
    before = rows_of(spark, table)
    target = clone(spark, table)
    spark.sql(f"DELETE FROM delta.`{target}` WHERE id < 3")
    spark.sql(f"UPDATE delta.`{target}` SET v = 'new' WHERE id = 4")
    assert rows_of(spark, table) == before
    assert rows_of(spark, target) == [
        (3, "a"), (4, "new"), (6, "b"), (7, "b"), (8, "c"),
    ]  # fmt: skip
    spark.sql(f"DELETE FROM delta.`{table}` WHERE id > 3")
    spark.sql(f"OPTIMIZE delta.`{table}`")
    assert len(rows_of(spark, target)) == 5
    spark.sql(f"OPTIMIZE delta.`{target}`")
    assert len(rows_of(spark, target)) == 5
    assert all("/" not in f["path"] for f in log.active_files(target))


def test_result_and_history_count_the_files_of_the_source(spark: SparkSession, table: str) -> None:
    build(spark, table)
    [row] = spark.sql(f"CREATE TABLE delta.`{table}-clone` SHALLOW CLONE delta.`{table}`").collect()
    sizes = [f["size"] for f in log.active_files(table)]
    expected = {
        "source_table_size": sum(sizes),
        "source_num_of_files": 3,
        "num_removed_files": 0,
        "num_copied_files": 0,
        "removed_files_size": 0,
        "copied_files_size": 0,
    }
    assert row.asDict() == expected
    [entry] = DeltaTable.forPath(spark, f"{table}-clone").history(1).collect()
    assert entry.operation == "CLONE"
    assert entry.operationParameters["source"] == f"delta.`file:{table}`"
    assert entry.operationParameters["sourceVersion"] == "2"
    assert entry.operationParameters["isShallow"] == "true"
    assert entry.operationMetrics["sourceNumOfFiles"] == "3"
    assert entry.operationMetrics["sourceTableSize"] == str(sum(sizes))


def test_clone_keeps_the_definition_of_its_source(spark: SparkSession, database: str) -> None:
    spark.sql(
        f"CREATE TABLE {database}.source (id BIGINT GENERATED ALWAYS AS IDENTITY, "
        "name STRING NOT NULL COMMENT 'who', day DATE, year INT GENERATED ALWAYS AS (year(day))) "
        "USING delta CLUSTER BY (day) COMMENT 'people' TBLPROPERTIES ("
        "'delta.columnMapping.mode' = 'name', 'delta.enableRowTracking' = 'true', "
        "'delta.enableDeletionVectors' = 'true', 'delta.enableInCommitTimestamps' = 'true', "
        "'team' = 'me')"
    )
    spark.sql(f"ALTER TABLE {database}.source ADD CONSTRAINT named CHECK (year(day) > 2000)")
    for name in ("a", "b"):
        spark.sql(f"INSERT INTO {database}.source (name, day) VALUES ('{name}', DATE'2024-01-02')")
    spark.sql(f"ALTER TABLE {database}.source RENAME COLUMN name TO label")
    spark.sql(f"DELETE FROM {database}.source WHERE label = 'a'")
    spark.sql(
        f"CREATE TABLE {database}.cloned SHALLOW CLONE {database}.source "
        "TBLPROPERTIES ('team' = 'you', 'delta.appendOnly' = 'false')"
    )
    source, cloned = (
        spark.sql(f"DESCRIBE DETAIL {database}.{name}").first() for name in ("source", "cloned")
    )
    assert source is not None and cloned is not None
    assert cloned.id != source.id
    for column in ("clusteringColumns", "minReaderVersion", "minWriterVersion", "description"):
        assert cloned[column] == source[column], column
    assert set(cloned.tableFeatures) == set(source.tableFeatures)
    ours = {
        name: value
        for name, value in cloned.properties.items()
        if "materialized" not in name and not name.startswith("delta.inCommitTimestampEn")
    }
    theirs = {n: v for n, v in source.properties.items() if "materialized" not in n}
    assert ours == {**theirs, "team": "you", "delta.appendOnly": "false"}
    materialized = "delta.rowTracking.materializedRowIdColumnName"
    assert cloned.properties[materialized] != source.properties[materialized]
    statement = f"SHOW CREATE TABLE {database}.source"
    assert spark.table(f"{database}.cloned").schema == spark.table(f"{database}.source").schema
    assert spark.sql(statement).count() == 1
    # Values go on where they were, and the constraint holds.
    spark.sql(f"INSERT INTO {database}.cloned (label, day) VALUES ('c', DATE'2025-01-02')")
    found = spark.table(f"{database}.cloned").select("id", "label", "year").collect()
    assert sorted(map(tuple, found)) == [(2, "b", 2024), (3, "c", 2025)]
    with pytest.raises(Exception, match="named"):
        spark.sql(f"INSERT INTO {database}.cloned (label, day) VALUES ('d', DATE'1999-01-02')")
    ids = spark.table(f"{database}.cloned").select("_metadata.row_id").collect()
    assert len({row.row_id for row in ids}) == 2


def test_if_not_exists_or_replace_and_replace(spark: SparkSession, table: str) -> None:
    build(spark, table)
    target = clone(spark, table, "VERSION AS OF 0", verb="CREATE TABLE IF NOT EXISTS")
    clone(spark, table, verb="CREATE TABLE IF NOT EXISTS")
    assert len(rows_of(spark, target)) == 8
    with pytest.raises(AnalysisException, match="already exists"):
        clone(spark, table)
    clone(spark, table, verb="CREATE OR REPLACE TABLE")
    assert rows_of(spark, target) == rows_of(spark, table)
    clone(spark, table, "VERSION AS OF 1", verb="REPLACE TABLE")
    assert rows_of(spark, target) == rows_of(spark, table, 1)
    assert rows_of(spark, target, 0) == rows_of(spark, table, 0)
    with pytest.raises(AnalysisException, match="cannot be found"):
        spark.sql(f"REPLACE TABLE delta.`{table}-other` SHALLOW CLONE delta.`{table}`")


def test_or_replace_over_a_table_with_rows(spark: SparkSession, table: str) -> None:
    build(spark, table)
    target = f"{table}-clone"
    build_table(spark, target, "other STRING, p INT", [[("x", 1), ("y", 2)]], partition_by=["p"])
    identity = log.metadata(target)["id"]
    [row] = spark.sql(
        f"CREATE OR REPLACE TABLE delta.`{target}` SHALLOW CLONE delta.`{table}`"
    ).collect()
    assert row.num_removed_files == 2
    assert rows_of(spark, target) == rows_of(spark, table)
    assert rows_of(spark, target, 0) == [("x", 1), ("y", 2)]
    assert log.metadata(target)["id"] == identity


def test_repeated_clone_without_a_change_commits_nothing(spark: SparkSession, table: str) -> None:
    build(spark, table)
    target = clone(spark, table)
    clone(spark, table, verb="CREATE OR REPLACE TABLE")
    assert log.versions(target) == [0]
    spark.sql(f"DELETE FROM delta.`{table}` WHERE id = 8")
    clone(spark, table, verb="CREATE OR REPLACE TABLE")
    assert log.versions(target) == [0, 1]
    assert len(log.actions(target, 1, "remove")) == 1, "the other files are the same"


@pytest.mark.parametrize("by_name", [True, False])
def test_methods(spark: SparkSession, table: str, database: str, by_name: bool) -> None:
    build(spark, table)
    source = DeltaTable.forPath(spark, table)
    first, second = (
        (f"{database}.first", f"{database}.second") if by_name else (f"{table}-1", f"{table}-2")
    )
    cloned = source.clone(first, isShallow=True, properties={"team": "me"})
    assert cloned.toDF().count() == 7
    [detail] = cloned.detail().collect()
    assert detail.properties["team"] == "me"
    older = source.cloneAtVersion(0, second, isShallow=True)
    assert older.toDF().count() == 8
    [newest] = source.history(1).collect()
    replaced = source.cloneAtTimestamp(str(newest.timestamp), second, isShallow=True, replace=True)
    assert replaced.toDF().count() == 7
    with pytest.raises(AnalysisException, match="already exists"):
        source.clone(first, isShallow=True)


def test_arguments_of_another_type_are_refused(spark: SparkSession, table: str) -> None:
    build_table(spark, table, COLUMNS, [[(1, "a")]])
    source: Any = DeltaTable.forPath(spark, table)
    for call in (
        lambda: source.clone(7),
        lambda: source.clone(f"{table}-x", properties={"a": 1}),
        lambda: source.cloneAtVersion("0", f"{table}-x"),
        lambda: source.cloneAtVersion(-1, f"{table}-x"),
        lambda: source.cloneAtTimestamp(5, f"{table}-x"),
    ):
        with pytest.raises(InvalidArgumentError):
            call()
    assert not Path(f"{table}-x").exists()


@pytest.mark.parametrize(
    ("clause", "message"),
    [
        ("TBLPROPERTIES ('delta.noSuchProperty' = '1')", "noSuchProperty"),
        ("TBLPROPERTIES ('delta.columnMapping.mode' = 'id')", "columnMapping"),
        ("VERSION AS OF 99", "99"),
        ("TIMESTAMP AS OF '1990-01-01'", "1990"),
        ("AS SELECT 1 AS x", "rows"),
        ("COMMENT 'x'", "TBLPROPERTIES and LOCATION"),
        ("PARTITIONED BY (id)", "partition"),
    ],
)
def test_refused_clauses_leave_nothing(
    spark: SparkSession, table: str, clause: str, message: str
) -> None:
    build_table(spark, table, COLUMNS, [[(1, "a")]])
    with pytest.raises(PySparkException, match=message):
        clone(spark, table, clause)
    assert not Path(f"{table}-clone", "_delta_log").exists()


def test_refused_sources(spark: SparkSession, table: str, database: str) -> None:
    build_table(spark, table, COLUMNS, [[(1, "a")]])
    spark.sql(f"CREATE TABLE {database}.other USING json AS SELECT 1 AS id")
    spark.sql(f"CREATE VIEW {database}.seen AS SELECT 1 AS id")
    for source in (f"{database}.other", f"{database}.seen", f"{database}.missing"):
        with pytest.raises(AnalysisException):
            spark.sql(f"CREATE TABLE {database}.target SHALLOW CLONE {source}")
    assert not spark.catalog.tableExists(f"{database}.target")


def test_location_of_a_named_clone(spark: SparkSession, table: str, database: str) -> None:
    build(spark, table)
    spark.sql(
        f"CREATE TABLE {database}.cloned SHALLOW CLONE delta.`{table}` LOCATION '{table}-there'"
    )
    detail = spark.sql(f"DESCRIBE DETAIL {database}.cloned").first()
    assert detail is not None and detail.location == f"file:{table}-there"
    spark.sql(f"DROP TABLE {database}.cloned")
    assert rows_of(spark, f"{table}-there") == rows_of(spark, table)


def test_clone_of_a_clone_and_back(spark: SparkSession, table: str) -> None:
    build(spark, table)
    once = clone(spark, table)
    append_file(spark, once, COLUMNS, [(9, "d")])
    twice = clone(spark, once)
    assert rows_of(spark, twice) == rows_of(spark, once)
    spark.sql(f"CREATE OR REPLACE TABLE delta.`{table}` SHALLOW CLONE delta.`{twice}`")
    assert rows_of(spark, table) == rows_of(spark, once)
    own = [f["path"] for f in log.active_files(table) if not f["path"].startswith("file:/")]
    assert len(own) == 3, "its own files have relative paths"


def test_an_append_to_the_clone_meanwhile_is_a_conflict(spark: SparkSession, table: str) -> None:
    build(spark, table)
    target = clone(spark, table, "VERSION AS OF 0")
    with (
        committed_meanwhile(lambda: append_file(spark, target, COLUMNS, [(99, "z")])),
        pytest.raises(ConcurrentWriteException, match="CLONE"),
    ):
        clone(spark, table, verb="CREATE OR REPLACE TABLE")
    assert len(rows_of(spark, target)) == 9


def test_the_change_data_feed_has_what_a_replacement_changed(
    spark: SparkSession, table: str
) -> None:
    build(spark, table, properties={"delta.enableChangeDataFeed": "true"})
    target = clone(spark, table, "VERSION AS OF 0")
    clone(spark, table, verb="CREATE OR REPLACE TABLE")
    changes = spark.read.format("delta").option("readChangeFeed", "true")
    found = changes.option("startingVersion", 1).load(target).select("id", "_change_type")
    assert sorted(map(tuple, found.collect())) == [(1, "delete"), (5, "delete"), (8, "insert")]


def test_vacuum_of_a_clone_never_deletes_files_of_its_source(
    spark: SparkSession, table: str
) -> None:
    build(spark, table)
    target = clone(spark, table)
    spark.sql(f"DELETE FROM delta.`{target}` WHERE id >= 0")
    with session_settings(spark, SHORT):
        spark.sql(f"VACUUM delta.`{target}` RETAIN 0 HOURS")
    assert len(rows_of(spark, table)) == 7
    assert len(rows_of(spark, table, 0)) == 8


def domain_table(spark: SparkSession, table: str) -> None:
    build(spark, table, properties={"delta.feature.domainMetadata": "supported"})


def rewrite(spark: SparkSession, table: str) -> None:
    """Rewrite all files of a table, and delete the older ones."""
    spark.sql(f"REORG TABLE delta.`{table}` APPLY (PURGE)")
    spark.sql(f"OPTIMIZE delta.`{table}`")
    with session_settings(spark, SHORT):
        spark.sql(f"VACUUM delta.`{table}` RETAIN 0 HOURS")


def test_vacuum_of_the_source_keeps_what_its_clones_need(spark: SparkSession, table: str) -> None:
    domain_table(spark, table)
    target = clone(spark, table)
    of_clone = clone(spark, target, "VERSION AS OF 0")
    assert target in DeltaTable.forPath(spark, table).domainMetadata()[DOMAIN]
    append_file(spark, table, COLUMNS, [(99, "after the clone")])
    [unneeded] = [
        log.data_path(table, file)
        for file in log.active_files(table)
        if log.statistics(file)["minValues"]["id"] == 99
    ]
    rewrite(spark, table)
    assert len(rows_of(spark, target)) == 7
    assert len(rows_of(spark, of_clone)) == 7
    assert not unneeded.exists()


def test_vacuum_deletes_what_clones_need_if_it_is_allowed_to(
    spark: SparkSession, table: str
) -> None:
    domain_table(spark, table)
    target = clone(spark, table)
    with session_settings(spark, {KEEPS_CLONES: "false"}):
        rewrite(spark, table)
    with pytest.raises(Exception, match="does not exist"):
        rows_of(spark, target)


def test_the_domain_of_existing_clones_is_not_dropped(spark: SparkSession, table: str) -> None:
    domain_table(spark, table)
    target = clone(spark, table)
    drop = f"ALTER TABLE delta.`{table}` DROP FEATURE domainMetadata"
    with pytest.raises(TableStateError, match=target):
        spark.sql(drop)
    shutil.rmtree(target)
    spark.sql(drop)


def test_clones_that_are_gone_keep_no_files(spark: SparkSession, table: str) -> None:
    domain_table(spark, table)
    target = clone(spark, table)
    shutil.rmtree(target)
    build_table(spark, target, COLUMNS, [[(1, "another")]])
    rewrite(spark, table)
    assert len(data_files(table)) == 1
    assert rows_of(spark, target) == [(1, "another")]


def test_clones_that_are_registered_at_the_same_time_are_all_kept(
    spark: SparkSession, table: str
) -> None:
    domain_table(spark, table)
    other = f"CREATE TABLE delta.`{table}-other` SHALLOW CLONE delta.`{table}`"
    with committed_meanwhile(lambda: spark.sql(other)):
        target = clone(spark, table)
    domain = DeltaTable.forPath(spark, table).domainMetadata()[DOMAIN]
    assert sorted(json.loads(domain)["clones"]) == [f"file:{target}", f"file:{table}-other"]


def test_vacuum_keeps_files_of_a_clone_that_was_replaced(spark: SparkSession, table: str) -> None:
    domain_table(spark, table)
    target = clone(spark, table)
    spark.sql(f"CREATE OR REPLACE TABLE delta.`{target}` USING delta AS SELECT 1 AS other")
    rewrite(spark, table)
    assert len(rows_of(spark, target, 0)) == 7


@pytest.mark.parametrize("configuration", ["x", "{}", '{"clones": [{"path": 1}]}'])
def test_a_domain_that_is_no_list_of_clones(
    spark: SparkSession, table: str, configuration: str
) -> None:
    domain_table(spark, table)
    DeltaTable.forPath(spark, table).setDomainMetadata(DOMAIN, configuration)
    assert len(rows_of(spark, clone(spark, table))) == 7
    with pytest.raises(PySparkException, match=DOMAIN):
        rewrite(spark, table)


TRACKED = {"delta.enableRowTracking": "true"}


def row_ids(spark: SparkSession, table: str) -> dict[int, int]:
    rows = spark.read.format("delta").load(table).select("id", "_metadata.row_id").collect()
    assert len({row.row_id for row in rows}) == len(rows)
    return {row.id: row.row_id for row in rows}


def test_rows_of_a_repeated_clone_keep_their_ids(spark: SparkSession, table: str) -> None:
    build(spark, table, properties=TRACKED)
    target = clone(spark, table)
    before = row_ids(spark, target)
    spark.sql(f"DELETE FROM delta.`{table}` WHERE id = 2")
    clone(spark, table, verb="CREATE OR REPLACE TABLE")
    after = row_ids(spark, target)
    assert after == {n: row_id for n, row_id in before.items() if n != 2}


@pytest.mark.parametrize("of_source", [True, False])
def test_row_tracking_that_is_enabled_between_two_clones(
    spark: SparkSession, table: str, of_source: bool
) -> None:
    build(spark, table)
    target = clone(spark, table)
    if of_source:
        properties = ", ".join(f"'{name}' = '{value}'" for name, value in TRACKED.items())
        spark.sql(f"ALTER TABLE delta.`{table}` SET TBLPROPERTIES ({properties})")
        clone(spark, table, verb="CREATE OR REPLACE TABLE")
    else:
        words = "TBLPROPERTIES ('delta.enableRowTracking' = 'true')"
        clone(spark, table, words, verb="CREATE OR REPLACE TABLE")
    assert row_ids(spark, target).keys() == {row[0] for row in rows_of(spark, table)}


def test_identity_values_of_a_table_that_becomes_its_older_version(
    spark: SparkSession, table: str
) -> None:
    spark.sql(
        f"CREATE TABLE delta.`{table}` (id BIGINT GENERATED ALWAYS AS IDENTITY, v INT) USING delta"
    )
    for v in range(3):
        spark.sql(f"INSERT INTO delta.`{table}` (v) VALUES ({v})")
    spark.sql(
        f"CREATE OR REPLACE TABLE delta.`{table}` SHALLOW CLONE delta.`{table}` VERSION AS OF 1"
    )
    spark.sql(f"INSERT INTO delta.`{table}` (v) VALUES (9)")
    assert rows_of(spark, table) == [(1, 0), (4, 9)]


def test_an_older_version_without_its_files_is_refused(spark: SparkSession, table: str) -> None:
    build(spark, table)
    spark.sql(f"DELETE FROM delta.`{table}` WHERE id < 4")
    [gone] = [a for a in log.actions(table, 0, "add") if log.statistics(a)["minValues"]["id"] == 0]
    log.data_path(table, gone).unlink()
    with pytest.raises(PySparkException, match="does not exist"):
        clone(spark, table, "VERSION AS OF 0")
    assert not Path(f"{table}-clone", "_delta_log").exists()


def test_vacuum_fails_while_a_clone_cannot_be_read(spark: SparkSession, table: str) -> None:
    domain_table(spark, table)
    target = clone(spark, table)
    before = data_files(table)
    commit = log.commit_path(target, 0)
    content = commit.read_text()
    commit.write_text("no JSON")
    spark.sql(f"REORG TABLE delta.`{table}` APPLY (PURGE)")
    with session_settings(spark, SHORT), pytest.raises(TableStateError, match="shallow clone"):
        spark.sql(f"VACUUM delta.`{table}` RETAIN 0 HOURS")
    assert set(before) <= set(data_files(table))
    commit.write_text(content)


def test_source_without_metadata_domains_is_not_changed(spark: SparkSession, table: str) -> None:
    build(spark, table)
    clone(spark, table)
    assert log.versions(table) == [0, 1, 2]
