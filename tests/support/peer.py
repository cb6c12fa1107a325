"""delta-spark, the peer whose tables we must read and that must read ours."""

from __future__ import annotations

from typing import Any

from tests.support.paths import peer_jars
from tests.support.spark_process import SparkProcess


def start_delta_spark(**settings: str) -> SparkProcess:
    """Start a session of delta-spark. A dot in a setting's name is written as two underscores."""
    named = {name.replace("__", "."): value for name, value in settings.items()}
    return SparkProcess(
        {
            "spark.jars": peer_jars(),
            # A session that all tests share fills 1 GB, and then collects garbage most of the time.
            "spark.driver.memory": "2g",
            "spark.sql.extensions": "io.delta.sql.DeltaSparkSessionExtension",
            "spark.sql.catalog.spark_catalog": "org.apache.spark.sql.delta.catalog.DeltaCatalog",
            # The state of a small table in one task instead of 50: many times faster here.
            "spark.databricks.delta.snapshotPartitions": "1",
            # To generate code for the many columns of its state takes longer than to run it.
            "spark.sql.codegen.wholeStage": "false",
            "spark.sql.codegen.factoryMode": "NO_CODEGEN",
            # VACUUM starts so many tasks.
            "spark.sql.sources.parallelPartitionDiscovery.parallelism": "2",
            **named,
        }
    )


def run_delta_spark(code: str, **arguments: Any) -> Any:
    """Run `code` once in a session of its own and return its ``result``; see `SparkProcess.run`.

    Starting takes seconds: a test that needs nothing special takes the fixture ``delta_spark``.
    """
    with start_delta_spark() as peer:
        return peer.run(code, **arguments)
