"""The overhead of the bridge between the JVM and Python in a commit."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import wraps
from typing import Any, TypeVar

from bench.lab import Lab

T = TypeVar("T")

_EMPTY_CALLS = 200

#: A write calls Python twice: to plan the write, and to commit.
_CALLS_PER_COMMIT = 2


class BridgeClock:
    """Seconds that commits spend in Python, without the time in which the JVM writes the commit."""

    def __init__(self) -> None:
        self._in_callbacks_s = 0.0
        self._writing_s = 0.0
        self._commits = 0

    def per_commit_s(self, lab: Lab) -> float:
        """Return the mean of the commits so far, including the round trips to Python."""
        python_s = (self._in_callbacks_s - self._writing_s) / self._commits
        return python_s + _CALLS_PER_COMMIT * _empty_callback_s(lab)

    @contextmanager
    def running(self) -> Iterator[None]:
        """Measure all commits of this process in a `with` block."""
        from deltaic.spark.committer import Committer
        from deltaic.spark.ports import JvmPreparedCommit

        methods: list[tuple[type[Any], str, Callable[[float], None]]] = [
            (Committer, "plan", self._in_callback),
            (Committer, "commit", self._committed),
            (JvmPreparedCommit, "try_commit", self._written),
        ]
        originals = [(owner, name, getattr(owner, name)) for owner, name, _ in methods]
        try:
            for owner, name, record in methods:
                setattr(owner, name, _timed(getattr(owner, name), record))
            yield
        finally:
            for owner, name, original in originals:
                setattr(owner, name, original)

    def _in_callback(self, seconds: float) -> None:
        self._in_callbacks_s += seconds

    def _committed(self, seconds: float) -> None:
        self._in_callback(seconds)
        self._commits += 1

    def _written(self, seconds: float) -> None:
        self._writing_s += seconds


def _timed(method: Callable[..., T], record: Callable[[float], None]) -> Callable[..., T]:
    @wraps(method)
    def timed(*args: Any, **kwargs: Any) -> T:
        started = time.perf_counter()
        try:
            return method(*args, **kwargs)
        finally:
            record(time.perf_counter() - started)

    return timed


class _Nothing:
    """A ``Runnable`` that does nothing, so that only the callback takes time."""

    def run(self) -> None:
        """Do nothing."""

    class Java:
        """Required by Py4J of a class that implements a Java interface."""

        implements = ("java.lang.Runnable",)


def _empty_callback_s(lab: Lab) -> float:
    """Return the seconds of an empty callback, including the call into the JVM."""
    jvm = lab.spark.sparkContext._jvm
    assert jvm is not None
    nothing = _Nothing()

    def call_back(times: int) -> None:
        for _ in range(times):
            jvm.java.util.concurrent.FutureTask(nothing, None).run()

    call_back(1)
    started = time.perf_counter()
    call_back(_EMPTY_CALLS)
    return (time.perf_counter() - started) / _EMPTY_CALLS
