"""What every ALTER TABLE does: read the definition, change it, commit it alone."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace

from deltaic.commands.definition import plan_of_successor, protocol_of_successor
from deltaic.commands.iceberg_files import require_fit_files
from deltaic.commit.clock import Clock
from deltaic.commit.operations import Operation
from deltaic.commit.plan import Definition
from deltaic.commit.ports import CommitSummary, TableHeader, Tables
from deltaic.commit.transaction import CommitResult, RetryPolicy, commit
from deltaic.exceptions import error
from deltaic.protocol import iceberg_compat
from deltaic.protocol.actions import DomainMetadata, Metadata, Protocol
from deltaic.protocol.features import require_writable
from deltaic.protocol.negotiation import protocol_without
from deltaic.protocol.properties import ProtocolRequest


@dataclass(frozen=True, slots=True)
class Alteration:
    """A new definition for a table.

    Attributes
    ----------
    current
        What it is based on.
    request
        What the user asks of the protocol beside.
    reads_whole_table
        Whether it holds only for the rows that the table had.
    domains
        The metadata domains that it sets.
    drops
        A feature that the protocol is to be without.
    """

    table: str
    current: TableHeader
    metadata: Metadata
    operation: Operation
    parameters: Mapping[str, str]
    request: ProtocolRequest = field(default_factory=ProtocolRequest)
    reads_whole_table: bool = False
    domains: tuple[DomainMetadata, ...] = ()
    drops: str | None = None


def altered_header(table: str, tables: Tables) -> TableHeader:
    """Return what an alteration is based on.

    Raises
    ------
    TableStateError
        If there is no table.
    ProtocolError
        If this build cannot write to it.
    """
    current = tables.header(table)
    if current is None:
        raise error("DELTAIC_NOT_A_TABLE", table=table)
    require_writable(table, current.version, current.protocol, current.metadata)
    return current


def alter(
    alteration: Alteration, tables: Tables, policy: RetryPolicy, clock_ms: Clock
) -> CommitResult:
    """Commit a new definition, and the protocol that it needs."""
    table, current, metadata = alteration.table, alteration.current, alteration.metadata
    protocol = needed_protocol(alteration)
    promise = iceberg_compat.newly_active(metadata.configuration, current.metadata.configuration)
    if promise is not None:
        require_fit_files(table, promise, current, metadata, tables)
    plan = replace(
        plan_of_successor(Definition(protocol, metadata), current),
        # Files that come meanwhile, by a compaction too, were not looked at.
        changes_columns=promise is not None,
        domains=alteration.domains,
    )
    if not (plan.changes_protocol or plan.changes_metadata or plan.domains):
        return CommitResult(current.version, skipped=True)
    summary = CommitSummary(
        table=table,
        read_version=current.version,
        operation=alteration.operation,
        operation_parameters=alteration.parameters,
        plan=plan,
        is_blind_append=False,
        reads_whole_table=alteration.reads_whole_table or promise is not None,
    )
    return commit(tables.prepare_header_commit(summary), tables, policy, clock_ms)


def needed_protocol(alteration: Alteration) -> Protocol:
    """Return the protocol that a new definition needs, of which nothing is committed yet.

    Raises
    ------
    InvalidArgumentError, ProtocolError, TableStateError
        As for `protocol_of_successor`.
    """
    current = alteration.current
    if alteration.drops is not None:
        current = replace(current, protocol=protocol_without(current.protocol, alteration.drops))
    return protocol_of_successor(alteration.table, current, alteration.metadata, alteration.request)
