"""The commands that begin in the JVM, by the names it calls them."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from deltaic.commands.column_changes import AlterColumn, alter_column
from deltaic.commands.constraints import (
    AddConstraint,
    DropConstraint,
    add_constraint,
    drop_constraint,
)
from deltaic.commands.create_table import CreateTable, create_table
from deltaic.commands.table_properties import AlterProperties, alter_properties
from deltaic.commit.ports import Tables
from deltaic.commit.transaction import CommitResult, RetryPolicy
from deltaic.exceptions import error

_Command = Callable[[Mapping[str, Any], Tables, RetryPolicy, int], dict[str, Any]]


def run_command(
    name: str, arguments: Mapping[str, Any], tables: Tables, policy: RetryPolicy, now_ms: int
) -> dict[str, Any]:
    """Run a command and return its reply.

    Raises
    ------
    InvalidArgumentError
        If there is no such command.
    """
    command = _COMMANDS.get(name)
    if command is None:
        raise error("DELTAIC_UNKNOWN_COMMAND", command=name, known=", ".join(sorted(_COMMANDS)))
    return command(arguments, tables, policy, now_ms)


def _create_table(
    arguments: Mapping[str, Any], tables: Tables, policy: RetryPolicy, now_ms: int
) -> dict[str, Any]:
    result = create_table(CreateTable.from_json(arguments), tables, policy, now_ms)
    return _reply(result)


def _add_constraint(
    arguments: Mapping[str, Any], tables: Tables, policy: RetryPolicy, now_ms: int
) -> dict[str, Any]:
    return _reply(add_constraint(AddConstraint.from_json(arguments), tables, policy, now_ms))


def _drop_constraint(
    arguments: Mapping[str, Any], tables: Tables, policy: RetryPolicy, now_ms: int
) -> dict[str, Any]:
    return _reply(drop_constraint(DropConstraint.from_json(arguments), tables, policy, now_ms))


def _alter_column(
    arguments: Mapping[str, Any], tables: Tables, policy: RetryPolicy, now_ms: int
) -> dict[str, Any]:
    return _reply(alter_column(AlterColumn.from_json(arguments), tables, policy, now_ms))


def _alter_properties(
    arguments: Mapping[str, Any], tables: Tables, policy: RetryPolicy, now_ms: int
) -> dict[str, Any]:
    return _reply(alter_properties(AlterProperties.from_json(arguments), tables, policy, now_ms))


def _reply(result: CommitResult) -> dict[str, Any]:
    return {"version": result.version, "skipped": result.skipped}


_COMMANDS: Mapping[str, _Command] = {
    "addConstraint": _add_constraint,
    "alterColumn": _alter_column,
    "alterProperties": _alter_properties,
    "createTable": _create_table,
    "dropConstraint": _drop_constraint,
}
