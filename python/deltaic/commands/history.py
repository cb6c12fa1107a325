"""DESCRIBE HISTORY: the commits that the log still has, newest first."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from deltaic.commands.rows import RowSet, result_schema, timestamp_text
from deltaic.commit.message import Message
from deltaic.commit.ports import CommitRecord, TableAccess

HISTORY_SCHEMA = result_schema("describeHistory")


@dataclass(frozen=True, slots=True)
class DescribeHistory(Message):
    """The arguments; `limit` is the maximum number of rows, if there is one."""

    table: str
    limit: int | None = None


def history(table: str, tables: TableAccess, limit: int | None = None) -> RowSet:
    """Return one row per commit, newest first.

    Parameters
    ----------
    table
        The table's path.
    tables
        Provides its commits.
    limit
        The maximum number of rows; all by default.
    """
    return RowSet(HISTORY_SCHEMA, [_row(record) for record in tables.commits(table, limit)])


def _row(record: CommitRecord) -> dict[str, Any]:
    # commitInfo may hold anything, and may be missing (Protocol § Commit Provenance Information).
    # A field that is missing, or that does not fit the column's type, is null.
    info = record.info or {}
    return {
        "version": record.version,
        "timestamp": timestamp_text(record.timestamp_ms),
        **{name: convert(info.get(name)) for name, convert in _CONVERTERS.items()},
    }


def _string(value: Any) -> str | None:
    return value if value is None or isinstance(value, str) else json.dumps(value)


def _strings(values: Any) -> dict[str, str | None] | None:
    if not isinstance(values, Mapping):
        return None
    return {name: _string(value) for name, value in values.items()}


def _version(value: Any) -> int | None:
    is_digits = isinstance(value, str) and len(value) < 20 and value.isascii() and value.isdigit()
    number = int(value) if is_digits else value
    if not isinstance(number, int) or isinstance(number, bool):
        return None
    return number if abs(number) < 2**63 else None


def _flag(value: Any) -> bool | None:
    return value if isinstance(value, bool) else None


#: How each column converts the field of its name.
_CONVERTERS: Mapping[str, Callable[[Any], Any]] = {
    "userId": _string,
    "userName": _string,
    "operation": _string,
    "operationParameters": _strings,
    "job": _strings,
    "notebook": _strings,
    "clusterId": _string,
    "readVersion": _version,
    "isolationLevel": _string,
    "isBlindAppend": _flag,
    "operationMetrics": _strings,
    "userMetadata": _string,
    "engineInfo": _string,
}
