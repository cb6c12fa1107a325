"""Ctrl-C in the Python of a driver: a real SIGINT to a process that executes a statement."""

from __future__ import annotations

import signal
from dataclasses import dataclass

from tests.support.spark_process import SparkProcess

_AT_A_POINT = """
import importlib, os, signal, threading, time
import deltaic.spark.committer as committer

owner = getattr(importlib.import_module(module), class_name)
original, run_command = getattr(owner, method), committer.run_command
sent, received, ended = threading.Event(), threading.Event(), threading.Event()
failures = []

def at_the_point(*arguments):
    if sent.is_set():
        return original(*arguments)
    returned = original(*arguments) if after else None
    sent.set()
    os.kill(os.getpid(), signal.SIGINT)
    # Py4J calls this in the main thread, which gets the signal here, or in another one.
    if threading.current_thread() is not threading.main_thread():
        assert received.wait(60)
    return returned if after else original(*arguments)

def run(*arguments):
    try:
        return run_command(*arguments)
    except Exception as problem:
        failures.append(getattr(problem, "condition", None) or repr(problem))
        raise
    finally:
        ended.set()

setattr(owner, method, at_the_point)
committer.run_command = run
try:
    try:
        spark.sql(statement).collect()
    except Exception:
        # The statement may have failed before its interrupt arrives.
        time.sleep(60)
    result = ["it was not interrupted"]
except KeyboardInterrupt:
    received.set()
    assert ended.wait(60)
    result = failures
finally:
    setattr(owner, method, original)
    committer.run_command = run_command
"""

_AT_ANY_TIME = """
import time
try:
    try:
        spark.sql(statement).collect()
    except Exception:
        # The statement may have failed before its interrupt arrives.
        time.sleep(60)
        raise
    result = "finished"
except KeyboardInterrupt:
    result = "interrupted"
"""


@dataclass(frozen=True)
class Point:
    """A call in Deltaic's Python during a statement, and whether the signal comes after it."""

    module: str
    class_name: str
    method: str
    after: bool


def interrupt_at(process: SparkProcess, statement: str, point: Point) -> list[str]:
    """Execute a statement, send SIGINT at the point, and wait until the statement has ended.

    Returns
    -------
    list of str
        The conditions of the error with which the statement ended, whose caller was gone by then.
    """
    failures: list[str] = process.run(
        _AT_A_POINT,
        statement=statement,
        module=point.module,
        class_name=point.class_name,
        method=point.method,
        after=point.after,
    )
    return failures


def run_interruptible(process: SparkProcess, statement: str) -> str:
    """Execute a statement; return ``interrupted`` if `interrupt` comes meanwhile."""
    outcome: str = process.run(_AT_ANY_TIME, statement=statement)
    return outcome


def interrupt(process: SparkProcess) -> None:
    """Send SIGINT to the process, from another thread than the one that waits for it."""
    process._process.send_signal(signal.SIGINT)
