"""Converts errors of the JVM to errors of Python."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from py4j.protocol import Py4JJavaError

from deltaic.exceptions import DeltaError, error_class

#: The packages of Deltaic's exceptions.
_DELTAIC_EXCEPTIONS = ("io.deltaic.protocol.", "io.deltaic.spark.errors.")
#: The package of conflicts whose classes have the names of delta-spark's, and extend ours.
_DELTA_SPARK_EXCEPTIONS = "io.delta.exceptions."
#: PySpark reports the cause of this exception itself, and users of streams expect its class.
_STREAM_FAILED = "org.apache.spark.sql.streaming.StreamingQueryException"
_MAX_CAUSES = 50


def delta_error_of(throwable: Any) -> DeltaError | None:
    """Return the error of a Java exception or of one of its causes; None if it is not Deltaic's.

    Classes are compared by name, because Py4J does not use the class loader of the jar.
    """
    for _ in range(_MAX_CAUSES):
        if throwable is None:
            return None
        kind = throwable.getClass()
        if kind.getName() == _STREAM_FAILED:
            return None
        if _is_deltaic(kind):
            condition = throwable.getCondition()
            parameters = json.loads(throwable.getParametersJson())
            return error_class(condition)(condition, parameters, throwable.getMessage())
        throwable = throwable.getCause()
    return None


def _is_deltaic(kind: Any) -> bool:
    """Whether a Java class is an exception of Deltaic, or of a conflict by delta-spark's name."""
    while kind is not None:
        name = kind.getName()
        if name.startswith(_DELTAIC_EXCEPTIONS):
            return True
        if not name.startswith(_DELTA_SPARK_EXCEPTIONS):
            return False
        kind = kind.getSuperclass()
    return False


@contextmanager
def jvm_errors() -> Iterator[None]:
    """Raise Deltaic's Java exceptions as `DeltaError`; other Java exceptions are not changed."""
    try:
        yield
    except Py4JJavaError as problem:
        found = delta_error_of(problem.java_exception)
        if found is None:
            raise
        raise found from None


def convert_captured_exceptions() -> None:
    """Make PySpark raise `DeltaError` for Deltaic's Java exceptions, such as in an action.

    PySpark converts every Java exception in this single function and has no API to add a class.
    Other exceptions are converted by the original function.
    """
    from pyspark.errors.exceptions import captured

    original = captured.convert_exception
    if getattr(original, "converts_deltaic", False):
        return

    def convert(throwable: Any) -> Any:
        return delta_error_of(throwable) or original(throwable)

    convert.converts_deltaic = True  # type: ignore[attr-defined]
    captured.convert_exception = convert  # type: ignore[assignment]
