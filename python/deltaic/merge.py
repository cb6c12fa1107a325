"""`DeltaMergeBuilder`: the clauses of a MERGE.

In the examples, `path` is a table of one file with the ids 0 to 9.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING

from deltaic.arguments import Assignments, assignments, optional_column, wrong, wrong_type
from deltaic.exceptions import error
from deltaic.spark.session_values import ClauseKind, MergeClause

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame

    from deltaic.spark.session_api import SessionApi

    Condition = str | Column | None
    Values = Mapping[str, str | Column] | None

__all__ = ["DeltaMergeBuilder"]


class DeltaMergeBuilder:
    """A MERGE that is not executed yet. `DeltaTable.merge` returns one.

    Names and signatures are those of delta-spark. Each method returns a new builder. Among clauses
    of one kind (matched, not matched, not matched by source), the first one whose condition is true
    applies to a row, so only the last one may omit the condition. A row to which no clause applies
    is unchanged.

    Examples
    --------
    >>> source = spark.range(8, 12).alias("s")
    >>> merge = DeltaTable.forPath(spark, path).alias("t").merge(source, "t.id = s.id")
    >>> merge = merge.whenMatchedUpdate(set={"id": "s.id + 100"}).whenNotMatchedInsertAll()
    >>> merge.execute().collect()  # doctest: +NORMALIZE_WHITESPACE
    [Row(num_affected_rows=4, num_updated_rows=2, num_deleted_rows=0, num_inserted_rows=2)]
    """

    def __init__(
        self,
        target: Callable[[], DataFrame],
        source: DataFrame,
        condition: Column,
        api: SessionApi,
        clauses: Sequence[MergeClause] = (),
        evolves_schema: bool = False,
        transaction: tuple[str, int] | None = None,
    ) -> None:
        from pyspark.sql import DataFrame

        if not isinstance(source, DataFrame):
            raise wrong_type("source", source, "its type must be DataFrame")
        self._target = target
        self._source = source
        self._condition = condition
        self._api = api
        self._clauses = tuple(clauses)
        self._evolves_schema = evolves_schema
        self._transaction = transaction

    def whenMatchedUpdate(
        self, condition: Condition = None, set: Values = None
    ) -> DeltaMergeBuilder:
        """Update the table's rows that match a row of the source.

        Parameters
        ----------
        condition
            Which of these rows: SQL, or a Column, over both sides. All of them by default.
        set
            The new values, SQL or Columns over both sides, by the name of the table's column.

        Returns
        -------
        DeltaMergeBuilder

        Raises
        ------
        InvalidArgumentError
            If there is nothing to set, or a condition or value is neither SQL nor a Column.

        Examples
        --------
        >>> merge = DeltaTable.forPath(spark, path).alias("t").merge(
        ...     spark.range(3).alias("s"), "t.id = s.id"
        ... )
        >>> result = merge.whenMatchedUpdate("s.id > 0", {"id": "-s.id"}).execute()
        >>> result.select("num_updated_rows").collect()
        [Row(num_updated_rows=2)]
        """
        return self._with("MATCHED_UPDATE", condition, assignments("set", set))

    def whenMatchedUpdateAll(self, condition: Condition = None) -> DeltaMergeBuilder:
        """Update all columns of matched rows from the source's columns of the same names.

        Parameters
        ----------
        condition
            Which of these rows: SQL, or a Column, over both sides. All of them by default.

        Returns
        -------
        DeltaMergeBuilder

        Examples
        --------
        >>> merge = DeltaTable.forPath(spark, path).alias("t").merge(
        ...     spark.range(3).alias("s"), "t.id = s.id"
        ... )
        >>> merge.whenMatchedUpdateAll().execute().select("num_affected_rows").collect()
        [Row(num_affected_rows=3)]
        """
        return self._with("MATCHED_UPDATE_ALL", condition)

    def whenMatchedDelete(self, condition: Condition = None) -> DeltaMergeBuilder:
        """Delete the table's rows that match a row of the source.

        Parameters
        ----------
        condition
            Which of these rows: SQL, or a Column, over both sides. All of them by default.

        Returns
        -------
        DeltaMergeBuilder

        Examples
        --------
        >>> merge = DeltaTable.forPath(spark, path).alias("t").merge(
        ...     spark.range(3).alias("s"), "t.id = s.id"
        ... )
        >>> merge.whenMatchedDelete().execute().select("num_deleted_rows").collect()
        [Row(num_deleted_rows=3)]
        """
        return self._with("MATCHED_DELETE", condition)

    def whenNotMatchedInsert(
        self, condition: Condition = None, values: Values = None
    ) -> DeltaMergeBuilder:
        """Insert the rows of the source that match no row of the table.

        Parameters
        ----------
        condition
            Which of these rows: SQL, or a Column, over the source. All of them by default.
        values
            The values, SQL or Columns over the source, by the name of the table's column. Omitted
            columns get their default, or null.

        Returns
        -------
        DeltaMergeBuilder

        Raises
        ------
        InvalidArgumentError
            If there are no values, or a condition or value is neither SQL nor a Column.

        Examples
        --------
        >>> merge = DeltaTable.forPath(spark, path).alias("t").merge(
        ...     spark.range(12).alias("s"), "t.id = s.id"
        ... )
        >>> result = merge.whenNotMatchedInsert("s.id > 10", {"id": "s.id * 2"}).execute()
        >>> result.select("num_inserted_rows").collect()
        [Row(num_inserted_rows=1)]
        """
        return self._with("NOT_MATCHED_INSERT", condition, assignments("values", values))

    def whenNotMatchedInsertAll(self, condition: Condition = None) -> DeltaMergeBuilder:
        """Insert source rows that match no row, with all columns from those of the same names.

        Parameters
        ----------
        condition
            Which of these rows: SQL, or a Column, over the source. All of them by default.

        Returns
        -------
        DeltaMergeBuilder

        Examples
        --------
        >>> merge = DeltaTable.forPath(spark, path).alias("t").merge(
        ...     spark.range(12).alias("s"), "t.id = s.id"
        ... )
        >>> merge.whenNotMatchedInsertAll().execute().select("num_inserted_rows").collect()
        [Row(num_inserted_rows=2)]
        """
        return self._with("NOT_MATCHED_INSERT_ALL", condition)

    def whenNotMatchedBySourceUpdate(
        self, condition: Condition = None, set: Values = None
    ) -> DeltaMergeBuilder:
        """Update the table's rows that match no row of the source.

        Parameters
        ----------
        condition
            Which of these rows: SQL, or a Column, over the table. All of them by default.
        set
            The new values, SQL or Columns over the table, by the name of the column.

        Returns
        -------
        DeltaMergeBuilder

        Raises
        ------
        InvalidArgumentError
            If there is nothing to set, or a condition or value is neither SQL nor a Column.

        Examples
        --------
        >>> merge = DeltaTable.forPath(spark, path).alias("t").merge(
        ...     spark.range(3).alias("s"), "t.id = s.id"
        ... )
        >>> result = merge.whenNotMatchedBySourceUpdate("t.id > 5", {"id": "-t.id"}).execute()
        >>> result.select("num_updated_rows").collect()
        [Row(num_updated_rows=4)]
        """
        return self._with("NOT_MATCHED_BY_SOURCE_UPDATE", condition, assignments("set", set))

    def whenNotMatchedBySourceDelete(self, condition: Condition = None) -> DeltaMergeBuilder:
        """Delete the table's rows that match no row of the source.

        Parameters
        ----------
        condition
            Which of these rows: SQL, or a Column, over the table. All of them by default.

        Returns
        -------
        DeltaMergeBuilder

        Examples
        --------
        >>> merge = DeltaTable.forPath(spark, path).alias("t").merge(
        ...     spark.range(3).alias("s"), "t.id = s.id"
        ... )
        >>> merge.whenNotMatchedBySourceDelete().execute().select("num_deleted_rows").collect()
        [Row(num_deleted_rows=7)]
        """
        return self._with("NOT_MATCHED_BY_SOURCE_DELETE", condition)

    def withSchemaEvolution(self) -> DeltaMergeBuilder:
        """Enable schema evolution: add columns and fields of the source to the table.

        A column is added if a clause assigns it to a column of the same name, as clauses for all
        columns do. Columns are added in the commit of the rows, and are null in other rows. The
        setting ``spark.deltaic.schema.autoMerge.enabled`` enables it for all merges of a session.

        Returns
        -------
        DeltaMergeBuilder

        Examples
        --------
        >>> source = spark.range(12).selectExpr("id", "id * 2 AS twice").alias("s")
        >>> merge = DeltaTable.forPath(spark, path).alias("t").merge(source, "t.id = s.id")
        >>> result = merge.withSchemaEvolution().whenNotMatchedInsertAll().execute()
        >>> DeltaTable.forPath(spark, path).toDF().columns
        ['id', 'twice']
        """
        return self._copy(evolves_schema=True)

    def idempotent(self, appId: str, version: int) -> DeltaMergeBuilder:
        """Commit the MERGE at most once, however often it is run, as in ``foreachBatch``.

        The commit has the transaction identifier. If it has been committed before with this version
        or a later one of the application, the MERGE does not run. delta-spark has no such method.

        Parameters
        ----------
        appId
            The application: a name that no other writer of the table uses. Of a stream, the name
            must differ from the ID of its query if that writes the table, too.
        version
            The version of the application, which increases: of a stream, the number of the batch.
            From 0 to 2**63 - 1.

        Returns
        -------
        DeltaMergeBuilder

        Raises
        ------
        InvalidArgumentError
            If the application is empty, or the version is not from 0 to 2**63 - 1.

        Notes
        -----
        Protocol § Transaction Identifiers.

        Examples
        --------
        >>> merge = DeltaTable.forPath(spark, path).alias("t").merge(
        ...     spark.range(8, 12).alias("s"), "t.id = s.id"
        ... )
        >>> merge = merge.whenNotMatchedInsertAll().idempotent("nightly", 1)
        >>> merge.execute().select("num_inserted_rows").collect()
        [Row(num_inserted_rows=2)]
        >>> merge.execute().select("num_inserted_rows").collect()
        [Row(num_inserted_rows=0)]
        """
        if not isinstance(appId, str):
            raise wrong_type("appId", appId, "it needs to be a string")
        if not appId:
            raise wrong("appId", appId, "it is not empty")
        if not isinstance(version, int) or isinstance(version, bool):
            raise wrong_type("version", version, "it needs to be an integer")
        if not 0 <= version < 2**63:
            raise wrong("version", version, "it is a number from 0 to 2**63 - 1")
        return self._copy(transaction=(appId, version))

    def execute(self) -> DataFrame:
        """Run the MERGE in one commit. A MERGE that changes no row commits no version.

        Returns
        -------
        DataFrame
            One row: ``num_affected_rows`` bigint, ``num_updated_rows`` bigint,
            ``num_deleted_rows`` bigint, ``num_inserted_rows`` bigint.

        Raises
        ------
        InvalidArgumentError
            If there is no clause, or a clause without a condition precedes another one of the same
            kind.
        ConcurrentModificationError
            If a concurrent commit conflicts with this one. Nothing was changed.
        TableStateError
            If the table is append-only, and the MERGE updates or deletes rows.

        Notes
        -----
        Protocol § Deletion Vectors, Protocol § Append-only Tables.

        Examples
        --------
        >>> merge = DeltaTable.forPath(spark, path).alias("t").merge(
        ...     spark.range(5, 15).alias("s"), "t.id = s.id"
        ... )
        >>> merge.whenNotMatchedInsertAll().execute().select("num_affected_rows").collect()
        [Row(num_affected_rows=5)]
        """
        self._require_reachable_clauses()
        return self._api.merge(
            self._target(),
            self._source,
            self._condition,
            self._clauses,
            evolves_schema=self._evolves_schema,
            transaction=self._transaction,
        )

    def _with(
        self, kind: str, condition: Condition, values: Assignments | None = None
    ) -> DeltaMergeBuilder:
        when = optional_column("condition", condition)
        clause = MergeClause(ClauseKind[kind], when, values)
        return self._copy(clauses=(*self._clauses, clause))

    def _copy(
        self,
        *,
        clauses: Sequence[MergeClause] | None = None,
        evolves_schema: bool | None = None,
        transaction: tuple[str, int] | None = None,
    ) -> DeltaMergeBuilder:
        return DeltaMergeBuilder(
            self._target,
            self._source,
            self._condition,
            self._api,
            self._clauses if clauses is None else clauses,
            self._evolves_schema if evolves_schema is None else evolves_schema,
            transaction or self._transaction,
        )

    def _require_reachable_clauses(self) -> None:
        if not self._clauses:
            raise error("DELTAIC_MERGE_CLAUSES_INVALID", problem="there is none")
        unconditional: dict[str, ClauseKind] = {}
        for clause in self._clauses:
            group = clause.kind.group
            if group in unconditional:
                problem = (
                    f"{unconditional[group].method} has no condition, but another {group} clause"
                    " follows, which no row would reach"
                )
                raise error("DELTAIC_MERGE_CLAUSES_INVALID", problem=problem)
            if clause.condition is None:
                unconditional[group] = clause.kind
