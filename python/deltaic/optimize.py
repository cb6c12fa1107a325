"""`DeltaTable.optimize`: compaction of small files.

In the examples, `path` is a table of one file with the ids 0 to 9.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from deltaic.arguments import require_string, wrong
from deltaic.commands.optimize import Z_ORDER
from deltaic.exceptions import unsupported_command
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

    def executeCompaction(self) -> DataFrame:
        """Write the rows of small and of heavily deleted files to fewer files.

        No row changes, and rows keep their order within a file. Statements that change rows
        meanwhile do not fail it.

        Returns
        -------
        DataFrame
            ``path`` string, ``metrics`` struct: how many files were added and removed, their sizes,
            and more, as in delta-spark.

        Raises
        ------
        InvalidArgumentError
            If the condition of `where` is not one on partition columns, or if the table is
            clustered, which is not supported yet.

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
        return self._api.optimize(self._path, self._predicate)

    def executeZOrderBy(self, *cols: str) -> DataFrame:
        """Refuse to order rows along a curve: not supported yet.

        Parameters
        ----------
        cols
            The names of the columns.

        Raises
        ------
        InvalidArgumentError
            Always. The message says what works instead.

        Examples
        --------
        >>> from deltaic.exceptions import InvalidArgumentError
        >>> try:
        ...     DeltaTable.forPath(spark, path).optimize().executeZOrderBy("id")
        ... except InvalidArgumentError as refusal:
        ...     print(refusal.parameters["command"])
        OPTIMIZE ... ZORDER BY
        """
        if not cols:
            raise wrong("cols", cols, "it names at least one column")
        raise unsupported_command(Z_ORDER)


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
