"""What the tests of faults share, and the figures they end with."""

from __future__ import annotations

import os
import shutil
import time
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from tests.support.faulty import FaultyProcesses, build_jar, start_faulty
from tests.support.session_settings import session_settings
from tests.support.spark_process import SparkProcess
from tests.support.table_builder import append_file, build_table
from tests.support.valid_logs import require_valid_logs

_FIGURES: Counter[str] = Counter()

SCHEMA = "id BIGINT, v STRING"

#: The rows of the tables below, and the versions they have.
BASE_ROWS = [(n, f"row {n}") for n in range(30)]
BASE_VERSIONS = 6

#: The rows of a table whose deletion vectors are too large for the log.
MANY_ROWS = [(n, f"row {n}") for n in range(40_000)]

_DAYS = 24 * 3600

#: Properties of each kind of table; every commit of theirs is followed by all there is.
_KINDS = {
    "vectors": {"delta.enableDeletionVectors": "true"},
    "plain": {"delta.enableDeletionVectors": "false"},
    "v2": {"delta.enableDeletionVectors": "true", "delta.checkpointPolicy": "v2"},
    "listed": {
        "delta.enableDeletionVectors": "false",
        "delta.compatibility.symlinkFormatManifest.enabled": "true",
    },
    "partitioned": {"delta.enableDeletionVectors": "true"},
}


@pytest.fixture(scope="session")
def figures() -> Counter[str]:
    """What was done to how many tables; a loss is an acknowledged commit that is not there."""
    return _FIGURES


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    if _FIGURES:
        names = ["commits", "lost races", "kills", "faults", "losses"]
        figures = ", ".join(f"{_FIGURES[name]} {name}" for name in names)
        terminalreporter.section("faults")
        terminalreporter.write_line(figures)


def require_kept(figures: Counter[str], kept: bool, what: str) -> None:
    """Fail, and count a loss, unless what was acknowledged is there."""
    figures["losses"] += not kept
    assert kept, f"acknowledged, and lost: {what}"


@pytest.fixture(scope="session")
def faults_jar(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return build_jar(tmp_path_factory.mktemp("faults"))


@pytest.fixture(scope="module")
def processes(faults_jar: Path) -> Iterator[FaultyProcesses]:
    pool = FaultyProcesses(faults_jar, ahead=2)
    yield pool
    pool.close()


@pytest.fixture(scope="session")
def faulty(faults_jar: Path) -> Iterator[SparkProcess]:
    """A session with faults that outlives them."""
    with start_faulty(faults_jar) as process:
        yield process


@pytest.fixture(scope="session")
def templates(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A table of each kind, old enough that the next commit cleans up its log."""
    folder = tmp_path_factory.mktemp("templates")
    with session_settings(spark, {"spark.deltaic.maintenance.background": "false"}):
        for kind, properties in _KINDS.items():
            table = str(folder / kind)
            first = BASE_ROWS[: -BASE_VERSIONS + 1]
            files = [first[n::3] for n in range(3)]
            settings = {
                "delta.checkpointInterval": "2",
                "delta.logRetentionDuration": "interval 1 day",
                "delta.deletedFileRetentionDuration": "interval 1 day",
                **properties,
            }
            build_table(
                spark,
                table,
                SCHEMA,
                files,
                partition_by=["v"] if kind == "partitioned" else [],
                properties=settings,
            )
            for row in BASE_ROWS[-BASE_VERSIONS + 1 :]:
                append_file(spark, table, SCHEMA, [row])
        many = spark.range(len(MANY_ROWS)).selectExpr("id", "concat('row ', id) AS v").coalesce(1)
        writer = many.write.format("delta").option("delta.enableDeletionVectors", "true")
        writer.save(str(folder / "many"))
    long_ago = time.time() - 40 * _DAYS
    for file in folder.rglob("_delta_log/*"):
        os.utime(file, (long_ago, long_ago))
    return folder


@pytest.fixture
def copy_of(templates: Path, tmp_path: Path) -> Iterator[_Copies]:
    """Returns a fresh copy of a table by its kind; what is left of it must be a valid log."""
    yield _Copies(templates, tmp_path)
    require_valid_logs(tmp_path)


class _Copies:
    def __init__(self, templates: Path, folder: Path) -> None:
        self._templates = templates
        self._folder = folder

    def __call__(self, kind: str, name: str = "table") -> str:
        table = self._folder / name
        shutil.copytree(self._templates / kind, table)
        return str(table)
