"""Tables made by hand whose state is inspected: definitions, files and their ages."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

from tests.support.definitions import schema
from tests.support.log import newest, versions, write_commit

#: The time at which tables are inspected, and the length of a day, in milliseconds.
NOW_MS = 1_800_000_000_000
DAY_MS = 86_400_000


def protocol(reader: int = 1, writer: int = 2, **features: list[str]) -> dict[str, Any]:
    return {"protocol": {"minReaderVersion": reader, "minWriterVersion": writer, **features}}


def metadata(*partition_columns: str, **changes: Any) -> dict[str, Any]:
    body = {
        "id": "t",
        "format": {"provider": "parquet", "options": {}},
        "schemaString": schema("id", *partition_columns),
        "partitionColumns": list(partition_columns),
        "configuration": {},
    }
    return {"metaData": {**body, **changes}}


def add(path: str, size: int = 1, rows: int | None = 1, **changes: Any) -> dict[str, Any]:
    stats = {} if rows is None else {"stats": json.dumps({"numRecords": rows})}
    body = {"path": path, "partitionValues": {}, "size": size, "modificationTime": 1}
    return {"add": {**body, "dataChange": True, **stats, **changes}}


def remove(path: str, days_ago: float, **changes: Any) -> dict[str, Any]:
    deleted_ms = NOW_MS - int(days_ago * DAY_MS)
    return {
        "remove": {"path": path, "deletionTimestamp": deleted_ms, "dataChange": True, **changes}
    }


def vector(
    cardinality: int, name: str = "ab^-aqEH.-t@S}K{vb[*k^", size: int = 36
) -> dict[str, Any]:
    return {
        "deletionVector": {
            "storageType": "u",
            "pathOrInlineDv": name,
            "offset": 1,
            "sizeInBytes": size,
            "cardinality": cardinality,
        }
    }


def make_table(folder: Path, *first: dict[str, Any], definition: Any = None) -> str:
    """Make a table whose first commit has a definition and these actions."""
    (folder / "_delta_log").mkdir(parents=True)
    write_commit(folder, 0, *(definition or (protocol(), metadata())), *first)
    return str(folder)


def append(table: str, *actions: dict[str, Any]) -> None:
    """Write the next commit."""
    write_commit(table, newest(table) + 1 if versions(table) else 0, *actions)


def store(table: str, name: str, size: int = 1, days_ago: float = 0) -> None:
    """Write a file of this age below the table."""
    path = Path(table, name)
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(bytes(size))
    seconds = (NOW_MS - days_ago * DAY_MS) / 1000
    os.utime(path, (seconds, seconds))
