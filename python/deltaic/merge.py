"""`DeltaMergeBuilder`: the clauses of a MERGE.

In the examples, `path` is a table of one file with the ids 0 to 9.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING

from deltaic.arguments import Assignments, assignments, optional_column, wrong_type
from deltaic.exceptions import error

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame

    from deltaic.spark.session_api import ClauseKind, MergeClause, SessionApi

    Condition = str | Column | None
    Values = Mapping[str, str | Column] | None

__all__ = ["DeltaMergeBuilder"]


class DeltaMergeBuilder:
    """A MERGE that is not executed yet. Make one with `DeltaTable.merge`.

    Names and signatures are those of delta-spark. Each method returns a new builder. Of clauses
    about the same rows (matched, not matched, not matched by source) the first one whose condition
    holds is taken for a row, so only the last one may be without a condition. A row for which no
    clause is taken stays as it is.

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
    ) -> None:
        from pyspark.sql import DataFrame

        if not isinstance(source, DataFrame):
            raise wrong_type("source", source, "it is a DataFrame")
        self._target = target
        self._source = source
        self._condition = condition
        self._api = api
        self._clauses = tuple(clauses)
        self._evolves_schema = evolves_schema

    def whenMatchedUpdate(
        self, condition: Condition = None, set: Values = None
    ) -> DeltaMergeBuilder:
        """Set columns of the table's rows that a row of the source matches.

        Parameters
        ----------
        condition
            Which of them: SQL, or a Column, over both sides. All of them by default.
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
        """Set all columns of the table's rows that match to those of the source of the same names.

        Parameters
        ----------
        condition
            Which of them: SQL, or a Column, over both sides. All of them by default.

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
        """Delete the table's rows that a row of the source matches.

        Parameters
        ----------
        condition
            Which of them: SQL, or a Column, over both sides. All of them by default.

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
            Which of them: SQL, or a Column, over the source. All of them by default.
        values
            The values, SQL or Columns over the source, by the name of the table's column. Columns
            that are left out get their default, or null.

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
        """Insert rows of the source that match no row, each column from that of the same name.

        Parameters
        ----------
        condition
            Which of them: SQL, or a Column, over the source. All of them by default.

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
        """Set columns of the table's rows that no row of the source matches.

        Parameters
        ----------
        condition
            Which of them: SQL, or a Column, over the table. All of them by default.
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
        """Delete the table's rows that no row of the source matches.

        Parameters
        ----------
        condition
            Which of them: SQL, or a Column, over the table. All of them by default.

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
        """Let the table get columns and fields of the source that it lacks.

        They are those that a clause assigns to a column of the same name, which a clause for all
        columns does with each. They are added in the commit of the rows, and null in other rows.
        The setting ``spark.deltaic.schema.autoMerge.enabled`` does so for all merges of a session.

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
        return self._copy(self._clauses, evolves_schema=True)

    def execute(self) -> DataFrame:
        """Merge, in one commit. A merge that changes no row makes no version.

        Returns
        -------
        DataFrame
            One row: ``num_affected_rows`` bigint, ``num_updated_rows`` bigint,
            ``num_deleted_rows`` bigint, ``num_inserted_rows`` bigint.

        Raises
        ------
        InvalidArgumentError
            If there is no clause, or a clause without a condition before another about the same
            rows.
        ConcurrentModificationError
            If another writer committed meanwhile and the two do not go together. Nothing was
            changed then.
        TableStateError
            If the table is append-only, and the merge does more than insert.

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
        )

    def _with(
        self, kind: str, condition: Condition, values: Assignments | None = None
    ) -> DeltaMergeBuilder:
        # Importing this module must not need pyspark: the package is also read where there is none.
        from deltaic.spark.session_api import ClauseKind, MergeClause

        when = optional_column("condition", condition)
        clause = MergeClause(ClauseKind[kind], when, values)
        return self._copy((*self._clauses, clause), self._evolves_schema)

    def _copy(self, clauses: Sequence[MergeClause], evolves_schema: bool) -> DeltaMergeBuilder:
        return DeltaMergeBuilder(
            self._target, self._source, self._condition, self._api, clauses, evolves_schema
        )

    def _require_reachable_clauses(self) -> None:
        if not self._clauses:
            raise error(
                "DELTAIC_INVALID_ARGUMENT",
                argument="merge",
                value="without a clause",
                reason="it takes at least one, such as whenMatchedUpdateAll()",
            )
        ends: dict[str, ClauseKind] = {}
        for clause in self._clauses:
            group = clause.kind.group
            if group in ends:
                raise error(
                    "DELTAIC_INVALID_ARGUMENT",
                    argument=ends[group].method,
                    value="without a condition",
                    reason=f"another {group} clause follows, which no row would reach",
                )
            if clause.condition is None:
                ends[group] = clause.kind
