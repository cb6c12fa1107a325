"""State that the JVM sends with a request, to save round trips: ``commit.PrefetchedState``."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from deltaic.commit.ports import CommitSummary, TableSnapshot


@dataclass(frozen=True, slots=True)
class SessionState:
    """The version of Spark, and the settings of a session under our prefixes."""

    spark_version: str
    settings: Mapping[str, str]

    @staticmethod
    def from_json(body: Mapping[str, Any]) -> SessionState:
        """Read the JSON of ``PythonApi.sessionState``."""
        return SessionState(body["sparkVersion"], body["settings"])

    def first(self, names: Sequence[str]) -> tuple[str, str | None]:
        """Return the name and value of the first setting that is set.

        If none is set, return the first name, with None.
        """
        return next(
            ((name, self.settings[name]) for name in names if name in self.settings),
            (names[0], None),
        )


@dataclass(frozen=True, slots=True)
class MaintenanceState:
    """The tasks that failed when they last ran, and the newest known checkpoint, or -1."""

    failed: frozenset[str]
    newest_checkpoint: int

    @staticmethod
    def from_json(body: Mapping[str, Any]) -> MaintenanceState:
        """Read the JSON of ``PythonApi.maintenanceState``."""
        return MaintenanceState(frozenset(body["failed"]), body["newestCheckpoint"])


@dataclass(frozen=True, slots=True)
class PrefetchedState:
    """Prefetched state; None for what is not prefetched.

    Attributes
    ----------
    snapshot
        The version that a write is based on. Of the ``txn`` actions, it has only that of the
        write's own application.
    """

    session: SessionState | None = None
    table: str | None = None
    snapshot: TableSnapshot | None = None
    maintenance: MaintenanceState | None = None
    summary: CommitSummary | None = None

    @staticmethod
    def from_json(body: Mapping[str, Any], table: str | None = None) -> PrefetchedState:
        """Read the prefetched state of a request, which may be about a table."""
        snapshot, summary = body.get("snapshot"), body.get("summary")
        maintenance = body.get("maintenance")
        return PrefetchedState(
            SessionState.from_json(body["session"]),
            table,
            TableSnapshot.from_json(snapshot) if snapshot else None,
            MaintenanceState.from_json(maintenance) if maintenance else None,
            CommitSummary.from_json(summary) if summary else None,
        )

    def snapshot_of(self, table: str, version: int | None) -> TableSnapshot | None:
        """Return the snapshot of a version, if it is prefetched."""
        found = self.snapshot
        matches = found is not None and (table, version) == (self.table, found.version)
        return found if matches else None
