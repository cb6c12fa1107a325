"""``python -m deltaic inspect``: what it prints and returns, without Spark and without a JVM."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from dataclasses import fields, is_dataclass
from pathlib import Path
from typing import Any, get_args, get_type_hints

import pytest

import deltaic
from deltaic.__main__ import main
from deltaic.inspection.advice import MIN_FILES_TO_COMPACT
from deltaic.inspection.facts import Inspection
from deltaic.inspection.file_facts import (
    COMPACTED_BELOW_BYTES,
    DEFAULT_TARGET_BYTES,
    MAX_DELETED_ROWS_RATIO,
)
from deltaic.resources import load_json
from tests.support.checkpoint import write_checkpoint
from tests.support.inspected import add, append, make_table, protocol, store
from tests.support.log import commit_path
from tests.support.paths import ROOT

PACKAGE = str(Path(deltaic.__file__).parents[1])


def run(
    *arguments: str, prelude: str = "pass", **environment: str
) -> subprocess.CompletedProcess[bytes]:
    """Run the module in a process of its own."""
    code = f"import sys; {prelude}; from deltaic.__main__ import main; sys.exit(main(sys.argv[1:]))"
    return subprocess.run(
        [sys.executable, "-c", code, *arguments],
        env={"PYTHONPATH": PACKAGE, "PATH": os.environ["PATH"], **environment},
        capture_output=True,
        check=False,
    )


@pytest.fixture
def sample(tmp_path: Path) -> str:
    table = make_table(tmp_path / "t", add("a", 5000, 3), add("b", 100_000, 4))
    for name in ("a", "b"):
        store(table, name)
    return table


def test_sections_are_printed(sample: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["inspect", sample]) == 0
    printed = capsys.readouterr().out
    titles = [line for line in printed.splitlines() if line and not line.startswith(" ")]
    assert titles == ["Table", "Protocol", "Files", "File sizes", "Rows", "Log", "What to run"]
    assert "  rows                7\n" in printed
    assert "  below 16 KB         " + 40 * "█" + " 1, 4.9 KB\n" in printed
    assert "  below 64 KB          0\n" in printed
    assert "  below 256 KB        " + 40 * "█" + " 1, 97.7 KB\n" in printed
    assert printed.endswith("What to run\n  nothing\n")


def test_json_is_one_object_with_the_same_facts(
    sample: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["inspect", sample, "--json"]) == 0
    facts = json.loads(capsys.readouterr().out)
    assert set(facts) == {field.name for field in fields(Inspection)}
    assert facts["files"]["num_files"] == 2
    assert facts["files"]["size_bytes"] == 105_000
    assert facts["rows"]["num_rows"] == 7
    assert facts["protocol"]["features"][0]["name"] == "appendOnly"
    assert facts["recommendations"] == []


def nested_names(kind: Any) -> set[str]:
    """Return the names of the fields of a dataclass and of those in it."""
    names = set()
    for name, hint in get_type_hints(kind).items():
        names.add(name)
        for part in (hint, *get_args(hint)):
            if is_dataclass(part):
                names |= nested_names(part)
    return names


def test_names_of_the_json_are_documented() -> None:
    usage = (ROOT / "docs" / "guide" / "command-line.md").read_text(encoding="utf-8")
    section = usage.split("## inspect")[1].split("\n## ")[0]
    missing = {name for name in nested_names(Inspection) if f"`{name}`" not in section}
    assert missing == set()


@pytest.mark.parametrize("name", ["nowhere", "file", "empty", "_delta_log"])
def test_path_without_a_table_is_one_line_and_status_2(
    name: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "file").touch()
    (tmp_path / "empty" / "_delta_log").mkdir(parents=True)
    (tmp_path / "_delta_log").mkdir()
    for more in ([], ["--json"]):
        assert main(["inspect", str(tmp_path / name), *more]) == 2
        captured = capsys.readouterr()
        assert captured.out == ""
        [line] = captured.err.splitlines()
        assert f"{tmp_path / name} is not a Delta table" in line


@pytest.mark.parametrize("path", ["s3a://bucket/t", "hdfs:///t", "file://server/t"])
def test_path_that_is_not_local_is_refused(path: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["inspect", path]) == 2
    [line] = capsys.readouterr().err.splitlines()
    assert f"{path} cannot be inspected" in line
    assert "Copy the directory _delta_log" in line


def test_log_that_cannot_be_opened_is_status_2(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    table = make_table(tmp_path / "t")
    commit_path(table, 1).mkdir()
    commit_path(table, 2).symlink_to(commit_path(table, 0))
    assert main(["inspect", table]) == 2
    [line] = capsys.readouterr().err.splitlines()
    assert "version 1 is missing between versions 0 and 2" in line
    for version in (1, 2):
        path = commit_path(table, version)
        path.rmdir() if path.is_dir() else path.unlink()


def test_unsupported_table_is_inspected(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    table = make_table(tmp_path / "t")
    append(table, protocol(99, 99, readerFeatures=["x"], writerFeatures=["x"]))
    assert main(["inspect", table]) == 0
    printed = capsys.readouterr().out
    assert "  read by Deltaic     no: reader version 99, x\n" in printed
    assert "  written by Deltaic  no: reader version 99, x, writer version 99\n" in printed
    # The test suite validates the logs that its tests leave behind.
    commit_path(table, 1).unlink()


@pytest.mark.parametrize("missing", ["pyspark", "py4j", "pyarrow"])
def test_commits_are_enough_without_other_packages(missing: str, sample: str) -> None:
    write_checkpoint(sample)
    done = run("inspect", sample, "--json", prelude=f"sys.modules[{missing!r}] = None")
    assert done.returncode == 0, done.stderr
    facts = json.loads(done.stdout)
    assert facts["rows"]["num_rows"] == 7
    if missing == "pyarrow":
        assert "pyarrow is not installed" in facts["warnings"][0]
    else:
        assert (facts["warnings"], facts["log"]["checkpoint"]["version"]) == ([], 0)


def test_checkpoint_needs_pyarrow(sample: str) -> None:
    write_checkpoint(sample)
    append(sample, add("c"))
    commit = commit_path(sample, 0)
    text = commit.read_text()
    commit.unlink()
    done = run("inspect", sample, prelude="sys.modules['pyarrow'] = None")
    assert (done.returncode, done.stdout) == (2, b"")
    assert b"pip install pyarrow" in done.stderr
    commit.write_text(text)


def test_terminal_without_block_characters_gets_plain_ones(sample: str) -> None:
    done = run("inspect", sample, PYTHONIOENCODING="latin-1")
    assert done.returncode == 0, done.stderr
    assert b"  below 16 KB         " + 40 * b"#" + b" 1, 4.9 KB\n" in done.stdout


def test_limits_are_the_defaults_of_the_settings() -> None:
    defaults = {each["name"]: each.get("default") for each in load_json("settings.json")}
    sizes = {"1g": 1024**3, "128m": 128 * 1024**2}
    assert sizes[defaults["spark.deltaic.autoCompact.maxFileSize"]] == DEFAULT_TARGET_BYTES
    assert sizes[defaults["spark.deltaic.optimize.minFileSize"]] == COMPACTED_BELOW_BYTES
    ratio = float(defaults["spark.deltaic.optimize.maxDeletedRowsRatio"])
    assert ratio == MAX_DELETED_ROWS_RATIO
    assert int(defaults["spark.deltaic.autoCompact.minNumFiles"]) == MIN_FILES_TO_COMPACT
