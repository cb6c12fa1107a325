"""The scripts of Spark's distribution, and servers that they start, as a user runs them."""

from __future__ import annotations

import os
import socket
import subprocess
import sys
import time
from collections.abc import Collection, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

import pyspark
import pytest

from deltaic.session import spark_settings
from tests.support.spark_process import COMMON_SETTINGS, FOREIGN_VARIABLES

SPARK_HOME = Path(pyspark.__file__).parent


def user_environment(
    without: Collection[str] = (), python: str | None = sys.executable
) -> dict[str, str]:
    """Return the variables of a user's shell, which names no other Spark.

    Parameters
    ----------
    without
        More variables that are left out.
    python
        The Python that Spark is to use; by None, the variables do not say.
    """
    foreign = {*FOREIGN_VARIABLES, "PYSPARK_PYTHON", "PYSPARK_DRIVER_PYTHON", *without}
    found = {k: v for k, v in os.environ.items() if k not in foreign}
    if python is not None:
        found["PYSPARK_PYTHON"] = python
    found.setdefault("SPARK_LOCAL_IP", "127.0.0.1")
    return found


def submit_options(
    settings: Mapping[str, str] | None = None, *, jar_option: str = "--jars"
) -> list[str]:
    """Return the options of `spark-submit` for a session with our jar and `settings` of its own."""
    all_settings = {
        **COMMON_SETTINGS,
        **spark_settings(),
        "spark.driver.memory": "1g",
        "spark.log.level": "ERROR",
        **(settings or {}),
    }
    options = ["--master", "local[2]", jar_option, all_settings.pop("spark.jars")]
    for name, value in all_settings.items():
        options += ["--conf", f"{name}={value}"]
    return options


def compile_scala(source: Path, jar: Path, *jars: Path) -> Path:
    """Compile a Scala program with the compiler that Spark's own shell uses; return its jar.

    Parameters
    ----------
    jars
        What it uses besides Spark.
    """
    java = Path(os.environ["JAVA_HOME"], "bin", "java") if "JAVA_HOME" in os.environ else "java"
    class_path = os.pathsep.join(map(str, [SPARK_HOME / "jars" / "*", *jars]))
    compiler = [str(java), "-cp", class_path, "scala.tools.nsc.Main", "-usejavacp"]
    subprocess.run([*compiler, "-d", str(jar), str(source)], check=True, timeout=300)
    return jar


def run(
    command: list[str], folder: Path, environment: Mapping[str, str] | None = None
) -> subprocess.CompletedProcess[str]:
    """Run a command in a folder, without any input, and return what it printed."""
    return subprocess.run(
        command,
        cwd=folder,
        env=user_environment() if environment is None else dict(environment),
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )


def output_of(
    command: list[str], folder: Path, environment: Mapping[str, str] | None = None
) -> str:
    """Run a command that is to succeed, as `run`, and return its standard output."""
    done = run(command, folder, environment)
    assert done.returncode == 0, f"{done.stdout[-4000:]}\n{done.stderr[-8000:]}"
    return done.stdout


def free_port() -> int:
    """Return a port that nobody listens on."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        return int(free.getsockname()[1])


@contextmanager
def spark_server(
    main_class: str,
    options: list[str],
    arguments: list[str],
    folder: Path,
    port: int,
    variables: Mapping[str, str] | None = None,
) -> Iterator[None]:
    """Run a server of Spark's distribution as long as the context lasts.

    Parameters
    ----------
    options
        Those of `spark-submit`.
    arguments
        Those of the server.
    folder
        Where it runs, and leaves its log.
    port
        On which it answers when it is ready.
    variables
        More variables of its environment.
    """
    output = folder / "server.log"
    command = [str(SPARK_HOME / "bin" / "spark-submit"), *options, "--class", main_class]
    with output.open("wb") as sink:
        server = subprocess.Popen(
            [*command, "spark-internal", *arguments],
            cwd=folder,
            env={**user_environment(), **(variables or {})},
            stdout=sink,
            stderr=subprocess.STDOUT,
        )
    try:
        _await_port(port, server, output)
        yield
    finally:
        server.terminate()
        server.wait(timeout=60)


def _await_port(port: int, server: subprocess.Popen[bytes], output: Path) -> None:
    deadline = time.monotonic() + 240
    while time.monotonic() < deadline and server.poll() is None:
        try:
            socket.create_connection(("127.0.0.1", port), timeout=1).close()
            return
        except OSError:
            time.sleep(0.5)
    pytest.fail(f"the server does not answer:\n{output.read_text(errors='replace')[-4000:]}")
