"""Rebases our commit onto winning commits: returns the next version to try, or the conflict."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from deltaic.commit.conflicts import Conflict, find_conflict
from deltaic.commit.current_transaction import CurrentTransaction
from deltaic.commit.plan import Definition, PreviousVersion
from deltaic.commit.ports import PreparedCommit, WinningCommit
from deltaic.commit.row_evidence import RowEvidence
from deltaic.protocol import row_tracking
from deltaic.protocol.actions import Protocol
from deltaic.protocol.columns.clustering import clustering_columns
from deltaic.protocol.columns.column_lists import has_statistics
from deltaic.protocol.constraints import conditions
from deltaic.protocol.features import is_writable
from deltaic.protocol.properties import unsupported_properties


@dataclass(frozen=True, slots=True)
class Rebased:
    """Our commit conflicts with no winner; `previous` is the last of them.

    Attributes
    ----------
    ours
        The transaction. It changes only if it becomes an append to a table that it was to create,
        or if it rebases onto the identity high-water marks of a winner.
    needs_deletion_vector_rebase
        Whether it deletes rows of files in which a winner deleted other rows.
    """

    ours: CurrentTransaction
    previous: PreviousVersion
    needs_deletion_vector_rebase: bool = False


def rebase(
    ours: CurrentTransaction, prepared: PreparedCommit, previous: PreviousVersion
) -> Rebased | Conflict:
    """Check our commit against every version after `previous`; there is at least one.

    Data files do not change. The non-file actions and the row IDs in file actions depend on the
    committed version. Deletion vectors depend on those of the winners where both commits delete
    rows of the same file.
    """
    found = _rebased(ours, prepared, previous)
    if isinstance(found, Rebased) and found.previous.version == previous.version:
        # The version could not be written because it exists, and cannot be read: only log cleanup
        # could have deleted it in between.
        raise LookupError(f"version {previous.version + 1} exists but cannot be read")
    return found


def _rebased(
    ours: CurrentTransaction, prepared: PreparedCommit, previous: PreviousVersion
) -> Rebased | Conflict:
    needs_deletion_vector_rebase = False
    # Other commits may win while rows are queried.
    while winners := _winners_after(previous.version, prepared):
        rows = RowEvidence(ours, winners, prepared)
        for winner in winners:
            append = _append_to_created_table(ours, winner)
            if append is not None:
                ours = append
            else:
                conflict = find_conflict(ours, winner, rows.confirms)
                if conflict is not None:
                    return conflict
                if winner.metadata is not None:
                    ours = ours.rebased_onto_metadata(winner.metadata)
            needs_deletion_vector_rebase = (
                needs_deletion_vector_rebase or winner.needs_deletion_vector_rebase
            )
            previous = _after(ours.table, previous, winner)
    return Rebased(ours, previous, needs_deletion_vector_rebase)


def _winners_after(version: int, prepared: PreparedCommit) -> Sequence[WinningCommit]:
    winners: list[WinningCommit] = []
    while (winner := prepared.winning_commit(version + len(winners) + 1)) is not None:
        winners.append(winner)
    return winners


def _after(table: str, previous: PreviousVersion, winner: WinningCommit) -> PreviousVersion:
    mark = previous.row_id_high_water_mark
    configuration = winner.domains.get(row_tracking.DOMAIN)
    if configuration is not None:
        mark = max(mark, row_tracking.high_water_mark_in(table, configuration))
    in_commit_timestamp_ms = winner.in_commit_timestamp_ms
    return PreviousVersion(
        version=winner.version,
        timestamp_ms=winner.timestamp_ms
        if in_commit_timestamp_ms is None
        else in_commit_timestamp_ms,
        row_id_high_water_mark=mark,
    )


def _append_to_created_table(
    ours: CurrentTransaction, winner: WinningCommit
) -> CurrentTransaction | None:
    """Return our commit as an append to the table that the winner created; None if it cannot be.

    Its rows fit if both definitions have the same columns, partitioning and clustering, if the
    table has no constraint that was not checked, and if we support all that its protocol requires
    of writers.
    """
    may_append = ours.creates_table and ours.plan.appends_if_created_concurrently
    if not may_append or winner.version != 0:
        return None
    if winner.protocol is None or winner.metadata is None:
        return None
    if ours.txn is not None and ours.txn.app_id in winner.txns:
        return None
    created = Definition(winner.protocol, winner.metadata)
    fits = is_writable(ours.table, created.protocol, created.metadata) and not any(
        known.required_by_writers
        for known in unsupported_properties(created.metadata.configuration)
    )
    unchecked = bool(conditions(created.metadata.configuration))
    if unchecked or not fits or not _same_columns(ours, created):
        return None
    if any(winner.domains.get(d.domain) != d.configuration for d in ours.plan.domains):
        return None
    if not _has_statistics_for(ours, winner.protocol, winner.domains):
        return None
    return ours.as_append_to(created, winner.version)


def _has_statistics_for(
    ours: CurrentTransaction, protocol: Protocol, domains: Mapping[str, str | None]
) -> bool:
    """Whether our files have statistics for all clustering columns (§ Clustered Table)."""
    metadata = ours.plan.definition.metadata
    return all(
        has_statistics(ours.table, metadata.schema, path, metadata.configuration)
        for path in clustering_columns(ours.table, protocol, metadata, domains)
    )


def _same_columns(ours: CurrentTransaction, created: Definition) -> bool:
    mine, theirs = ours.plan.definition.metadata, created.metadata
    return mine.partition_columns == theirs.partition_columns and mine.schema == theirs.schema
