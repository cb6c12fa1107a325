"""Tells the sessions of Spark Connect from those of this process."""

from __future__ import annotations

from deltaic.arguments import wrong_type


def is_connect(spark: object) -> bool:
    """Whether it is a session of Spark Connect, which has no JVM in this process."""
    kinds = type(spark).__mro__
    return any(kind.__module__ == "pyspark.sql.connect.session" for kind in kinds)


def require_session(spark: object) -> None:
    """Refuse a value that is neither a classic session nor one of Spark Connect.

    Raises
    ------
    InvalidArgumentError
        Naming the argument.
    """
    from pyspark.sql import SparkSession

    if not isinstance(spark, SparkSession) and not is_connect(spark):
        raise wrong_type("sparkSession", spark, "it is a SparkSession")
