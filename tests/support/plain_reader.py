"""A reader that lacks a feature: it replays a log from its last checkpoint, and refuses by name.

It reads data files with pyarrow alone, by the names and types of the table's columns.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any
from urllib.parse import unquote

import pyarrow as pa
import pyarrow.parquet as pq

from tests.support import log

_TYPES = {"long": pa.int64(), "integer": pa.int32(), "string": pa.string()}


class Unreadable(Exception):
    """The reader does not have what the table needs."""


def plain_rows(table: str, lacks: str) -> list[tuple[Any, ...]]:
    """Return the rows of a table without nested columns, in any order.

    Raises
    ------
    Unreadable
        If the protocol names the feature, or the state that is read uses it.
    """
    actions = _state(table)
    protocol = [a["protocol"] for a in actions if a.get("protocol")][-1]
    named = {*(protocol.get("readerFeatures") or ()), *(protocol.get("writerFeatures") or ())}
    if lacks in named or (lacks == "columnMapping" and protocol["minReaderVersion"] == 2):
        raise Unreadable(f"the table needs {lacks}")
    metadata = [a["metaData"] for a in actions if a.get("metaData")][-1]
    files: dict[str, dict[str, Any]] = {}
    for action in actions:
        if action.get("remove"):
            files.pop(action["remove"]["path"], None)
        if action.get("add"):
            files[action["add"]["path"]] = action["add"]
    fields = json.loads(metadata["schemaString"])["fields"]
    return [row for add in files.values() for row in _rows(table, add, fields, lacks)]


def _rows(
    table: str, add: dict[str, Any], fields: list[dict[str, Any]], lacks: str
) -> list[tuple[Any, ...]]:
    if add.get("deletionVector") and lacks == "deletionVectors":
        raise Unreadable(f"{add['path']} has a deletion vector")
    found = pq.read_table(Path(table, unquote(add["path"])), partitioning=None)
    values = dict(add["partitionValues"])
    columns = []
    for field in fields:
        name, wanted = field["name"], _TYPES[field["type"]]
        if name in values:
            columns.append([pa.scalar(values[name]).cast(wanted).as_py()] * found.num_rows)
        elif name not in found.column_names:
            columns.append([None] * found.num_rows)
        elif found.schema.field(name).type != wanted:
            raise Unreadable(f"{add['path']} has {name} as {found.schema.field(name).type}")
        else:
            columns.append(found[name].to_pylist())
    if not set(found.column_names) & {field["name"] for field in fields}:
        raise Unreadable(f"{add['path']} has none of the columns")
    return list(zip(*columns, strict=True))


def _state(table: str) -> list[dict[str, Any]]:
    """Return the actions of the newest classic checkpoint and of the commits after it."""
    directory = Path(table, "_delta_log")
    named = (p for p in directory.iterdir() if p.name.endswith(".checkpoint.parquet"))
    checkpoints = sorted(p for p in named if p.name[0].isdigit())
    last = int(checkpoints[-1].name[:20]) if checkpoints else -1
    if checkpoints:
        stored = pq.read_table(checkpoints[-1])
        if "sidecar" in stored.column_names and any(stored["sidecar"].to_pylist()):
            raise Unreadable("the checkpoint has sidecars")
        actions = [_without_pairs(row) for row in stored.to_pylist()]
    else:
        actions = []
    for version in log.versions(table):
        if version > last:
            text = log.commit_path(table, version).read_text(encoding="utf-8")
            actions += [json.loads(line) for line in text.splitlines() if line]
    return actions


def _without_pairs(row: dict[str, Any]) -> dict[str, Any]:
    """Return a row of a checkpoint with the partition values as a dictionary."""
    if row.get("add"):
        row["add"]["partitionValues"] = dict(row["add"]["partitionValues"])
    return row
