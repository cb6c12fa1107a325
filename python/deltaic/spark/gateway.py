"""The registration of the committer with the JVM of a session."""

from __future__ import annotations

import threading
from typing import TYPE_CHECKING, Any

from deltaic.spark.committer import Committer
from deltaic.spark.errors import convert_captured_exceptions, jvm_errors
from deltaic.spark.jvm import is_connect, python_api

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

_lock = threading.Lock()
#: The gateways whose JVM has our committer; a process has one, or a new one after a JVM's death.
_registered: list[Any] = []


def register_committer(spark: SparkSession) -> None:
    """Hand the session's JVM the committer of this process, once for each JVM.

    A session of Spark Connect is left alone: its server has a JVM, and a committer, of its own.

    Raises
    ------
    TableStateError
        If the JVM was started without the jar.
    """
    if is_connect(spark):
        return
    gateway = spark.sparkContext._gateway
    with _lock:
        if any(known is gateway for known in _registered):
            return
        register_with(gateway)
        convert_captured_exceptions()
        _registered.append(gateway)


def register_with(gateway: Any) -> None:
    """Start the gateway's callback server, if need be, and register a committer through it."""
    from pyspark.java_gateway import ensure_callback_server_started

    api = python_api(gateway.jvm)
    ensure_callback_server_started(gateway)  # type: ignore[no-untyped-call]
    with jvm_errors():
        api.registerCommitter(Committer(api))
