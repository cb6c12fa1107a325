"""The environment of the tools: they import ``delta``, and delta-spark is not installed."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.support.paths import ROOT
from tests.support.spark_process import SparkProcess
from tests.support.tool_environments import python_of

#: The package of the wheel deltaic-as-delta.
AS_DELTA = ROOT / "python" / "as-delta"

#: How the process gets the package ``delta``.
WAYS = {
    "install_as_delta": "from deltaic import install_as_delta\ninstall_as_delta()",
    "deltaic-as-delta": f"import sys\nsys.path.insert(0, {str(AS_DELTA)!r})",
}


@pytest.fixture(scope="session")
def tools_python() -> str:
    """The Python that has the tools, and not our package."""
    return python_of("tools")


@pytest.fixture(scope="session", params=WAYS)
def tools(tools_python: str, request: pytest.FixtureRequest) -> Iterator[SparkProcess]:
    """A session of Deltaic in the environment of the tools, whose ``delta`` is Deltaic's."""
    with SparkProcess(engine="deltaic", python=tools_python) as process:
        process.run(WAYS[request.param])
        yield process
