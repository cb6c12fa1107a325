"""Ctrl-C in a driver's Python cancels what runs in its JVM (docs/decisions/0057)."""

from __future__ import annotations

import _thread
import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from types import FrameType
from typing import Any

from deltaic.exceptions import error
from deltaic.spark.jvm import python_api

#: How long a signal waits for the JVM, which only notes what is to be cancelled.
_TIMEOUT_S = 10.0

#: How long after the end of a command its reply has been sent.
_REPLY_S = 0.1

_signals = 0


class _MainThread:
    """What the main thread does, in which Python executes the handlers of signals.

    Attributes
    ----------
    commands
        The number of commands that it runs, one within another.
    is_interrupted
        Whether ``KeyboardInterrupt`` waits for their end.
    is_repeated
        Whether the next signal is the one that ends this wait, and nobody's new one.
    """

    commands = 0
    is_interrupted = False
    is_repeated = False


class Interruption:
    """Whether the process got SIGINT since this object was made, for a statement between phases."""

    def __init__(self) -> None:
        self._before = _signals

    def check(self, operation: str, table: str) -> None:
        """Raise an error if it did.

        Raises
        ------
        DeltaError
            If a signal has come.
        """
        if _signals != self._before:
            raise error("DELTAIC_STATEMENT_CANCELLED", operation=operation, table=table)


def cancel_on_interrupt() -> None:
    """Let SIGINT cancel all jobs, and statements of Deltaic that are between two jobs.

    PySpark's own handler has the same purpose. It calls the JVM on the connection of the
    interrupted thread, which is waiting there for the result of the statement: the call fails, and
    nothing is cancelled (Spark 4.2.0). This handler calls it on another thread. It replaces
    PySpark's and Python's own, which notebooks set for each cell, and none of the program.
    """
    from pyspark import SparkContext

    if threading.current_thread() is not threading.main_thread():
        return
    handler = signal.getsignal(signal.SIGINT)
    of_spark = getattr(handler, "__module__", None) == SparkContext.__module__
    if of_spark or handler is signal.default_int_handler:
        signal.signal(signal.SIGINT, _interrupt)


@contextmanager
def interrupted_afterwards() -> Iterator[None]:
    """Run a command of the JVM, and let `KeyboardInterrupt` wait until it has ended.

    Py4J may run it in the main thread, while this waits for the result of a statement. An exception
    that is no answer would break their protocol, and the command could not clean up.
    """
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    cancel_on_interrupt()
    _MainThread.commands += 1
    try:
        yield
    finally:
        _MainThread.commands -= 1
        if _MainThread.commands == 0 and _MainThread.is_interrupted:
            timer = threading.Timer(_REPLY_S, _repeat)
            timer.daemon = True
            timer.start()


def _repeat() -> None:
    """Send the signal again, unless another handler has taken the place of this one."""
    _MainThread.is_interrupted = False
    if signal.getsignal(signal.SIGINT) is not _interrupt:
        return
    _MainThread.is_repeated = True
    main = threading.main_thread().ident
    if hasattr(signal, "pthread_kill") and main is not None:
        signal.pthread_kill(main, signal.SIGINT)
    else:
        _thread.interrupt_main()


def _interrupt(number: int, frame: FrameType | None) -> None:
    global _signals
    is_new, _MainThread.is_repeated = not _MainThread.is_repeated, False
    if is_new:
        _signals += 1
        thread = threading.Thread(target=_cancel_all, name="deltaic-interrupt", daemon=True)
        thread.start()
        thread.join(_TIMEOUT_S)
    _MainThread.is_interrupted = _MainThread.commands > 0
    if not _MainThread.is_interrupted:
        raise KeyboardInterrupt


def _cancel_all() -> None:
    from pyspark import SparkContext

    context = SparkContext._active_spark_context
    if context is not None:
        # The JVM may have ended.
        with suppress(Exception):
            gateway: Any = context._gateway
            python_api(gateway.jvm).cancelAll(context._jsc.sc())
