"""The classes of the JVM that Python calls, and whether there is a JVM to call."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from py4j.java_gateway import JavaClass

from deltaic.exceptions import error

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


def python_api(jvm: Any) -> Any:
    """Return ``io.deltaic.spark.PythonApi``.

    Raises
    ------
    TableStateError
        If the JVM does not have the jar.
    """
    return _loaded(jvm.io.deltaic.spark.PythonApi)


def row_changes(jvm: Any) -> Any:
    """Return ``io.deltaic.spark.RowChanges``.

    Raises
    ------
    TableStateError
        If the JVM does not have the jar.
    """
    return _loaded(jvm.io.deltaic.spark.RowChanges)


def _loaded(found: Any) -> Any:
    if not isinstance(found, JavaClass):
        raise error("DELTAIC_JAR_NOT_LOADED")
    return found


def is_connect(spark: SparkSession) -> bool:
    """Whether the session is one of Spark Connect, without a JVM in reach."""
    return type(spark).__module__.startswith("pyspark.sql.connect")
