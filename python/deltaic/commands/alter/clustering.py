"""ALTER TABLE CLUSTER BY (Protocol § Clustered Table)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from deltaic.commands.alter.alteration import Alteration, alter, current_snapshot
from deltaic.commit.clock import Clock
from deltaic.commit.message import Message
from deltaic.commit.operations import Operation
from deltaic.commit.ports import TableAccess
from deltaic.commit.transaction import CommitResult, RetryPolicy
from deltaic.protocol.columns.clustering import (
    FEATURE,
    checked_columns,
    clustering_columns,
    clustering_domain,
)
from deltaic.protocol.columns.schema_edits import path_text
from deltaic.protocol.features import supports
from deltaic.protocol.properties import ProtocolRequest


@dataclass(frozen=True, slots=True)
class ClusterBy(Message):
    """The arguments: the paths of columns; empty for CLUSTER BY NONE."""

    table: str
    columns: Sequence[Sequence[str]]


def cluster_by(
    arguments: ClusterBy, tables: TableAccess, policy: RetryPolicy, clock_ms: Clock
) -> CommitResult:
    """Set the clustering columns of a table; existing files do not change.

    CLUSTER BY NONE is a no-op for a table that is not clustered.

    Raises
    ------
    InvalidArgumentError
        If the table is partitioned, or cannot be clustered by one of the columns.
    """
    table = arguments.table
    current = current_snapshot(table, tables)
    if not arguments.columns and not supports(current.protocol, FEATURE):
        return CommitResult(current.version, skipped=True)
    metadata = current.metadata
    before = clustering_columns(table, current.protocol, metadata, current.domains)
    after = checked_columns(table, metadata, arguments.columns)
    return alter(
        Alteration(
            table,
            current,
            metadata,
            Operation.CLUSTER_BY,
            {
                "oldClusteringColumns": ",".join(map(path_text, before)),
                "newClusteringColumns": ",".join(map(path_text, after)),
            },
            ProtocolRequest(features=(FEATURE,)),
            domains=(clustering_domain(metadata, after),),
        ),
        tables,
        policy,
        clock_ms,
    )
