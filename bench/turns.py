"""The order of turns."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TypeVar

T = TypeVar("T")


def turns(takers: Sequence[T], number: int) -> list[T]:
    """Return the order of a round: each round starts one taker later than the previous one."""
    start = number % len(takers)
    return [*takers[start:], *takers[:start]]
