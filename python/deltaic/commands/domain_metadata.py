"""Metadata domains of users: named texts that travel with a table (Protocol § Domain Metadata)."""

from __future__ import annotations

from deltaic.commit.operations import Operation
from deltaic.commit.plan import CommitPlan, Definition
from deltaic.commit.ports import CommitSummary, TableHeader, Tables
from deltaic.commit.transaction import CommitResult, RetryPolicy, commit
from deltaic.exceptions import error
from deltaic.protocol.actions import DomainMetadata
from deltaic.protocol.domains import FEATURE
from deltaic.protocol.features import require_writable, supports

_SYSTEM_PREFIX = "delta."


def user_domains(table: str, tables: Tables) -> dict[str, str]:
    """Return the domains that users have set, with their configuration."""
    domains = _current(table, tables).domains
    return {name: text for name, text in domains.items() if not _is_systems(name)}


def set_domain_metadata(
    table: str, domain: str, configuration: str, tables: Tables, policy: RetryPolicy
) -> CommitResult:
    """Set a domain, whether or not it is there.

    Raises
    ------
    InvalidArgumentError
        If the domain is one of the protocol's.
    ProtocolError
        If the table does not support domain metadata.
    ConcurrentTransactionException
        If another writer set or removed the same domain meanwhile.
    """
    current = _writable(table, domain, tables)
    return _commit(current, table, DomainMetadata(domain, configuration), tables, policy)


def remove_domain_metadata(
    table: str, domain: str, tables: Tables, policy: RetryPolicy
) -> CommitResult:
    """Remove a domain; there is nothing to do if it is not there.

    Raises
    ------
    Exception
        As `set_domain_metadata`.
    """
    current = _writable(table, domain, tables)
    if domain not in current.domains:
        return CommitResult(current.version, skipped=True)
    tombstone = DomainMetadata(domain, current.domains[domain], removed=True)
    return _commit(current, table, tombstone, tables, policy)


def _commit(
    current: TableHeader, table: str, action: DomainMetadata, tables: Tables, policy: RetryPolicy
) -> CommitResult:
    summary = CommitSummary(
        table=table,
        read_version=current.version,
        operation=Operation.SET_DOMAIN_METADATA,
        operation_parameters={
            "domain": action.domain,
            "removed": "true" if action.removed else "false",
        },
        plan=CommitPlan(
            Definition(current.protocol, current.metadata),
            current.as_predecessor(),
            domains=(action,),
        ),
        is_blind_append=False,
        reads_whole_table=False,
    )
    return commit(tables.prepare_header_commit(summary), tables, policy)


def _current(table: str, tables: Tables) -> TableHeader:
    header = tables.header(table)
    if header is None:
        raise error("DELTAIC_NOT_A_TABLE", table=table)
    return header


def _writable(table: str, domain: str, tables: Tables) -> TableHeader:
    if _is_systems(domain):
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


def _is_systems(domain: str) -> bool:
    """Whether the protocol has reserved the name."""
    return domain.casefold().startswith(_SYSTEM_PREFIX)
