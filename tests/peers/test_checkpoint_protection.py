"""Tables from which delta-spark dropped a feature at once: the log before that is protected."""

from __future__ import annotations

import os
import time
from pathlib import Path

from pyspark.sql import SparkSession

from tests.peers.test_delta_spark import shown
from tests.support import log
from tests.support.maintenance import await_maintenance
from tests.support.session_settings import session_settings
from tests.support.spark_process import SparkProcess

DROP = """
name = f"delta.`{path}`"
spark.sql(f"CREATE TABLE {name} (id BIGINT) USING delta TBLPROPERTIES "
          "('delta.enableDeletionVectors' = 'true', 'delta.checkpointInterval' = '4')")
spark.sql(f"INSERT INTO {name} SELECT id FROM range(10)")
spark.sql(f"DELETE FROM {name} WHERE id = 3")
spark.sql(f"ALTER TABLE {name} DROP FEATURE deletionVectors")
result = spark.sql(f"DESCRIBE DETAIL {name}").select("tableFeatures").head()[0]
"""
#: Files are kept no longer than the log, whose retention has ended.
BEYOND = "spark.databricks.delta.vacuum.enforceTimeTravelWithinDeletedFileRetentionDuration"
READ = """
spark.conf.set(beyond, "false")
def rows(version):
    df = spark.read.format("delta").option("versionAsOf", version).load(path)
    return sorted(row[0] for row in df.collect())
result = {str(version): rows(version) for version in versions}
spark.conf.unset(beyond)
"""


def names(table: str) -> set[str]:
    found = (path.name for path in Path(table, "_delta_log").iterdir())
    return {name for name in found if name[0].isdigit() and not name.endswith(".crc")}


def backdate(table: str, last: int, days: float) -> None:
    """Let all commits up to a version be that old."""
    then = time.time() - days * 86_400
    for version in range(last + 1):
        os.utime(log.commit_path(table, version), (then, then))


def retain(spark: SparkSession, table: str, duration: str) -> None:
    """Let the log expire after this time; files that were removed must not be kept longer."""
    names = ("deletedFileRetentionDuration", "logRetentionDuration")
    properties = ", ".join(f"'delta.{name}' = '{duration}'" for name in names)
    spark.sql(f"ALTER TABLE delta.`{table}` SET TBLPROPERTIES ({properties})")


def rows_at(spark: SparkSession, table: str, version: int) -> list[int]:
    df = spark.read.format("delta").option("versionAsOf", version).load(table)
    return sorted(row[0] for row in df.collect())


def test_a_table_that_lost_a_feature_at_once_is_written_and_its_protected_log_stays(
    spark: SparkSession, delta_spark: SparkProcess, table: str
) -> None:
    assert "checkpointProtection" in delta_spark.run(DROP, path=table)
    dropped = log.newest(table)
    properties = log.metadata(table)["configuration"]
    assert properties["delta.requireCheckpointProtectionBeforeVersion"] == str(dropped)
    before = names(table)
    protected = {name for name in before if "checkpoint" in name}

    name = f"delta.`{table}`"
    retain(spark, table, "2 days")
    # The checkpoints of some versions below the protected one are old enough, and of none above.
    backdate(table, dropped - 1, days=5)
    while log.newest(table) % 4 or log.newest(table) < dropped + 3:
        spark.sql(f"INSERT INTO {name} VALUES ({100 + log.newest(table)})")
    spark.sql(f"UPDATE {name} SET id = -1 WHERE id = 5")
    await_maintenance(spark)
    assert before <= names(table), "what is protected was deleted"
    assert not log.last_actions(table, "add")[0].get("deletionVector")

    newest = log.newest(table)
    versions = [2, dropped, newest]
    theirs = delta_spark.run(READ, path=table, versions=versions, beyond=BEYOND)
    with session_settings(spark, {BEYOND: "false"}):
        ours = {str(version): rows_at(spark, table, version) for version in versions}
    assert ours == theirs
    assert ours["2"] == ours[str(dropped)] == [n for n in range(10) if n != 3]

    # Once all of it has expired, and a checkpoint stands for it, it goes at once.
    first = min(int(n[:20]) for n in names(table) if "checkpoint" in n and int(n[:20]) > dropped)
    backdate(table, first, days=5)
    retain(spark, table, "1 day")
    while log.newest(table) % 4:
        spark.sql(f"INSERT INTO {name} VALUES ({100 + log.newest(table)})")
    await_maintenance(spark)
    assert not protected & names(table)
    assert min(log.versions(table)) == first
    rows = shown(spark.read.format("delta").load(table))
    assert (
        delta_spark.run(
            "result = sorted(map(repr, spark.read.format('delta').load(path).collect()))",
            path=table,
        )
        == rows
    )
