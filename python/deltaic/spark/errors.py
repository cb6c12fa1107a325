"""Errors of the JVM as errors of Python."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from py4j.protocol import Py4JJavaError

from deltaic.exceptions import DeltaError, error_class

#: Where the classes of Deltaic's exceptions are.
_DELTAIC_EXCEPTIONS = ("io.deltaic.protocol.", "io.deltaic.spark.errors.")
#: PySpark shows the cause of this one itself, and users of streams expect its class.
_STREAM_FAILED = "org.apache.spark.sql.streaming.StreamingQueryException"
_MAX_CAUSES = 50


def delta_error_of(throwable: Any) -> DeltaError | None:
    """Return the error that a Java exception, or one of its causes, stands for.

    Classes are compared by name: the jar's class loader is not one that Py4J would ask.
    """
    for _ in range(_MAX_CAUSES):
        if throwable is None:
            return None
        name = throwable.getClass().getName()
        if name == _STREAM_FAILED:
            return None
        if name.startswith(_DELTAIC_EXCEPTIONS):
            condition = throwable.getCondition()
            parameters = json.loads(throwable.getParametersJson())
            return error_class(condition)(condition, parameters, throwable.getMessage())
        throwable = throwable.getCause()
    return None


@contextmanager
def jvm_errors() -> Iterator[None]:
    """Raise what the JVM reports as `DeltaError`; other Java exceptions pass as they are."""
    try:
        yield
    except Py4JJavaError as problem:
        found = delta_error_of(problem.java_exception)
        if found is None:
            raise
        raise found from None


def convert_captured_exceptions() -> None:
    """Let PySpark raise `DeltaError` where a Deltaic exception surfaces, such as in an action.

    PySpark turns every Java exception into a Python one in this single function and offers no
    other way to add a class. Exceptions that are not Deltaic's go through the original function.
    """
    from pyspark.errors.exceptions import captured

    original = captured.convert_exception
    if getattr(original, "converts_deltaic", False):
        return

    def convert(throwable: Any) -> Any:
        return delta_error_of(throwable) or original(throwable)

    convert.converts_deltaic = True  # type: ignore[attr-defined]
    captured.convert_exception = convert  # type: ignore[assignment]
