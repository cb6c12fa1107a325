"""Logs as delta-spark 4.4.0 writes them are read as it reads them itself."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession

from tests.support import log
from tests.support.quick import quick_and_thorough
from tests.support.spark_process import SparkProcess
from tests.support.table_builder import rows_of

RUN = """
for name, value in settings.items():
    spark.conf.set(name, value)
try:
    for statement in statements:
        spark.sql(statement)
finally:
    for name in settings:
        spark.conf.unset(name)
result = None
"""
ROWS = """
reader = spark.read.format("delta")
for name, value in options.items():
    reader = reader.option(name, value)
result = sorted([tuple(row) for row in reader.load(path).collect()], key=repr)
"""


def theirs(peer: SparkProcess, path: str, **options: Any) -> list[tuple[Any, ...]]:
    return [tuple(row) for row in peer.run(ROWS, path=path, options=options)]


def ours(spark: SparkSession, path: str, **options: Any) -> list[tuple[Any, ...]]:
    df = spark.read.format("delta").options(**options).load(path)
    return sorted([tuple(row) for row in df.collect()], key=repr)


def log_files(table: str, pattern: str) -> list[Path]:
    return sorted(Path(table, "_delta_log").glob(pattern))


def build_with_v2_checkpoints(peer: SparkProcess, table: str, top_level: str) -> None:
    """Ten commits, deletion vectors among them, with V2 checkpoints of several sidecars."""
    statements = [
        f"CREATE TABLE delta.`{table}` (id BIGINT, p STRING) USING delta PARTITIONED BY (p) "
        "TBLPROPERTIES ('delta.checkpointPolicy' = 'v2', 'delta.checkpointInterval' = '4', "
        "'delta.enableDeletionVectors' = 'true')"
    ]
    for start in range(0, 800, 100):
        statements.append(
            f"INSERT INTO delta.`{table}` SELECT id, cast(id % 3 AS STRING) "
            f"FROM range({start}, {start + 100}, 1, 1)"
        )
        if start == 300:
            statements.append(f"DELETE FROM delta.`{table}` WHERE id % 7 = 0")
    settings = {
        "spark.databricks.delta.checkpointV2.topLevelFileFormat": top_level,
        "spark.databricks.delta.checkpoint.partSize": "5",
    }
    peer.run(RUN, statements=statements, settings=settings)


@pytest.mark.protocol("file-types-checkpoints-2")
@pytest.mark.parametrize("top_level", quick_and_thorough(["json", "parquet"], "parquet"))
def test_v2_checkpoints_of_delta_spark_are_read_and_missed_sidecars_survived(
    spark: SparkSession, delta_spark: SparkProcess, table: str, top_level: str
) -> None:
    build_with_v2_checkpoints(delta_spark, table, top_level)
    checkpoints = log_files(table, f"*.checkpoint.????????-*.{top_level}")
    assert len(checkpoints) == 2
    sidecars = log_files(table, "_sidecars/*.parquet")
    assert len(sidecars) > 2
    expected = theirs(delta_spark, table)
    assert ours(spark, table) == expected
    newest = int(checkpoints[-1].name[:20])
    for version in (0, 3, 4, 5, newest):
        assert rows_of(spark, table, version) == theirs(delta_spark, table, versionAsOf=version)
    for path in sidecars:
        if path.name.startswith(f"{newest:020d}") or path.stat().st_mtime == max(
            p.stat().st_mtime for p in sidecars
        ):
            path.unlink()
    # A copy at another path, which no session has seen.
    moved = Path(table).rename(f"{table}-moved")
    assert ours(spark, str(moved)) == expected


@pytest.mark.thorough
def test_empty_commit_file_is_read_as_delta_spark_reads_it(
    spark: SparkSession, delta_spark: SparkProcess, table: str
) -> None:
    delta_spark.run(
        RUN,
        settings={},
        statements=[
            f"CREATE TABLE delta.`{table}` USING delta AS SELECT id FROM range(3)",
            f"INSERT INTO delta.`{table}` VALUES (10)",
        ],
    )
    log.commit_path(table, 2).write_text("")
    moved = str(Path(table).rename(f"{table}-moved"))
    assert theirs(delta_spark, moved) == [(0,), (1,), (10,), (2,)]
    assert ours(spark, moved) == theirs(delta_spark, moved)
    assert ours(spark, moved, versionAsOf=2) == theirs(delta_spark, moved, versionAsOf=2)


@pytest.mark.thorough
def test_log_compaction_is_read_as_delta_spark_reads_it(
    spark: SparkSession, delta_spark: SparkProcess, table: str
) -> None:
    delta_spark.run(
        RUN,
        settings={},
        statements=[f"CREATE TABLE delta.`{table}` (id BIGINT) USING delta"]
        + [f"INSERT INTO delta.`{table}` VALUES ({n})" for n in range(5)]
        + [f"DELETE FROM delta.`{table}` WHERE id = 2"],
    )
    newest: dict[str, Any] = {}
    for version in range(2, 7):
        for kind in ("add", "remove"):
            for action in log.actions(table, version, kind):
                newest[action["path"]] = {kind: action}
    compacted = Path(table, "_delta_log", f"{2:020d}.{6:020d}.compacted.json")
    compacted.write_text("".join(json.dumps(action) + "\n" for action in newest.values()))
    moved = str(Path(table).rename(f"{table}-moved"))
    assert theirs(delta_spark, moved) == [(0,), (1,), (3,), (4,)]
    assert ours(spark, moved) == theirs(delta_spark, moved)


@pytest.mark.thorough
def test_in_commit_timestamps_switched_on_late_answer_time_travel_as_delta_spark_does(
    spark: SparkSession, delta_spark: SparkProcess, table: str
) -> None:
    delta_spark.run(
        RUN,
        settings={},
        statements=[
            f"CREATE TABLE delta.`{table}` (id BIGINT) USING delta",
            f"INSERT INTO delta.`{table}` VALUES (1)",
            f"INSERT INTO delta.`{table}` VALUES (2)",
            f"ALTER TABLE delta.`{table}` "
            "SET TBLPROPERTIES ('delta.enableInCommitTimestamps' = 'true')",
            f"INSERT INTO delta.`{table}` VALUES (3)",
            f"INSERT INTO delta.`{table}` VALUES (4)",
        ],
    )
    history = delta_spark.run(
        f"result = [[r[0], str(r[1])] for r in spark.sql('DESCRIBE HISTORY delta.`{table}`')"
        ".select('version', 'timestamp').collect()]"
    )
    assert [version for version, _ in history] == [5, 4, 3, 2, 1, 0]
    for version, time in history:
        assert ours(spark, table, timestampAsOf=time) == rows_of(spark, table, version)
        assert ours(spark, table, timestampAsOf=time) == theirs(
            delta_spark, table, timestampAsOf=time
        )
