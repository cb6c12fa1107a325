"""Fixtures for all tests. Spark starts only for a test that asks for it."""

from __future__ import annotations

import os
import shutil
import sys
from collections import Counter
from collections.abc import Generator, Iterator
from pathlib import Path
from typing import TYPE_CHECKING
from urllib.parse import unquote, urlparse

import pytest

from tests.support.hive import hive_settings
from tests.support.paths import CLASS_ARCHIVE, JAR, shared_folder
from tests.support.peer import start_delta_spark
from tests.support.spark_process import COMMON_SETTINGS, SparkProcess
from tests.support.thorough import listed, variants_left_out
from tests.support.valid_logs import require_valid_logs

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

# Every JVM that a test starts is short of work and of cores: what the second compiler and a
# parallel collector would win does not pay for what they take. The first compiler alone gets a code
# cache of 48 MB, which Spark fills within minutes: from there on as much is thrown out and compiled
# again as is run. A heap that starts small is collected more often than once a second.
_JVM_OPTIONS = [
    "-XX:TieredStopAtLevel=1",
    "-XX:ReservedCodeCacheSize=256m",
    "-XX:+UseSerialGC",
    "-XX:NewRatio=1",
    "-XX:InitialRAMPercentage=50",
    "-XX:MetaspaceSize=256m",
]
if CLASS_ARCHIVE.is_file() and CLASS_ARCHIVE.stat().st_size > 0:
    # A JVM that has other classes says so where a test may look for a program's own words.
    _JVM_OPTIONS += [f"-XX:SharedArchiveFile={CLASS_ARCHIVE}", "-Xlog:disable"]
os.environ.setdefault("JAVA_TOOL_OPTIONS", " ".join(_JVM_OPTIONS))


def pytest_addoption(parser: pytest.Parser) -> None:
    """Add what the targets of the Makefile pass."""
    parser.addoption("--hive", action="store_true", help="give the shared session Hive support")
    parser.addoption(
        "--every",
        type=int,
        default=1,
        metavar="N",
        help="run the first of each N tests of a module",
    )
    parser.addoption(
        "--peers-read",
        action="store_true",
        help="have delta-spark and delta-rs read every table that a test in tests/spark leaves",
    )


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Mark the variants that are left to `make test-thorough`; select the first of each N tests."""
    _mark_thorough(items, listed())
    quick = (item.nodeid for item in items if not item.get_closest_marker("thorough"))
    _mark_thorough(items, frozenset(variants_left_out(quick)))
    every = config.getoption("--every")
    if every > 1:
        seen: Counter[str] = Counter()
        selected: list[pytest.Item] = []
        left_out: list[pytest.Item] = []
        for item in items:
            if item.get_closest_marker("thorough"):
                selected.append(item)
                continue
            module = item.nodeid.partition("::")[0]
            (left_out if seen[module] % every else selected).append(item)
            seen[module] += 1
        items[:] = selected
        config.hook.pytest_deselected(items=left_out)


def _mark_thorough(items: list[pytest.Item], node_ids: frozenset[str]) -> None:
    for item in items:
        if not node_ids.isdisjoint({item.nodeid, item.nodeid.partition("[")[0]}):
            item.add_marker(pytest.mark.thorough)


@pytest.hookimpl(wrapper=True)
def pytest_runtest_call(item: pytest.Item) -> Generator[None, object, object]:
    """Hold every log that a test leaves against the protocol, before fixtures drop the tables."""
    result = yield
    arguments = getattr(item, "funcargs", {})
    if "tmp_path" in arguments:
        require_valid_logs(arguments["tmp_path"])
    if "spark" in arguments:
        warehouse = urlparse(arguments["spark"].conf.get("spark.sql.warehouse.dir"))
        require_valid_logs(Path(unquote(warehouse.path)))
    return result


@pytest.fixture(scope="session", autouse=True)
def _logs_of_shared_tables_are_valid(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    """Hold the tables that several tests shared against the protocol, too."""
    yield
    require_valid_logs(tmp_path_factory.getbasetemp())


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    """Tell how many steps random workloads had, where they are run by hand."""
    if os.environ.get("DELTAIC_WORKLOADS"):
        from tests.support.workload_runs import steps_run

        counts = ", ".join(f"{kind} {n}" for kind, n in sorted(steps_run.items()))
        terminalreporter.write_line(f"{steps_run.total()} steps: {counts}")


@pytest.fixture(scope="session")
def spark(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[SparkSession]:
    """The session that most tests share: Deltaic as a user gets it, from the jar that was built."""
    if not JAR.is_file():
        pytest.fail(f"{JAR} is missing: run `make build` first", pytrace=False)
    from pyspark.sql import SparkSession

    from deltaic import configure_spark

    os.environ["PYSPARK_PYTHON"] = sys.executable
    home = tmp_path_factory.mktemp("spark")
    builder = configure_spark(SparkSession.builder.master("local[2]").appName("deltaic-tests"))
    hive = hive_settings(home) if request.config.getoption("--hive") else {}
    for name, value in {**COMMON_SETTINGS, **hive}.items():
        builder = builder.config(name, value)
    session = (
        builder.config("spark.driver.memory", "3g")
        .config("spark.sql.warehouse.dir", str(home / "warehouse"))
        .config("spark.driver.extraJavaOptions", f"-Dderby.system.home={home / 'derby'}")
        .getOrCreate()
    )
    session.sparkContext.setLogLevel("ERROR")
    assert not hive or session.conf.get("spark.sql.catalogImplementation") == "hive"
    yield session
    session.stop()
    shutil.rmtree(home, ignore_errors=True)


@pytest.fixture(scope="session")
def delta_spark() -> Iterator[SparkProcess]:
    """A session of delta-spark that the tests share, in a process of its own."""
    with start_delta_spark() as peer:
        yield peer


@pytest.fixture
def table(tmp_path: Path) -> str:
    """A path at which there is no table yet."""
    return str(tmp_path / "table")


@pytest.fixture(scope="session")
def shared() -> Path:
    """The project's shared folder; tests that need it are skipped where there is none."""
    folder = shared_folder()
    if folder is None:
        pytest.skip("no shared folder beside the checkout, and DELTAIC_SHARED is not set")
    return folder
