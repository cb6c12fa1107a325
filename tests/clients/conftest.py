"""The environment of the clients."""

from __future__ import annotations

import pytest

from tests.support.tool_environments import python_of


@pytest.fixture(scope="session")
def client_python() -> str:
    """The Python that has the clients, and not our package."""
    return python_of("clients")
