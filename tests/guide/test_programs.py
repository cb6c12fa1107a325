"""The programs and commands of the guide run as a user runs them, and print what it says."""

from __future__ import annotations

import shlex
import shutil
import sys
from pathlib import Path
from zipfile import ZipFile

import pytest

from deltaic.session import delta_api_jar_path, jar_path
from tests.support.guide_examples import examples, pages, require_equal
from tests.support.guide_tests import COMMANDS, COVERED, PROGRAMS
from tests.support.paths import JAR, ROOT
from tests.support.spark_scripts import SPARK_HOME, submit_options
from tests.support.user_runs import require_lines, run_as_user


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


@pytest.mark.parametrize(
    ("example", "lines"),
    [
        ("scala: Scala and Java 1", ["rows: 6", "at first: 10"]),
        ("scala: DeltaTable 1", ["shipped: 20", "last: MERGE"]),
    ],
)
def test_scala_of_the_guide_prints_what_it_says(
    tmp_path: Path, example: str, lines: list[str]
) -> None:
    [block] = [b for b in examples("scala") if b.name == example]
    jars = f"{jar_path()},{delta_api_jar_path()}"
    shell = [str(SPARK_HOME / "bin" / "spark-shell"), *submit_options({"spark.jars": jars})]
    command = shlex.join(shell) + ' <<< "$1"'
    printed = run_as_user(["bash", "-euc", command, "bash", block.text], tmp_path)
    require_lines(printed, lines)


def test_scala_compiles_without_a_build_tool_as_the_guide_says(tmp_path: Path) -> None:
    [block] = [b for b in examples("scala") if "scala.tools.nsc.Main" in b.text]
    folder = tmp_path / "a job"
    folder.mkdir()
    shutil.copy(ROOT / "examples" / "scala" / "OrdersJob.scala", folder)
    run_as_user(["bash", "-euc", block.text], folder)
    with ZipFile(folder / "orders.jar") as jar:
        assert "OrdersJob.class" in jar.namelist()


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
