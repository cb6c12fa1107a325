"""`DeltaTable.optimize`: compaction of small files, and ordering of rows.

In the examples, `path` is a table of one file with the ids 0 to 9.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from deltaic.arguments import require_boolean, require_string, wrong, wrong_type
from deltaic.table_definition import TableDefinition

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

    from deltaic.spark.session_api import SessionApi


class DeltaOptimizeBuilder:
    """Selects what to compact and runs it; `DeltaTable.optimize` returns one.

    Examples
    --------
    >>> builder = DeltaTable.forPath(spark, path).optimize()
    >>> builder.executeCompaction().select("metrics.numFilesRemoved").first()[0]
    0
    """

    def __init__(self, api: SessionApi, path: str) -> None:
        self._api = api
        self._path = path
        self._predicate: str | None = None

    def where(self, partitionFilter: str) -> DeltaOptimizeBuilder:
        """Limit the command to the partitions for which a condition is true.

        Parameters
        ----------
        partitionFilter
            A condition on partition columns, as SQL.

        Returns
        -------
        DeltaOptimizeBuilder
            This builder, limited by the condition in addition to those before.

        Raises
        ------
        InvalidArgumentError
            If it is not a string.

        Examples
        --------
        >>> builder = DeltaTable.forPath(spark, path).optimize().where("true")
        """
        require_string("partitionFilter", partitionFilter)
        before = self._predicate
        self._predicate = (
            partitionFilter if before is None else f"({before}) AND ({partitionFilter})"
        )
        return self

    def executeCompaction(self, *, full: bool = False) -> DataFrame:
        """Write the rows of small and of heavily deleted files to fewer files.

        No row changes, and rows keep their order within a file. Statements that change rows
        meanwhile do not fail it. In a clustered table, the rows that have been added since the
        last time are clustered instead.

        Parameters
        ----------
        full
            Whether all rows of a clustered table are clustered again, as by ``OPTIMIZE ... FULL``;
            delta-spark's builder has no such argument.

        Returns
        -------
        DataFrame
            ``path`` string, ``metrics`` struct: how many files were added and removed, their sizes,
            and more, as in delta-spark.

        Raises
        ------
        InvalidArgumentError
            If the condition of `where` is not one on partition columns, or if the table is
            clustered and there is one; if `full` is not a boolean, or is true for a table that is
            not clustered.

        Notes
        -----
        Protocol § Add File and Remove File (``dataChange``).

        Examples
        --------
        >>> table = DeltaTable.forPath(spark, path)
        >>> metrics = table.optimize().executeCompaction().select("metrics.*")
        >>> metrics.select("totalConsideredFiles", "totalFilesSkipped").collect()
        [Row(totalConsideredFiles=1, totalFilesSkipped=1)]
        """
        require_boolean("full", full)
        return self._api.optimize(self._path, self._predicate, is_full=full)

    def executeZOrderBy(self, *cols: str | Sequence[str]) -> DataFrame:
        """Write the rows of each partition in the order of a curve through the values of columns.

        Rows with similar values of all of the columns come into the same files, so that queries
        with conditions on any of them skip the others. All files of the partitions are rewritten.

        Parameters
        ----------
        cols
            The names of the columns, or one list of them: neither partition columns nor columns
            without statistics. A nested field is named by its path, as in ``"address.city"``.

        Returns
        -------
        DataFrame
            As that of `executeCompaction`; ``metrics.zOrderStats`` has the files that were merged.

        Raises
        ------
        InvalidArgumentError
            If rows cannot be ordered by one of the columns, or if the table is clustered.

        Examples
        --------
        >>> table = DeltaTable.forPath(spark, path)
        >>> result = table.optimize().executeZOrderBy("id")
        >>> result.select("metrics.zOrderStats.strategyName").first()[0]
        'all'
        """
        names = cols[0] if len(cols) == 1 and isinstance(cols[0], list | tuple) else cols
        if not names:
            raise wrong("cols", names, "it names at least one column")
        columns = []
        for name in names:
            if not isinstance(name, str):
                raise wrong_type("cols", name, "it must be str")
            require_string("cols", name)
            columns.append(name)
        return self._api.optimize(self._path, self._predicate, z_order_by=columns)


class TableRewrites(TableDefinition):
    """The methods of `DeltaTable` that rewrite files; base class of `DeltaTable`."""

    def optimize(self) -> DeltaOptimizeBuilder:
        """Return a builder of a compaction.

        Returns
        -------
        DeltaOptimizeBuilder
            Its method `executeCompaction` compacts the files.

        Examples
        --------
        >>> table = DeltaTable.forPath(spark, path)
        >>> table.optimize().executeCompaction().columns
        ['path', 'metrics']
        """
        return DeltaOptimizeBuilder(self._api("DeltaTable.optimize"), self._path)

    def purge(self, condition: str | None = None) -> DataFrame:
        """Rewrite the files that hold deleted rows or dropped columns, without these.

        It is ``REORG TABLE ... APPLY (PURGE)``. No row changes. The old files stay for time travel
        until `vacuum` deletes them.

        Parameters
        ----------
        condition
            Limits it to the partitions for which it is true: a condition on partition columns, as
            SQL.

        Returns
        -------
        DataFrame
            ``path`` string, ``metrics`` struct, as that of
            `DeltaOptimizeBuilder.executeCompaction`.

        Raises
        ------
        InvalidArgumentError
            If `condition` is not a string, or not a condition on partition columns.

        Notes
        -----
        Protocol § Deletion Vectors. delta-spark has the statement only in SQL.

        Examples
        --------
        >>> table = DeltaTable.forPath(spark, path)
        >>> table.delete("id = 3")
        >>> table.purge().select("metrics.deletionVectorStats.numDeletionVectorsRemoved").first()[0]
        1
        """
        if condition is not None:
            require_string("condition", condition)
        return self._api("DeltaTable.purge").purge(self._path, condition)
