"""What every ALTER TABLE does: read the definition, change it, and commit it without files."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace

from deltaic.commands.definitions.definition import plan_metadata_update, upgraded_protocol
from deltaic.commands.definitions.iceberg_files import require_iceberg_compatible_files
from deltaic.commit.clock import Clock
from deltaic.commit.operations import Operation
from deltaic.commit.plan import Definition
from deltaic.commit.ports import CommitSummary, OperationInfo, TableAccess, TableSnapshot
from deltaic.commit.transaction import CommitResult, RetryPolicy, commit_metadata
from deltaic.exceptions import error
from deltaic.protocol.actions import DomainMetadata, Metadata, Protocol
from deltaic.protocol.columns import iceberg_compat
from deltaic.protocol.features import require_writable
from deltaic.protocol.negotiation import protocol_without
from deltaic.protocol.properties import ProtocolRequest


@dataclass(frozen=True, slots=True)
class Alteration:
    """A new definition for a table.

    Attributes
    ----------
    current
        The version that it is based on.
    request
        What the user requests of the protocol in addition.
    reads_whole_table
        Whether it depends on all rows of the table, so that added rows are a conflict.
    domains
        The metadata domains that it sets.
    drops
        The feature to drop from the protocol, if any.
    changes_columns
        Whether files that are added concurrently may not have the columns as it defines them, so
        that they are a conflict.
    """

    table: str
    current: TableSnapshot
    metadata: Metadata
    operation: Operation
    parameters: Mapping[str, str]
    request: ProtocolRequest = field(default_factory=ProtocolRequest)
    reads_whole_table: bool = False
    domains: tuple[DomainMetadata, ...] = ()
    drops: str | None = None
    changes_columns: bool = False


def current_snapshot(table: str, tables: TableAccess) -> TableSnapshot:
    """Return the newest version of a table that is to be altered.

    Raises
    ------
    TableStateError
        If there is no table.
    ProtocolError
        If this build cannot write to it.
    """
    current = tables.snapshot(table)
    if current is None:
        raise error("DELTAIC_NOT_A_TABLE", table=table)
    require_writable(table, current.version, current.protocol, current.metadata)
    return current


def alter(
    alteration: Alteration,
    tables: TableAccess,
    policy: RetryPolicy,
    clock_ms: Clock,
    *,
    more_follows: bool = False,
) -> CommitResult:
    """Commit a new definition, with the protocol that it requires.

    Parameters
    ----------
    more_follows
        As for `commit_metadata`.
    """
    table, current, metadata = alteration.table, alteration.current, alteration.metadata
    protocol = required_protocol(alteration)
    enabled = iceberg_compat.newly_active(metadata.configuration, current.metadata.configuration)
    if enabled is not None:
        require_iceberg_compatible_files(table, enabled, current, metadata, tables)
    plan = replace(
        plan_metadata_update(Definition(protocol, metadata), current),
        # Files that are added concurrently, also by a compaction, were not checked.
        changes_columns=alteration.changes_columns or enabled is not None,
        domains=alteration.domains,
    )
    if not (plan.changes_protocol or plan.changes_metadata or plan.domains):
        return CommitResult(current.version, skipped=True)
    summary = CommitSummary(
        table=table,
        read_version=current.version,
        operation=OperationInfo(alteration.operation, alteration.parameters),
        plan=plan,
        is_blind_append=False,
        reads_whole_table=alteration.reads_whole_table or enabled is not None,
    )
    return commit_metadata(summary, tables, policy, clock_ms, more_follows=more_follows)


def required_protocol(alteration: Alteration) -> Protocol:
    """Return the protocol that a new definition requires, without committing it.

    Raises
    ------
    InvalidArgumentError, ProtocolError, TableStateError
        As for `upgraded_protocol`.
    """
    current = alteration.current
    if alteration.drops is not None:
        current = replace(current, protocol=protocol_without(current.protocol, alteration.drops))
    return upgraded_protocol(alteration.table, current, alteration.metadata, alteration.request)
