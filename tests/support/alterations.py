"""Tables whose columns are altered, and what that makes of their logs; no Spark."""

from __future__ import annotations

import json
import re
from typing import Any

import pytest

from deltaic.commands.registry import run_command
from deltaic.commit.transaction import RetryPolicy
from deltaic.exceptions import DeltaError
from tests.support.definitions import column, command_arguments, plan, schema, struct
from tests.support.memory_log import MemoryCommit, MemoryLog

MODE = "delta.columnMapping.mode"
ID, NAME = "delta.columnMapping.id", "delta.columnMapping.physicalName"
LIST = {"type": "array", "containsNull": True}
MAP = {"type": "map", "keyType": "string", "valueContainsNull": True}

#: A column of every nesting: `s.x`, `arr.element.y` and `m.value.z`; `p` is the partition column.
COLUMNS = (
    "id",
    column("s", struct("x", column("t", "string"))),
    column("arr", {**LIST, "elementType": struct("y")}),
    column("m", {**MAP, "valueType": struct("z")}),
    "p",
)


def table(*columns: Any, mode: str = "none", **properties: str) -> MemoryLog:
    """A table with these columns, by default those of `COLUMNS`, partitioned by `p`."""
    log = MemoryLog()
    named = {f"delta.{name.replace('_', '.')}": value for name, value in properties.items()}
    planned = plan(
        log,
        schema_string=schema(*(columns or COLUMNS)),
        partition_by=("p",),
        properties={**({MODE: mode} if mode != "none" else {}), **named},
    )
    MemoryCommit(log, "WRITE", plan=planned).log.write_if_absent(
        0,
        [
            json.dumps({"commitInfo": {"operation": "WRITE"}}),
            json.dumps({"protocol": planned.definition.protocol.to_json()}),
            json.dumps({"metaData": planned.definition.metadata.to_json()}),
        ],
    )
    return log


def alter(log: MemoryLog, command: str, **arguments: Any) -> dict[str, Any]:
    """Run a command on the table of a log."""
    return run_command(
        command, command_arguments(log, command, **arguments), log, RetryPolicy(), lambda: 1
    )


def metadata(log: MemoryLog) -> dict[str, Any]:
    """Return the `metaData` action of the newest version."""
    return dict(log.actions(log.version, "metaData")[0])


def parsed(log: MemoryLog) -> dict[str, Any]:
    """Return the schema that it has."""
    return dict(json.loads(metadata(log)["schemaString"]))


def fields(node: Any, path: str = "") -> dict[str, dict[str, Any]]:
    """Return every field by its path."""
    found: dict[str, dict[str, Any]] = {}
    if isinstance(node, dict):
        for part in node.get("fields", ()):
            found[path + part["name"]] = part
            found |= fields(part["type"], f"{path}{part['name']}.")
        for key, name in (("elementType", "element"), ("keyType", "key"), ("valueType", "value")):
            found |= fields(node.get(key), f"{path}{name}.")
    return found


def operation(log: MemoryLog) -> tuple[str, dict[str, Any]]:
    """Return what the newest commit calls itself."""
    (info,) = log.actions(log.version, "commitInfo")
    return info["operation"], info["operationParameters"]


def refusal(log: MemoryLog, command: str, **arguments: Any) -> str:
    """Return the condition of the error that a command ends with."""
    version = log.version
    with pytest.raises(DeltaError) as caught:
        alter(log, command, **arguments)
    assert log.version == version
    assert not re.search(r"(?<!\w)<\w+>", str(caught.value)), "a parameter is missing"
    return caught.value.condition


def new(path: str, data_type: Any = "long", **more: Any) -> dict[str, Any]:
    """Return a column to be added, as the JVM states it."""
    *parent, name = path.split(".")
    comment = more.pop("comment", None)
    nullable = more.pop("nullable", True)
    body = column(name, data_type, nullable, {"comment": comment} if comment else {})
    return {"parent": parent, "specified": body, **more}
