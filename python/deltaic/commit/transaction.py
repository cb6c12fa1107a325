"""The commit path of every write.

1. Refuse what must not be committed.
2. Try to write the version after the read version.
3. If that version exists, check each winning commit against the conflict rules. If there is no
   conflict, rebase our deletion vectors onto theirs and try the next version. Repeat this a bounded
   number of times.
"""

from __future__ import annotations

import random
import time
import uuid
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from deltaic.commit.clock import Clock, wall_clock_ms
from deltaic.commit.commit_info import Provenance
from deltaic.commit.conflicts import Conflict, conflict_error
from deltaic.commit.current_transaction import CurrentTransaction, current_transaction_of
from deltaic.commit.hooks import maintenance_request, run_hooks
from deltaic.commit.idempotence import requested_txn
from deltaic.commit.message import Message
from deltaic.commit.non_file_actions import NonFileActions, non_file_actions_after
from deltaic.commit.ports import CommitSummary, PreparedCommit, TableAccess
from deltaic.commit.rebase import rebase
from deltaic.exceptions import DeltaError, error
from deltaic.protocol.actions import SetTransaction
from deltaic.protocol.change_data import require_recorded_changes, writes_change_data_feed
from deltaic.protocol.features import require_writable
from deltaic.protocol.properties import require_no_writer_binding_properties


@dataclass(frozen=True, slots=True)
class RetryPolicy:
    """How often a commit is tried, and how long it waits between two attempts.

    The first retry is immediate: a commit that loses usually loses to one winner. Later retries
    wait a random time up to a bound that doubles, so that many writers of one table do not keep
    colliding.
    """

    max_attempts: int = 10_000
    first_delay_ms: float = 2.0
    max_delay_ms: float = 200.0

    def delay_ms(self, attempt: int) -> float:
        """Return how long to wait before attempt number `attempt`; the first attempt is 1."""
        if attempt <= 2:
            return 0.0
        bound = min(self.max_delay_ms, self.first_delay_ms * 2.0 ** min(attempt - 3, 32))
        return random.uniform(0.0, bound)


@dataclass(frozen=True, slots=True)
class FirstAttempt(Message):
    """The first attempt of a commit without files, which the JVM makes on its own.

    Attributes
    ----------
    summary
        The commit, for further attempts.
    version
        The version to write, unless it exists.
    lines
        The actions.
    maintenance
        The maintenance that is due after the commit; None if none is.
    """

    summary: CommitSummary
    version: int
    txn_id: str
    lines: Sequence[str]
    maintenance: Mapping[str, Any] | None = None


@dataclass(frozen=True, slots=True)
class CommitResult(Message):
    """The outcome of a commit.

    Attributes
    ----------
    version
        The committed version; if the commit was skipped, the version the table was at.
    skipped
        Whether the commit was a no-op: it had no actions, or the table already recorded the same or
        a newer ``txnVersion`` for its ``txnAppId``.
    first_attempt
        The attempt that the JVM has to make, if the commit is left to it.
    """

    version: int
    skipped: bool = False
    attempts: int = 0
    first_attempt: FirstAttempt | None = None


def commit(
    prepared: PreparedCommit,
    tables: TableAccess,
    policy: RetryPolicy | None = None,
    clock_ms: Clock = wall_clock_ms,
) -> CommitResult:
    """Make a prepared commit a version of its table.

    Parameters
    ----------
    prepared
        The commit.
    tables
        Provides the newest version of the table, if it is needed.
    policy
        How to retry.
    clock_ms
        Provides the time that the commit records.

    Raises
    ------
    ConcurrentModificationError
        If this commit conflicts with another one; nothing was changed.
    TableStateError
        If rows would be removed from an append-only table, or if it is not known whether the
        commit was written.
    ProtocolError
        If the table requires a feature that this build cannot write.
    """
    summary = prepared.summary()
    txn = requested_txn(summary.table, summary.operation.options, clock_ms())
    ours = _checked_transaction(summary, txn, tables)
    if ours is None:
        return CommitResult(summary.read_version, skipped=True)
    if txn is not None:
        newest = tables.snapshot(summary.table)
        if newest is not None and newest.transactions.get(txn.app_id, -1) >= txn.version:
            return CommitResult(newest.version, skipped=True)
    attempts = _Attempts(prepared, summary, _new_provenance(tables), clock_ms)
    result, committed = attempts.run(ours, policy or RetryPolicy())
    run_hooks(committed, result.version, prepared, tables)
    return result


