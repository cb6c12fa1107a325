"""The commit path: every write of every kind ends here.

1. Refuse what must not be committed, before anything is tried.
2. Try the version after the one that was read.
3. If it exists, check every commit that got in between against the conflict rules; without a
   conflict, try the first free version, and so on, a bounded number of times.
"""

from __future__ import annotations

import random
import time
import uuid
from collections.abc import Callable
from dataclasses import dataclass

from deltaic.commit.commit_info import commit_info
from deltaic.commit.conflicts import Conflict, conflict_error
from deltaic.commit.idempotence import requested_txn
from deltaic.commit.ports import CommitSummary, PreparedCommit, Tables
from deltaic.commit.read_set import ReadSet, read_set_of
from deltaic.commit.rebase import rebase
from deltaic.exceptions import DeltaError, error
from deltaic.protocol.actions import Metadata, Protocol, log_line
from deltaic.protocol.change_data import feeds_changes, require_derivable_changes
from deltaic.protocol.features import require_writable
from deltaic.protocol.properties import is_true

#: Operations that are worth a version even if they touch no file: the user asked for one.
_ALWAYS_COMMITTED = ("WRITE", "STREAMING UPDATE", "CREATE", "REPLACE")


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
    clock_ms: Callable[[], int] = lambda: time.time_ns() // 1_000_000,
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
    ours = read_set_of(summary, txn)
    if _says_nothing(summary, ours):
        return CommitResult(summary.read_version, skipped=True)
    _require_allowed(summary)
    if txn is not None:
        newest = tables.header(summary.table)
        if newest is not None and newest.transactions.get(txn.app_id, -1) >= txn.version:
            return CommitResult(newest.version, skipped=True)
    txn_id = str(uuid.uuid4())
    info = commit_info(
        summary, ours, timestamp_ms=clock_ms(), txn_id=txn_id, engine_info=tables.engine_info()
    )
    lines = [log_line("commitInfo", info), *_header_lines(ours)]
    return _commit_loop(prepared, ours, lines, txn_id, policy or RetryPolicy())


def _commit_loop(
    prepared: PreparedCommit, ours: ReadSet, lines: list[str], txn_id: str, policy: RetryPolicy
) -> CommitResult:
    version = ours.read_version + 1
    for attempt in range(1, policy.max_attempts + 1):
        time.sleep(policy.delay_ms(attempt) / 1000.0)
        if _try(prepared, ours, version, lines, txn_id):
            return CommitResult(version, attempts=attempt)
        outcome = rebase(ours, prepared, version)
        if isinstance(outcome, Conflict):
            raise conflict_error(ours, outcome)
        version = outcome.version
    raise error(
        "DELTAIC_COMMIT_ATTEMPTS_EXHAUSTED",
        table=ours.table,
        attempts=policy.max_attempts,
        version=version - 1,
    )


def _try(
    prepared: PreparedCommit, ours: ReadSet, version: int, lines: list[str], txn_id: str
) -> bool:
    try:
        return prepared.try_commit(version, lines)
    except DeltaError:
        raise
    except Exception as problem:
        raise error(
            "DELTAIC_COMMIT_STATE_UNKNOWN",
            table=ours.table,
            version=version,
            txnId=txn_id,
            reason=problem,
        ) from problem


def _header_lines(ours: ReadSet) -> list[str]:
    lines = []
    if ours.protocol is not None:
        lines.append(log_line("protocol", ours.protocol.to_json()))
    if ours.metadata is not None:
        lines.append(log_line("metaData", ours.metadata.to_json()))
    if ours.txn is not None:
        lines.append(log_line("txn", ours.txn.to_json()))
    return lines


def _says_nothing(summary: CommitSummary, ours: ReadSet) -> bool:
    """Whether a version would be one that changes nothing, such as a DELETE that matches no row."""
    return (
        summary.files.is_empty
        and ours.protocol is None
        and ours.metadata is None
        and ours.txn is None
        and not summary.operation.startswith(_ALWAYS_COMMITTED)
    )


def _require_allowed(summary: CommitSummary) -> None:
    """Refuse what the table's protocol and properties forbid.

    It was checked when the write was planned, too; but a commit must not depend on having been
    planned by this very code.
    """
    plan = summary.plan
    if not plan:
        return
    protocol = Protocol.from_json(plan["effectiveProtocol"])
    metadata = Metadata.from_json(plan["effectiveMetaData"])
    require_writable(summary.table, max(summary.read_version, 0), protocol, metadata)
    if feeds_changes(protocol, metadata):
        require_derivable_changes(
            summary.table, summary.read_version, summary.operation, summary.engine_metrics
        )
    if summary.files.removes_data and is_true(metadata.configuration, "delta.appendOnly"):
        raise error(
            "DELTAIC_APPEND_ONLY",
            table=summary.table,
            version=summary.read_version,
            operation=summary.operation,
        )
