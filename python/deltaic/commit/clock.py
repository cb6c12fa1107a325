"""The time that a commit records, read when the commit is about to be written."""

from __future__ import annotations

import time
from collections.abc import Callable

#: Returns milliseconds since 1970.
Clock = Callable[[], int]


def wall_clock_ms() -> int:
    """Return the system time in milliseconds since 1970."""
    return time.time_ns() // 1_000_000
