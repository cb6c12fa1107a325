"""Whose turn it is."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TypeVar

T = TypeVar("T")


def turns(takers: Sequence[T], number: int) -> list[T]:
    """Return the order of a round: each round starts one taker later than the one before."""
    start = number % len(takers)
    return [*takers[start:], *takers[:start]]
