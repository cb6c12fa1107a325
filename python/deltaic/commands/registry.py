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
from deltaic.commands.alter.upgrade_protocol import UpgradeProtocol, upgrade_protocol
from deltaic.commands.clone import CloneTable, clone_table
from deltaic.commands.convert import ConvertToDelta, convert_to_delta
from deltaic.commands.definitions.create_statement import CreateTable
from deltaic.commands.definitions.create_table import create_table
from deltaic.commands.detail import DescribeDetail, detail
from deltaic.commands.domain_metadata import (
    DescribeDomainMetadata,
    RemoveDomainMetadata,
    SetDomainMetadata,
    remove_domain_metadata,
    set_domain_metadata,
    user_domains,
)
from deltaic.commands.generate import Generate, generate
from deltaic.commands.history import DescribeHistory, history
from deltaic.commands.restore import Restore, restore
from deltaic.commands.rows import RowSet, result_schema
from deltaic.commands.vacuum import Vacuum, vacuum
from deltaic.commit.clock import Clock
from deltaic.commit.message import Message
from deltaic.commit.ports import TableAccess
from deltaic.commit.transaction import CommitResult, RetryPolicy
from deltaic.exceptions import error

_Arguments = TypeVar("_Arguments", bound=Message)
_Command = Callable[[Mapping[str, Any], TableAccess, RetryPolicy, Clock], dict[str, Any]]


def run_command(
    name: str,
    arguments: Mapping[str, Any],
    tables: TableAccess,
    policy: RetryPolicy,
    clock_ms: Clock,
) -> dict[str, Any]:
    """Run a command and return its response: a `CommitResult` or a `RowSet`, as JSON.

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
    record: type[_Arguments],
    run: Callable[[_Arguments, TableAccess, RetryPolicy, Clock], CommitResult],
) -> _Command:
    """Return a command that commits, or returns the first attempt that the JVM has to make."""

    def command(
        arguments: Mapping[str, Any], tables: TableAccess, policy: RetryPolicy, clock_ms: Clock
    ) -> dict[str, Any]:
        return run(record.from_json(arguments), tables, policy, clock_ms).to_json()

    return command


def _describes(
    record: type[_Arguments], run: Callable[[_Arguments, TableAccess], RowSet]
) -> _Command:
    """Return a command that returns rows."""

    def command(
        arguments: Mapping[str, Any], tables: TableAccess, policy: RetryPolicy, clock_ms: Clock
    ) -> dict[str, Any]:
        return run(record.from_json(arguments), tables).to_json()

    return command


def _clone_table(
    arguments: Mapping[str, Any], tables: TableAccess, policy: RetryPolicy, clock_ms: Clock
) -> dict[str, Any]:
    return clone_table(CloneTable.from_json(arguments), tables, policy, clock_ms).to_json()


def _describe_detail(arguments: DescribeDetail, tables: TableAccess) -> RowSet:
    return detail(arguments.table, tables, arguments.name)


def _describe_domain_metadata(arguments: DescribeDomainMetadata, tables: TableAccess) -> RowSet:
    domains = user_domains(arguments.table, tables)
    rows = [{"domain": name, "configuration": value} for name, value in domains.items()]
    return RowSet(result_schema("describeDomainMetadata"), rows)


def _describe_history(arguments: DescribeHistory, tables: TableAccess) -> RowSet:
    return history(arguments.table, tables, arguments.limit)


def _convert_to_delta(
    arguments: Mapping[str, Any], tables: TableAccess, policy: RetryPolicy, clock_ms: Clock
) -> dict[str, Any]:
    record = ConvertToDelta.from_json(arguments)
    return convert_to_delta(record, tables, policy, clock_ms).to_json()


def _restore(
    arguments: Mapping[str, Any], tables: TableAccess, policy: RetryPolicy, clock_ms: Clock
) -> dict[str, Any]:
    return restore(Restore.from_json(arguments), tables, policy, clock_ms).to_json()


def _set_domain_metadata(
    arguments: SetDomainMetadata, tables: TableAccess, policy: RetryPolicy, clock_ms: Clock
) -> CommitResult:
    return set_domain_metadata(
        arguments.table, arguments.domain, arguments.configuration, tables, policy
    )


def _remove_domain_metadata(
    arguments: RemoveDomainMetadata, tables: TableAccess, policy: RetryPolicy, clock_ms: Clock
) -> CommitResult:
    return remove_domain_metadata(arguments.table, arguments.domain, tables, policy)


def _vacuum(
    arguments: Mapping[str, Any], tables: TableAccess, policy: RetryPolicy, clock_ms: Clock
) -> dict[str, Any]:
    return vacuum(Vacuum.from_json(arguments), tables, policy, clock_ms).to_json()


#: The arguments of a command are the record of its name, with a capital letter.
#: ``command-results.json`` has the columns of the rows that commands return.
_COMMANDS: Mapping[str, _Command] = {
    "addColumns": _commits(AddColumns, add_columns),
    "addConstraint": _commits(AddConstraint, add_constraint),
    "alterColumns": _commits(AlterColumns, alter_columns),
    "alterProperties": _commits(AlterProperties, alter_properties),
    "cloneTable": _clone_table,
    "clusterBy": _commits(ClusterBy, cluster_by),
    "convertToDelta": _convert_to_delta,
    "createTable": _commits(CreateTable, create_table),
    "describeDetail": _describes(DescribeDetail, _describe_detail),
    "describeDomainMetadata": _describes(DescribeDomainMetadata, _describe_domain_metadata),
    "describeHistory": _describes(DescribeHistory, _describe_history),
    "dropColumns": _commits(DropColumns, drop_columns),
    "dropConstraint": _commits(DropConstraint, drop_constraint),
    "dropFeature": _commits(DropFeature, drop_feature),
    "generate": _describes(Generate, generate),
    "removeDomainMetadata": _commits(RemoveDomainMetadata, _remove_domain_metadata),
    "renameColumn": _commits(RenameColumn, rename_column),
    "replaceColumns": _commits(ReplaceColumns, replace_columns),
    "restore": _restore,
    "setDomainMetadata": _commits(SetDomainMetadata, _set_domain_metadata),
    "syncIdentity": _commits(SyncIdentity, sync_identity),
    "upgradeProtocol": _commits(UpgradeProtocol, upgrade_protocol),
    "vacuum": _vacuum,
}
