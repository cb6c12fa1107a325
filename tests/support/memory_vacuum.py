"""The files that VACUUM finds in a log in memory: as many as a test says."""

from __future__ import annotations

from deltaic.commit.unused_files import (
    DeletedFileCounts,
    UnusedFileCounts,
    VacuumRequest,
    VacuumSettings,
)


class MemoryUnusedFiles:
    """Counts that a test sets, and what was called."""

    def __init__(self) -> None:
        self.request: VacuumRequest | None = None
        self.found = UnusedFileCounts(3, 300, 2)
        self.deleted = DeletedFileCounts(3)
        self.failure: Exception | None = None
        self.calls: list[str] = []

    def counts(self) -> UnusedFileCounts:
        """Return `found`."""
        return self.found

    def delete(self) -> DeletedFileCounts:
        """Return `deleted`, or raise `failure`."""
        self.calls.append("delete")
        if self.failure is not None:
            raise self.failure
        return self.deleted

    def record(self) -> None:
        """Record the call."""
        self.calls.append("record")

    def close(self) -> None:
        """Record the call."""
        self.calls.append("close")


class MemoryVacuum:
    """What VACUUM needs of a log in memory."""

    def __init__(self) -> None:
        self.unused = MemoryUnusedFiles()

    def vacuum_settings(self) -> VacuumSettings:
        """Return the default settings."""
        return VacuumSettings()

    def find_unused_files(self, table: str, request: VacuumRequest) -> MemoryUnusedFiles:
        """Return `unused`, which records the request: a log in memory has no directory."""
        self.unused.request = request
        return self.unused
