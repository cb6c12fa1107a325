"""What the JVM tells along with a question, so that Python need not ask: ``bridge.Told``."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from deltaic.commit.ports import CommitSummary, TableHeader


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
        """Return the first of some settings that is set, by name, with its value.

        If none is, it is the first of all, without a value.
        """
        return next(
            ((name, self.settings[name]) for name in names if name in self.settings),
            (names[0], None),
        )


@dataclass(frozen=True, slots=True)
class UpkeepState:
    """Tasks that failed when they were tried last, and the newest checkpoint known, or -1."""

    failed: frozenset[str]
    newest_checkpoint: int

    @staticmethod
    def from_json(body: Mapping[str, Any]) -> UpkeepState:
        """Read the JSON of ``PythonApi.upkeepState``."""
        return UpkeepState(frozenset(body["failed"]), body["newestCheckpoint"])


@dataclass(frozen=True, slots=True)
class Told:
    """Answers that need not be asked for; None for what was not told.

    Attributes
    ----------
    header
        Of the version that a write is based on. It holds the progress of the application alone
        that the write is of.
    """

    session: SessionState | None = None
    table: str | None = None
    header: TableHeader | None = None
    upkeep: UpkeepState | None = None
    summary: CommitSummary | None = None

    @staticmethod
    def from_json(body: Mapping[str, Any], table: str | None = None) -> Told:
        """Read what stands beside a question, about a table if that is about one."""
        header, upkeep, summary = body.get("header"), body.get("upkeep"), body.get("summary")
        return Told(
            SessionState.from_json(body["session"]),
            table,
            TableHeader.from_json(header) if header else None,
            UpkeepState.from_json(upkeep) if upkeep else None,
            CommitSummary.from_json(summary) if summary else None,
        )

    def header_of(self, table: str, version: int | None) -> TableHeader | None:
        """Return the header of a version, if it is the one that was told."""
        found = self.header
        is_meant = found is not None and (table, version) == (self.table, found.version)
        return found if is_meant else None
