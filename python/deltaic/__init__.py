"""Deltaic: an independent Delta Lake engine for Apache Spark.

Examples
--------
>>> from pyspark.sql import SparkSession  # doctest: +SKIP
>>> from deltaic import DeltaTable, configure_spark
>>> spark = configure_spark(SparkSession.builder).getOrCreate()  # doctest: +SKIP
>>> spark.range(10).write.format("delta").save("/data/t")  # doctest: +SKIP
>>> DeltaTable.forPath(spark, "/data/t").delete("id = 3")  # doctest: +SKIP
"""

from __future__ import annotations

from deltaic._version import __version__
from deltaic.as_delta import install_as_delta
from deltaic.session import configure_spark, configure_spark_with_delta_pip
from deltaic.spark import error_classes as _error_classes  # noqa: F401
from deltaic.tables import DeltaTable

__all__ = [
    "DeltaTable",
    "__version__",
    "configure_spark",
    "configure_spark_with_delta_pip",
    "install_as_delta",
]
