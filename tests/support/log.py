"""What a table's log says, read without any engine: what tests of written files compare with."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

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
    lines = commit_path(table, version).read_text(encoding="utf-8").splitlines()
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
