"""What `make quick` runs for changed files, and the limits of the source tree that it relies on."""

from __future__ import annotations

import subprocess
from collections import Counter
from pathlib import Path

import pytest

from tests.support.changed import FOLDERS, folders_of, scala_suites, spark_tests
from tests.support.paths import ROOT

_SPARK = "jvm/spark/src/main/scala/io/deltaic/spark"
MAX_LINES = 500
MAX_FILES = 20


def sources() -> list[Path]:
    """Return all Scala and Python files of the repository."""
    listed = subprocess.run(
        ["git", "ls-files", "--cached", "--others", "--exclude-standard", "*.scala", "*.py"],
        cwd=ROOT,
        check=True,
        capture_output=True,
        text=True,
    )
    files = [Path(line) for line in listed.stdout.splitlines()]
    return [file for file in files if (ROOT / file).is_file()]


SOURCES = sources()


@pytest.mark.parametrize(
    ("file", "folders"),
    [
        (f"{_SPARK}/scan/files/FileSource.scala", ("scan",)),
        (f"{_SPARK}/sql/analysis/merge/KeyPair.scala", ("rowlevel",)),
        (f"{_SPARK}/DeltaicCatalog.scala", ("session", "catalog")),
        ("python/deltaic/commit/rebase.py", ("commit",)),
        ("docs/architecture.md", ()),
    ],
)
def test_folders_are_those_of_the_innermost_package(file: str, folders: tuple[str, ...]) -> None:
    assert tuple(folders_of(file)) == folders


def test_changed_tests_run_unless_their_folder_does() -> None:
    scan, write = "tests/spark/scan/test_scan_plan.py", "tests/spark/write/test_write_modes.py"
    changed = [f"{_SPARK}/scan/TableScan.scala", scan, write, "tests/spark/write/test_gone.py"]
    assert spark_tests(changed) == ["tests/spark/scan", write]


def test_changed_pages_of_the_guide_run() -> None:
    assert spark_tests(["docs/guide/reading.md"]) == ["tests/guide/test_pages.py"]


def test_suites_are_those_of_changed_packages() -> None:
    changed = [f"{_SPARK}/skipping/FileField.scala", "python/deltaic/tables.py"]
    assert scala_suites(changed) == ["io.deltaic.spark.skipping.*Suite"]


def test_each_package_of_the_engine_has_tests_on_spark() -> None:
    main = [str(f) for f in SOURCES if "/src/main/" in str(f) or f.is_relative_to("python")]
    assert [file for file in main if not folders_of(file)] == []
    tests = {folder for folders in FOLDERS.values() for folder in folders}
    assert tests == {d.name for d in (ROOT / "tests/spark").iterdir() if any(d.glob("test_*.py"))}


def test_no_file_is_longer_than_500_lines() -> None:
    lengths = {str(f): len((ROOT / f).read_bytes().splitlines()) for f in SOURCES}
    assert len(lengths) > 500
    assert {file: lines for file, lines in lengths.items() if lines > MAX_LINES} == {}


def test_no_package_has_more_than_20_files() -> None:
    engine = [f for f in SOURCES if "/src/main/" in str(f) or f.is_relative_to("python")]
    files = Counter(str(f.parent) for f in engine if f.name != "__init__.py")
    files += Counter(str(f.parent) for f in SOURCES if f.is_relative_to("tests/spark"))
    assert {package: n for package, n in files.items() if n > MAX_FILES} == {}
