"""The environment of the tools: they import ``delta``, and delta-spark is not installed."""

from __future__ import annotations

import pytest

from tests.support.paths import ROOT

#: What `make test-tools` installs.
_TOOLS = ROOT / ".tools" / "tools"

#: The package of the wheel deltaic-as-delta.
AS_DELTA = ROOT / "python" / "as-delta"


@pytest.fixture(scope="session")
def tools_python() -> str:
    """The Python that has the tools, and not our package."""
    if not _TOOLS.is_dir():
        pytest.fail(f"{_TOOLS} is missing: run `make test-tools`", pytrace=False)
    return str(_TOOLS / "venv" / "bin" / "python")
