"""What DROP FEATURE needs of a table's files and log."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

from deltaic.commit.message import Message


@dataclass(frozen=True, slots=True)
class HistoricUse(Message):
    """The newest version in the log that uses a feature.

    Attributes
    ----------
    replaced_at_ms
        When the version of the first checkpoint after it was committed; None if there is none.
    """

    version: int
    replaced_at_ms: int | None = None


class Downgrade(Protocol):
    """The files and the log of a table, without a feature that is being dropped."""

    def rewrite_files(self, feature: str) -> int:
        """Rewrite the files of the newest version that use a feature, and commit them.

        Returns
        -------
        int
            The number of files that were rewritten.

        Raises
        ------
        ConcurrentModificationError
            If another commit changed the files or the definition.
        """

    def files_use(self, version: int, feature: str) -> bool:
        """Return whether files of a version use a feature."""

    def write_checkpoint(self, version: int) -> None:
        """Write a classic checkpoint of a version, or fail."""

    def truncate_log(self, retention_ms: int, protected_version: int) -> None:
        """Delete the log before the newest checkpoint that is older than the retention.

        Parameters
        ----------
        retention_ms
            The minimum age of the commit of the checkpoint.
        protected_version
            The log before it is deleted completely or not at all; 0 if none is protected.
        """

    def newest_use(self, feature: str, last: int, protected_version: int) -> HistoricUse | None:
        """Return the newest version up to `last` that uses a feature; None if none in the log does.

        Parameters
        ----------
        protected_version
            The versions before it use the feature ``checkpointProtection``.
        """
