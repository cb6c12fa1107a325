"""Holds the logs that tests leave against the protocol, and data files against the schema."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from deltaic.protocol.actions import Metadata, Protocol
from deltaic.protocol.columns.file_columns import column_paths
from deltaic.protocol.validation.log import parse_commit, validate_log
from tests.support.log import active_files, commit_path, data_path, versions

Commit = tuple[int, list[tuple[str, Any]]]

#: Where files keep the ids and commit versions of rows that have moved (Protocol § Row Tracking).
_ROW_TRACKING = (
    "delta.rowTracking.materializedRowIdColumnName",
    "delta.rowTracking.materializedRowCommitVersionColumnName",
)

#: A clone has files with these columns of its source, and other columns itself.
_OF_SOURCE = ("_row-id-col-", "_row-commit-version-col-")

#: The newest commit of each table as it was when the table was found to be valid.
_seen: dict[Path, tuple[int, int]] = {}


def require_valid_logs(folder: Path) -> None:
    """Fail if a commit that Deltaic has made below a folder breaks a rule.

    In a log that others have written, too, only our commits are checked, given theirs. A log whose
    first commits are gone, or emptied, cannot be checked.
    """
    for directory in folder.rglob("_delta_log"):
        table = directory.parent
        known = versions(table)
        if not known or known[0] != 0:
            continue
        newest = commit_path(table, known[-1]).stat()
        state = (newest.st_ino, newest.st_mtime_ns)
        if _seen.get(table) == state:
            continue
        commits = _commits(table)
        if not commits[0][1]:
            continue
        ours = {version for version, actions in commits if _is_ours(actions)}
        if ours:
            problems = [p for p in validate_log(commits) if p.version in ours]
            assert not problems, f"{table}:\n" + "\n".join(map(str, problems))
        if len(ours) == len(commits) and not _is_of_catalog(commits):
            unknown = list(_unknown_columns(table, commits))
            assert not unknown, f"{table}: columns of files: {unknown}"
        _seen[table] = state


def is_wholly_ours(table: Path) -> bool:
    """Return whether the log has all commits, and Deltaic has made each of them."""
    commits = _commits(table)
    return bool(commits) and commits[0][0] == 0 and all(_is_ours(a) for _, a in commits)


def _commits(table: Path) -> list[Commit]:
    return [
        (n, parse_commit(commit_path(table, n).read_text(encoding="utf-8")))
        for n in versions(table)
    ]


def _is_ours(actions: list[tuple[str, Any]]) -> bool:
    infos = [body for name, body in actions if name == "commitInfo"]
    return bool(infos) and str(infos[0].get("engineInfo", "")).startswith("Deltaic")


def _is_of_catalog(commits: list[Commit]) -> bool:
    """Whether the table was converted from one of the catalog, which chose the columns."""
    infos = [body for name, body in commits[0][1] if name == "commitInfo"]
    return "catalogTable" in infos[0].get("operationParameters", {})


def _unknown_columns(table: Path, commits: Iterable[Commit]) -> Iterable[str]:
    """Yield the columns of active files that the table never had.

    A file keeps its columns when a column is dropped from the table.
    """
    known: dict[tuple[str, ...], bool] = {}
    protocol = Protocol(1, 1)
    for _, actions in commits:
        protocols = [body for name, body in actions if name == "protocol"]
        protocol = Protocol.from_json(protocols[0]) if protocols else protocol
        for name, body in actions:
            if name == "metaData":
                metadata = Metadata.from_json(body)
                known |= column_paths(protocol, metadata)
                row_tracking = (metadata.configuration.get(key) for key in _ROW_TRACKING)
                known |= {(column,): False for column in row_tracking if column}
    for add in active_files(table):
        path = data_path(table, add)
        if not path.is_file():
            continue
        try:
            columns = pq.read_schema(path)
        except pa.ArrowInvalid:
            continue  # A test has damaged it.
        for column in _columns_below(columns, (), known):
            if column not in known and not column[0].startswith(_OF_SOURCE):
                yield f"{add['path']}: {'.'.join(column)}"


def _columns_below(
    fields: Any, above: tuple[str, ...], known: dict[tuple[str, ...], bool]
) -> Iterable[tuple[str, ...]]:
    for field in fields:
        path = (*above, field.name)
        yield path
        if known.get(path) and pa.types.is_struct(field.type):
            yield from _columns_below(field.type, path, known)
