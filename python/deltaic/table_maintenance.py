"""The methods of `DeltaTable` that maintain the table's files.

In the examples, `path` is a table of one file with the ids 0 to 9.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from deltaic.table_definition import TableDefinition

if TYPE_CHECKING:
    from pyspark.sql import DataFrame


class TableMaintenance(TableDefinition):
    """Maintenance of a table's files; base class of `DeltaTable`."""

    def vacuum(
        self,
        retentionHours: float | None = None,
        *,
        lite: bool = False,
        dryRun: bool = False,
        inventory: str | None = None,
    ) -> DataFrame:
        """Delete the files that no version within the retention needs.

        Parameters
        ----------
        retentionHours
            How long files are retained after the table no longer needs them; by default the
            table's ``delta.deletedFileRetentionDuration``.
        lite
            Whether the files are found in the log, which does not find those of failed writes,
            instead of by listing the table's directory.
        dryRun
            Whether the files are only shown.
        inventory
            A query of the files that may be deleted, such as a report of an object store, instead
            of a listing. Its columns are ``path`` string, ``length`` bigint, ``isDir`` boolean and
            ``modificationTime`` bigint, or ``path`` alone.

        Returns
        -------
        DataFrame
            Empty, without columns; with `dryRun` ``path`` string, the path of each file.

        Raises
        ------
        InvalidArgumentError
            If the retention is negative, or shorter than the table's and
            ``spark.deltaic.retentionDurationCheck.enabled`` is not false.
        TableStateError
            If files could not be deleted.

        Notes
        -----
        Protocol § Add File and Remove File.

        Examples
        --------
        >>> table = DeltaTable.forPath(spark, path)
        >>> table.vacuum(dryRun=True).count()
        0
        >>> result = table.vacuum()
        >>> table.history(1).first().operation
        'VACUUM END'
        """
        arguments = {
            "retentionHours": None if retentionHours is None else str(retentionHours),
            "isLite": lite,
            "dryRun": dryRun,
            "inventory": inventory,
        }
        specified = {name: value for name, value in arguments.items() if value is not None}
        return self._api("DeltaTable.vacuum").vacuum(self._path, specified)
