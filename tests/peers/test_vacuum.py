"""VACUUM beside delta-spark's and delta-rs's: the same files go, and each continues the other's."""

from __future__ import annotations

import json
import os
import time
from pathlib import Path

import pytest
from deltalake import DeltaTable as DeltaRsTable
from pyspark.sql import SparkSession

from tests.support import log
from tests.support.quick import quick_and_thorough
from tests.support.session_settings import session_settings
from tests.support.spark_process import SparkProcess, SparkProcessError
from tests.support.vacuumed import UNCHECKED, aged_copy, changed_table, litter, stored

VACUUM = """
spark.conf.set("spark.databricks.delta.retentionDurationCheck.enabled", "false")
# By default it lists a directory in 10,000 tasks.
spark.conf.set("spark.sql.sources.parallelPartitionDiscovery.parallelism", "2")
result = [row[0] for row in spark.sql(statement).collect()]
"""
READ = """
spark.conf.set(
    "spark.databricks.delta.vacuum.enforceTimeTravelWithinDeletedFileRetentionDuration", "false")
df = spark.read.format("delta").option("versionAsOf", version).load(path)
result = sorted([list(row) for row in df.collect()], key=str)
"""


def ours(spark: SparkSession, statement: str) -> list[str]:
    with session_settings(spark, UNCHECKED):
        return [row[0] for row in spark.sql(statement).collect()]


def directories(table: str) -> set[str]:
    found = (path for path in Path(table).rglob("*") if path.is_dir())
    return {str(path.relative_to(table)) for path in found}


def aged_pair(spark: SparkSession, table: str, tmp_path: Path, young: int) -> tuple[str, str]:
    """Return two copies of a table of which the versions from `young` on are within a week."""
    changed_table(spark, table)
    litter(table)
    ages = {v: 200.0 if v < young else 20.0 for v in log.versions(table)}
    copies = [aged_copy(table, tmp_path / name, ages) for name in ("ours", "theirs")]
    for copy in copies:
        for directory in directories(copy):
            os.utime(Path(copy, directory), (1, 1))
    return copies[0], copies[1]


@pytest.mark.parametrize("young", quick_and_thorough([2, 4, 6], 4))
@pytest.mark.parametrize("kind", ["FULL", "LITE"])
def test_the_same_files_are_shown_and_deleted_as_by_delta_spark(
    spark: SparkSession,
    delta_spark: SparkProcess,
    table: str,
    tmp_path: Path,
    kind: str,
    young: int,
) -> None:
    mine, theirs = aged_pair(spark, table, tmp_path, young)
    shown = {}
    for name, run, path in (
        ("ours", lambda s: ours(spark, s), mine),
        ("theirs", lambda s: delta_spark.run(VACUUM, statement=s), theirs),
    ):
        paths = run(f"VACUUM delta.`{path}` {kind} DRY RUN")
        shown[name] = {p.removeprefix(f"file:{path}/") for p in paths}
        assert run(f"VACUUM delta.`{path}` {kind}") == [f"file:{path}"]
    # It deletes directories that are only empty without the files in its next run, and tries to
    # delete those in which all files are younger.
    assert all(Path(theirs, path).is_dir() for path in shown["ours"] ^ shown["theirs"])
    assert stored(mine) == stored(theirs)
    newest = log.newest(table)
    for n in (1, 2):
        my_info, their_info = (log.commit_info(path, newest + n) for path in (mine, theirs))
        for field in ("operation", "operationParameters", "isolationLevel", "isBlindAppend"):
            assert my_info[field] == their_info[field]
        assert my_info["operationMetrics"].keys() == their_info["operationMetrics"].keys()
    my_end, their_end = (log.commit_info(path)["operationMetrics"] for path in (mine, theirs))
    assert my_end["numVacuumedDirectories"] == their_end["numVacuumedDirectories"] or kind == "LITE"
    if kind == "LITE":
        field = "latestCommitVersionOutsideOfRetentionWindow"
        infos = [Path(path, "_delta_log/_last_vacuum_info") for path in (mine, theirs)]
        assert [json.loads(info.read_text())[field] for info in infos] == [young - 1] * 2
    for version in range(young, newest + 1):
        assert delta_spark.run(READ, path=mine, version=version) == delta_spark.run(
            READ, path=table, version=version
        )


