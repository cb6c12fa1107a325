"""What `make quick` runs: the tests of the packages that have changed since a commit.

Usage: ``python -m tests.support.changed BASE {spark,scala}``. It prints the arguments of pytest for
the tests on Spark, or the names of the Scala suites; nothing if no package changed.
"""

from __future__ import annotations

import argparse
import subprocess
from collections.abc import Iterable, Sequence
from pathlib import PurePosixPath

from tests.support.paths import ROOT

#: Packages, the longest prefix first, and the folders of tests/spark with the tests of each.
FOLDERS = {
    "jvm/spark/src/main/scala/io/deltaic/spark/scan": ("scan",),
    "jvm/spark/src/main/scala/io/deltaic/spark/skipping": ("scan",),
    "jvm/spark/src/main/scala/io/deltaic/spark/schema": ("scan", "write"),
    "jvm/spark/src/main/scala/io/deltaic/spark/changes": ("changes",),
    "jvm/spark/src/main/scala/io/deltaic/spark/commit": ("commit",),
    "jvm/spark/src/main/scala/io/deltaic/spark/write": ("write",),
    "jvm/spark/src/main/scala/io/deltaic/spark/rowlevel": ("rowlevel",),
    "jvm/spark/src/main/scala/io/deltaic/spark/optimize": ("optimize",),
    "jvm/spark/src/main/scala/io/deltaic/spark/vacuum": ("vacuum",),
    "jvm/spark/src/main/scala/io/deltaic/spark/catalog": ("catalog", "write"),
    "jvm/spark/src/main/scala/io/deltaic/spark/clone": ("clone",),
    "jvm/spark/src/main/scala/io/deltaic/spark/restore": ("restore",),
    "jvm/spark/src/main/scala/io/deltaic/spark/convert": ("convert",),
    "jvm/spark/src/main/scala/io/deltaic/spark/stream": ("stream",),
    "jvm/spark/src/main/scala/io/deltaic/spark/sql/analysis/merge": ("rowlevel",),
    "jvm/spark/src/main/scala/io/deltaic/spark/sql/analysis": ("rowlevel", "catalog", "write"),
    "jvm/spark/src/main/scala/io/deltaic/spark/sql/parser": ("catalog", "changes"),
    "jvm/spark/src/main/scala/io/deltaic/spark/sql/command": ("catalog",),
    "jvm/spark/src/main/scala/io/deltaic/spark/sql": ("scan", "rowlevel", "session"),
    "jvm/spark/src/main/scala/io/deltaic/spark/connect": ("session",),
    "jvm/spark/src/main/scala/io/deltaic/spark": ("session", "catalog"),
    "jvm/spark/src/main/scala/org/apache/spark": ("scan", "rowlevel", "session"),
    "jvm/core/src/main/scala/io/deltaic/dv": ("scan", "rowlevel"),
    "jvm/core/src/main/scala/io/deltaic/maintenance": ("commit",),
    "jvm/core/src/main/scala/io/deltaic": ("scan", "commit"),
    "jvm/spark/src/main/antlr4": ("catalog", "changes"),
    "jvm/spark/src/main": ("session",),
    "jvm/delta-api": ("session",),
    "python/deltaic/resources": ("catalog", "commit", "write"),
    "python/deltaic/commands": ("catalog", "clone", "convert", "restore", "write"),
    "python/deltaic/commit": ("commit",),
    "python/deltaic/protocol": ("catalog", "write"),
    "python/deltaic/spark": ("commit", "session"),
    "python/deltaic": ("catalog", "rowlevel"),
    "python/as-delta": ("catalog",),
}

_BY_LENGTH = sorted(FOLDERS, key=len, reverse=True)
_SPARK_TESTS = "tests/spark/"
_GUIDE = "docs/guide/"
_GUIDE_TESTS = "tests/guide/test_pages.py"
_SCALA = tuple(f"jvm/{module}/src/main/scala/" for module in ("core", "spark", "delta-api"))
_SUITES = tuple(f"jvm/{module}/src/test/scala/" for module in ("core", "spark", "delta-api"))


def changed_since(base: str) -> list[str]:
    """Return the files that differ from the merge base with `base`, also those not committed."""

    def git(*arguments: str) -> list[str]:
        done = subprocess.run(
            ["git", *arguments], cwd=ROOT, check=True, capture_output=True, text=True
        )
        return done.stdout.splitlines()

    [ancestor] = git("merge-base", "HEAD", base)
    new = git("ls-files", "--others", "--exclude-standard")
    return sorted({*git("diff", "--name-only", ancestor), *new})


def spark_tests(changed: Iterable[str]) -> list[str]:
    """Return the folders of the changed packages, the changed tests in others, and the guide's."""
    files = list(changed)
    folders = {f"{_SPARK_TESTS}{folder}" for file in files for folder in folders_of(file)}
    tests = {
        file
        for file in files
        if file.startswith(_SPARK_TESTS)
        and PurePosixPath(file).name.startswith("test_")
        and (ROOT / file).is_file()
        and str(PurePosixPath(file).parent) not in folders
    }
    guide = [_GUIDE_TESTS] if any(file.startswith(_GUIDE) for file in files) else []
    return sorted(folders) + sorted(tests) + guide


def folders_of(file: str) -> Sequence[str]:
    """Return the folders with the tests of the package that a file is in."""
    package = next((p for p in _BY_LENGTH if file.startswith(f"{p}/")), None)
    return () if package is None else FOLDERS[package]


def scala_suites(changed: Iterable[str]) -> list[str]:
    """Return patterns of the suites in the packages of the changed Scala files."""
    packages = set()
    for file in changed:
        for root in (*_SCALA, *_SUITES):
            if file.startswith(root) and file.endswith(".scala"):
                packages.add(str(PurePosixPath(file.removeprefix(root)).parent).replace("/", "."))
    return [f"{package}.*Suite" for package in sorted(packages)]


def main() -> None:
    """Print what `make quick` passes on, on one line."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("base", help="a branch or commit, such as main")
    parser.add_argument("kind", choices=("spark", "scala"))
    arguments = parser.parse_args()
    choose = {"spark": spark_tests, "scala": scala_suites}[arguments.kind]
    print(" ".join(choose(changed_since(arguments.base))))


if __name__ == "__main__":
    main()
