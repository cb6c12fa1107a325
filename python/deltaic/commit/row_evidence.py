"""Queries over the rows of winning commits, where the log cannot decide if there is a conflict.

One query reads the data files of all winners. With a query for each winner, a commit that lost to
many would lose to more of them in the meantime.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property

from deltaic.commit.conflicts import Conflict, Evidence, possible_conflicts
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
        possible = [found for winner in winners for found in possible_conflicts(ours, winner)]
        finders = {
            Evidence.ADDED_ROWS: prepared.has_matching_row,
            Evidence.DELETED_ROWS: prepared.has_deleted_row,
        }
        self._queries = {
            evidence: _RowQuery(finders[evidence], _versions(possible, evidence))
            for evidence in Evidence
            if evidence is not Evidence.LOG
        }

    def confirms(self, conflict: Conflict) -> bool:
        """Return whether the conflict is confirmed; one that the log alone shows always is."""
        if conflict.evidence is Evidence.LOG:
            return True
        return self._queries[conflict.evidence].confirms(conflict.winner.version)


def _versions(conflicts: Sequence[Conflict], evidence: Evidence) -> tuple[int, ...]:
    """Return the versions of the winners of those conflicts that this evidence decides."""
    versions = (found.winner.version for found in conflicts if found.evidence is evidence)
    return tuple(dict.fromkeys(versions))


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

    def confirms(self, version: int) -> bool:
        """Return whether a version is the first of `versions` with such a row.

        A version that is not among them is queried alone: our transaction has been rebased since,
        and only now conflicts with it.
        """
        if version not in self.versions:
            return self.finds((version,))
        return self.first_found == version

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
