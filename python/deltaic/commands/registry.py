"""The commands that begin in the JVM, by the names it calls them."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from deltaic.commands.create_table import CreateTable, create_table
from deltaic.commands.detail import detail
from deltaic.commands.history import history
from deltaic.commands.rows import RowSet
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


def _describe_history(
    arguments: Mapping[str, Any], tables: Tables, policy: RetryPolicy, now_ms: int
) -> dict[str, Any]:
    return _rows(history(arguments["table"], tables, arguments.get("limit")))


def _describe_detail(
    arguments: Mapping[str, Any], tables: Tables, policy: RetryPolicy, now_ms: int
) -> dict[str, Any]:
    return _rows(detail(arguments["table"], tables, arguments.get("name")))


def _rows(found: RowSet) -> dict[str, Any]:
    return {"rows": list(found.rows)}


#: Those that give rows have their columns in ``command-results.json``, under the same names.
_COMMANDS: Mapping[str, _Command] = {
    "createTable": _create_table,
    "describeDetail": _describe_detail,
    "describeHistory": _describe_history,
}
