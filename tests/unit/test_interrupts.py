"""SIGINT in the main thread of a driver, while it executes commands of the JVM or not."""

from __future__ import annotations

import os
import signal
import threading
import time
from collections.abc import Iterator

import pytest

from deltaic.exceptions import DeltaError
from deltaic.spark import interrupts
from deltaic.spark.interrupts import Interruption, cancel_on_interrupt, interrupted_afterwards

pytestmark = pytest.mark.skipif(os.name == "nt", reason="signals of POSIX")


@pytest.fixture
def cancelled(monkeypatch: pytest.MonkeyPatch) -> Iterator[list[int]]:
    """How often the JVM was called, with Python's own handler of the signal at first."""
    calls: list[int] = []
    monkeypatch.setattr(interrupts, "_cancel_all", lambda: calls.append(1))
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    try:
        yield calls
    finally:
        signal.signal(signal.SIGINT, before)


def interrupt() -> None:
    signal.pthread_kill(threading.main_thread().ident or 0, signal.SIGINT)


def test_signal_cancels_and_interrupts(cancelled: list[int]) -> None:
    statement = Interruption()
    cancel_on_interrupt()
    statement.check("OPTIMIZE", "/t")
    with pytest.raises(KeyboardInterrupt):
        interrupt()
    assert cancelled == [1]
    with pytest.raises(DeltaError, match="OPTIMIZE of table /t was cancelled"):
        statement.check("OPTIMIZE", "/t")
    Interruption().check("OPTIMIZE", "/t")


def test_command_ends_before_the_interrupt_is_raised(cancelled: list[int]) -> None:
    steps = []
    with pytest.raises(KeyboardInterrupt):
        with interrupted_afterwards():
            with interrupted_afterwards():
                interrupt()
                steps.append("inner")
            interrupt()
            steps.append("outer")
        time.sleep(10)
    assert steps == ["inner", "outer"]
    assert cancelled == [1, 1], "each signal cancels, but not the one that ends the wait"
    with interrupted_afterwards():
        pass
    time.sleep(0.3)


def test_handler_of_the_program_stays(cancelled: list[int]) -> None:
    received: list[int] = []
    signal.signal(signal.SIGINT, lambda number, frame: received.append(number))
    with interrupted_afterwards():
        interrupt()
    assert received == [signal.SIGINT]
    assert cancelled == []


def test_handler_that_replaces_ours_gets_no_signal_that_nobody_sent(cancelled: list[int]) -> None:
    """A notebook sets its own handler before and after each cell."""
    received: list[int] = []
    with interrupted_afterwards():
        interrupt()
    signal.signal(signal.SIGINT, lambda number, frame: received.append(number))
    time.sleep(0.3)
    assert received == []
    signal.signal(signal.SIGINT, signal.default_int_handler)
    with interrupted_afterwards():
        pass
    time.sleep(0.3)
    assert cancelled == [1]
