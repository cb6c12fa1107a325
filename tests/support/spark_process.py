"""A Spark session in a process of its own, which runs the code it is sent.

Two engines cannot share a session, and some settings only apply when the JVM starts. So a test that
needs another engine or other settings talks to a second Python process, whose session stays up for
as long as the fixture lives::

    with SparkProcess(settings={"spark.sql.ansi.enabled": "false"}, engine="deltaic") as other:
        rows = other.run("result = spark.read.format('delta').load(path).count()", path="/data/t")
"""

from __future__ import annotations

import json
import os
import selectors
import subprocess
import sys
import tempfile
from collections.abc import Mapping
from pathlib import Path
from types import TracebackType
from typing import Any, Literal

from tests.support.paths import ROOT

#: What every test session has in common: small, quiet, and the same answer on every machine.
COMMON_SETTINGS: Mapping[str, str] = {
    "spark.ui.enabled": "false",
    "spark.sql.shuffle.partitions": "2",
    "spark.sql.session.timeZone": "UTC",
    "spark.driver.bindAddress": "127.0.0.1",
    "spark.driver.host": "127.0.0.1",
}

#: Variables that would put another Spark, or this process's own, in the child's way.
FOREIGN_VARIABLES = (
    "SPARK_HOME",
    "SPARK_CONF_DIR",
    "PYSPARK_GATEWAY_PORT",
    "PYSPARK_GATEWAY_SECRET",
    "PYSPARK_SUBMIT_ARGS",
)

Engine = Literal["deltaic", "none"]


class SparkProcessError(AssertionError):
    """The code sent to the other process failed; the message holds its traceback."""


class SparkProcess:
    """A Python process with a Spark session.

    Parameters
    ----------
    settings
        Spark settings on top of `COMMON_SETTINGS`; with the engine "none" they are all there is.
    engine
        "deltaic" passes the builder through ``deltaic.configure_spark`` before `settings` are
        applied, so that a test can take a setting of it away; "none" leaves the builder alone.
    master
        The master URL.
    timeout_s
        How long one call may take, session start included, before the process is killed.
    python
        The Python that runs the process, whose PySpark it has.
    remote
        The address of a Spark Connect server whose client the session is. It has no settings then.
    has_package
        Whether another Python than this has the package of this checkout, as with the engine
        "deltaic".
    """

    def __init__(
        self,
        settings: Mapping[str, str] | None = None,
        *,
        engine: Engine = "none",
        master: str = "local[2]",
        timeout_s: float = 300.0,
        python: str = sys.executable,
        remote: str | None = None,
        has_package: bool = False,
    ) -> None:
        self._timeout_s = timeout_s
        self._folder = tempfile.TemporaryDirectory(prefix="spark-process-")
        folder = Path(self._folder.name)
        self._log = folder / "stderr.log"
        start = {
            "engine": engine,
            "master": master,
            "remote": remote,
            "settings": {
                **COMMON_SETTINGS,
                "spark.deltaic.firstQuery.loadClasses": "false",
                "spark.driver.memory": "1g",
                "spark.sql.warehouse.dir": str(folder / "warehouse"),
                **(settings or {}),
            },
        }
        environment = {k: v for k, v in os.environ.items() if k not in FOREIGN_VARIABLES}
        environment["PYSPARK_PYTHON"] = python
        # The package of this checkout, and not of another one that the environment was made for.
        has_package = has_package or engine == "deltaic" or python == sys.executable
        environment["PYTHONPATH"] = str(ROOT / "python") if has_package else ""
        with self._log.open("wb") as log:
            self._process = subprocess.Popen(
                [
                    python,
                    str(ROOT / "tests" / "support" / "spark_child.py"),
                    json.dumps(start),
                ],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=log,
                cwd=folder,
                env=environment,
            )

    def run(self, code: str, **arguments: Any) -> Any:
        """Run `code` there and return what it assigned to ``result``.

        `code` sees ``spark`` and each of `arguments` by its name. Arguments and result cross as
        JSON; names that the code defines are gone afterwards.
        """
        assert self._process.stdin is not None, "the process was started with pipes"
        try:
            self._process.stdin.write(
                json.dumps({"code": code, "args": arguments}).encode() + b"\n"
            )
            self._process.stdin.flush()
        except BrokenPipeError:
            raise self._failure("the process ended") from None
        reply = json.loads(self._read_line())
        if "error" in reply:
            raise SparkProcessError(reply["error"])
        return reply["result"]

    def log(self) -> str:
        """Return what the process has logged so far."""
        return self._log.read_text(errors="replace")

    def close(self) -> None:
        """End the process and remove its folder."""
        if self._process.stdin is not None and not self._process.stdin.closed:
            self._process.stdin.close()
        try:
            self._process.wait(timeout=30)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()
        if self._process.stdout is not None:
            self._process.stdout.close()
        self._folder.cleanup()

    def kill(self) -> None:
        """End the process, which has no time to stop its session, and remove its folder."""
        self._process.kill()
        self.close()

    def __enter__(self) -> SparkProcess:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self.close()

    def _read_line(self) -> bytes:
        assert self._process.stdout is not None, "the process was started with pipes"
        with selectors.DefaultSelector() as selector:
            selector.register(self._process.stdout, selectors.EVENT_READ)
            if not selector.select(self._timeout_s):
                self._process.kill()
                raise self._failure(f"no answer within {self._timeout_s:.0f} s")
        # A reply is one line, written at once: what has begun to arrive will be there whole.
        line = self._process.stdout.readline()
        if not line:
            raise self._failure("the process ended")
        return line

    def _failure(self, what: str) -> SparkProcessError:
        tail = "\n".join(self.log().splitlines()[-40:])
        return SparkProcessError(f"{what}; the end of its log:\n{tail}")
