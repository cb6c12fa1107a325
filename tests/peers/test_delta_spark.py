"""delta-spark and Deltaic read, and go on writing, each other's tables."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import DataFrame, SparkSession

from deltaic import DeltaTable
from tests.support import log
from tests.support.sample_tables import ALL_TYPES, ODD_PARTITIONS, SAMPLES, Sample
from tests.support.spark_process import SparkProcess
from tests.support.table_builder import build_table, in_order, rows_of

#: What `shown` does, for the other process; a Row's text holds its column names.
READ = """
reader = spark.read.format("delta")
df = (reader.option("versionAsOf", version) if version is not None else reader).load(path)
result = sorted(map(repr, df.collect()))
"""
RUN = """
for statement in statements:
    spark.sql(statement)
result = None
"""


def shown(df: DataFrame) -> list[str]:
    return sorted(map(repr, df.collect()))


def ours(spark: SparkSession, path: str, version: int | None = None) -> list[str]:
    reader = spark.read.format("delta")
    if version is not None:
        reader = reader.option("versionAsOf", version)
    return shown(reader.load(path))


def theirs(peer: SparkProcess, path: str, version: int | None = None) -> Any:
    return peer.run(READ, path=path, version=version)


@pytest.mark.parametrize("sample", SAMPLES, ids=str)
def test_delta_spark_reads_what_we_wrote(
    spark: SparkSession, delta_spark: SparkProcess, table: str, sample: Sample
) -> None:
    expected = shown(sample.write(spark, table))
    assert ours(spark, table) == expected
    assert theirs(delta_spark, table) == expected
    for version in log.versions(table)[:-1]:
        assert theirs(delta_spark, table, version) == ours(spark, table, version)


def test_checkpoint_that_delta_spark_makes_of_our_log_holds_our_vectors(
    spark: SparkSession, delta_spark: SparkProcess, table: str
) -> None:
    build_table(
        spark,
        table,
        "id BIGINT",
        [[(n,) for n in range(3000)], [(n,) for n in range(3000, 3010)]],
        properties={"delta.checkpointInterval": "4"},
    )
    for condition in ("id % 3 = 0", "id % 1000 = 1", "id > 2500 AND id < 3005"):
        spark.sql(f"DELETE FROM delta.`{table}` WHERE {condition}")
    delta_spark.run(RUN, statements=[f"INSERT INTO delta.`{table}` VALUES (9000)"])
    assert Path(table, "_delta_log", f"{4:020d}.checkpoint.parquet").is_file()
    for version in range(4):
        log.commit_path(table, version).unlink()
    kept = [n for n in range(3010) if n % 3 and n % 1000 != 1 and not 2500 < n < 3005]
    assert rows_of(spark, table) == in_order((n,) for n in [*kept, 9000])
    assert theirs(delta_spark, table) == ours(spark, table)


VECTORS = "TBLPROPERTIES ('delta.enableDeletionVectors' = 'true')"
TWO_FILES = "SELECT /*+ REPARTITION(2) */ id, id % 2 AS p, cast(id AS STRING) s FROM range(6000)"

#: Statements that build a table at `{t}`, run by delta-spark.
THEIR_TABLES: dict[str, list[str]] = {
    "all types": [f"CREATE TABLE delta.`{{t}}` USING delta AS {ALL_TYPES}"],
    "odd partitions": [
        "CREATE TABLE delta.`{t}` USING delta PARTITIONED BY (s, d, ts, n, b) AS "
        f"{ODD_PARTITIONS}"
    ],
    "deletes with vectors": [
        f"CREATE TABLE delta.`{{t}}` USING delta {VECTORS} AS {TWO_FILES}",
        "DELETE FROM delta.`{t}` WHERE id = 17",
        "DELETE FROM delta.`{t}` WHERE id % 3 = 0",
        "DELETE FROM delta.`{t}` WHERE id BETWEEN 1000 AND 1999",
    ],
    "updates with vectors": [
        f"CREATE TABLE delta.`{{t}}` USING delta PARTITIONED BY (p) {VECTORS} AS {TWO_FILES}",
        "UPDATE delta.`{t}` SET s = 'new' WHERE id % 7 = 0",
        "UPDATE delta.`{t}` SET p = 9 WHERE id % 700 = 0",
    ],
    "merges with vectors": [
        f"CREATE TABLE delta.`{{t}}` USING delta {VECTORS} AS {TWO_FILES}",
        "MERGE INTO delta.`{t}` t USING (SELECT id + 5900 AS k FROM range(200)) s ON t.id = s.k "
        "WHEN MATCHED AND k % 2 = 0 THEN DELETE WHEN MATCHED THEN UPDATE SET s = 'merged' "
        "WHEN NOT MATCHED THEN INSERT (id, p, s) VALUES (k, 0, 'inserted')",
    ],
    "checkpoints": [
        "CREATE TABLE delta.`{t}` (id BIGINT, p BIGINT) USING delta PARTITIONED BY (p) "
        "TBLPROPERTIES ('delta.checkpointInterval' = '3', 'delta.enableDeletionVectors' = 'true')",
        *(f"INSERT INTO delta.`{{t}}` VALUES ({i}, {i % 2}), ({i + 100}, 5)" for i in range(5)),
        "DELETE FROM delta.`{t}` WHERE id IN (2, 103)",
        "INSERT INTO delta.`{t}` VALUES (1000, 0)",
    ],
    "optimized and overwritten": [
        f"CREATE TABLE delta.`{{t}}` USING delta {VECTORS} AS {TWO_FILES}",
        "DELETE FROM delta.`{t}` WHERE id % 3 = 0",
        "OPTIMIZE delta.`{t}`",
        "RESTORE TABLE delta.`{t}` TO VERSION AS OF 1",
        "INSERT OVERWRITE delta.`{t}` SELECT id, 0, 'z' FROM range(5)",
    ],
    "deletes without vectors": [
        "CREATE TABLE delta.`{t}` USING delta TBLPROPERTIES "
        f"('delta.enableDeletionVectors' = 'false') AS {TWO_FILES}",
        "DELETE FROM delta.`{t}` WHERE id % 3 = 0",
    ],
}


@pytest.mark.protocol("dv-functional-1")
@pytest.mark.parametrize("name", THEIR_TABLES)
def test_we_read_every_version_that_delta_spark_wrote(
    spark: SparkSession, delta_spark: SparkProcess, table: str, name: str
) -> None:
    statements = [s.replace("{t}", table) for s in THEIR_TABLES[name]]
    delta_spark.run(RUN, statements=statements)
    versions = log.versions(table)
    for version in versions[-1:] if len(versions) > 6 else versions:
        expected = theirs(delta_spark, table, version)
        assert expected or version == 0
        assert ours(spark, table, version) == expected, f"version {version}"


@pytest.mark.protocol("deletion-vectors-4")
def test_delta_spark_table_with_vectors_is_not_taken_for_one_without(
    spark: SparkSession, delta_spark: SparkProcess, table: str
) -> None:
    statements = [s.replace("{t}", table) for s in THEIR_TABLES["deletes with vectors"]]
    delta_spark.run(RUN, statements=statements)
    kept = [n for n in range(6000) if n != 17 and n % 3 and not 1000 <= n <= 1999]
    found = spark.read.format("delta").load(table).select("id").collect()
    assert sorted(row[0] for row in found) == kept


@pytest.mark.protocol("dv-step-3-dml-with-existing-dvs-1")
@pytest.mark.parametrize("first", ["deltaic", "delta-spark"])
@pytest.mark.parametrize("deletion_vectors", [True, False], ids=["vectors", "rewrite"])
def test_both_engines_change_one_table_in_turn(
    spark: SparkSession,
    delta_spark: SparkProcess,
    table: str,
    first: str,
    deletion_vectors: bool,
) -> None:
    rows = [(n, n % 10) for n in range(4000)]
    build_table(
        spark,
        table,
        "id BIGINT, v BIGINT",
        [rows[:2000], rows[2000:]],
        deletion_vectors=deletion_vectors,
    )
    engines = ["deltaic", "delta-spark"] if first == "deltaic" else ["delta-spark", "deltaic"]
    # Small and large deletes on the same files, so that each merges vectors of the other.
    conditions = ["id = 5", "id % 3 = 0", "id IN (7, 2500)", "id % 5 = 1", "id > 3900", "v = 4"]
    for turn, condition in enumerate(conditions):
        statement = f"DELETE FROM delta.`{table}` WHERE {condition}"
        if engines[turn % 2] == "deltaic":
            spark.sql(statement)
        else:
            delta_spark.run(RUN, statements=[statement])
        matching = condition.replace(" = ", " == ").replace("IN", "in")
        rows = [r for r in rows if not eval(matching, {"id": r[0], "v": r[1]})]
        assert rows_of(spark, table) == in_order(rows), condition
    insert = f"INSERT INTO delta.`{table}` VALUES (9000, 1)"
    delta_spark.run(RUN, statements=[insert, f"UPDATE delta.`{table}` SET v = 77 WHERE id = 8"])
    spark.sql(f"UPDATE delta.`{table}` SET v = 88 WHERE id = 22")
    rows = [(i, {8: 77, 22: 88}.get(i, v)) for i, v in [*rows, (9000, 1)]]
    assert rows_of(spark, table) == in_order(rows)
    assert theirs(delta_spark, table) == ours(spark, table)


def test_delta_spark_describes_our_table(
    spark: SparkSession, delta_spark: SparkProcess, table: str
) -> None:
    [sample] = [s for s in SAMPLES if s.name == "merged vectors"]
    sample.write(spark, table)
    code = """
