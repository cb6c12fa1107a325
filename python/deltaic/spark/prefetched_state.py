"""State that the JVM sends with a request, to save round trips: ``commit.PrefetchedState``."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from deltaic.commit.message import Message, not_in_json
from deltaic.commit.ports import CommitSummary, TableSnapshot


@dataclass(frozen=True, slots=True)
class SessionState(Message):
    """The version of Spark, and the settings of a session under our prefixes."""

    spark_version: str
    settings: Mapping[str, str]

    def first(self, names: Sequence[str]) -> tuple[str, str | None]:
        """Return the name and value of the first setting that is set.

        If none is set, return the first name, with None.
        """
        return next(
            ((name, self.settings[name]) for name in names if name in self.settings),
            (names[0], None),
        )


@dataclass(frozen=True, slots=True)
class MaintenanceState(Message):
    """The tasks that failed when they last ran, and the newest known checkpoint, or -1."""

    failed: frozenset[str]
    newest_checkpoint: int


@dataclass(frozen=True, slots=True)
class PrefetchedState(Message):
    """Prefetched state; None for what is not prefetched.

    Attributes
    ----------
    table
        The table of `snapshot`.
    is_of_command
        Whether it is sent with a command: `snapshot` is then the newest version of the table, or
        None if there is no table, and the JVM makes the first attempt of its commit.
    snapshot
        The version that a write or command is based on. Of the ``txn`` actions, it has only that
        of the write's own application.
    """

    session: SessionState | None = None
    table: str | None = field(default=None, metadata=not_in_json())
    snapshot: TableSnapshot | None = None
    maintenance: MaintenanceState | None = None
    summary: CommitSummary | None = None
    is_of_command: bool = False

    def snapshot_of(self, table: str, version: int | None) -> TableSnapshot | None:
        """Return the snapshot of a version, if it is prefetched."""
        found = self.snapshot
        matches = found is not None and (table, version) == (self.table, found.version)
        return found if matches else None


@dataclass(frozen=True, slots=True)
class CommandRequest(Message):
    """The request of ``Committer.run``; `arguments` is the record of the command."""

    arguments: Mapping[str, Any]
    prefetched: PrefetchedState | None = None
