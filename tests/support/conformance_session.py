"""The session that the corpus's own ``check.py`` asks for, by name, in its worker process."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tests.support.spark_process import COMMON_SETTINGS

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


RETENTION_POLICY = (
    "spark.databricks.delta.vacuum.enforceTimeTravelWithinDeletedFileRetentionDuration"
)


def session() -> SparkSession:
    from pyspark.sql import SparkSession

    from deltaic import configure_spark

    builder = configure_spark(
        SparkSession.builder.master("local[2]").appName("deltaic-conformance")
    )
    for name, value in COMMON_SETTINGS.items():
        builder = builder.config(name, value)
    # The corpus is years old, and its answers were recorded with versions of any age to be read.
    builder = builder.config(RETENTION_POLICY, "false")
    return builder.config("spark.driver.memory", "1500m").getOrCreate()