history = spark.sql(f"DESCRIBE HISTORY delta.`{path}`").collect()
detail = spark.sql(f"DESCRIBE DETAIL delta.`{path}`").first()
result = {
    "operations": [row.operation for row in history],
    "read": [row.readVersion for row in history],
    "appends": [row.isBlindAppend for row in history],
    "engines": [row.engineInfo for row in history],
    "deleted": [int(row.operationMetrics.get("numDeletedRows", -1)) for row in history],
    "numFiles": detail.numFiles,
    "sizeInBytes": detail.sizeInBytes,
    "properties": detail.properties,
    "features": sorted(detail.tableFeatures),
}
"""
    described = delta_spark.run(code, path=table)
    files = log.active_files(table)
    assert described["operations"] == ["DELETE", "DELETE", "DELETE", "WRITE"]
    assert described["read"] == [2, 1, 0, None]
    assert described["appends"] == [False, False, False, True]
    assert all("deltaic" in engine.lower() for engine in described["engines"])
    assert described["deleted"] == [133, 5, 2004, -1]
    assert described["numFiles"] == len(files)
    assert described["sizeInBytes"] == sum(add["size"] for add in files)
    assert described["properties"]["delta.enableDeletionVectors"] == "true"
    assert "deletionVectors" in described["features"]


METRICS = [
    "numDeletedRows",
    "numCopiedRows",
    "numRemovedFiles",
    "numAddedFiles",
    "numDeletionVectorsAdded",
    "numDeletionVectorsUpdated",
    "numDeletionVectorsRemoved",
    "numAddedChangeFiles",
]


@pytest.mark.protocol("dv-describe-history-1")
@pytest.mark.parametrize("deletion_vectors", [True, False], ids=["vectors", "rewrite"])
def test_metrics_of_delete_are_those_that_delta_spark_records(
    spark: SparkSession,
    delta_spark: SparkProcess,
    table: str,
    tmp_path: Path,
    deletion_vectors: bool,
) -> None:
    peer_table = str(tmp_path / "peer")
    files = [[(n, "a") for n in range(10)], [(n, "b") for n in range(10, 20)]]
    for path in (table, peer_table):
        build_table(
            spark,
            path,
            "id BIGINT, p STRING",
            files,
            partition_by=["p"],
            deletion_vectors=deletion_vectors,
        )
    conditions = ["id IN (3, 15)", "id = 4", "id < 10", "id % 2 = 0"]
    for condition in conditions:
        DeltaTable.forPath(spark, table).delete(condition)
    code = """
for condition in conditions:
    spark.sql(f"DELETE FROM delta.`{path}` WHERE {condition}")
history = spark.sql(f"DESCRIBE HISTORY delta.`{path}`").limit(len(conditions)).collect()
result = [[int(row.operationMetrics[name]) for name in metrics] for row in history]
"""
    theirs_ = delta_spark.run(code, path=peer_table, conditions=conditions, metrics=METRICS)
    history = DeltaTable.forPath(spark, table).history(len(conditions)).collect()
    assert [[int(row.operationMetrics[name]) for name in METRICS] for row in history] == theirs_
