"""``python -m deltaic validate``: what it prints and returns, without Spark and without a JVM."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import pytest

import deltaic
from deltaic.__main__ import main
from tests.support.definitions import schema
from tests.support.log import commit_path, write_commit

PROTOCOL = {"protocol": {"minReaderVersion": 1, "minWriterVersion": 2}}
METADATA = {
    "metaData": {
        "id": "t",
        "format": {"provider": "parquet", "options": {}},
        "schemaString": schema("id"),
        "partitionColumns": [],
        "configuration": {},
    }
}


def add(path: str) -> dict[str, Any]:
    body = {
        "path": path,
        "partitionValues": {},
        "size": 1,
        "modificationTime": 1,
        "dataChange": True,
        "stats": json.dumps({"numRecords": 1}),
    }
    return {"add": body}


def remove(path: str) -> dict[str, Any]:
    return {"remove": {"path": path, "deletionTimestamp": 1, "dataChange": True}}


def table(folder: Path, *commits: dict[str, Any], first: int = 0) -> Path:
    """Make a table of one action a commit, after the commit that creates it."""
    (folder / "_delta_log").mkdir(parents=True)
    if first == 0:
        write_commit(folder, 0, PROTOCOL, METADATA, add("a"))
    for version, action in enumerate(commits, max(first, 1)):
        write_commit(folder, version, action)
    return folder


@pytest.fixture
def folder() -> Iterator[Path]:
    """A directory whose logs the test suite does not read: they are not JSON."""
    with TemporaryDirectory() as path:
        yield Path(path)


def test_valid_log_has_no_violation(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = table(tmp_path / "t", add("b"), remove("a"))
    assert main(["validate", str(path)]) == 0
    assert capsys.readouterr().out == "3 commits, 0 violations\n"


def test_file_uri_is_a_local_path(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = table(tmp_path / "a b#%41")
    for uri in (path.as_uri(), path.as_uri().replace("file://", "file:")):
        assert main(["validate", uri]) == 0
        assert capsys.readouterr().out == "1 commit, 0 violations\n"


def test_only_commits_of_a_log_are_read(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    log = table(tmp_path / "t", add("b")) / "_delta_log"
    (log / "_staged_commits").mkdir()
    for name in (
        f"{0:020d}.{1:020d}.compacted.json",
        f"{1:020d}.checkpoint.3a0d65cd-4056-49b8-937b-95f9e3ee90e5.json",
        f"{1:020d}.checkpoint.parquet",
        f"{1:020d}.crc",
        f".{2:020d}.json.crc",
        f"{2:020d}.json.tmp",
        "_last_checkpoint",
    ):
        (log / name).write_text("no commit")
    assert main(["validate", str(log.parent)]) == 0
    assert capsys.readouterr().out == "2 commits, 0 violations\n"


def test_each_violation_is_a_line(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = table(tmp_path / "t", remove("b"), add("c"), add("c"))
    assert main(["validate", str(path)]) == 1
    rule = "(Protocol § Add File and Remove File)"
    assert capsys.readouterr().out.splitlines() == [
        f"version 1: b is removed, but is not in the table {rule}",
        f"version 3: c is added, but is in the table {rule}",
        "4 commits, 2 violations",
    ]


def test_names_of_a_damaged_log_do_not_break_lines(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = table(tmp_path / "t", remove("a\nb\x1b[2J\ud800"))
    assert main(["validate", str(path)]) == 1
    line, _ = capsys.readouterr().out.splitlines()
    assert line.startswith(r"version 1: a b\u001b[2J\ud800 is removed")


def test_missing_version_is_a_violation(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = table(tmp_path / "t", add("b"), add("c"))
    commit_path(path, 1).unlink()
    assert main(["validate", str(path)]) == 1
    assert "version 2: it follows version 0" in capsys.readouterr().out


@pytest.mark.protocol("change-metadata-2")
@pytest.mark.parametrize("damage", [{"remove": {}}, {"add": None}, {"metaData": {}}])
def test_action_that_lacks_fields_is_a_violation(
    damage: dict[str, Any], folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = table(folder / "t", damage)
    assert main(["validate", str(path)]) == 1
    line, summary = capsys.readouterr().out.splitlines()
    assert line.startswith("version 1: an action lacks a field")
    assert summary == "2 commits, 1 violation"


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        (b'\n{"add"', "line 2: "),
        (b"[1]\n", "line 1 is not a JSON object"),
        (b"\xff\n", "can't decode"),
        (b"[" * 99999, "recursion"),
    ],
)
def test_commit_that_is_not_json_ends_the_validation(
    text: bytes, reason: str, folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = table(folder / "t", add("b"), add("c"), remove("b"))
    commit_path(path, 1).write_bytes(text)
    assert main(["validate", str(path)]) == 1
    line, summary = capsys.readouterr().out.splitlines()
    assert line.startswith(f"version 1: {1:020d}.json cannot be read, so no later commit")
    assert reason in line
    assert summary == "4 commits, 1 violation"


@pytest.mark.parametrize("name", ["nowhere", "file", "empty"])
def test_path_without_a_table_is_an_error(
    name: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "file").touch()
    (tmp_path / "empty" / "_delta_log").mkdir(parents=True)
    assert main(["validate", str(tmp_path / name)]) == 2
    captured = capsys.readouterr()
    assert captured.out == ""
    assert f"{tmp_path / name} is not a Delta table" in captured.err


@pytest.mark.parametrize(
    "path", ["s3a://bucket/t", "hdfs:///t", "dbfs:/t", "abfss://c@a.net/t", "file://server/t"]
)
def test_path_that_is_not_local_is_refused_with_what_to_do(
    path: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["validate", path]) == 2
    captured = capsys.readouterr()
    assert captured.out == ""
    assert f"{path} cannot be validated" in captured.err
    assert "Copy the directory _delta_log" in captured.err


def test_log_without_its_first_commits_is_refused(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = table(tmp_path / "t", add("b"), first=7)
    (path / "_delta_log" / f"{7:020d}.checkpoint.parquet").touch()
    for first in ("version 7", "a checkpoint"):
        assert main(["validate", str(path)]) == 2
        assert f"it begins with {first}" in capsys.readouterr().err
        commit_path(path, 7).unlink(missing_ok=True)


@pytest.mark.parametrize(
    "arguments", [["validate"], ["validate", ""], ["validate", "a", "b"], ["validate", "--json"]]
)
def test_wrong_usage_prints_the_usage(
    arguments: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(SystemExit) as exit_status:
        main(arguments)
    assert exit_status.value.code == 2
    assert "python -m deltaic" in capsys.readouterr().err


def test_log_is_validated_without_pyspark(tmp_path: Path) -> None:
    path = table(tmp_path / "t")
    code = (
        "import sys; sys.modules['pyspark'] = None; sys.modules['py4j'] = None; "
        f"from deltaic.__main__ import main; sys.exit(main(['validate', {str(path)!r}]))"
    )
    package = str(Path(deltaic.__file__).parents[1])
    subprocess.run([sys.executable, "-c", code], check=True, env={"PYTHONPATH": package})
