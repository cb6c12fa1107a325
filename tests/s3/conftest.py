"""An S3-compatible server, sessions that write to it, and the figures the tests end with."""

from __future__ import annotations

import json
import subprocess
import urllib.request
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest

from tests.support.paths import ROOT
from tests.support.spark_process import SparkProcess

#: What `make test-s3` fetched: S3A and the AWS SDK, and the environment that moto runs in.
_TOOLS = ROOT / ".tools" / "s3"

WRITERS = 3

#: moto serves nobody who does not say who he is; it does not check it.
_SOMEBODY = {
    "Authorization": "AWS4-HMAC-SHA256 Credential=test/20260101/us-east-1/s3/aws4_request, "
    "SignedHeaders=host, Signature=none"
}

_FIGURES: dict[str, int] = {}


class Server:
    """The server's address, and what the tests ask of it besides S3."""

    def __init__(self, port: int) -> None:
        self.address = f"http://127.0.0.1:{port}"

    def lose_reply(self, nth: int) -> None:
        """Lose the reply to the n-th conditional put from now on."""
        self._put(f"/-/lose/{nth}")

    def figures(self) -> dict[str, int]:
        with urllib.request.urlopen(f"{self.address}/-/figures") as reply:
            return dict(json.load(reply))

    def make_bucket(self, name: str) -> None:
        self._put(f"/{name}")

    def _put(self, path: str) -> None:
        request = urllib.request.Request(self.address + path, method="PUT", headers=_SOMEBODY)
        urllib.request.urlopen(request).close()


@pytest.fixture(scope="session")
def server() -> Iterator[Server]:
    if not _TOOLS.is_dir():
        pytest.fail(f"{_TOOLS} is missing: run `make test-s3`", pytrace=False)
    command = [str(_TOOLS / "venv" / "bin" / "python"), str(ROOT / "tests" / "s3" / "server.py")]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL) as process:
        try:
            assert process.stdout is not None
            started = Server(int(process.stdout.readline()))
            started.make_bucket("bucket")
            yield started
            _FIGURES.update(started.figures())
        finally:
            process.kill()


@pytest.fixture(scope="session")
def figures() -> dict[str, int]:
    return _FIGURES


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    if _FIGURES:
        terminalreporter.section("S3")
        terminalreporter.write_line(", ".join(f"{n} {name}" for name, n in _FIGURES.items()))


def start_writer(server: Server, **settings: str) -> SparkProcess:
    """Start a session that reaches the server. A dot in a name is written as two underscores."""
    jars = ":".join(str(jar) for jar in sorted((_TOOLS / "jars").glob("*.jar")))
    s3a = {
        "endpoint": server.address,
        "endpoint.region": "us-east-1",
        "access.key": "test",
        "secret.key": "test",
        "path.style.access": "true",
        "connection.ssl.enabled": "false",
    }
    return SparkProcess(
        {
            "spark.driver.memory": "700m",
            "spark.driver.extraClassPath": jars,
            "spark.deltaic.maintenance.background": "false",
            **{f"spark.hadoop.fs.s3a.{name}": value for name, value in s3a.items()},
            **{name.replace("__", "."): value for name, value in settings.items()},
        },
        engine="deltaic",
        master="local[1]",
    )


@pytest.fixture(scope="session")
def writers(server: Server) -> Iterator[list[SparkProcess]]:
    processes = [start_writer(server) for _ in range(WRITERS)]
    with ThreadPoolExecutor(WRITERS) as pool:
        started: list[Any] = list(
            pool.map(lambda process: process.run("result = spark.range(1).count()"), processes)
        )
    assert started == [1] * WRITERS
    yield processes
    for process in processes:
        process.close()
