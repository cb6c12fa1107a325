"""The methods of `DeltaTable` that restore an older version.

In the examples, `path` is a table of one file with the ids 0 to 9.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from deltaic.arguments import require_string, require_whole_number
from deltaic.table_definition import TableDefinition

if TYPE_CHECKING:
    from pyspark.sql import DataFrame


class TableRestore(TableDefinition):
    """RESTORE; base class of `DeltaTable`."""

    def restoreToVersion(self, version: int) -> DataFrame:
        """Restore the rows and the definition of an older version, in a new version.

        Deletion vectors, row IDs and clustering columns are those of the older version. Identity
        columns do not generate a value twice, and the protocol keeps the features that were added
        since. If the table does not differ from the version, nothing is committed.

        Parameters
        ----------
        version
            The version to restore.

        Returns
        -------
        DataFrame
            One row: ``table_size_after_restore`` bigint, ``num_of_files_after_restore`` bigint,
            ``num_removed_files`` bigint, ``num_restored_files`` bigint, ``removed_files_size``
            bigint, ``restored_files_size`` bigint.

        Raises
        ------
        InvalidArgumentError
            If the version is not a whole number from 0 on.
        TableStateError
            If the version cannot be read, a file of it no longer exists, or the table is
            append-only.
        ConcurrentModificationError
            If another commit changed the table concurrently. Nothing was changed.

        Notes
        -----
        Protocol § Add File and Remove File, Protocol § Deletion Vectors.

        Examples
        --------
        >>> table = DeltaTable.forPath(spark, path)
        >>> table.delete("id > 2")
        >>> table.restoreToVersion(0).select("num_removed_files", "num_restored_files").collect()
        [Row(num_removed_files=1, num_restored_files=1)]
        >>> table.toDF().count()
        10
        """
        require_whole_number("version", version, "it needs to be an integer from 0 on", minimum=0)
        return self._restore("DeltaTable.restoreToVersion", version=str(version))

    def restoreToTimestamp(self, timestamp: str) -> DataFrame:
        """Restore the newest version that was committed at or before a timestamp.

        Parameters
        ----------
        timestamp
            A date or timestamp, in the session's time zone unless it names another one.

        Returns
        -------
        DataFrame
            As of `restoreToVersion`.

        Raises
        ------
        InvalidArgumentError
            If it is not a timestamp.
        TableStateError
            If the timestamp is before the earliest version that can be read, or as for
            `restoreToVersion`.
        ConcurrentModificationError
            As for `restoreToVersion`.

        Notes
        -----
        Protocol § In-Commit Timestamps.

        Examples
        --------
        >>> table = DeltaTable.forPath(spark, path)
        >>> restored = table.restoreToTimestamp("2100-01-01")
        >>> restored.select("num_of_files_after_restore", "num_removed_files").collect()
        [Row(num_of_files_after_restore=1, num_removed_files=0)]
        """
        require_string("timestamp", timestamp)
        return self._restore("DeltaTable.restoreToTimestamp", timestamp=timestamp)

    def _restore(
        self, method: str, version: str | None = None, timestamp: str | None = None
    ) -> DataFrame:
        return self._api(method).restore(self._path, version, timestamp)
