"""A session whose disk fails on command: ``io.deltaic.faults`` between the product and the disk."""

from __future__ import annotations

import os
import subprocess
import time
from collections.abc import Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pyspark

from tests.support.paths import ROOT
from tests.support.spark_process import SparkProcess

_SOURCES = ROOT / "jvm" / "core" / "src" / "test" / "scala" / "io" / "deltaic" / "faults"

#: How long a killed process may take to be gone.
_END_S = 20

#: A scheme that leads to the local disk, too, by a store that renames.
RENAMING = "faulty://"


def build_jar(folder: Path) -> Path:
    """Compile the file systems by the compiler that Spark's own shell uses."""
    jar = folder / "faults.jar"
    java = Path(os.environ["JAVA_HOME"], "bin", "java") if "JAVA_HOME" in os.environ else "java"
    jars = str(Path(pyspark.__file__).parent / "jars" / "*")
    compiler = [str(java), "-cp", jars, "scala.tools.nsc.Main", "-usejavacp"]
    sources = map(str, sorted(_SOURCES.glob("*.scala")))
    subprocess.run([*compiler, "-d", str(jar), *sources], check=True, timeout=300)
    return jar


def start_faulty(jar: Path) -> SparkProcess:
    """Start a session in which every access to the disk may be armed to fail.

    What follows a commit is done before the write returns, every seventh commit is compacted.
    """
    package = "io.deltaic.faults."
    return SparkProcess(
        {
            "spark.driver.memory": "700m",
            "spark.driver.extraClassPath": str(jar),
            "spark.driver.extraJavaOptions": "-Djava.nio.file.spi.DefaultFileSystemProvider="
            f"{package}FaultyProvider",
            "spark.hadoop.fs.file.impl": f"{package}FaultyLocalFileSystem",
            "spark.hadoop.fs.faulty.impl": f"{package}FaultySchemeFileSystem",
            "spark.hadoop.fs.AbstractFileSystem.faulty.impl": f"{package}FaultyContext",
            "spark.deltaic.logStore.faulty.impl": "rename",
            "spark.deltaic.maintenance.background": "false",
            "spark.deltaic.logCompaction.interval": "7",
        },
        engine="deltaic",
        master="local[1]",
    )


#: Arms a fault in the session that runs it; `fault` is what `Faults.arm` takes.
ARM = "spark._jvm.io.deltaic.faults.Faults.arm(*fault)\n"


class FaultyProcesses:
    """Sessions with faults, each for one use: the next ones start while the first is in use."""

    def __init__(self, jar: Path, ahead: int) -> None:
        self._jar = jar
        self._pool = ThreadPoolExecutor(ahead)
        self._started: list[Future[tuple[SparkProcess, int]]] = []
        for _ in range(ahead):
            self._start()

    @contextmanager
    def take(self) -> Iterator[tuple[SparkProcess, int]]:
        """Use the next one up; with it comes the number of its JVM's process."""
        process, pid = self._started.pop(0).result()
        self._start()
        try:
            yield process, pid
        finally:
            process.kill()

    def close(self) -> None:
        for future in self._started:
            if not future.cancel():
                future.result()[0].close()
        self._pool.shutdown()

    def _start(self) -> None:
        self._started.append(self._pool.submit(self._warm))

    def _warm(self) -> tuple[SparkProcess, int]:
        process = start_faulty(self._jar)
        pid: Any = process.run(
            "spark.range(1).count()\nresult = spark._jvm.java.lang.ProcessHandle.current().pid()"
        )
        return process, int(pid)


def is_alive(pid: int) -> bool:
    """Return whether a process runs; one that is being ended is waited for.

    Its connections may be closed before the rest of it is gone.
    """
    deadline = time.monotonic() + _END_S
    while _runs(pid):
        if time.monotonic() > deadline:
            return True
        time.sleep(0.05)
    return False


def _runs(pid: int) -> bool:
    """Return whether a process runs; one that nobody has asked for its exit code does not."""
    try:
        stat = Path("/proc", str(pid), "stat").read_text()
    except FileNotFoundError:
        return False
    return stat.rpartition(")")[2].split()[0] != "Z"
