"""Schemas and tables for tests of what commits hold; no Spark."""

from __future__ import annotations

import json
from dataclasses import fields
from typing import Any

from deltaic.commands.definitions.create_statement import RequestedDefinition
from deltaic.commands.plan_write import WriteRequest, plan_write
from deltaic.commit.message import codecs
from deltaic.commit.operations import Operation, WriteMode
from deltaic.commit.plan import CommitPlan
from deltaic.commit.ports import OperationInfo
from deltaic.commit.transaction import CommitResult, commit
from tests.support.memory_log import MemoryCommit, MemoryFile, MemoryLog

#: The arguments of `write_request` that are part of the definition.
_SPECIFIED = frozenset(field.name for field in fields(RequestedDefinition))


def column(
    name: str, data_type: Any = "long", nullable: bool = True, metadata: Any = None
) -> dict[str, Any]:
    """Return one column as the log's JSON."""
    return {"name": name, "type": data_type, "nullable": nullable, "metadata": metadata or {}}


def struct(*columns: Any) -> Any:
    """Return a struct type as the log's JSON; strings stand for columns of type long."""
    fields = [column(c) if isinstance(c, str) else c for c in columns]
    return {"type": "struct", "fields": fields}


def schema(*columns: Any) -> str:
    """Return a schema string."""
    return json.dumps(struct(*columns))


def write_request(log: MemoryLog, mode: str = "append", **changes: Any) -> WriteRequest:
    """Return a request to write columns `id` and `p` into a log's table."""
    values = {"schema_string": schema("id", "p"), **changes}
    kind, options = values.pop("operation", Operation.WRITE), values.pop("options", {})
    specified = {key: values.pop(key) for key in _SPECIFIED & values.keys()}
    request: dict[str, Any] = {
        "table": log.table,
        "read_version": log.version,
        "operation": OperationInfo(kind, options=options),
        "mode": WriteMode(mode),
        "definition": RequestedDefinition(**specified),
    }
    return WriteRequest(**{**request, **values})


def command_arguments(log: MemoryLog, command: str, **arguments: Any) -> dict[str, Any]:
    """Return the arguments of a command on a log's table; the definition is given flat."""
    values: dict[str, Any] = {"table": log.table, **arguments}
    if command == "createTable":
        definition = {codec.key for codec in codecs(RequestedDefinition)}
        specified = {key: values.pop(key) for key in definition & values.keys()}
        values = {"isManaged": False, **values, "definition": specified}
    return values


def plan(log: MemoryLog, mode: str = "append", **changes: Any) -> CommitPlan:
    """Plan a write."""
    return plan_write(write_request(log, mode, **changes), log, now_ms=5_000)


def write(
    log: MemoryLog,
    *files: MemoryFile,
    commit_options: dict[str, str] | None = None,
    **request: Any,
) -> CommitResult:
    """Plan and commit a blind append."""
    planned = plan(log, options=commit_options or {}, **request)
    prepared = MemoryCommit(
        log,
        "WRITE",
        adds=files,
        plan=planned,
        options=commit_options or {},
        is_blind_append=planned.is_blind_append,
        parameters={"mode": "Append", "partitionBy": "[]"},
    )
    return commit(prepared, log)


def create(*files: MemoryFile, **properties: str) -> MemoryLog:
    """Return a table with columns `id` and `p`; properties without their prefix, `_` for a dot."""
    log = MemoryLog()
    named = {f"delta.{name.replace('_', '.')}": value for name, value in properties.items()}
    write(log, *files, properties=named)
    return log
