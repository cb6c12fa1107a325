"""What the README and the examples tell users to run does run, as they would run it."""

from __future__ import annotations

import os
import re
import sys
from pathlib import Path

import pytest

from tests.support.paths import ROOT
from tests.support.spark_scripts import output_of, user_environment


def run_as_user(command: list[str], folder: Path) -> str:
    """Run `command` in `folder`, this Python first on PATH, and return what it printed."""
    environment = user_environment(python=None)
    environment["PATH"] = os.pathsep.join([str(Path(sys.executable).parent), environment["PATH"]])
    (folder / "examples").symlink_to(ROOT / "examples")
    return output_of(command, folder, environment)


def readme_block(heading: str) -> tuple[str, str]:
    """Return language and text of the first fenced block below `heading`."""
    text = (ROOT / "README.md").read_text(encoding="utf-8")
    found = re.search(rf"^### {re.escape(heading)}\n.*?^```(\w+)\n(.*?)^```$", text, re.M | re.S)
    assert found is not None, f"the README has no fenced block below {heading!r}"
    return found[1], found[2]


@pytest.mark.parametrize(
    ("heading", "printed"),
    [
        ("PySpark", ["5", "10"]),
        ("spark-submit", ["900 rows left"]),
        ("spark-sql", ["61", "100"]),
    ],
)
def test_each_way_of_use_in_the_readme_prints_what_it_says(
    heading: str, printed: list[str], tmp_path: Path
) -> None:
    language, code = readme_block(heading)
    command = {"python": [sys.executable, "-c", code], "sh": ["bash", "-euc", code]}[language]
    lines = run_as_user(command, tmp_path).splitlines()
    positions = [next((i for i, s in enumerate(lines) if s.startswith(p)), -1) for p in printed]
    assert -1 not in positions, lines
    assert positions == sorted(positions), "printed, but in another order"


def test_isolation_example_shows_the_key_twice_at_the_weaker_level_alone(tmp_path: Path) -> None:
    script = str(ROOT / "examples" / "isolation_levels.py")
    printed = run_as_user([sys.executable, script, str(tmp_path)], tmp_path)
    assert "Serializable: the MERGE fails, ConcurrentAppendException: [1, 2]" in printed
    assert "WriteSerializable: the MERGE commits: [1, 2, 2]" in printed


def test_quickstart_shows_the_table_now_and_at_first(tmp_path: Path) -> None:
    script = str(ROOT / "examples" / "quickstart.py")
    printed = run_as_user([sys.executable, script, str(tmp_path)], tmp_path)
    assert "now:     [0, 2, 4, 6, 8, 10, 12, 14]" in printed
    assert "at first: [0, 1, 2, 3, 4, 5, 6, 7, 8, 9]" in printed
    assert re.search(r"3\|.*DELETE", printed)


def test_upsert_example_merges_each_batch_once(tmp_path: Path) -> None:
    script = str(ROOT / "examples" / "streaming_upsert.py")
    printed = run_as_user([sys.executable, script, str(tmp_path)], tmp_path)
    assert "newest: [(0, 3), (1, 100), (2, 5), (7, 70)]" in printed


def test_totals_example_merges_a_batch_that_runs_again_once(tmp_path: Path) -> None:
    script = str(ROOT / "examples" / "streaming_totals.py")
    printed = run_as_user([sys.executable, script, str(tmp_path)], tmp_path)
    assert "counts: [('apple', 1), ('fig', 1), ('pear', 3)]" in printed
    assert "totals: [('apple', 2), ('fig', 5), ('pear', 14)]" in printed
