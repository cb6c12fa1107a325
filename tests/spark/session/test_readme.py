"""What the README and the examples tell users to run does run, as they would run it."""

from __future__ import annotations

import re
import sys
from pathlib import Path

from tests.support.paths import ROOT
from tests.support.user_runs import require_lines, run_as_user


def test_quick_start_of_the_readme_prints_what_it_says(tmp_path: Path) -> None:
    text = (ROOT / "README.md").read_text(encoding="utf-8")
    found = re.search(r"^## Quick start\n.*?^```python\n(.*?)^```$", text, re.M | re.S)
    assert found is not None, "the README has no example below its quick start"
    require_lines(run_as_user([sys.executable, "-c", found[1]], tmp_path), ["5", "10"])


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
