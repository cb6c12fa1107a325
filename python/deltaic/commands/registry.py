"""The commands that the JVM calls, by name."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, TypeVar

from deltaic.commands.alter.add_columns import AddColumns, add_columns
from deltaic.commands.alter.clustering import ClusterBy, cluster_by
from deltaic.commands.alter.column_changes import AlterColumns, alter_columns
from deltaic.commands.alter.constraints import (
    AddConstraint,
    DropConstraint,
    add_constraint,
    drop_constraint,
)
from deltaic.commands.alter.drop_columns import DropColumns, drop_columns
from deltaic.commands.alter.drop_feature import DropFeature, drop_feature
from deltaic.commands.alter.rename_column import RenameColumn, rename_column
from deltaic.commands.alter.replace_columns import ReplaceColumns, replace_columns
from deltaic.commands.alter.sync_identity import SyncIdentity, sync_identity
from deltaic.commands.alter.table_properties import AlterProperties, alter_properties
from deltaic.commands.definitions.create_statement import CreateTable
from deltaic.commands.definitions.create_table import create_table
from deltaic.commands.detail import detail
from deltaic.commands.history import history
from deltaic.commands.rows import RowSet
from deltaic.commit.clock import Clock
from deltaic.commit.ports import TableAccess
from deltaic.commit.transaction import CommitResult, RetryPolicy
from deltaic.exceptions import error

_Arguments = TypeVar("_Arguments")
_Command = Callable[[Mapping[str, Any], TableAccess, RetryPolicy, Clock], dict[str, Any]]


def run_command(
    name: str,
    arguments: Mapping[str, Any],
    tables: TableAccess,
    policy: RetryPolicy,
    clock_ms: Clock,
) -> dict[str, Any]:
    """Run a command and return its response.

    Raises
    ------
    InvalidArgumentError
        If there is no such command.
    """
    command = _COMMANDS.get(name)
    if command is None:
        raise error("DELTAIC_UNKNOWN_COMMAND", command=name, known=", ".join(sorted(_COMMANDS)))
    return command(arguments, tables, policy, clock_ms)


def _commits(
    parse: Callable[[Mapping[str, Any]], _Arguments],
    run: Callable[[_Arguments, TableAccess, RetryPolicy, Clock], CommitResult],
) -> _Command:
    """Return a command that commits, or returns the first attempt that the JVM has to make."""

    def command(
        arguments: Mapping[str, Any], tables: TableAccess, policy: RetryPolicy, clock_ms: Clock
    ) -> dict[str, Any]:
        result = run(parse(arguments), tables, policy, clock_ms)
        response: dict[str, Any] = {"version": result.version, "skipped": result.skipped}
        if result.first_attempt is not None:
            response["firstAttempt"] = result.first_attempt.to_json()
        return response

    return command


def _describe_history(
    arguments: Mapping[str, Any], tables: TableAccess, policy: RetryPolicy, clock_ms: Clock
) -> dict[str, Any]:
    return _rows(history(arguments["table"], tables, arguments.get("limit")))


def _describe_detail(
    arguments: Mapping[str, Any], tables: TableAccess, policy: RetryPolicy, clock_ms: Clock
) -> dict[str, Any]:
    return _rows(detail(arguments["table"], tables, arguments.get("name")))


def _rows(found: RowSet) -> dict[str, Any]:
    return {"rows": list(found.rows)}


#: For commands that return rows, ``command-results.json`` has the columns under the same names.
_COMMANDS: Mapping[str, _Command] = {
    "addColumns": _commits(AddColumns.from_json, add_columns),
    "addConstraint": _commits(AddConstraint.from_json, add_constraint),
    "alterColumns": _commits(AlterColumns.from_json, alter_columns),
    "alterProperties": _commits(AlterProperties.from_json, alter_properties),
    "clusterBy": _commits(ClusterBy.from_json, cluster_by),
    "createTable": _commits(CreateTable.from_json, create_table),
    "describeDetail": _describe_detail,
    "describeHistory": _describe_history,
    "dropColumns": _commits(DropColumns.from_json, drop_columns),
    "dropConstraint": _commits(DropConstraint.from_json, drop_constraint),
    "dropFeature": _commits(DropFeature.from_json, drop_feature),
    "renameColumn": _commits(RenameColumn.from_json, rename_column),
    "replaceColumns": _commits(ReplaceColumns.from_json, replace_columns),
    "syncIdentity": _commits(SyncIdentity.from_json, sync_identity),
}
