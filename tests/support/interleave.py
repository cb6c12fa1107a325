"""Two operations of one session, the second committed between the first one's work and its commit.

The first runs up to its first commit attempt; then the other runs completely, and then the first
goes on. So each interleaving happens each time, without threads or waiting.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager

from deltaic.commit import transaction
from deltaic.commit.current_transaction import CurrentTransaction
from deltaic.commit.ports import CommitSummary
from deltaic.commit.transaction import CommitResult, RetryPolicy


@contextmanager
def committed_meanwhile(theirs: Callable[[], object]) -> Iterator[None]:
    """Run `theirs` right before the first commit within the ``with`` block."""
    attempts = transaction._Attempts
    run = attempts.run

    def run_after_theirs(
        self: transaction._Attempts, ours: CurrentTransaction, policy: RetryPolicy
    ) -> tuple[CommitResult, CommitSummary]:
        attempts.run = run  # type: ignore[method-assign]
        theirs()
        return run(self, ours, policy)

    attempts.run = run_after_theirs  # type: ignore[method-assign]
    try:
        yield
        assert attempts.run is run, "nothing was committed"
    finally:
        attempts.run = run  # type: ignore[method-assign]
