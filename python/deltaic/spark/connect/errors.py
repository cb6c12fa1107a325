"""Makes the errors of a server `DeltaError`, as those of a JVM in this process are."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any

from deltaic.exceptions import INTERNAL_ERROR, DeltaError, error, error_class

_PACKAGE = "io.deltaic.spark.errors"

#: The exceptions of the JVM, by their simple names. The condition of an error tells its class.
_EXCEPTIONS = (
    "DeltaicAnalysisException",
    "DeltaicArithmeticException",
    "DeltaicConcurrentModificationException",
    "DeltaicIllegalArgumentException",
    "DeltaicRuntimeException",
    "DeltaicUnsupportedOperationException",
)

#: What a server needs to have been started with.
_PLUGINS = (
    "spark.connect.extensions.relation.classes=io.deltaic.spark.connect.DeltaicRelationPlugin",
    "spark.connect.extensions.command.classes=io.deltaic.spark.connect.DeltaicCommandPlugin",
)


def convert_server_exceptions() -> None:
    """Make PySpark's client raise `DeltaError` for Deltaic's exceptions in the server.

    PySpark finds the Python class of an error by the names of the classes of the exception.
    """
    from pyspark.errors.exceptions import connect

    classes: dict[str, Any] = connect.EXCEPTION_CLASS_MAPPING
    classes.update({f"{_PACKAGE}.{name}": _delta_error for name in _EXCEPTIONS})


def _delta_error(
    message: str | None = None,
    errorClass: str | None = None,
    messageParameters: Mapping[str, str] | None = None,
    **_others: Any,
) -> DeltaError:
    condition = errorClass or INTERNAL_ERROR
    return error_class(condition)(condition, messageParameters, message)


@contextmanager
def server_errors(what: str) -> Iterator[None]:
    """Raise `DeltaError`, also where another package has registered its classes with PySpark.

    Parameters
    ----------
    what
        The method, for the error of a server that does not have the plugins.
    """
    from pyspark.errors.exceptions.connect import SparkConnectGrpcException

    try:
        yield
    except SparkConnectGrpcException as problem:
        condition = problem.getCondition() or ""
        if condition.startswith("DELTAIC_"):
            parameters = problem.getMessageParameters()
            raise _delta_error(problem.getMessage(), condition, parameters) from None
        if "No handler found for extension" not in str(problem):
            raise
        settings = " and ".join(_PLUGINS)
        raise error("DELTAIC_CONNECT_PLUGIN_MISSING", what=what, settings=settings) from None
