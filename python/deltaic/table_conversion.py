"""The method of `DeltaTable` that converts Parquet files.

In the examples, `path` is a table of one file with the ids 0 to 9.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from deltaic.arguments import require_string, wrong_type
from deltaic.spark.session_api import session_api

if TYPE_CHECKING:
    from pyspark.sql import SparkSession
    from pyspark.sql.types import StructType
    from typing_extensions import Self


class TableConversion:
    """CONVERT TO DELTA; base class of `DeltaTable`."""

    if TYPE_CHECKING:

        def __init__(
            self, sparkSession: SparkSession, path: str, name: str | None = None
        ) -> None: ...

    @classmethod
    def convertToDelta(
        cls,
        sparkSession: SparkSession,
        identifier: str,
        partitionSchema: str | StructType | None = None,
    ) -> Self:
        """Make a Delta table of Parquet files, which are neither moved nor rewritten.

        Columns with different types in the files get a type to which readers widen all of them.
        The statistics of the files are those of their footers. A table of the catalog becomes a
        Delta table there. If it is a Delta table already, nothing changes.

        Parameters
        ----------
        sparkSession
            The session to use.
        identifier
            A Parquet table of the catalog, or a folder of files, such as
            ``parquet.`/data/files` ``.
        partitionSchema
            The partition columns and their types, as DDL or as a schema. By default they are those
            of the catalog, or those that Spark infers from the names of the directories.

        Returns
        -------
        DeltaTable

        Raises
        ------
        InvalidArgumentError
            If it is neither a Parquet table nor a path, the files do not have the columns of one
            table, or the partition columns are not those of the directories.
        TableStateError
            If there are no files, or one of them is no Parquet file.

        Notes
        -----
        Protocol § Add File and Remove File, Protocol § Partition Value Serialization.

        Examples
        --------
        >>> files = f"{path}-files"
        >>> spark.range(10).write.parquet(files)
        >>> table = DeltaTable.convertToDelta(spark, f"parquet.`{files}`")
        >>> table.toDF().count()
        10
        >>> table.history(1).first().operation
        'CONVERT'
        """
        from pyspark.sql.types import StructType

        require_string("identifier", identifier)
        given: object = partitionSchema
        partitioning = given.json() if isinstance(given, StructType) else given
        if partitioning is not None and not isinstance(partitioning, str):
            reason = "it is DDL such as 'day DATE', or a StructType"
            raise wrong_type("partitionSchema", partitioning, reason)
        api = session_api(sparkSession, "DeltaTable.convertToDelta")
        table = api.convert_to_delta(identifier, partitioning)
        return cls(sparkSession, table.path, table.name)
