"""Which cases of a thorough test every run looks at."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import pytest


def quick_and_thorough(cases: Iterable[Any], *quick: Any) -> list[Any]:
    """Return the cases as parameters, all but the quick ones left to the thorough tests.

    A case that is a tuple is a set of parameters.
    """
    parameters = []
    for case in cases:
        values = case if isinstance(case, tuple) else (case,)
        marks = [] if case in quick else [pytest.mark.thorough]
        parameters.append(pytest.param(*values, marks=marks))
    return parameters
