"""The environment of the clients, and servers of Spark Connect with the plugins."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.support.connect import connect_server
from tests.support.spark_process import SparkProcess
from tests.support.tool_environments import python_of


@pytest.fixture(scope="session")
def client_python() -> str:
    """The Python that has the clients, and not our package."""
    return python_of("clients")


@pytest.fixture(scope="session")
def connect_address(client_python: str, tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """The address of a server with the plugins."""
    with connect_server(tmp_path_factory.mktemp("plugins"), client_python) as address:
        yield address


@pytest.fixture(scope="session")
def connect_client(connect_address: str, client_python: str) -> Iterator[SparkProcess]:
    """A client of this server, with the packages of Deltaic and of delta-spark."""
    with SparkProcess(python=client_python, remote=connect_address, has_package=True) as process:
        yield process


@pytest.fixture(scope="session")
def classic() -> Iterator[SparkProcess]:
    """A session with its JVM in the process."""
    with SparkProcess(engine="deltaic") as process:
        yield process
