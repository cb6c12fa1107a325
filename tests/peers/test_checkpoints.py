"""Checkpoints as Deltaic writes them, and as delta-spark 4.4.0 and delta-rs do, hold the same."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession

from tests.peers.test_delta_spark import RUN, ours, shown, theirs
from tests.support import log
from tests.support.delta_rs import by_query, in_order
from tests.support.maintenance import await_maintenance, do_maintenance, log_files
from tests.support.sample_tables import ALL_TYPES, ODD_PARTITIONS, SAMPLES, Sample
from tests.support.session_settings import session_settings
from tests.support.spark_process import SparkProcess

CLASSIC = {"task": "classicCheckpoint"}
EACH_COMMIT = {"spark.deltaic.properties.defaults.checkpointInterval": "1"}

#: The actions of one kind in a checkpoint file, as JSON without nulls.
ROWS = """
spark.conf.set("spark.sql.jsonGenerator.ignoreNullFields", "true")
df = spark.read.parquet(*paths)
result = {
    kind: sorted(
        r[0] for r in df.where(f"{kind} IS NOT NULL").selectExpr(f"to_json({kind})").collect()
    )
    for kind in df.columns
}
"""

CHECKPOINT = """
jvm, session = spark._jvm, spark._jsparkSession
jvm.org.apache.spark.sql.delta.DeltaLog.forTable(session, path).checkpoint()
result = None
"""


def checkpointed(spark: SparkSession, table: str) -> int:
    """Append nothing, so that a checkpoint is written, and leave no other commit than its own."""
    df = spark.read.format("delta").load(table)
    with session_settings(spark, {"spark.deltaic.maintenance.background": "false"}):
        df.limit(0).write.format("delta").mode("append").save(table)
    newest = log.newest(table)
    assert log_files(table, f"{newest:020d}.checkpoint*.parquet")
    for version in log.versions(table)[:-1]:
        log.commit_path(table, version).unlink()
    return newest


@pytest.mark.parametrize("sample", SAMPLES, ids=str)
def test_delta_spark_and_delta_rs_read_a_table_from_our_checkpoint_alone(
    spark: SparkSession, delta_spark: SparkProcess, table: str, sample: Sample
) -> None:
    with session_settings(spark, EACH_COMMIT):
        df = sample.write(spark, table)
        expected, rows = shown(df), in_order(df.collect())
        await_maintenance(spark)
    checkpointed(spark, table)
    moved = str(Path(table).rename(f"{table}-moved"))
    assert ours(spark, moved) == expected
    assert theirs(delta_spark, moved) == expected
    if sample.delta_rs_fails is None:
        assert by_query(moved) == rows


TABLES: dict[str, list[str]] = {
    "all types": [f"CREATE TABLE delta.`{{t}}` USING delta AS {ALL_TYPES}"],
    "all types with vectors": [
        "CREATE TABLE delta.`{t}` USING delta "
        f"TBLPROPERTIES ('delta.enableDeletionVectors' = 'true') AS {ALL_TYPES}",
        "DELETE FROM delta.`{t}` WHERE int = 3",
        "DELETE FROM delta.`{t}` WHERE int IS NULL",
    ],
    "odd partitions": [
        "CREATE TABLE delta.`{t}` USING delta PARTITIONED BY (s, d, ts, n, b) AS "
        f"{ODD_PARTITIONS}"
    ],
    "mapped columns": [
        "CREATE TABLE delta.`{t}` (id BIGINT, `a b` STRUCT<`x,y`: INT, z: TIMESTAMP_NTZ>, p DATE) "
        "USING delta PARTITIONED BY (p) TBLPROPERTIES ('delta.columnMapping.mode' = 'name')",
        "INSERT INTO delta.`{t}` VALUES "
        "(1, named_struct('x,y', 5, 'z', TIMESTAMP_NTZ'2024-01-01 01:02:03.456'), "
        "DATE'2024-05-05'), (2, NULL, NULL)",
        "ALTER TABLE delta.`{t}` RENAME COLUMN id TO key",
    ],
    "few statistics": [
        "CREATE TABLE delta.`{t}` (a INT, b STRUCT<c: INT, d: STRING>, e INT) USING delta "
        "TBLPROPERTIES ('delta.dataSkippingNumIndexedCols' = '2')",
        "INSERT INTO delta.`{t}` VALUES (1, named_struct('c', 2, 'd', 'x'), 3)",
    ],
    "named statistics": [
        "CREATE TABLE delta.`{t}` (a INT, b STRUCT<c: INT, d: STRING>, e INT) USING delta "
        "TBLPROPERTIES ('delta.dataSkippingStatsColumns' = 'b.d,e')",
        "INSERT INTO delta.`{t}` VALUES (1, named_struct('c', 2, 'd', 'x'), 3)",
    ],
    "row tracking and removed files": [
        "CREATE TABLE delta.`{t}` (id BIGINT) USING delta "
        "TBLPROPERTIES ('delta.enableRowTracking' = 'true')",
        "INSERT INTO delta.`{t}` SELECT id FROM range(10)",
        "DELETE FROM delta.`{t}` WHERE id < 5",
    ],
    "clustered": [
        "CREATE TABLE delta.`{t}` (id BIGINT, s STRING) USING delta CLUSTER BY (id)",
        "INSERT INTO delta.`{t}` SELECT id, cast(id AS STRING) FROM range(10)",
    ],
    "struct only": [
        "CREATE TABLE delta.`{t}` USING delta TBLPROPERTIES "
        "('delta.checkpoint.writeStatsAsJson' = 'false', "
        "'delta.checkpoint.writeStatsAsStruct' = 'true') "
        f"AS {ALL_TYPES}"
    ],
    "json only": [
        "CREATE TABLE delta.`{t}` USING delta TBLPROPERTIES "
        f"('delta.checkpoint.writeStatsAsStruct' = 'false') AS {ALL_TYPES}"
    ],
}


def in_any_order(protocol: dict[str, Any]) -> dict[str, Any]:
    """Sort the features that an action names, if it is one that does."""
    return {k: sorted(v) if k.endswith("Features") else v for k, v in protocol.items()}


def by_path(rows: dict[str, list[str]], kind: str) -> dict[str, Any]:
    bodies = [in_any_order(json.loads(text)) for text in rows.get(kind, [])]
    return {
        body.get("path") or body.get("domain") or body.get("appId") or "": body for body in bodies
    }


@pytest.mark.protocol("checkpoint-schema-1", "checkpoint-schema-2", "checkpoint-schema-3")
@pytest.mark.protocol("requirements-for-writers-checkpoints-1")
@pytest.mark.protocol("requirements-for-writers-checkpoints-3")
@pytest.mark.protocol("requirements-for-writers-checkpoints-4")
@pytest.mark.protocol("requirements-for-writers-checkpoints-5")
@pytest.mark.protocol("requirements-for-writers-checkpoints-6")
@pytest.mark.parametrize("name", TABLES)
def test_our_checkpoint_holds_what_delta_spark_s_holds_and_both_read_ours(
    spark: SparkSession, delta_spark: SparkProcess, table: str, name: str
) -> None:
    delta_spark.run(RUN, statements=[text.replace("{t}", table) for text in TABLES[name]])
    copied = f"{table}-copied"
    log.copy_table(table, copied)
    newest = log.newest(table)
    delta_spark.run(CHECKPOINT, path=table)
    do_maintenance(spark, copied, newest, CLASSIC)
    checkpoint = f"_delta_log/{newest:020d}.checkpoint.parquet"
    expected = delta_spark.run(ROWS, paths=[f"{table}/{checkpoint}"])
    found = delta_spark.run(ROWS, paths=[f"{copied}/{checkpoint}"])
    for kind in expected:
        assert by_path(found, kind) == by_path(expected, kind), kind
    assert set(found) <= set(expected)
    hint, their_hint = (
        json.loads(Path(t, "_delta_log", "_last_checkpoint").read_text()) for t in (copied, table)
    )
    for key in ("version", "size", "numOfAddFiles"):
        assert hint[key] == their_hint[key]
    for version in range(newest):
        log.commit_path(copied, version).unlink()
    rows = ours(spark, table)
    assert ours(spark, copied) == rows
    assert theirs(delta_spark, copied) == rows


@pytest.mark.protocol("handling-backward-compatibility-while-moving-to-uuid-named-v2-checkpoints-2")
@pytest.mark.protocol("uuid-named-checkpoint-1", "v2-checkpoint-table-feature-2", "v2-spec-1")
@pytest.mark.protocol("v2-spec-2")
@pytest.mark.parametrize("kind", ["multi-part", "V2"])
def test_delta_spark_reads_checkpoints_in_several_files(
    spark: SparkSession, delta_spark: SparkProcess, table: str, kind: str
) -> None:
    policy = ", 'delta.checkpointPolicy' = 'v2'" if kind == "V2" else ""
    spark.sql(
        f"CREATE TABLE delta.`{table}` USING delta TBLPROPERTIES "
        f"('delta.checkpointInterval' = '2', 'delta.enableDeletionVectors' = 'true'{policy}) AS "
        "SELECT /*+ REPARTITION(8) */ id, id % 5 AS k FROM range(100)"
    )
    with session_settings(
        spark,
        {
            "spark.deltaic.checkpoint.partSize": "4",
            "spark.deltaic.maintenance.background": "false",
        },
    ):
        spark.sql(f"DELETE FROM delta.`{table}` WHERE id % 10 = 3")
        spark.sql(f"DELETE FROM delta.`{table}` WHERE id % 10 = 4")
    if kind == "V2":
        assert len(log_files(table, "_sidecars/*.parquet")) > 2
        assert len(log_files(table, f"{2:020d}.checkpoint.????????-*.parquet")) == 1
        assert len(log_files(table, f"{2:020d}.checkpoint.parquet")) == 1
        # The classic name is for those who cannot read V2; the others have the choice.
        log_files(table, f"{2:020d}.checkpoint.parquet")[0].unlink()
    else:
        parts = log_files(table, f"{2:020d}.checkpoint.*.*.parquet")
        assert len(parts) > 2 and parts[0].name.endswith(f"{len(parts):010d}.parquet")
    for version in range(2):
        log.commit_path(table, version).unlink()
    expected = shown(
        spark.sql("SELECT id, id % 5 AS k FROM range(100) WHERE id % 10 NOT IN (3, 4)")
    )
    assert theirs(delta_spark, table) == expected
    moved = str(Path(table).rename(f"{table}-moved"))
    assert ours(spark, moved) == expected
    assert by_query(moved) == in_order(spark.read.format("delta").load(moved).collect())


def test_delta_spark_s_own_checksum_agrees_with_ours(
    spark: SparkSession, delta_spark: SparkProcess, table: str
) -> None:
    """delta-spark compares its state with the checksum file of its version, if configured to."""
    statements = [
        f"CREATE TABLE delta.`{table}` (id BIGINT) USING delta "
        "TBLPROPERTIES ('delta.enableDeletionVectors' = 'true')",
        f"INSERT INTO delta.`{table}` SELECT id FROM range(0, 100, 1, 2)",
        f"DELETE FROM delta.`{table}` WHERE id = 7",
        f"INSERT INTO delta.`{table}` VALUES (1000)",
    ]
    delta_spark.run(RUN, statements=statements)
    copied = f"{table}-copied"
    log.copy_table(table, copied)
    newest = log.newest(table)
    for path in log_files(copied, "*.crc"):
        path.unlink()
    for version in range(newest + 1):
        do_maintenance(spark, copied, version, {"task": "checksum"})
    for version in range(newest + 1):
        name = f"{version:020d}.crc"
        expected = json.loads(Path(table, "_delta_log", name).read_text())
        found = json.loads(Path(copied, "_delta_log", name).read_text())
        for body in (found, expected):
            body["protocol"] = in_any_order(body["protocol"])
        shared = found.keys() & expected.keys()
        assert {"numFiles", "tableSizeBytes", "metadata", "protocol"} <= shared
        assert {key: found[key] for key in shared} == {key: expected[key] for key in shared}
        assert found.keys() <= expected.keys() | {"setTransactions", "domainMetadata"}
