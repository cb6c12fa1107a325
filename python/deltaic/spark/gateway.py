"""Registers the committer with the JVM of a session."""

from __future__ import annotations

import threading
from typing import TYPE_CHECKING, Any

from deltaic.spark.committer import Committer
from deltaic.spark.connect.kind import is_connect
from deltaic.spark.errors import convert_captured_exceptions, jvm_errors
from deltaic.spark.interrupts import cancel_on_interrupt
from deltaic.spark.jvm import python_api

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

_lock = threading.Lock()
#: The gateways whose JVM has our committer. A process has one, and a new one if the JVM restarts.
_registered: list[Any] = []


def register_committer(spark: SparkSession) -> None:
    """Register the committer of this process with the session's JVM, once for each JVM.

    Ctrl-C cancels the statements of the session, see `cancel_on_interrupt`. It does nothing for a
    session of Spark Connect: the server has its own JVM and committer.

    Raises
    ------
    TableStateError
        If the JVM was started without the jar.
    """
    if is_connect(spark):
        return
    cancel_on_interrupt()
    gateway = spark.sparkContext._gateway
    with _lock:
        if any(registered is gateway for registered in _registered):
            return
        register_with(gateway)
        convert_captured_exceptions()
        _registered.append(gateway)


def register_with(gateway: Any) -> None:
    """Start the gateway's callback server, if necessary, and register a committer through it."""
    from pyspark.java_gateway import ensure_callback_server_started

    api = python_api(gateway.jvm)
    ensure_callback_server_started(gateway)  # type: ignore[no-untyped-call]
    with jvm_errors():
        api.registerCommitter(Committer(api))
