"""Two operations of one session, the second committed between the first one's work and its commit.

The first runs up to its first commit attempt; then the other runs completely, and then the first
goes on. So each interleaving happens each time, without threads or waiting.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

from deltaic.commit import transaction
from deltaic.commit.clock import Clock
from deltaic.commit.current_transaction import CurrentTransaction
from deltaic.commit.ports import CommitSummary, TableAccess
from deltaic.commit.transaction import CommitResult, RetryPolicy


@contextmanager
def committed_meanwhile(theirs: Callable[[], object]) -> Iterator[None]:
    """Run `theirs` right before the first commit within the ``with`` block.

    A command of the JVM leaves its first attempt to it: `theirs` then runs before the command
    returns the attempt.
    """
    attempts = transaction._Attempts
    run, first_attempt = attempts.run, transaction._first_attempt

    def restore() -> None:
        attempts.run = run  # type: ignore[method-assign]
        transaction._first_attempt = first_attempt

    def run_after_theirs(
        self: transaction._Attempts, ours: CurrentTransaction, policy: RetryPolicy
    ) -> tuple[CommitResult, CommitSummary]:
        restore()
        theirs()
        return run(self, ours, policy)

    def attempt_after_theirs(
        summary: CommitSummary, tables: TableAccess, clock_ms: Clock
    ) -> CommitResult:
        restore()
        result = first_attempt(summary, tables, clock_ms)
        assert result.first_attempt is not None, "nothing is committed"
        theirs()
        return result

    attempts.run = run_after_theirs  # type: ignore[method-assign]
    transaction._first_attempt = attempt_after_theirs
    try:
        yield
        assert attempts.run is run, "nothing was committed"
    finally:
        restore()


@contextmanager
def before_compaction_commits(theirs: Callable[[], object]) -> Iterator[None]:
    """Run `theirs` right before the first commit of auto compaction within the block."""
    attempts = transaction._Attempts
    run = attempts.run

    def run_after_theirs(self: Any, ours: Any, policy: Any) -> Any:
        if self.summary.operation.parameters.get("auto") == "true":
            attempts.run = run  # type: ignore[method-assign]
            theirs()
        return run(self, ours, policy)

    attempts.run = run_after_theirs  # type: ignore[method-assign]
    try:
        yield
        assert attempts.run is run, "no compaction was committed"
    finally:
        attempts.run = run  # type: ignore[method-assign]
