"""How many cases the tests run that have many: some in each run, all in `make test-thorough`."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable
from typing import Any, TypeVar

import pytest
from hypothesis import HealthCheck, settings

Case = TypeVar("Case")

IS_THOROUGH = "DELTAIC_THOROUGH" in os.environ


def every(step: int, cases: Iterable[Case]) -> list[Case]:
    """Return each `step`th case, from the first on; all cases in `make test-thorough`.

    The test needs the marker ``drawn``, by which `make test-thorough` selects it.
    """
    return list(cases)[:: 1 if IS_THOROUGH else step]


def drawn_cases(count: int, *, thorough: int, same: bool = False) -> Callable[[Any], Any]:
    """Draw `count` cases in each run, and as many as `thorough` says in `make test-thorough`.

    Parameters
    ----------
    same
        Draw the same cases each time, not others.
    """
    count = thorough if IS_THOROUGH else count
    drawn = settings(
        max_examples=count,
        deadline=None,
        derandomize=same,
        suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow],
    )
    return lambda test: pytest.mark.drawn(drawn(test))
