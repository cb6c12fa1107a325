"""What a transaction has read and writes, as far as a conflict check asks for it.

The files themselves, and the predicates that selected them, stay in the JVM: it says of each
winning commit where that meets them (`deltaic.commit.ports.Winner`).
"""

from __future__ import annotations

from dataclasses import dataclass

from deltaic.commit.isolation import Isolation, isolation_of
from deltaic.commit.ports import CommitSummary
from deltaic.protocol.actions import Metadata, Protocol, SetTransaction
from deltaic.protocol.identity import with_high_water_marks


@dataclass(frozen=True, slots=True)
class ReadSet:
    """One transaction, seen by the conflict rules.

    Attributes
    ----------
    read_version
        The version it is based on; -1 if there was no table.
    protocol, metadata
        What it changes; None for what it leaves as it is.
    changes_columns
        Whether it changes the schema or the partition columns.
    txn
        The progress it records, if it does.
    domains
        The metadata domains that it sets.
    """

    table: str
    read_version: int
    operation: str
    isolation: Isolation
    is_blind_append: bool
    reads_whole_table: bool
    protocol: Protocol | None = None
    metadata: Metadata | None = None
    changes_columns: bool = False
    txn: SetTransaction | None = None
    domains: frozenset[str] = frozenset()

    @property
    def creates_table(self) -> bool:
        """Whether there was no table before."""
        return self.read_version < 0


def read_set_of(summary: CommitSummary, txn: SetTransaction | None) -> ReadSet:
    """Return the read set of a prepared commit."""
    plan = summary.plan
    protocol, metadata = plan.get("protocol"), plan.get("metaData")
    effective = plan.get("effectiveMetaData") or {}
    changes_metadata = metadata is not None
    if summary.identity_marks:
        # The definition is the planned one, and only the marks tell it from what the table has.
        marked = with_high_water_marks(Metadata.from_json(effective), summary.identity_marks)
        metadata = marked.to_json()
    return ReadSet(
        table=summary.table,
        read_version=summary.read_version,
        operation=summary.operation,
        isolation=isolation_of(
            effective.get("configuration") or {},
            changes_data=summary.files.data_change or summary.files.is_empty,
            changes_metadata=metadata is not None,
        ),
        is_blind_append=summary.is_blind_append and metadata is None,
        reads_whole_table=summary.reads_whole_table,
        protocol=Protocol.from_json(protocol) if protocol else None,
        metadata=Metadata.from_json(metadata) if metadata else None,
        changes_columns=bool(plan.get("changesColumns", changes_metadata)),
        txn=txn,
    )
