"""All actions of a commit but those on files, for one place in the history.

What depends on that place is worked out for each attempt: the time of the commit, the row ids, and
the version from which on something holds. What was decided about the data stays as it is.
"""

from __future__ import annotations

from dataclasses import dataclass

from deltaic.commit.commit_info import Provenance, commit_info
from deltaic.commit.plan import Predecessor
from deltaic.commit.ports import CommitSummary
from deltaic.commit.read_set import ReadSet
from deltaic.protocol import in_commit_timestamps, row_tracking
from deltaic.protocol.actions import DomainMetadata, Metadata, log_line


@dataclass(frozen=True, slots=True)
class Header:
    """The lines of a commit that come before its files.

    Attributes
    ----------
    first_row_id
        The id of the first row in the commit's new files; None if the table gives none.
    """

    lines: tuple[str, ...]
    first_row_id: int | None


def header_after(
    previous: Predecessor,
    summary: CommitSummary,
    ours: ReadSet,
    provenance: Provenance,
    clock_ms: int,
) -> Header:
    """Return the header of our commit as the version right after `previous`."""
    effective = ours.plan.effective
    timestamp_ms = None
    if in_commit_timestamps.is_active(effective.protocol, effective.metadata):
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
    domains = [*ours.plan.domains, *([mark] if mark is not None else [])]
    lines += [log_line("domainMetadata", domain.to_json()) for domain in domains]
    return Header(tuple(lines), first_row_id)


def _row_ids(
    previous: Predecessor, summary: CommitSummary, ours: ReadSet
) -> tuple[int | None, DomainMetadata | None]:
    """Return the first row id that is free, and the action that takes those the commit needs."""
    effective = ours.plan.effective
    if not row_tracking.assigns_row_ids(effective.protocol, effective.metadata):
        return None, None
    first = previous.row_id_high_water_mark + 1
    if summary.files.fresh_rows == 0:
        return first, None
    last = first + summary.files.fresh_rows - 1
    return first, row_tracking.high_water_mark_action(last)


def _metadata(ours: ReadSet, version: int, timestamp_ms: int | None) -> Metadata | None:
    metadata = ours.plan.metadata
    if metadata is None or timestamp_ms is None or not ours.plan.enables_in_commit_timestamps:
        return metadata
    return in_commit_timestamps.enabled_since(metadata, version, timestamp_ms)