def test_lite_goes_on_where_the_other_engine_stopped(
    spark: SparkSession, delta_spark: SparkProcess, table: str
) -> None:
    changed_table(spark, table)
    statement = f"VACUUM delta.`{table}` LITE RETAIN 0 HOURS"
    info = Path(table, "_delta_log/_last_vacuum_info")
    time.sleep(0.01)
    ours(spark, statement)
    kept = stored(table)
    spark.sql(f"UPDATE delta.`{table}` SET id = 0 WHERE id = 5000")
    assert stored(table) > kept
    time.sleep(1.1)
    delta_spark.run(VACUUM, statement=statement)
    after = stored(table)
    assert json.loads(info.read_text()).keys() == {"latestCommitVersionOutsideOfRetentionWindow"}
    spark.sql(f"DELETE FROM delta.`{table}` WHERE true")
    time.sleep(0.01)
    ours(spark, statement)
    assert stored(table) == set() < after
    assert spark.read.format("delta").load(table).count() == 0


@pytest.mark.parametrize("kind", ["FULL", "LITE"])
def test_delta_spark_reads_appends_and_deletes_after_our_vacuum(
    spark: SparkSession, delta_spark: SparkProcess, table: str, kind: str
) -> None:
    changed_table(spark, table)
    name = f"delta.`{table}`"
    time.sleep(0.01)
    before = stored(table)
    ours(spark, f"VACUUM {name} {kind} RETAIN 0 HOURS")
    assert stored(table) < before
    rows = {tuple(row) for row in spark.table(name).collect()}
    read = {tuple(row) for row in delta_spark.run(READ, path=table, version=log.newest(table))}
    assert read == rows
    for statement in (
        f"INSERT INTO {name} VALUES (70001, 'new'), (70002, 'c/d')",
        f"DELETE FROM {name} WHERE id % 20 = 9 OR id = 70001",
        f"UPDATE {name} SET id = id + 100000 WHERE id % 20 = 11",
    ):
        delta_spark.run("spark.sql(statement).collect()", statement=statement)
    kept = {row for row in (*rows, (70002, "c/d")) if row[0] % 20 != 9}
    expected = {(n + 100_000 if n % 20 == 11 else n, p) for n, p in kept}
    assert {tuple(row) for row in spark.table(name).collect()} == expected


def test_delta_rs_reads_what_is_left_and_its_vacuum_finds_nothing_more(
    spark: SparkSession, table: str
) -> None:
    rows = spark.range(100).selectExpr("id", "CAST(id % 3 AS STRING) AS _p")
    rows.write.format("delta").partitionBy("_p").save(table)
    spark.sql(f"UPDATE delta.`{table}` SET id = -id WHERE id % 7 = 0")
    count = spark.read.format("delta").load(table).count()
    time.sleep(0.01)
    ours(spark, f"VACUUM delta.`{table}` RETAIN 0 HOURS")
    other = DeltaRsTable(table)
    assert other.to_pyarrow_table().num_rows == count
    before = stored(table)
    found = other.vacuum(0, dry_run=False, enforce_retention_duration=False, full=True)
    assert not before & set(found)
    assert stored(table) == before
    spark.sql(f"INSERT INTO delta.`{table}` VALUES (1, 'x')")
    history = spark.sql(f"DESCRIBE HISTORY delta.`{table}`").collect()
    assert "VACUUM END" in {row.operation for row in history}


def test_delta_spark_vacuums_a_table_unless_it_has_inline_deletion_vectors(
    spark: SparkSession, delta_spark: SparkProcess, table: str
) -> None:
    """It is a defect of delta-spark 4.4.0: docs/guide/limits.md describes it, with the setting."""

    def vacuum_after_delete(path: str) -> list[str]:
        rows = spark.range(0, 100, 1, 1).write.format("delta")
        rows.option("delta.enableDeletionVectors", "true").save(path)
        spark.sql(f"DELETE FROM delta.`{path}` WHERE id = 3")
        Path(path, "old.parquet").touch()
        os.utime(Path(path, "old.parquet"), (1, 1))
        found: list[str] = delta_spark.run(VACUUM, statement=f"VACUUM delta.`{path}`")
        return found

    with pytest.raises(SparkProcessError, match=r"MatchError: Some\(DeletionVectorDescriptor\(i,"):
        vacuum_after_delete(table)
    assert "old.parquet" in stored(table)
    with session_settings(spark, {"spark.deltaic.deletionVectors.maxInlineBytes": "0"}):
        assert vacuum_after_delete(f"{table}-2") == [f"file:{table}-2"]
    assert "old.parquet" not in stored(f"{table}-2")
