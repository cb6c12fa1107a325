"""Checkpoints in every form, written by pyarrow from what a log's commits say."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from tests.support import log

_STRINGS = pa.map_(pa.string(), pa.string())

_FILE = pa.struct(
    [
        ("path", pa.string()),
        ("partitionValues", _STRINGS),
        ("size", pa.int64()),
        ("modificationTime", pa.int64()),
        ("dataChange", pa.bool_()),
        ("stats", pa.string()),
        (
            "deletionVector",
            pa.struct(
                [
                    ("storageType", pa.string()),
                    ("pathOrInlineDv", pa.string()),
                    ("offset", pa.int32()),
                    ("sizeInBytes", pa.int32()),
                    ("cardinality", pa.int64()),
                ]
            ),
        ),
    ]
)

_PROTOCOL = pa.struct(
    [
        ("minReaderVersion", pa.int32()),
        ("minWriterVersion", pa.int32()),
        ("readerFeatures", pa.list_(pa.string())),
        ("writerFeatures", pa.list_(pa.string())),
    ]
)

_METADATA = pa.struct(
    [
        ("id", pa.string()),
        ("format", pa.struct([("provider", pa.string()), ("options", _STRINGS)])),
        ("schemaString", pa.string()),
        ("partitionColumns", pa.list_(pa.string())),
        ("configuration", _STRINGS),
    ]
)

_SIDECAR = pa.struct(
    [("path", pa.string()), ("sizeInBytes", pa.int64()), ("modificationTime", pa.int64())]
)

_CHECKPOINT = pa.struct([("version", pa.int64())])

#: The forms that `write_checkpoint` knows.
FORMS = ("classic", "parts", "json-sidecars", "parquet-sidecars")


def write_checkpoint(table: str, form: str = "classic") -> list[Path]:
    """Write a checkpoint of the newest version and return its files.

    Only for tables whose log still has every commit, and whose newest version has no transactions.
    """
    version = log.newest(table)
    folder = Path(table, "_delta_log")
    files = [{"add": {**add, "dataChange": False}} for add in log.active_files(table)]
    half = -(-len(files) // 2)
    definition = [{"protocol": _newest(table, "protocol")}, {"metaData": log.metadata(table)}]
    name = f"{version:020d}.checkpoint"
    if form == "classic":
        return [_write(folder / f"{name}.parquet", [*definition, *files], row_group_size=half or 1)]
    if form == "parts":
        return [
            _write(folder / f"{name}.{1:010d}.{2:010d}.parquet", [*definition, *files[:half]]),
            _write(folder / f"{name}.{2:010d}.{2:010d}.parquet", files[half:]),
        ]
    (folder / "_sidecars").mkdir(exist_ok=True)
    sidecars = [
        _write(folder / "_sidecars" / f"{version}-{i}.parquet", rows)
        for i, rows in enumerate((files[:half], files[half:]))
    ]
    definition += [{"checkpointMetadata": {"version": version}}]
    definition += [
        {
            "sidecar": {
                "path": file.name,
                "sizeInBytes": file.stat().st_size,
                "modificationTime": 0,
            }
        }
        for file in sidecars
    ]
    name = f"{name}.80a083e8-7026-4e79-81be-64bd76c43a11"
    if form == "parquet-sidecars":
        return [_write(folder / f"{name}.parquet", definition), *sidecars]
    top = folder / f"{name}.json"
    top.write_text("".join(json.dumps(action) + "\n" for action in definition))
    return [top, *sidecars]


def _newest(table: str, kind: str) -> dict[str, Any]:
    return [body for v in log.versions(table) for body in log.actions(table, v, kind)][-1]


def _write(path: Path, actions: list[dict[str, Any]], row_group_size: int | None = None) -> Path:
    types = {
        "add": _FILE,
        "protocol": _PROTOCOL,
        "metaData": _METADATA,
        "sidecar": _SIDECAR,
        "checkpointMetadata": _CHECKPOINT,
    }
    used = {kind for action in actions for kind in action} or {"add"}
    columns = {
        kind: pa.array([_plain(action.get(kind)) for action in actions], types[kind])
        for kind in types
        if kind in used
    }
    pq.write_table(pa.table(columns), path, row_group_size=row_group_size)
    return path


def _plain(value: Any) -> Any:
    """Turn the maps of an action into the lists of pairs that pyarrow takes them from."""
    if not isinstance(value, dict):
        return value
    return {
        key: list(inner.items())
        if key in ("partitionValues", "configuration", "options")
        else _plain(inner)
        for key, inner in value.items()
    }
