"""DESCRIBE HISTORY: the commits that the log still has, newest first."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from typing import Any

from deltaic.commands.rows import RowSet, result_schema, timestamp_text
from deltaic.commit.ports import CommitRecord, Tables

HISTORY_SCHEMA = result_schema("describeHistory")


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
    # Information): a field that is not there, or that the column cannot show, is null.
    info = record.info or {}
    return {
        "version": record.version,
        "timestamp": timestamp_text(record.timestamp_ms),
        **{name: shown(info.get(name)) for name, shown in _SHOWN.items()},
    }


def _text(value: Any) -> str | None:
    return value if value is None or isinstance(value, str) else json.dumps(value)


def _texts(values: Any) -> dict[str, str | None] | None:
    if not isinstance(values, Mapping):
        return None
    return {name: _text(value) for name, value in values.items()}


def _version(value: Any) -> int | None:
    is_text = isinstance(value, str) and len(value) < 20 and value.isascii() and value.isdigit()
    number = int(value) if is_text else value
    if not isinstance(number, int) or isinstance(number, bool):
        return None
    return number if abs(number) < 2**63 else None


def _flag(value: Any) -> bool | None:
    return value if isinstance(value, bool) else None


#: How each column shows the field of its name.
_SHOWN: Mapping[str, Callable[[Any], Any]] = {
    "userId": _text,
    "userName": _text,
    "operation": _text,
    "operationParameters": _texts,
    "job": _texts,
    "notebook": _texts,
    "clusterId": _text,
    "readVersion": _version,
    "isolationLevel": _text,
    "isBlindAppend": _flag,
    "operationMetrics": _texts,
    "userMetadata": _text,
    "engineInfo": _text,
}
