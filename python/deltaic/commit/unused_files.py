"""The port of VACUUM: the files that no version needs, which the JVM finds and deletes."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

from deltaic.commit.message import Message


@dataclass(frozen=True, slots=True)
class VacuumRequest(Message):
    """Which files VACUUM deletes.

    Attributes
    ----------
    cutoff_ms
        Only files that were modified before are deleted.
    is_lite
        Whether they are found in the log, instead of in a listing.
    inventory
        The query of the files that may be deleted; None for all files of the table's directory.
    """

    cutoff_ms: int
    is_lite: bool = False
    inventory: str | None = None


@dataclass(frozen=True, slots=True)
class UnusedFileCounts(Message):
    """What VACUUM has found: files, with the directories that are empty without them.

    Attributes
    ----------
    num_directories
        The number of directories that were listed.
    """

    num_files: int
    size_bytes: int
    num_directories: int


@dataclass(frozen=True, slots=True)
class DeletedFileCounts(Message):
    """What VACUUM has deleted, and why a file could not be deleted."""

    num_deleted: int
    num_failed: int = 0
    failure: str | None = None


class UnusedFiles(Protocol):
    """The files that VACUUM has found."""

    def counts(self) -> UnusedFileCounts:
        """Return their counts."""

    def delete(self) -> DeletedFileCounts:
        """Delete them, except those that a later commit has added again."""

    def record(self) -> None:
        """Record up to which commit removed files are deleted, for the next VACUUM LITE."""

    def close(self) -> None:
        """Release what they occupy."""


@dataclass(frozen=True, slots=True)
class VacuumSettings:
    """The session settings of VACUUM."""

    checks_retention: bool = True
    writes_log: bool = True
