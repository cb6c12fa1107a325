"""How many cases the tests draw that make up their own."""

from __future__ import annotations

import os
from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import HealthCheck, settings


def drawn_cases(count: int, *, thorough: int, same: bool = False) -> Callable[[Any], Any]:
    """Draw `count` cases in each run, and as many as `thorough` says in `make test-thorough`.

    Parameters
    ----------
    same
        Draw the same cases each time, not others.
    """
    count = thorough if "DELTAIC_THOROUGH" in os.environ else count
    drawn = settings(
        max_examples=count,
        deadline=None,
        derandomize=same,
        suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow],
    )
    return lambda test: pytest.mark.drawn(drawn(test))
