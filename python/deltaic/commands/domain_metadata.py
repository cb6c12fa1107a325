"""Metadata domains of users (Protocol § Domain Metadata)."""

from __future__ import annotations

from dataclasses import dataclass

from deltaic.commit.message import Message
from deltaic.commit.operations import Operation
from deltaic.commit.plan import CommitPlan, Definition
from deltaic.commit.ports import CommitSummary, OperationInfo, TableAccess, TableSnapshot
from deltaic.commit.transaction import CommitResult, RetryPolicy, commit_metadata
from deltaic.exceptions import error
from deltaic.protocol.actions import DomainMetadata
from deltaic.protocol.domains import FEATURE
from deltaic.protocol.features import require_writable, supports

_SYSTEM_PREFIX = "delta."


@dataclass(frozen=True, slots=True)
class DescribeDomainMetadata(Message):
    """The argument of `user_domains`."""

    table: str


@dataclass(frozen=True, slots=True)
class SetDomainMetadata(Message):
    """The arguments of `set_domain_metadata`."""

    table: str
    domain: str
    configuration: str


@dataclass(frozen=True, slots=True)
class RemoveDomainMetadata(Message):
    """The arguments of `remove_domain_metadata`."""

    table: str
    domain: str


def user_domains(table: str, tables: TableAccess) -> dict[str, str]:
    """Return the domains that users have set, with their configuration."""
    domains = _current(table, tables).domains
    return {name: value for name, value in domains.items() if not _is_system_domain(name)}


def set_domain_metadata(
    table: str, domain: str, configuration: str, tables: TableAccess, policy: RetryPolicy
) -> CommitResult:
    """Set a domain, which may already exist.

    Raises
    ------
    InvalidArgumentError
        If the domain is a system domain.
    ProtocolError
        If the table does not support domain metadata.
    ConcurrentTransactionException
        If another writer set or removed the same domain concurrently.
    """
    current = _writable(table, domain, tables)
    return commit_domain(current, table, DomainMetadata(domain, configuration), tables, policy)


def remove_domain_metadata(
    table: str, domain: str, tables: TableAccess, policy: RetryPolicy
) -> CommitResult:
    """Remove a domain; a no-op if it does not exist.

    Raises
    ------
    Exception
        As `set_domain_metadata`.
    """
    current = _writable(table, domain, tables)
    if domain not in current.domains:
        return CommitResult(current.version, skipped=True)
    tombstone = DomainMetadata(domain, current.domains[domain], removed=True)
    return commit_domain(current, table, tombstone, tables, policy)


def commit_domain(
    current: TableSnapshot,
    table: str,
    action: DomainMetadata,
    tables: TableAccess,
    policy: RetryPolicy,
) -> CommitResult:
    """Set or remove a domain, based on a version of the table.

    Raises
    ------
    ProtocolError
        If this build cannot write to the table.
    ConcurrentTransactionException
        If the domain was set or removed after that version.
    """
    summary = CommitSummary(
        table=table,
        read_version=current.version,
        operation=OperationInfo(
            Operation.SET_DOMAIN_METADATA,
            {"domain": action.domain, "removed": "true" if action.removed else "false"},
        ),
        plan=CommitPlan(
            Definition(current.protocol, current.metadata),
            current.as_previous_version(),
            domains=(action,),
        ),
        is_blind_append=False,
        reads_whole_table=False,
    )
    return commit_metadata(summary, tables, policy)


def _current(table: str, tables: TableAccess) -> TableSnapshot:
    snapshot = tables.snapshot(table)
    if snapshot is None:
        raise error("DELTAIC_NOT_A_TABLE", table=table)
    return snapshot


def _writable(table: str, domain: str, tables: TableAccess) -> TableSnapshot:
    if _is_system_domain(domain):
        raise error("DELTAIC_SYSTEM_DOMAIN", table=table, domain=domain)
    current = _current(table, tables)
    require_writable(table, current.version, current.protocol, current.metadata)
    if not supports(current.protocol, FEATURE):
        raise error(
            "DELTAIC_DOMAIN_METADATA_UNSUPPORTED",
            table=table,
            version=current.version,
            domain=domain,
        )
    return current


def _is_system_domain(domain: str) -> bool:
    """Whether the protocol reserves the name."""
    return domain.casefold().startswith(_SYSTEM_PREFIX)
