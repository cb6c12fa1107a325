"""Following a commit that got in between: the next version to try, or the conflict."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from deltaic.commit.conflicts import Conflict, find_conflict
from deltaic.commit.plan import Definition, Predecessor
from deltaic.commit.ports import PreparedCommit, Winner
from deltaic.commit.read_set import ReadSet
from deltaic.commit.row_evidence import RowEvidence
from deltaic.protocol import row_tracking
from deltaic.protocol.clustering import clustering_columns
from deltaic.protocol.column_lists import has_statistics
from deltaic.protocol.constraints import conditions
from deltaic.protocol.features import is_writable
from deltaic.protocol.properties import left_undone
from deltaic.protocol.schema import parse_schema


@dataclass(frozen=True, slots=True)
class Rebased:
    """Our commit can follow every winner; `previous` is the last of them.

    Attributes
    ----------
    ours
        The transaction, which is another one only if it has become an append to a table that it
        was to create, or counts identity columns after a winner.
    shares_files
        Whether it ends rows in files in which a winner has ended others.
    """

    ours: ReadSet
    previous: Predecessor
    shares_files: bool = False


def rebase(ours: ReadSet, prepared: PreparedCommit, previous: Predecessor) -> Rebased | Conflict:
    """Check our commit against every version after `previous`, of which there is one.

    Data files stay as they are, whatever was committed before them. The header and the numbers in
    file actions depend on the version that the commit becomes, and the deletion vectors on those of
    the winners, where it shares files with them.
    """
    found = _rebased(ours, prepared, previous)
    if isinstance(found, Rebased) and found.previous.version == previous.version:
        # A version that could not be written because it exists, but cannot be read: log cleanup
        # would have to have overtaken this commit.
        raise LookupError(f"version {previous.version + 1} exists but cannot be read")
    return found


def _rebased(ours: ReadSet, prepared: PreparedCommit, previous: Predecessor) -> Rebased | Conflict:
    shares_files = False
    # Looking at rows takes time, in which others may win.
    while winners := _winners_after(previous.version, prepared):
        rows = RowEvidence(ours, winners, prepared)
        for winner in winners:
            joined = _joined(ours, winner)
            if joined is not None:
                ours = joined
            else:
                conflict = find_conflict(ours, winner, rows.confirms)
                if conflict is not None:
                    return conflict
                if winner.metadata is not None:
                    ours = ours.counted_after(winner.metadata)
            shares_files = shares_files or winner.shares_files
            previous = _after(ours.table, previous, winner)
    return Rebased(ours, previous, shares_files)


def _winners_after(version: int, prepared: PreparedCommit) -> Sequence[Winner]:
    winners: list[Winner] = []
    while (winner := prepared.winner(version + len(winners) + 1)) is not None:
        winners.append(winner)
    return winners


def _after(table: str, previous: Predecessor, winner: Winner) -> Predecessor:
    mark = previous.row_id_high_water_mark
    configuration = winner.domains.get(row_tracking.DOMAIN)
    if configuration is not None:
        mark = max(mark, row_tracking.high_water_mark_in(table, configuration))
    own_time = winner.in_commit_timestamp_ms
    return Predecessor(
        version=winner.version,
        timestamp_ms=winner.timestamp_ms if own_time is None else own_time,
        row_id_high_water_mark=mark,
    )


def _joined(ours: ReadSet, winner: Winner) -> ReadSet | None:
    """Return our append to the table that the winner created; None if it is not one.

    Its rows fit if they were written for the same columns, partitioned and clustered alike, with
    nothing to check in them that was not checked, and if nothing in the table's protocol asks more
    of a writer than we do.
    """
    if not (ours.creates_table and ours.plan.joins_if_created and winner.version == 0):
        return None
    if winner.protocol is None or winner.metadata is None:
        return None
    if ours.txn is not None and ours.txn.app_id in winner.txns:
        return None
    created = Definition(winner.protocol, winner.metadata)
    fits = is_writable(ours.table, created.protocol, created.metadata) and not any(
        known.binds_writers for known in left_undone(created.metadata.configuration)
    )
    unchecked = bool(conditions(created.metadata.configuration))
    if unchecked or not fits or not _same_columns(ours, created):
        return None
    if any(winner.domains.get(d.domain) != d.configuration for d in ours.plan.domains):
        return None
    if not _has_statistics_for(ours, winner):
        return None
    return ours.joined_to(created, winner.version)


def _has_statistics_for(ours: ReadSet, winner: Winner) -> bool:
    """Whether our files have statistics of all that rows are clustered by (§ Clustered Table)."""
    metadata = ours.plan.effective.metadata
    schema = parse_schema(metadata.schema_string, ours.table)
    return all(
        has_statistics(ours.table, schema, path, metadata.configuration)
        for path in clustering_columns(ours.table, schema, winner.domains)
    )


def _same_columns(ours: ReadSet, created: Definition) -> bool:
    mine, theirs = ours.plan.effective.metadata, created.metadata
    return mine.partition_columns == theirs.partition_columns and parse_schema(
        mine.schema_string, ours.table
    ) == parse_schema(theirs.schema_string, ours.table)
