"""What only `make test-thorough` runs, since `make test` has to be quick.

A file lists tests and variants of tests. Of the other variants, `make test` runs each fourth of a
test on Spark, and each sixth of a test beside a peer.

Usage: ``python -m tests.support.thorough SECONDS`` adds the slowest variants of parametrized tests,
by the newest reports of `make test`, until as many seconds are saved. One variant of each stays.
"""

from __future__ import annotations

import sys
from collections import Counter
from collections.abc import Iterable, Iterator
from pathlib import Path

from tests.support.paths import ROOT
from tests.support.slowest import cases

#: One node ID of pytest in each line: of a variant, or of a test for all its variants.
LIST = ROOT / "tests" / "thorough.txt"

#: Of the variants of a test in these folders, `make test` runs the first of each so many.
STEPS = {"tests/spark/": 4, "tests/peers/": 6}

REPORTS = ("build/junit-spark-*.xml", "build/junit-peers-*.xml")


def listed() -> frozenset[str]:
    """Return the node IDs of the file."""
    return frozenset(LIST.read_text(encoding="utf-8").split("\n")) - {""}


def variants_left_out(node_ids: Iterable[str]) -> Iterator[str]:
    """Yield the variants that `make test` leaves out of those that run in all."""
    seen: Counter[str] = Counter()
    for node_id in node_ids:
        test, _, variant = node_id.partition("[")
        step = next((n for folder, n in STEPS.items() if test.startswith(folder)), 1)
        if variant and seen[test] % step:
            yield node_id
        seen[test] += 1


def slowest_variants(reports: Iterable[Path], seconds: float) -> list[str]:
    """Return the node IDs of variants that together take as many seconds, the slowest first."""
    variants: dict[str, list[tuple[float, str]]] = {}
    for time_s, suite, name in cases(reports):
        if name.endswith("]"):
            module = suite.replace(".", "/") + ".py"
            test = f"{module}::{name.partition('[')[0]}"
            variants.setdefault(test, []).append((time_s, f"{module}::{name}"))
    chosen: list[str] = []
    for time_s, variant in sorted(
        (one for others in variants.values() for one in sorted(others)[1:]), reverse=True
    ):
        if seconds <= 0:
            break
        seconds -= time_s
        chosen.append(variant)
    return chosen


def main() -> None:
    """Add variants to the list."""
    reports = [report for pattern in REPORTS for report in ROOT.glob(pattern)]
    added = slowest_variants(reports, float(sys.argv[1]))
    LIST.write_text("".join(f"{one}\n" for one in sorted(listed() | set(added))), encoding="utf-8")
    print(f"{LIST}: {len(added)} variants added")


if __name__ == "__main__":
    main()
