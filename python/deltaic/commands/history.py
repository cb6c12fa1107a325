"""DESCRIBE HISTORY: the commits that the log still has, newest first."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from deltaic.commands.rows import RowSet, result_schema, timestamp_text
from deltaic.commit.ports import CommitRecord, Tables

HISTORY_SCHEMA = result_schema("describeHistory")

_COPIED = (
    "userId",
    "userName",
    "operation",
    "job",
    "notebook",
    "clusterId",
    "readVersion",
    "isolationLevel",
    "isBlindAppend",
    "userMetadata",
    "engineInfo",
)


def history(table: str, tables: Tables, limit: int | None = None) -> RowSet:
    """Return one row per commit, newest first.

    Parameters
    ----------
    table
        The table's path.
    tables
        Where its commits are read.
    limit
        How many rows at most; all by default.
    """
    return RowSet(HISTORY_SCHEMA, [_row(record) for record in tables.commits(table, limit)])


def _row(record: CommitRecord) -> dict[str, Any]:
    # Anything may be in a commitInfo, and it may be missing (Protocol § Commit Provenance
    # Information): a field that is not there is null.
    info = record.info or {}
    return {
        "version": record.version,
        "timestamp": timestamp_text(record.timestamp_ms),
        **{name: info.get(name) for name in _COPIED},
        "operationParameters": _texts(info.get("operationParameters")),
        "operationMetrics": _texts(info.get("operationMetrics")),
    }


def _texts(values: Mapping[str, Any] | None) -> dict[str, str | None] | None:
    if values is None:
        return None
    return {
        name: value if value is None or isinstance(value, str) else json.dumps(value)
        for name, value in values.items()
    }
