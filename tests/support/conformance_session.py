"""The session that the corpus's own ``check.py`` asks for, by name, in its worker process."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tests.support.spark_process import COMMON_SETTINGS

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


def session() -> SparkSession:
    from pyspark.sql import SparkSession

    from deltaic import configure_spark

    builder = configure_spark(
        SparkSession.builder.master("local[2]").appName("deltaic-conformance")
    )
    for name, value in COMMON_SETTINGS.items():
        builder = builder.config(name, value)
    return builder.config("spark.driver.memory", "1500m").getOrCreate()