def commit_metadata(
    summary: CommitSummary,
    tables: TableAccess,
    policy: RetryPolicy,
    clock_ms: Clock = wall_clock_ms,
    *,
    more_follows: bool = False,
) -> CommitResult:
    """Commit non-file actions, or leave the first attempt to the JVM if it has asked for that.

    Parameters
    ----------
    more_follows
        Whether the command continues after the commit, which cannot be left to the JVM then.

    Raises
    ------
    ConcurrentModificationError, TableStateError, ProtocolError
        As for `commit`.
    """
    summary = with_user_metadata(summary, tables)
    if more_follows or not tables.jvm_makes_first_attempt:
        return commit(tables.prepare_metadata_commit(summary), tables, policy, clock_ms)
    return _first_attempt(summary, tables, clock_ms)


def with_user_metadata(summary: CommitSummary, tables: TableAccess) -> CommitSummary:
    """Return a command's commit with the user metadata of the session, as writes have it."""
    options = {**tables.user_metadata(), **summary.operation.options}
    return replace(summary, operation=replace(summary.operation, options=options))


def _first_attempt(summary: CommitSummary, tables: TableAccess, clock_ms: Clock) -> CommitResult:
    """Return the first attempt of a commit for the JVM, or that there is nothing to commit."""
    ours = _checked_transaction(summary, None, tables)
    if ours is None:
        return CommitResult(summary.read_version, skipped=True)
    previous, provenance = summary.plan.base, _new_provenance(tables)
    actions = non_file_actions_after(previous, summary, ours, provenance, clock_ms())
    version = previous.version + 1
    attempt = FirstAttempt(
        summary,
        version,
        provenance.txn_id,
        actions.lines,
        maintenance_request(summary, version, tables),
    )
    return CommitResult(version, attempts=1, first_attempt=attempt)


def _checked_transaction(
    summary: CommitSummary, txn: SetTransaction | None, tables: TableAccess
) -> CurrentTransaction | None:
    """Return the transaction of a commit that is allowed; None if it changes nothing."""
    ours = current_transaction_of(summary, txn, tables.isolation_level())
    if _is_noop(summary, ours):
        return None
    _require_allowed(summary)
    return ours


def _new_provenance(tables: TableAccess) -> Provenance:
    return Provenance(str(uuid.uuid4()), tables.engine_info())


@dataclass(frozen=True, slots=True)
class _Attempts:
    """Tries to write one prepared commit, version after version."""

    prepared: PreparedCommit
    summary: CommitSummary
    provenance: Provenance
    clock_ms: Clock

    def run(
        self, ours: CurrentTransaction, policy: RetryPolicy
    ) -> tuple[CommitResult, CommitSummary]:
        """Commit; return the result and the summary of what was committed."""
        summary, previous = self.summary, self.summary.plan.base
        for attempt in range(1, policy.max_attempts + 1):
            time.sleep(policy.delay_ms(attempt) / 1000.0)
            version = previous.version + 1
            actions = non_file_actions_after(
                previous, summary, ours, self.provenance, self.clock_ms()
            )
            if self._try(version, actions):
                return CommitResult(version, attempts=attempt), replace(summary, plan=ours.plan)
            outcome = rebase(ours, self.prepared, previous)
            if isinstance(outcome, Conflict):
                raise conflict_error(ours, outcome)
            ours, previous = outcome.ours, outcome.previous
            if outcome.needs_deletion_vector_rebase:
                summary = replace(
                    summary, files=self.prepared.rebase_deletion_vectors(previous.version)
                )
        raise error(
            "DELTAIC_COMMIT_ATTEMPTS_EXHAUSTED",
            table=ours.table,
            attempts=policy.max_attempts,
            version=previous.version,
        )

    def _try(self, version: int, actions: NonFileActions) -> bool:
        try:
            return self.prepared.try_commit(version, actions.lines, actions.first_row_id)
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


def _is_noop(summary: CommitSummary, ours: CurrentTransaction) -> bool:
    """Whether the commit changes nothing, such as a DELETE that matches no row."""
    return (
        summary.files.is_empty
        and not (ours.plan.changes_protocol or ours.plan.changes_metadata or ours.plan.domains)
        and (ours.txn is None or not summary.operation.kind.commits_transaction_identifier)
        and not summary.operation.kind.always_commits
    )


def _require_allowed(summary: CommitSummary) -> None:
    """Refuse what the table's protocol and properties forbid.

    The plan of the write was checked too, but a commit must not rely on that: another build may
    have planned it.
    """
    protocol, metadata = summary.plan.definition.protocol, summary.plan.definition.metadata
    version = max(summary.read_version, 0)
    require_writable(summary.table, version, protocol, metadata)
    require_no_writer_binding_properties(summary.table, version, metadata.configuration)
    if writes_change_data_feed(protocol, metadata):
        require_recorded_changes(
            summary.table,
            summary.read_version,
            summary.operation.kind.value,
            summary.engine_metrics,
            summary.files.num_change_files,
        )
    if summary.files.removes_data and summary.plan.forbids_removal:
        raise error(
            "DELTAIC_APPEND_ONLY",
            table=summary.table,
            version=summary.read_version,
            operation=summary.operation.kind.value,
        )
