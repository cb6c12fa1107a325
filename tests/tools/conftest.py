"""The environment of the tools: they import ``delta``, and delta-spark is not installed."""

from __future__ import annotations

import pytest

from tests.support.paths import ROOT
from tests.support.tool_environments import python_of

#: The package of the wheel deltaic-as-delta.
AS_DELTA = ROOT / "python" / "as-delta"


@pytest.fixture(scope="session")
def tools_python() -> str:
    """The Python that has the tools, and not our package."""
    return python_of("tools")
