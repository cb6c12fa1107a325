"""Databases that tests have to themselves."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


@contextmanager
def own_database(spark: SparkSession, name: str) -> Iterator[None]:
    """Make an empty database the current one; afterwards it is gone, with its tables."""
    spark.sql(f"CREATE DATABASE {name}")
    spark.sql(f"USE {name}")
    try:
        yield
    finally:
        spark.sql("USE default")
        spark.sql(f"DROP DATABASE {name} CASCADE")
