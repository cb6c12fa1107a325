"""`DeltaTable`: a table, and the operations on it other than reading and writing DataFrames.

In the examples, `path` and ``sales.orders`` are tables of one file with the ids 0 to 9.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from typing import TYPE_CHECKING

from deltaic.arguments import (
    assignments,
    column,
    file_system_settings,
    optional_column,
    require_string,
    require_whole_number,
)
from deltaic.builders import DefinitionBuilder, IdentityGenerator
from deltaic.exceptions import error
from deltaic.merge import DeltaMergeBuilder
from deltaic.optimize import DeltaOptimizeBuilder, TableRewrites
from deltaic.spark.dataframe_columns import DataFrameColumns
from deltaic.spark.session_api import session_api
from deltaic.table_clone import TableClones
from deltaic.table_conversion import TableConversion
from deltaic.table_display import TableDisplay
from deltaic.table_maintenance import TableMaintenance
from deltaic.table_restore import TableRestore

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame, SparkSession

    from deltaic.spark.session_api import SessionApi

__all__ = [
    "DeltaMergeBuilder",
    "DeltaOptimizeBuilder",
    "DeltaTable",
    "DeltaTableBuilder",
    "IdentityGenerator",
]


class DeltaTable(
    TableMaintenance, TableRewrites, TableRestore, TableClones, TableConversion, TableDisplay
):
    """A Delta table. `forPath` and `forName` return one.

    Names and signatures are those of delta-spark.

    Examples
    --------
    >>> table = DeltaTable.forPath(spark, path)
    >>> table.delete("id = 3")
    >>> table.history(1).select("operation").first().operation
    'DELETE'
    """

    def __init__(
        self,
        sparkSession: SparkSession,
        path: str,
        name: str | None = None,
        aliasName: str | None = None,
        hadoopConf: Mapping[str, str] | None = None,
    ) -> None:
        self._spark = sparkSession
        self._path = path
        self._name = name
        self._alias = aliasName
        self._hadoop_conf = dict(hadoopConf or {})
        self._columns = DataFrameColumns()

    @classmethod
    def forPath(
        cls, sparkSession: SparkSession, path: str, hadoopConf: Mapping[str, str] | None = None
    ) -> DeltaTable:
        """Return the table at a path.

        Parameters
        ----------
        sparkSession
            The session to use.
        path
            The table's directory.
        hadoopConf
            File system settings for this table only, whose names begin with ``fs.`` or ``dfs.``.
            They apply to all operations through the returned object. Hadoop caches file systems by
            scheme and host, regardless of settings: if the same file system is used with different
            settings, also pass ``fs.<scheme>.impl.disable.cache``.

        Returns
        -------
        DeltaTable

        Raises
        ------
        TableStateError
            If there is no Delta table at the path.
        InvalidArgumentError
            If the path, or a name or value of `hadoopConf`, is not a string, or a name is not a
            file system setting.

        Examples
        --------
        >>> DeltaTable.forPath(spark, path).toDF().count()
        10
        """
        require_string("path", path)
        settings = file_system_settings("hadoopConf", hadoopConf)
        if not session_api(sparkSession, "DeltaTable.forPath", settings).is_delta_table(path):
            raise error("DELTAIC_NOT_A_TABLE", table=path)
        return cls(sparkSession, path, hadoopConf=settings)

    @classmethod
    def forName(cls, sparkSession: SparkSession, tableOrViewName: str) -> DeltaTable:
        """Return a table of the catalog.

        Parameters
        ----------
        sparkSession
            The session to use.
        tableOrViewName
            The table's name, such as ``sales.orders`` or ``delta.`/data/t` ``.

        Returns
        -------
        DeltaTable

        Raises
        ------
        AnalysisException
            Spark's own, if there is no table of that name.

        Examples
        --------
        >>> DeltaTable.forName(spark, "sales.orders").toDF()
        DataFrame[id: bigint]
        """
        require_string("tableOrViewName", tableOrViewName)
        resolved = session_api(sparkSession, "DeltaTable.forName").resolve_name(tableOrViewName)
        return cls(sparkSession, resolved.path, resolved.name)

    @classmethod
    def isDeltaTable(cls, sparkSession: SparkSession, identifier: str) -> bool:
        """Whether there is a Delta table at a path.

        Parameters
        ----------
        sparkSession
            The session to use.
        identifier
            The path.

        Returns
        -------
        bool

        Examples
        --------
        >>> DeltaTable.isDeltaTable(spark, path)
        True
        """
        require_string("identifier", identifier)
        return session_api(sparkSession, "DeltaTable.isDeltaTable").is_delta_table(identifier)

    def toDF(self) -> DataFrame:
        """Return the table's rows.

        Returns
        -------
        DataFrame
            The current newest version. Conditions of `delete`, `update` and `merge` of this
            `DeltaTable` can use its columns. All its DataFrames share their columns while the
            table's columns do not change: alias the DataFrames to join them with each other, or to
            merge one into the table.

        Examples
        --------
        >>> table = DeltaTable.forPath(spark, path)
        >>> table.toDF().filter("id > 5")
        DataFrame[id: bigint]
        >>> table.delete(table.toDF()["id"] == 3)
        """
        if self._name is not None:
            df = self._spark.table(self._name)
        else:
            reader = self._spark.read.format("delta").options(**self._hadoop_conf)
            df = reader.load(self._path)
        return self._aliased(self._columns.of(df, self._api("DeltaTable.toDF")))

    def _target(self, api: SessionApi) -> DataFrame:
        """Return the DataFrame that a change targets, which uses the settings of the session."""
        if not self._hadoop_conf:
            return self.toDF()
        return self._aliased(self._columns.of(api.rows(self._path), api))

    def _aliased(self, df: DataFrame) -> DataFrame:
        return df if self._alias is None else df.alias(self._alias)

    def alias(self, aliasName: str) -> DeltaTable:
        """Return the same table under a name that conditions can use.

        Parameters
        ----------
        aliasName
            The name.

        Returns
        -------
        DeltaTable

        Examples
        --------
        >>> DeltaTable.forPath(spark, path).alias("t").delete("t.id = 3")
        """
        require_string("aliasName", aliasName)
        aliased = DeltaTable(self._spark, self._path, self._name, aliasName, self._hadoop_conf)
        aliased._columns = self._columns
        return aliased

    def delete(self, condition: str | Column | None = None) -> None:
        """Delete rows.

        If the table has ``delta.enableDeletionVectors``, the rows are marked as deleted; otherwise
        the files that hold them are rewritten. Both are one commit. A condition that matches no row
        commits no version.

        Parameters
        ----------
        condition
            Which rows: SQL, or a Column. All of them by default.

        Raises
        ------
        ConcurrentModificationError
            If a concurrent commit conflicts with this one. Nothing was changed.
        TableStateError
            If the table is append-only.
        InvalidArgumentError
            If the condition is neither SQL nor a Column.

        Notes
        -----
        Protocol § Deletion Vectors, Protocol § Append-only Tables.

        Examples
        --------
        >>> from pyspark.sql.functions import col
        >>> table = DeltaTable.forPath(spark, path)
        >>> table.delete("id = 3")
        >>> table.delete(col("id") > 7)
        """
        api = self._api("DeltaTable.delete")
        api.delete(self._target(api), optional_column("condition", condition))

    def update(
        self,
        condition: str | Column | None = None,
        set: Mapping[str, str | Column] | None = None,
    ) -> None:
        """Update rows.

        Parameters
        ----------
        condition
            Which rows: SQL, or a Column. All of them by default.
        set
            The new values, SQL or Columns, by the name of the column. A name may be that of a
            nested field, as in ``address.city``; quote names that are not identifiers by
            backquotes.

        Raises
        ------
        ConcurrentModificationError
            If a concurrent commit conflicts with this one. Nothing was changed.
        TableStateError
            If the table is append-only.
        InvalidArgumentError
            If there is nothing to set, or a condition or value is neither SQL nor a Column.

        Notes
        -----
        Protocol § Deletion Vectors, Protocol § Append-only Tables.

        Examples
        --------
        >>> from pyspark.sql.functions import col
        >>> table = DeltaTable.forPath(spark, path)
        >>> table.update("id > 7", {"id": col("id") + 100})
        >>> table.update(set={"id": "id + 1"})
        """
        api = self._api("DeltaTable.update")
        when = optional_column("condition", condition)
        api.update(self._target(api), when, assignments("set", set))

    def merge(self, source: DataFrame, condition: str | Column) -> DeltaMergeBuilder:
        """Return a builder that merges a source into the table by `execute`.

        Parameters
        ----------
        source
            The rows to merge. Alias the source and the table if they have columns of the same
            names.
        condition
            The condition for a row of the source to match one of the table: SQL, or a Column.

        Returns
        -------
        DeltaMergeBuilder

        Raises
        ------
        InvalidArgumentError
            If the source is not a DataFrame, or the condition neither SQL nor a Column.

        Examples
        --------
        >>> source = spark.createDataFrame([(3, True), (12, False)], "id BIGINT, gone BOOLEAN")
        >>> table = DeltaTable.forPath(spark, path).alias("t")
        >>> merge = table.merge(source.alias("s"), "t.id = s.id")
        >>> merge = merge.whenMatchedDelete("s.gone").whenNotMatchedInsert(values={"id": "s.id"})
        >>> merge.execute().select("num_deleted_rows", "num_inserted_rows").collect()
        [Row(num_deleted_rows=1, num_inserted_rows=1)]
        """
        api = self._api("DeltaTable.merge")
        target = partial(self._target, api)
        return DeltaMergeBuilder(target, source, column("condition", condition), api)

    def history(self, limit: int | None = None) -> DataFrame:
        """Return the commits that the log still has, newest first.

        Parameters
        ----------
        limit
            The maximum number of commits; all by default.

        Returns
        -------
        DataFrame
            ``version`` bigint, ``timestamp`` timestamp, ``userId`` string, ``userName`` string,
            ``operation`` string, ``operationParameters`` map<string, string>, ``job`` struct,
            ``notebook`` struct, ``clusterId`` string, ``readVersion`` bigint, ``isolationLevel``
            string, ``isBlindAppend`` boolean, ``operationMetrics`` map<string, string>,
            ``userMetadata`` string, ``engineInfo`` string.

        Raises
        ------
        InvalidArgumentError
            If the limit is not a whole number from zero on.

        Notes
        -----
        Protocol § Commit Provenance Information.

        Examples
        --------
        >>> table = DeltaTable.forPath(spark, path)
        >>> table.history(1).select("version", "operation").collect()
        [Row(version=0, operation='WRITE')]
        """
        if limit is not None:
            require_whole_number("limit", limit, "it needs to be an integer from 0 on", minimum=0)
        return self._api("DeltaTable.history").history(self._path, limit)

    @classmethod
    def create(cls, sparkSession: SparkSession | None = None) -> DeltaTableBuilder:
        """Return a builder that creates a table, which must not exist.

        Parameters
        ----------
        sparkSession
            The session to use; the active one by default.

        Returns
        -------
        DeltaTableBuilder

        Examples
        --------
        >>> builder = DeltaTable.create(spark).tableName("sales.returns")
        >>> builder.addColumn("id", "BIGINT").execute().toDF().count()
        0
        >>> dropped = spark.sql("DROP TABLE sales.returns")
        """
        return DeltaTableBuilder(sparkSession, "CREATE TABLE")

    @classmethod
    def createIfNotExists(cls, sparkSession: SparkSession | None = None) -> DeltaTableBuilder:
        """Return a builder that creates a table if it does not exist.

        Parameters
        ----------
        sparkSession
            The session to use; the active one by default.

        Returns
        -------
        DeltaTableBuilder

        Examples
        --------
        >>> table = DeltaTable.createIfNotExists(spark).location(path).execute()
        >>> table.toDF().count()
        10
        """
        return DeltaTableBuilder(sparkSession, "CREATE TABLE IF NOT EXISTS")

    @classmethod
    def replace(cls, sparkSession: SparkSession | None = None) -> DeltaTableBuilder:
        """Return a builder that replaces an existing table.

        Parameters
        ----------
        sparkSession
            The session to use; the active one by default.

        Returns
        -------
        DeltaTableBuilder

        Examples
        --------
        >>> builder = DeltaTable.replace(spark).location(path).addColumn("n", "INT")
        >>> builder.execute().toDF().columns
        ['n']
        """
        return DeltaTableBuilder(sparkSession, "REPLACE TABLE")

    @classmethod
    def createOrReplace(cls, sparkSession: SparkSession | None = None) -> DeltaTableBuilder:
        """Return a builder that creates a table, or replaces it if it exists.

        Parameters
        ----------
        sparkSession
            The session to use; the active one by default.

        Returns
        -------
        DeltaTableBuilder

        Examples
        --------
        >>> builder = DeltaTable.createOrReplace(spark).location(path).addColumn("n", "INT")
        >>> builder.execute().history(1).first().operation
        'CREATE OR REPLACE TABLE'
        """
        return DeltaTableBuilder(sparkSession, "CREATE OR REPLACE TABLE")


class DeltaTableBuilder(DefinitionBuilder):
    """Builder of a table to create or replace. `DeltaTable.create` and similar methods return one.

    Each method returns the builder; `execute` creates the table in one commit.

    Examples
    --------
    >>> builder = DeltaTable.createOrReplace(spark).location(path)
    >>> builder = builder.addColumn("id", "BIGINT", nullable=False, comment="a key")
    >>> builder = builder.addColumn("day", "DATE")
    >>> builder = builder.addColumn("year", "INT", generatedAlwaysAs="year(day)")
    >>> table = builder.partitionedBy("year").property("delta.checkpointInterval", "5").execute()
    >>> table.detail().select("partitionColumns").first()
    Row(partitionColumns=['year'])
    """

    def execute(self) -> DeltaTable:
        """Create or replace the table.

        Returns
        -------
        DeltaTable

        Raises
        ------
        InvalidArgumentError
            If there is neither a name nor a location, or the definition is not valid.
        AnalysisException
            Spark's own, if the table exists and must not, or does not exist and must.

        Examples
        --------
        >>> DeltaTable.createIfNotExists(spark).location(path).execute().toDF().count()
        10
        """
        location = self._create("DeltaTableBuilder.execute")
        if self._name is not None:
            return DeltaTable.forName(self._spark, self._name)
        assert location is not None
        return DeltaTable.forPath(self._spark, location)
