"""Looking at the rows of winners, where the log leaves open whether they matter to our commit.

A look is a query over data files, so the files of all winners share one: a commit that lost to many
would run as many queries, and lose to others in the meantime.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property

from deltaic.commit.conflicts import Conflict, Evidence, concurrent_append, concurrent_delete_read
from deltaic.commit.ports import PreparedCommit, Winner
from deltaic.commit.read_set import ReadSet


class RowEvidence:
    """Tells whether rows confirm the conflicts of a commit with some winners.

    Parameters
    ----------
    ours
        The transaction.
    winners
        The commits that it is about to be checked against, in the order of their versions.
    prepared
        Our commit, which can look at rows.
    """

    def __init__(self, ours: ReadSet, winners: Sequence[Winner], prepared: PreparedCommit) -> None:
        self._looks = {
            Evidence.ADDED_ROWS: _Look(
                prepared.has_matching_row,
                tuple(w.version for w in winners if concurrent_append(ours, w)),
            ),
            Evidence.DELETED_ROWS: _Look(
                prepared.has_deleted_row,
                tuple(w.version for w in winners if concurrent_delete_read(ours, w)),
            ),
        }

    def confirms(self, conflict: Conflict) -> bool:
        """Return whether a conflict is one: what the log alone shows needs no look."""
        look = self._looks.get(conflict.evidence)
        version = conflict.winner.version
        return look is None or version not in look.versions or look.first_found == version


@dataclass(frozen=True)
class _Look:
    """One question about the rows of some versions.

    Attributes
    ----------
    finds
        Whether there is such a row in any of some versions.
    versions
        Those to look at, in ascending order.
    """

    finds: Callable[[Sequence[int]], bool]
    versions: tuple[int, ...]

    @cached_property
    def first_found(self) -> int | None:
        """The first version with such a row; None if none has one, which takes a single query.

        Rules go through the versions in order, and stop at the first conflict: those after it need
        no answer.
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
