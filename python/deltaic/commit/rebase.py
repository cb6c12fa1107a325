"""Following a commit that got in between: the next version to try, or the conflict."""

from __future__ import annotations

from dataclasses import dataclass

from deltaic.commit.conflicts import Conflict, find_conflict
from deltaic.commit.ports import PreparedCommit, Winner
from deltaic.commit.read_set import ReadSet


@dataclass(frozen=True, slots=True)
class Rebased:
    """Our commit can follow every winner; `version` is the first that is free."""

    version: int
    last_winner: Winner


def rebase(ours: ReadSet, prepared: PreparedCommit, taken: int) -> Rebased | Conflict:
    """Check our commit against every version from `taken`, which exists, to the newest.

    Nothing of the commit itself changes: its header says which version it read, not which it
    follows, and no action of it depends on the version it becomes.
    """
    version = taken
    last: Winner | None = None
    while (winner := prepared.winner(version)) is not None:
        conflict = find_conflict(ours, winner)
        if conflict is not None:
            return conflict
        last = winner
        version += 1
    if last is None:
        # A version that could not be written because it exists, but cannot be read: log cleanup
        # would have to have overtaken this commit.
        raise LookupError(f"version {taken} exists but cannot be read")
    return Rebased(version, last)
