"""Types that the checks of a log share: the actions, and the state of the table."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from deltaic.protocol.actions import Metadata, Protocol

#: One action of a commit file: its name, and its body.
Action = tuple[str, Mapping[str, Any]]

#: A logical file: its path as in the log, and the id of its deletion vector, if it has one.
LogicalFile = tuple[str, str | None]

#: The rule of the protocol, with its heading, and how a commit violates it.
Problems = Iterator[tuple[str, str]]


@dataclass(slots=True)
class Table:
    """The state of the table after the commits so far."""

    protocol: Protocol | None = None
    metadata: Metadata | None = None
    files: dict[LogicalFile, Mapping[str, Any]] = field(default_factory=dict)
    #: Files that the table had, and whose rows were moved to others.
    moved: set[LogicalFile] = field(default_factory=set)
    high_water_mark: int = -1
    #: The paths of the files that the table has or had, each with its first row ID.
    base_row_ids: set[tuple[str, int]] = field(default_factory=set)
    in_commit_timestamp_ms: int | None = None
    clustered_by: str | None = None
    progress: dict[str, int] = field(default_factory=dict)
    progress_ms: dict[str, int | None] = field(default_factory=dict)
    #: The columns that the table has or had; older files keep their statistics.
    columns: dict[tuple[str, ...], bool] = field(default_factory=dict)


def stats_of(add: Mapping[str, Any]) -> Mapping[str, Any]:
    """Return the statistics of a file; empty if they are not an object."""
    stats = json.loads(add.get("stats") or "{}")
    return stats if isinstance(stats, dict) else {}


def logical_file(body: Mapping[str, Any]) -> LogicalFile:
    """Return the identity of a file action (Protocol § Action Reconciliation)."""
    vector = body.get("deletionVector")
    if vector is None:
        return body["path"], None
    offset = f"@{vector['offset']}" if vector.get("offset") is not None else ""
    return body["path"], f"{vector['storageType']}{vector['pathOrInlineDv']}{offset}"
