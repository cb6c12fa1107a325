"""The log and the data files of a table as they lie on disk, read with nothing but JSON."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from urllib.parse import unquote

Action = dict[str, Any]


def commit_files(table: str) -> list[Path]:
    """Return the commit files, oldest first."""
    return sorted(Path(table, "_delta_log").glob("*.json"))


def versions(table: str) -> list[int]:
    return [int(file.stem) for file in commit_files(table)]


def commit(table: str, version: int) -> list[Action]:
    """Return the actions of one commit, in the order of its lines."""
    text = Path(table, "_delta_log", f"{version:020}.json").read_text(encoding="utf-8")
    return [json.loads(line) for line in text.split("\n") if line]


def last_commit(table: str) -> list[Action]:
    return commit(table, versions(table)[-1])


def bodies(actions: list[Action], kind: str) -> list[Action]:
    """Return what the actions of one kind hold."""
    return [action[kind] for action in actions if kind in action]


def commit_info(table: str, version: int | None = None) -> Action:
    """Return the commitInfo of a version, which its first line must hold; the newest by default."""
    actions = last_commit(table) if version is None else commit(table, version)
    assert list(actions[0]) == ["commitInfo"], actions[0]
    info: Action = actions[0]["commitInfo"]
    return info


def metadata(table: str) -> Action:
    """Return the newest metaData."""
    found = [body for v in versions(table) for body in bodies(commit(table, v), "metaData")]
    return found[-1]


def active_files(table: str) -> list[Action]:
    """Return the `add` of each file of the newest version (Protocol § Action Reconciliation)."""
    active: dict[tuple[str, str | None], Action] = {}
    for version in versions(table):
        actions = commit(table, version)
        for remove in bodies(actions, "remove"):
            active.pop(_identity(remove), None)
        for add in bodies(actions, "add"):
            active[_identity(add)] = add
    return list(active.values())


def _identity(action: Action) -> tuple[str, str | None]:
    vector = action.get("deletionVector")
    unique = None
    if vector is not None:
        unique = f"{vector['storageType']}{vector['pathOrInlineDv']}@{vector.get('offset')}"
    return action["path"], unique


def data_path(table: str, action: Action) -> Path:
    """Return where the data file of an `add` or a `remove` lies."""
    return Path(table, unquote(action["path"]))


def stored_files(table: str) -> set[Path]:
    """Return every file beside the log: data files, deletion vectors and whatever was left over."""
    return set(_stored(Path(table)))


def _stored(folder: Path) -> Iterator[Path]:
    if not folder.is_dir():
        return
    for item in folder.rglob("*"):
        in_log = "_delta_log" in item.relative_to(folder).parts
        if item.is_file() and not in_log and not item.name.endswith(".crc"):
            yield item


def content(table: str) -> dict[str, bytes]:
    """Return the whole table folder, so that two states of it can be compared."""
    root = Path(table)
    return {
        str(file.relative_to(root)): file.read_bytes() for file in root.rglob("*") if file.is_file()
    }
