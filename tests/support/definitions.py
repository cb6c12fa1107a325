"""Schemas and tables for tests of what commits hold; no Spark."""

from __future__ import annotations

import json
from typing import Any

from deltaic.commands.plan_write import WriteRequest, plan_write
from deltaic.commit.operations import Operation, WriteMode
from deltaic.commit.plan import CommitPlan
from deltaic.commit.transaction import CommitResult, commit
from tests.support.memory_log import MemoryCommit, MemoryFile, MemoryLog


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
    values: dict[str, Any] = {
        "table": log.table,
        "operation": Operation.WRITE,
        "read_version": log.version,
        "mode": WriteMode(mode),
        "schema_string": schema("id", "p"),
    }
    return WriteRequest(**{**values, **changes})


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
