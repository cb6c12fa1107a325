"""The slowest tests of a run of `make test`, Python and Scala, from the reports in JUnit's format.

Usage: ``python -m tests.support.slowest``.
"""

from __future__ import annotations

import xml.etree.ElementTree as ElementTree
from collections.abc import Iterable, Iterator
from pathlib import Path

from tests.support.paths import ROOT

#: How many tests are listed.
COUNT = 20

#: The reports that pytest and sbt write, relative to the root.
REPORTS = ("build/junit-*.xml", "jvm/*/target/test-reports/*.xml")


def cases(reports: Iterable[Path]) -> Iterator[tuple[float, str, str]]:
    """Yield the seconds, the module or suite, and the name of each test."""
    for report in reports:
        for case in ElementTree.parse(report).iter("testcase"):
            yield float(case.get("time", "0")), case.get("classname", ""), case.get("name", "")


def slowest(reports: Iterable[Path], count: int = COUNT) -> list[tuple[float, str]]:
    """Return the seconds and names of the tests that took longest, the slowest first."""
    tests = [(seconds, f"{suite} {name}") for seconds, suite, name in cases(reports)]
    return sorted(tests, reverse=True)[:count]


def main() -> None:
    """Print the slowest tests of the newest reports."""
    reports = [report for pattern in REPORTS for report in ROOT.glob(pattern)]
    print(f"The slowest {COUNT} tests:")
    for seconds, name in slowest(reports):
        print(f"{seconds:8.1f} s  {name}")


if __name__ == "__main__":
    main()
