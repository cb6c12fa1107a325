"""The commit path: every write of every kind ends here.

1. Refuse what must not be committed, before anything is tried.
2. Try the version after the one that was read.
3. If it exists, check every commit that got in between against the conflict rules; without a
   conflict, put our deletion vectors onto theirs and try the first free version, and so on, a
   bounded number of times.
"""

from __future__ import annotations

import random
import time
import uuid
from dataclasses import dataclass, replace

from deltaic.commit.clock import Clock, wall_clock_ms
from deltaic.commit.commit_info import Provenance
from deltaic.commit.conflicts import Conflict, conflict_error
from deltaic.commit.header import Header, header_after
from deltaic.commit.hooks import run_hooks
from deltaic.commit.idempotence import requested_txn
from deltaic.commit.ports import CommitSummary, PreparedCommit, Tables
from deltaic.commit.read_set import ReadSet, read_set_of
from deltaic.commit.rebase import rebase
from deltaic.exceptions import DeltaError, error
from deltaic.protocol.change_data import feeds_changes, require_told_changes
from deltaic.protocol.features import require_writable
from deltaic.protocol.properties import require_nothing_binding


@dataclass(frozen=True, slots=True)
class RetryPolicy:
    """How often a commit is tried, and how long it waits between two attempts.

    The first retry comes at once: the usual loser meets one winner. Later ones wait a random time
    up to a bound that doubles, so that many writers of one table do not keep colliding.
    """

    max_attempts: int = 10_000
    first_delay_ms: float = 2.0
    max_delay_ms: float = 200.0

    def delay_ms(self, attempt: int) -> float:
        """Return how long to wait before attempt number `attempt`, which counts from 1."""
        if attempt <= 2:
            return 0.0
        bound = min(self.max_delay_ms, self.first_delay_ms * 2.0 ** min(attempt - 3, 32))
        return random.uniform(0.0, bound)


@dataclass(frozen=True, slots=True)
class CommitResult:
    """What became of a commit.

    Attributes
    ----------
    version
        The version it is, or, if it was skipped, the version the table was at.
    skipped
        Whether there was nothing to do: no action, or a ``txnAppId`` that was further already.
    """

    version: int
    skipped: bool = False
    attempts: int = 0


def commit(
    prepared: PreparedCommit,
    tables: Tables,
    policy: RetryPolicy | None = None,
    clock_ms: Clock = wall_clock_ms,
) -> CommitResult:
    """Make a prepared commit a version of its table.

    Parameters
    ----------
    prepared
        The commit.
    tables
        Where the table's newest header is asked for, if it matters.
    policy
        How to retry.
    clock_ms
        The time that the commit records.

    Raises
    ------
    ConcurrentModificationError
        If another commit forbids this one; nothing was changed.
    TableStateError
        If rows would be removed from an append-only table, or if it is not known whether the
        commit was written.
    ProtocolError
        If the table asks for a feature that this build cannot write.
    """
    summary = prepared.summary()
    txn = requested_txn(summary.table, summary.options, clock_ms())
    ours = read_set_of(summary, txn, tables.isolation_level())
    if _says_nothing(summary, ours):
        return CommitResult(summary.read_version, skipped=True)
    _require_allowed(summary)
    if txn is not None:
        newest = tables.header(summary.table)
        if newest is not None and newest.transactions.get(txn.app_id, -1) >= txn.version:
            return CommitResult(newest.version, skipped=True)
    attempts = _Attempts(
        prepared, summary, Provenance(str(uuid.uuid4()), tables.engine_info()), clock_ms
    )
    result, committed = attempts.run(ours, policy or RetryPolicy())
    run_hooks(committed, result.version, prepared, tables)
    return result


@dataclass(frozen=True, slots=True)
class _Attempts:
    """Tries one prepared commit at one version after the other."""

    prepared: PreparedCommit
    summary: CommitSummary
    provenance: Provenance
    clock_ms: Clock

    def run(self, ours: ReadSet, policy: RetryPolicy) -> tuple[CommitResult, CommitSummary]:
        """Commit; return what came of it, and the commit as it was made."""
        summary, previous = self.summary, self.summary.plan.base
        for attempt in range(1, policy.max_attempts + 1):
            time.sleep(policy.delay_ms(attempt) / 1000.0)
            version = previous.version + 1
            header = header_after(previous, summary, ours, self.provenance, self.clock_ms())
            if self._try(version, header):
                return CommitResult(version, attempts=attempt), replace(summary, plan=ours.plan)
            outcome = rebase(ours, self.prepared, previous)
            if isinstance(outcome, Conflict):
                raise conflict_error(ours, outcome)
            ours, previous = outcome.ours, outcome.previous
            if outcome.shares_files:
                summary = replace(summary, files=self.prepared.follow(previous.version))
        raise error(
            "DELTAIC_COMMIT_ATTEMPTS_EXHAUSTED",
            table=ours.table,
            attempts=policy.max_attempts,
            version=previous.version,
        )

    def _try(self, version: int, header: Header) -> bool:
        try:
            return self.prepared.try_commit(version, header.lines, header.first_row_id)
        except DeltaError:
            raise
        except Exception as problem:
            raise error(
                "DELTAIC_COMMIT_STATE_UNKNOWN",
                table=self.summary.table,
                version=version,
                txnId=self.provenance.txn_id,
                reason=problem,
            ) from problem


def _says_nothing(summary: CommitSummary, ours: ReadSet) -> bool:
    """Whether a version would be one that changes nothing, such as a DELETE that matches no row."""
    return (
        summary.files.is_empty
        and not (ours.plan.changes_protocol or ours.plan.changes_metadata or ours.plan.domains)
        and ours.txn is None
        and not summary.operation.always_commits
    )


def _require_allowed(summary: CommitSummary) -> None:
    """Refuse what the table's protocol and properties forbid.

    It was checked when the write was planned, too; but a commit must not depend on having been
    planned by this very code.
    """
    protocol, metadata = summary.plan.effective.protocol, summary.plan.effective.metadata
    version = max(summary.read_version, 0)
    require_writable(summary.table, version, protocol, metadata)
    require_nothing_binding(summary.table, version, metadata.configuration)
    if feeds_changes(protocol, metadata):
        require_told_changes(
            summary.table,
            summary.read_version,
            summary.operation.value,
            summary.engine_metrics,
            summary.files.num_change_files,
        )
    if summary.files.removes_data and summary.plan.forbids_removal:
        raise error(
            "DELTAIC_APPEND_ONLY",
            table=summary.table,
            version=summary.read_version,
            operation=summary.operation.value,
        )
