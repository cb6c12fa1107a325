"""What a table's log holds, read without any engine: tests of written files compare with it."""

from __future__ import annotations

import json
import re
import shutil
from pathlib import Path
from typing import Any
from urllib.parse import unquote

from tests.support.jobs import await_tasks

Action = dict[str, Any]

_COMMIT = re.compile(r"(\d{20})\.json")


def versions(table: str | Path) -> list[int]:
    """Return the versions that have a commit file, ascending."""
    names = (path.name for path in Path(table, "_delta_log").iterdir())
    return sorted(int(found[1]) for name in names if (found := _COMMIT.fullmatch(name)))


def commit_path(table: str | Path, version: int) -> Path:
    return Path(table, "_delta_log", f"{version:020d}.json")


def actions(table: str | Path, version: int, kind: str) -> list[Action]:
    """Return the actions of one kind in a commit, such as ``add``, in their order."""
    lines = commit_path(table, version).read_text(encoding="utf-8").split("\n")
    parsed = (json.loads(line) for line in lines if line.strip())
    return [action[kind] for action in parsed if kind in action]


def newest(table: str | Path) -> int:
    return versions(table)[-1]


def write_commit(table: str | Path, version: int, *written: dict[str, Action]) -> None:
    """Write a commit as another engine would; the version must not exist."""
    text = "".join(json.dumps(action) + "\n" for action in written)
    with commit_path(table, version).open("x", encoding="utf-8") as file:
        file.write(text)


def active_files(table: str | Path) -> list[Action]:
    """Replay all commits by (path, dvId) and return the adds that are left, by path.

    Only for tables whose log still has every commit: checkpoints are not read.
    """
    files: dict[tuple[str, str | None], Action] = {}
    for version in versions(table):
        for removed in actions(table, version, "remove"):
            files.pop((removed["path"], dv_id(removed)), None)
        for added in actions(table, version, "add"):
            files[added["path"], dv_id(added)] = added
    return sorted(files.values(), key=lambda add: str(add["path"]))


def dv_id(action: Action) -> str | None:
    """Return the unique id of a file action's deletion vector (Protocol § Derived Fields)."""
    vector = action.get("deletionVector")
    if vector is None:
        return None
    name = f"{vector['storageType']}{vector['pathOrInlineDv']}"
    return name if vector.get("offset") is None else f"{name}@{vector['offset']}"


def statistics(add: Action) -> Action:
    return dict(json.loads(add["stats"]))


def files_in(table: str | Path, suffix: str) -> set[str]:
    """Return the names of the files below the table that end in `suffix`; log and CRCs aside."""
    found = Path(table).rglob(f"*{suffix}")
    return {path.name for path in found if "_delta_log" not in path.parts}


def last_actions(table: str | Path, kind: str) -> list[Action]:
    """Return the actions of one kind in the newest commit."""
    return actions(table, newest(table), kind)


def commit_info(table: str | Path, version: int | None = None) -> Action:
    """Return a version's commitInfo, the newest by default; it must be the commit's first line."""
    path = commit_path(table, newest(table) if version is None else version)
    first = json.loads(path.read_text(encoding="utf-8").split("\n", 1)[0])
    assert list(first) == ["commitInfo"], first
    return dict(first["commitInfo"])


def metadata(table: str | Path) -> Action:
    """Return the newest metaData."""
    return [body for v in versions(table) for body in actions(table, v, "metaData")][-1]


def data_path(table: str | Path, action: Action) -> Path:
    """Return the location of the data file of an `add` or a `remove`; those of clones are URIs."""
    return Path(table, unquote(action["path"].removeprefix("file:")))


def copy_table(table: str | Path, target: str | Path) -> None:
    """Copy a table, without the files that its maintenance may be writing and about to rename."""
    shutil.copytree(table, target, ignore=shutil.ignore_patterns("*.tmp", ".*.tmp.crc"))


def stored_files(table: str | Path) -> set[Path]:
    """Return every file below the table, whatever it is; log and CRCs aside."""
    below = ((path, path.relative_to(table).parts) for path in Path(table).rglob("*"))
    return {
        path
        for path, parts in below
        if path.is_file() and parts[0] != "_delta_log" and path.suffix != ".crc"
    }


def contents(table: str | Path) -> dict[str, bytes]:
    """Return all files with what is in them, the log's too, to compare two states of a table.

    Not those that follow commits in the background: an earlier one may write them at any time.
    What is written right now is waited for.
    """
    await_tasks()
    root = Path(table)
    return {
        str(path.relative_to(root)): path.read_bytes()
        for path in root.rglob("*")
        if not path.name.endswith((".crc", ".tmp")) and path.is_file()
    }
