"""The environment of the clients."""

from __future__ import annotations

import pytest

from tests.support.paths import ROOT

#: What `make test-clients` installs, besides a PySpark of its own.
_TOOLS = ROOT / ".tools" / "clients"


@pytest.fixture(scope="session")
def client_python() -> str:
    """The Python that has the clients, and not our package."""
    if not _TOOLS.is_dir():
        pytest.fail(f"{_TOOLS} is missing: run `make test-clients`", pytrace=False)
    return str(_TOOLS / "venv" / "bin" / "python")
