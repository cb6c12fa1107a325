"""The non-file actions of a commit, for one version.

The in-commit timestamp, the row IDs and the enablement version depend on the version, so they are
recomputed for each attempt. What was planned for the data does not change.
"""

from __future__ import annotations

from dataclasses import dataclass

from deltaic.commit.commit_info import Provenance, commit_info
from deltaic.commit.current_transaction import CurrentTransaction
from deltaic.commit.plan import PreviousVersion
from deltaic.commit.ports import CommitSummary
from deltaic.protocol import in_commit_timestamps, row_tracking
from deltaic.protocol.actions import DomainMetadata, Metadata, log_line


@dataclass(frozen=True, slots=True)
class NonFileActions:
    """The lines of a commit before its file actions.

    Attributes
    ----------
    first_row_id
        The id of the first row in the commit's new files; None if the table assigns none.
    """

    lines: tuple[str, ...]
    first_row_id: int | None


def non_file_actions_after(
    previous: PreviousVersion,
    summary: CommitSummary,
    ours: CurrentTransaction,
    provenance: Provenance,
    clock_ms: int,
) -> NonFileActions:
    """Return the non-file actions of our commit as the version right after `previous`."""
    definition = ours.plan.definition
    timestamp_ms = None
    if in_commit_timestamps.is_active(definition.protocol, definition.metadata):
        timestamp_ms = in_commit_timestamps.next_timestamp_ms(clock_ms, previous.timestamp_ms)
    info = commit_info(
        summary,
        ours,
        provenance,
        timestamp_ms=clock_ms,
        in_commit_timestamp_ms=timestamp_ms,
    )
    first_row_id, mark = _row_ids(previous, summary, ours)
    lines = [log_line("commitInfo", info)]
    if ours.plan.protocol is not None:
        lines.append(log_line("protocol", ours.plan.protocol.to_json()))
    metadata = _metadata(ours, previous.version + 1, timestamp_ms)
    if metadata is not None:
        lines.append(log_line("metaData", metadata.to_json()))
    if ours.txn is not None:
        lines.append(log_line("txn", ours.txn.to_json()))
    domains = list(ours.plan.domains)
    if mark is not None:
        domains = [*(d for d in domains if d.domain != mark.domain), mark]
    lines += [log_line("domainMetadata", domain.to_json()) for domain in domains]
    return NonFileActions(tuple(lines), first_row_id)


def _row_ids(
    previous: PreviousVersion, summary: CommitSummary, ours: CurrentTransaction
) -> tuple[int | None, DomainMetadata | None]:
    """Return the first free row ID, and the action that records the new high-water mark."""
    definition = ours.plan.definition
    if not row_tracking.assigns_row_ids(definition.protocol, definition.metadata):
        return None, None
    first = previous.row_id_high_water_mark + 1
    if summary.files.rows_without_row_ids == 0:
        return first, None
    last = first + summary.files.rows_without_row_ids - 1
    return first, row_tracking.high_water_mark_action(last)


def _metadata(ours: CurrentTransaction, version: int, timestamp_ms: int | None) -> Metadata | None:
    metadata = ours.plan.metadata
    if metadata is None or timestamp_ms is None or not ours.plan.enables_in_commit_timestamps:
        return metadata
    return in_commit_timestamps.enabled_since(metadata, version, timestamp_ms)
