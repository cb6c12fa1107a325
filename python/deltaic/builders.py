"""Builders of table definitions. Names and signatures are those of delta-spark.

In the examples, `path` and ``sales.orders`` are tables of one file with the ids 0 to 9.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from deltaic.arguments import wrong, wrong_type
from deltaic.exceptions import error
from deltaic.spark.connect.kind import require_session
from deltaic.spark.session_api import session_api

if TYPE_CHECKING:
    from pyspark.sql import SparkSession
    from pyspark.sql.types import DataType, StructField, StructType
    from typing_extensions import Self

__all__ = ["DefinitionBuilder", "IdentityGenerator"]


@dataclass(frozen=True)
class IdentityGenerator:
    """The values that an identity column generates: `start`, and every `step` from there.

    Attributes
    ----------
    start
        The first value.
    step
        The difference between consecutive values; negative to count down.

    Notes
    -----
    Protocol § Identity Columns.

    Examples
    --------
    >>> IdentityGenerator(start=10, step=5)
    IdentityGenerator(start=10, step=5)
    """

    start: int = 1
    step: int = 1


class DefinitionBuilder:
    """The definition of a table to create or replace, which `DeltaTableBuilder` executes.

    Each method returns the builder.
    """

    def __init__(self, spark: SparkSession | None, verb: str) -> None:
        from pyspark.sql import SparkSession

        if spark is not None:
            require_session(spark)
        self._spark = SparkSession.builder.getOrCreate() if spark is None else spark
        self._verb = verb
        self._name: str | None = None
        self._location: str | None = None
        self._comment: str | None = None
        self._columns: list[dict[str, Any]] = []
        self._partition_columns: list[str] | None = None
        self._clustering_columns: list[str] | None = None
        self._properties: dict[str, str] = {}

    def tableName(self, identifier: str) -> Self:
        """Name the table in the catalog.

        Parameters
        ----------
        identifier
            Such as ``sales.orders``, or ``delta.`/data/t` `` for a table that is identified by its
            path.

        Returns
        -------
        DeltaTableBuilder

        Examples
        --------
        >>> builder = DeltaTable.create(spark).tableName("sales.returns")
        """
        self._name = _text("identifier", identifier)
        return self

    def location(self, location: str) -> Self:
        """Set the location of the table's files.

        Parameters
        ----------
        location
            A path; without a table name, the path identifies the table.

        Returns
        -------
        DeltaTableBuilder

        Examples
        --------
        >>> builder = DeltaTable.create(spark).location("/data/t")
        """
        self._location = _text("location", location)
        return self

    def comment(self, comment: str) -> Self:
        """Describe the table.

        Parameters
        ----------
        comment
            Any string.

        Returns
        -------
        DeltaTableBuilder

        Examples
        --------
        >>> builder = DeltaTable.create(spark).comment("what was returned")
        """
        self._comment = _text("comment", comment, may_be_empty=True)
        return self

    def addColumn(
        self,
        colName: str,
        dataType: str | DataType,
        nullable: bool = True,
        generatedAlwaysAs: str | IdentityGenerator | None = None,
        generatedByDefaultAs: IdentityGenerator | None = None,
        comment: str | None = None,
    ) -> Self:
        """Add a column at the end.

        Parameters
        ----------
        colName
            Its name.
        dataType
            A type, or SQL for one, such as ``ARRAY<INT>``.
        nullable
            Whether the column may be null.
        generatedAlwaysAs
            The SQL expression of a generated column, or the generator of an identity column whose
            values are always generated.
        generatedByDefaultAs
            The generator of an identity column whose values are generated unless they are given.
        comment
            A description of the column.

        Returns
        -------
        DeltaTableBuilder

        Raises
        ------
        InvalidArgumentError
            If an argument has a wrong type, or `generatedAlwaysAs` and `generatedByDefaultAs` are
            both given.

        Notes
        -----
        Protocol § Generated Columns, Protocol § Identity Columns.

        Examples
        --------
        >>> builder = DeltaTable.create(spark).addColumn("id", "BIGINT", nullable=False)
        >>> builder = builder.addColumn("day", "DATE", comment="of the order")
        >>> builder = builder.addColumn("year", "INT", generatedAlwaysAs="year(day)")
        >>> numbers = IdentityGenerator(start=5, step=5)
        >>> builder = builder.addColumn("n", "BIGINT", generatedByDefaultAs=numbers)
        """
        if not isinstance(nullable, bool):
            raise wrong_type("nullable", nullable, "it must be bool")
        column: dict[str, Any] = {
            "name": _text("colName", colName),
            **_type(dataType),
            "nullable": nullable,
        }
        if comment is not None:
            column["comment"] = _text("comment", comment, may_be_empty=True)
        if generatedAlwaysAs is not None and generatedByDefaultAs is not None:
            reason = "generatedByDefaultAs and generatedAlwaysAs cannot both be set"
            raise wrong("generatedByDefaultAs", generatedByDefaultAs, reason)
        if isinstance(generatedAlwaysAs, str):
            column["generatedAs"] = generatedAlwaysAs
        elif generatedAlwaysAs is not None:
            column["identity"] = _identity("generatedAlwaysAs", generatedAlwaysAs, False)
        if generatedByDefaultAs is not None:
            column["identity"] = _identity("generatedByDefaultAs", generatedByDefaultAs, True)
        self._columns.append(column)
        return self

    def addColumns(self, cols: StructType | Sequence[StructField]) -> Self:
        """Add columns at the end.

        Parameters
        ----------
        cols
            A schema, or a list of its fields; comments, defaults and other metadata are retained.

        Returns
        -------
        DeltaTableBuilder

        Raises
        ------
        InvalidArgumentError
            If it is neither.

        Examples
        --------
        >>> from pyspark.sql.types import LongType, StructType
        >>> builder = DeltaTable.create(spark).addColumns(StructType().add("id", LongType()))
        """
        from pyspark.sql.types import StructField, StructType

        if not isinstance(cols, (StructType, list, tuple)) or not all(
            isinstance(column, StructField) for column in cols
        ):
            raise wrong_type("cols", cols, "it must be StructType or a list of StructField")
        self._columns += [{"name": column.name, "field": column.json()} for column in cols]
        return self

    def partitionedBy(self, *cols: str | Iterable[str]) -> Self:
        """Partition the table.

        Parameters
        ----------
        *cols
            Names of columns, or one list of them.

        Returns
        -------
        DeltaTableBuilder

        Raises
        ------
        InvalidArgumentError
            If a name is not a string.

        Notes
        -----
        Protocol § Partition Value Serialization.

        Examples
        --------
        >>> builder = DeltaTable.create(spark).addColumn("p", "STRING").partitionedBy("p")
        """
        self._partition_columns = _names("cols", cols)
        return self

    def clusterBy(self, *cols: str | Iterable[str]) -> Self:
        """Cluster the table.

        Parameters
        ----------
        *cols
            Up to four names of columns, or one list of them; nested fields are separated by dots.

        Returns
        -------
        DeltaTableBuilder

        Raises
        ------
        InvalidArgumentError
            If a name is not a string.

        Notes
        -----
        Protocol § Clustered Table.

        Examples
        --------
        >>> builder = DeltaTable.create(spark).addColumn("n", "INT").clusterBy("n")
        """
        self._clustering_columns = _names("cols", cols)
        return self

    def property(self, key: str, value: str) -> Self:
        """Set a table property.

        Parameters
        ----------
        key
            Its name.
        value
            Its value.

        Returns
        -------
        DeltaTableBuilder

        Raises
        ------
        InvalidArgumentError
            If one of them is not a string.

        Examples
        --------
        >>> builder = DeltaTable.create(spark).property("delta.appendOnly", "true")
        """
        self._properties[_text("key", key)] = _text("value", value, may_be_empty=True)
        return self

    def _create(self, method: str) -> str | None:
        """Create or replace the table; return its location if one was specified."""
        if self._name is None and self._location is None:
            raise error(
                "DELTAIC_TABLE_BUILDER_INVALID",
                what="A table",
                reason="Table name or location has to be specified, by tableName() or location()",
            )
        return session_api(self._spark, method).create_table(
            {
                "verb": self._verb,
                "name": self._name,
                "location": self._location,
                "columns": self._columns,
                "partitionedBy": self._partition_columns or [],
                "clusterBy": self._clustering_columns or [],
                "comment": self._comment,
                "properties": self._properties,
            }
        )


def _type(data_type: object) -> dict[str, str]:
    from pyspark.sql.types import DataType

    if isinstance(data_type, DataType):
        return {"typeJson": data_type.json()}
    if not isinstance(data_type, str):
        raise wrong_type("dataType", data_type, "it must be str or DataType")
    return {"typeSql": _text("dataType", data_type)}


def _identity(argument: str, generator: object, allows_explicit_insert: bool) -> dict[str, Any]:
    if not isinstance(generator, IdentityGenerator):
        sql = "" if allows_explicit_insert else "str or "
        raise wrong_type(argument, generator, f"it must be {sql}IdentityGenerator")
    if generator.step == 0:
        reason = "column identity generation requires step to be non-zero"
        raise wrong(argument, generator, reason)
    return {
        "start": generator.start,
        "step": generator.step,
        "allowExplicitInsert": allows_explicit_insert,
    }


def _names(argument: str, given: Sequence[str | Iterable[str]]) -> list[str]:
    is_list = len(given) == 1 and isinstance(given[0], Iterable) and not isinstance(given[0], str)
    return [_text(argument, name) for name in (given[0] if is_list else given)]


def _text(argument: str, value: object, *, may_be_empty: bool = False) -> str:
    if not isinstance(value, str):
        raise wrong_type(argument, value, "it must be str")
    if not (value or may_be_empty):
        raise wrong(argument, value, "it must be str that is not empty")
    return value
