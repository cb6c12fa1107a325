"""The commands that begin in the JVM, by the names it calls them."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from deltaic.commands.create_table import CreateTable, create_table
from deltaic.commit.ports import Tables
from deltaic.commit.transaction import RetryPolicy
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
    return {"version": result.version, "skipped": result.skipped}


_COMMANDS: Mapping[str, _Command] = {"createTable": _create_table}
