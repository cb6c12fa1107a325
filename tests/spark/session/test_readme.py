"""What the README, the guide and the examples tell users to run does run, as they would run it."""

from __future__ import annotations

import os
import re
import shlex
import sys
from collections.abc import Sequence
from pathlib import Path

import pytest

from tests.support.guide_examples import examples, pages, require_equal
from tests.support.guide_tests import COMMANDS, COVERED, PROGRAMS
from tests.support.paths import JAR, ROOT
from tests.support.spark_scripts import SPARK_HOME, output_of, submit_options, user_environment


def run_as_user(command: list[str], folder: Path) -> str:
    """Run `command` in `folder`, this Python first on PATH, and return what it printed."""
    environment = user_environment(python=None)
    environment["PATH"] = os.pathsep.join([str(Path(sys.executable).parent), environment["PATH"]])
    (folder / "examples").symlink_to(ROOT / "examples")
    return output_of(command, folder, environment)


def require_lines(printed: str, expected: Sequence[str]) -> None:
    """Require lines that begin as expected, in this order, among others."""
    lines = [line.removeprefix("scala> ") for line in printed.splitlines()]
    positions = [next((i for i, s in enumerate(lines) if s.startswith(e)), -1) for e in expected]
    assert -1 not in positions, lines
    assert positions == sorted(positions), "printed, but in another order"


def test_quick_start_of_the_readme_prints_what_it_says(tmp_path: Path) -> None:
    text = (ROOT / "README.md").read_text(encoding="utf-8")
    found = re.search(r"^## Quick start\n.*?^```python\n(.*?)^```$", text, re.M | re.S)
    assert found is not None, "the README has no example below its quick start"
    require_lines(run_as_user([sys.executable, "-c", found[1]], tmp_path), ["5", "10"])


@pytest.mark.parametrize("page", PROGRAMS)
def test_program_of_the_guide_prints_what_it_says(page: str, tmp_path: Path) -> None:
    blocks = [b for b in examples(page) if b.language == "python" and b.name not in COVERED]
    program = "\n".join(block.text for block in blocks)
    shown = "".join(block.shown.text + "\n" for block in blocks if block.shown is not None)
    printed = run_as_user([sys.executable, "-c", program], tmp_path)
    require_equal(without_empty_lines(shown), without_empty_lines(printed), page)


def without_empty_lines(text: str) -> str:
    return "".join(line for line in text.splitlines(keepends=True) if line.strip())


COMMAND_BLOCKS = [b for page in pages() for b in examples(page) if b.name in COMMANDS]


@pytest.mark.parametrize("text", sorted({block.text for block in COMMAND_BLOCKS}))
def test_command_of_the_guide_prints_what_it_says(text: str, tmp_path: Path) -> None:
    [expected] = {COMMANDS[block.name] for block in COMMAND_BLOCKS if block.text == text}
    require_lines(run_as_user(["bash", "-euc", text], tmp_path), expected)


def test_scala_of_the_guide_prints_what_it_says(tmp_path: Path) -> None:
    [block] = [b for b in examples("scala") if b.language == "scala"]
    shell = [str(SPARK_HOME / "bin" / "spark-shell"), *submit_options()]
    command = shlex.join(shell) + ' <<< "$1"'
    printed = run_as_user(["bash", "-euc", command, "bash", block.text], tmp_path)
    require_lines(printed, ["rows: 6", "at first: 10"])


def test_shell_of_pyspark_in_the_guide_has_a_session_of_deltaic(tmp_path: Path) -> None:
    [block] = [b for b in examples("servers") if b.text.startswith("pyspark ")]
    # Without a terminal, Python starts the shell's session only if it is interactive.
    command = f'PYSPARK_DRIVER_PYTHON_OPTS=-i {block.text.strip()} <<< "$1"'
    typed = """
spark.range(3).write.format("delta").save("numbers")
print("rows:", spark.table("delta.`numbers`").count())
"""
    require_lines(run_as_user(["bash", "-euc", command, "bash", typed], tmp_path), ["rows: 3"])


def test_defaults_of_the_guide_make_every_session_ours(tmp_path: Path) -> None:
    [block] = [b for b in examples("cluster") if b.language == "properties"]
    defaults = block.text.replace("/opt/deltaic/deltaic-spark.jar", str(JAR))
    assert defaults != block.text
    (tmp_path / "conf").mkdir()
    (tmp_path / "conf" / "spark-defaults.conf").write_text(defaults)
    submit = f"spark-submit --master 'local[2]' examples/spark_submit_app.py '{tmp_path}/buckets'"
    command = f"SPARK_CONF_DIR='{tmp_path}/conf' {submit}"
    require_lines(run_as_user(["bash", "-euc", command], tmp_path), ["900 rows left"])


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
