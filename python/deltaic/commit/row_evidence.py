"""Queries over the rows of winning commits, where the log cannot decide if there is a conflict.

One query reads the data files of all winners. With a query for each winner, a commit that lost to
many would lose to more of them in the meantime.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property

from deltaic.commit.conflicts import Conflict, Evidence, concurrent_append, concurrent_delete_read
from deltaic.commit.current_transaction import CurrentTransaction
from deltaic.commit.ports import PreparedCommit, WinningCommit


class RowEvidence:
    """Decides whether rows confirm the conflicts of a commit with some winners.

    Parameters
    ----------
    ours
        The transaction.
    winners
        The winning commits to check it against, in the order of their versions.
    prepared
        Our commit, which can query the rows of the winners.
    """

    def __init__(
        self,
        ours: CurrentTransaction,
        winners: Sequence[WinningCommit],
        prepared: PreparedCommit,
    ) -> None:
        self._queries = {
            Evidence.ADDED_ROWS: _RowQuery(
                prepared.has_matching_row,
                tuple(w.version for w in winners if concurrent_append(ours, w)),
            ),
            Evidence.DELETED_ROWS: _RowQuery(
                prepared.has_deleted_row,
                tuple(w.version for w in winners if concurrent_delete_read(ours, w)),
            ),
        }

    def confirms(self, conflict: Conflict) -> bool:
        """Return whether the conflict is confirmed; one that the log alone shows always is."""
        query = self._queries.get(conflict.evidence)
        version = conflict.winner.version
        return query is None or version not in query.versions or query.first_found == version


@dataclass(frozen=True)
class _RowQuery:
    """One query over the rows of some versions.

    Attributes
    ----------
    finds
        Returns whether any of the given versions has a row that confirms a conflict.
    versions
        The versions to query, in ascending order.
    """

    finds: Callable[[Sequence[int]], bool]
    versions: tuple[int, ...]

    @cached_property
    def first_found(self) -> int | None:
        """The first version with such a row; None if none has one, which takes a single query.

        The rules check the versions in order and stop at the first conflict, so the versions after
        it are not queried.
        """
        if not self.versions or not self.finds(self.versions):
            return None
        first, last = 0, len(self.versions) - 1
        while first < last:
            middle = (first + last) // 2
            if self.finds(self.versions[first : middle + 1]):
                last = middle
            else:
                first = middle + 1
        return self.versions[first]
