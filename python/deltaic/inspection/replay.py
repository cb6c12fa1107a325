"""Replays the log of a table: the newest checkpoint that can be read, and the commits after it."""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from deltaic.exceptions import DeltaError, error
from deltaic.inspection.checkpoint import (
    Checkpoint,
    PyArrowMissing,
    UnreadableCheckpoint,
    read_checkpoint,
)
from deltaic.inspection.log_files import LogFile, LogFiles, list_log
from deltaic.inspection.state import TableState
from deltaic.protocol.actions import Metadata, Protocol
from deltaic.protocol.validation.log import parse_commit


@dataclass(frozen=True, slots=True)
class Replayed:
    """The newest version of a table.

    Attributes
    ----------
    checkpoint
        The checkpoint that was read, if any.
    skipped
        The checkpoints that could not be read, each with the reason.
    """

    log: LogFiles
    version: int
    state: TableState
    protocol: Protocol
    metadata: Metadata
    checkpoint: Checkpoint | None
    skipped: tuple[str, ...]


def replay(location: str, table: Path) -> Replayed:
    """Return the newest version of a table.

    Parameters
    ----------
    location
        The table as the user names it.
    table
        Its directory.

    Raises
    ------
    TableStateError
        If there is no table, or its log is damaged.
    InvalidArgumentError
        If a checkpoint is needed, and pyarrow is missing.
    OSError
        If a file of the log cannot be read.
    """
    log = list_log(location, table)
    version = log.newest_version
    state, checkpoint, skipped = _starting_state(location, log, version)
    first = 0 if checkpoint is None else checkpoint.version + 1
    for number in range(first, version + 1):
        _apply_commit(location, number, log.commits[number], state)
    read = f"commits {first} to {version}" if first <= version else ""
    if checkpoint is not None:
        read = " and ".join(filter(None, [f"the checkpoint of version {first - 1}", read]))
    if state.protocol is None:
        raise error("DELTAIC_STATE_WITHOUT_PROTOCOL", table=location, version=version, files=read)
    if state.metadata is None:
        raise error("DELTAIC_STATE_WITHOUT_METADATA", table=location, version=version, files=read)
    return Replayed(log, version, state, state.protocol, state.metadata, checkpoint, skipped)


def _starting_state(
    location: str, log: LogFiles, version: int
) -> tuple[TableState, Checkpoint | None, tuple[str, ...]]:
    """Return the state of the newest readable checkpoint; an empty one if there are all commits."""
    skipped: list[str] = []
    needs_pyarrow = False
    for files in log.checkpoints:
        if _misses_commits(log, files.version + 1, version):
            continue
        state = TableState()
        try:
            return state, read_checkpoint(log.directory, files, state), tuple(skipped)
        except UnreadableCheckpoint as problem:
            skipped.append(f"{files.name}: {problem}")
        except PyArrowMissing:
            needs_pyarrow = True
            skipped.append(f"{files.name}: pyarrow is not installed")
    if not _misses_commits(log, 0, version):
        return TableState(), None, tuple(skipped)
    if needs_pyarrow:
        raise error("DELTAIC_INSPECTION_NEEDS_PYARROW", table=location)
    if skipped:
        tried = "; ".join(skipped)
        raise error("DELTAIC_CHECKPOINT_UNREADABLE", table=location, version=version, tried=tried)
    raise _missing_commit(location, log, version)


def _misses_commits(log: LogFiles, first: int, last: int) -> bool:
    return any(version not in log.commits for version in range(first, last + 1))


def _missing_commit(location: str, log: LogFiles, version: int) -> DeltaError:
    after = version
    while after - 1 in log.commits:
        after -= 1
    earlier = [*log.commits, *(checkpoint.version for checkpoint in log.checkpoints)]
    before = max((found for found in earlier if found < after), default=None)
    if before is None:
        return error("DELTAIC_LOG_INCOMPLETE", table=location, version=version, earliest=after)
    return error("DELTAIC_LOG_GAP", table=location, missing=after - 1, before=before, after=after)


def _apply_commit(location: str, version: int, file: LogFile, state: TableState) -> None:
    """Apply a commit. The order of its actions has no meaning, so files are removed first."""
    line = 1
    actions: list[tuple[int, str, Any]] = []
    try:
        for line, text in enumerate(file.path.read_text(encoding="utf-8").split("\n"), 1):
            actions += [(line, kind, body) for kind, body in parse_commit(text)]
        _require_one(location, version, file, [(kind, body) for _, kind, body in actions])
        state.commit_info = {}
        for number, kind, body in sorted(actions, key=lambda action: action[1] != "remove"):
            line = number
            state.apply(kind, body)
    except (ValueError, RecursionError) as problem:
        if isinstance(problem, DeltaError):
            raise
        raise error(
            "DELTAIC_LOG_ENTRY_MALFORMED",
            table=location,
            version=version,
            file=file.name,
            line=line,
            reason=re.sub("^line 1:? ", "", str(problem)),
        ) from problem


def _require_one(
    location: str, version: int, file: LogFile, actions: list[tuple[str, Any]]
) -> None:
    """Refuse a commit with several definitions: it is unknown which of them applies."""
    for kind in ("protocol", "metaData"):
        bodies = [body for name, body in actions if name == kind and body is not None]
        different = [body for i, body in enumerate(bodies) if body not in bodies[:i]]
        if len(different) > 1:
            raise error(
                "DELTAIC_LOG_ENTRY_AMBIGUOUS",
                table=location,
                version=version,
                file=file.name,
                count=len(different),
                kind=kind,
            )
