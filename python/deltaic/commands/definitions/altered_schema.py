"""A table's definition with other columns, and the checks of every change of columns."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

from deltaic.commit.ports import TableSnapshot
from deltaic.exceptions import error
from deltaic.protocol import row_tracking
from deltaic.protocol.actions import Metadata
from deltaic.protocol.change_data import check_feed_columns
from deltaic.protocol.columns.char_varchar import CHAR_VARCHAR_TYPE, CHAR_VARCHAR_TYPE_KEY
from deltaic.protocol.columns.clustering import clustering_columns
from deltaic.protocol.columns.column_mapping import PHYSICAL_NAME, is_mapped, with_new_columns
from deltaic.protocol.columns.schema_checks import check_table_schema
from deltaic.protocol.columns.schema_edits import path_text
from deltaic.protocol.schema import Field, StructType, type_text, write_schema


def with_schema(
    table: str,
    before: Metadata,
    schema: StructType,
    *,
    partition_columns: Sequence[str] | None = None,
    configuration: Mapping[str, str] | None = None,
) -> Metadata:
    """Return the definition with another schema, with ids and physical names for new columns.

    Raises
    ------
    InvalidArgumentError
        If a table cannot have these columns.
    """
    partitions = before.partition_columns if partition_columns is None else partition_columns
    properties = before.configuration if configuration is None else configuration
    current = before.schema
    check_table_schema(table, schema, partitions, any_names=is_mapped(properties), before=current)
    check_feed_columns(table, schema, properties)
    row_tracking.check_columns(table, schema, properties)
    _require_same_nested_type(table, current, schema)
    return with_new_columns(
        replace(
            before,
            schema_string=write_schema(schema),
            partition_columns=tuple(partitions),
            configuration=properties,
        )
    )


def _require_same_nested_type(table: str, before: StructType, after: StructType) -> None:
    """Refuse to change the type of a column that has CHAR or VARCHAR within it.

    The column's metadata holds its whole type. Writers cast values to that type, and would omit
    fields that it does not have.
    """
    types = {_name_in_files(column): type_text(column.type) for column in before.fields}
    for column in after.fields:
        declared = column.metadata.get(CHAR_VARCHAR_TYPE_KEY)
        if declared is None or CHAR_VARCHAR_TYPE.fullmatch(declared):
            continue
        now = type_text(column.type)
        if types.get(_name_in_files(column), now) != now:
            raise error(
                "DELTAIC_CANNOT_ALTER_COLUMN",
                table=table,
                column=path_text([column.name]),
                reason=f"it contains CHAR or VARCHAR, declared by its whole type, {declared}",
                advice="Declare it with STRING instead of CHAR and VARCHAR in ALTER TABLE ..."
                " REPLACE COLUMNS first, which removes the length limits.",
            )


def _name_in_files(column: Field) -> str:
    name: str = column.metadata.get(PHYSICAL_NAME, column.name)
    return name


def require_mapping(table: str, current: TableSnapshot, change: str) -> None:
    """Refuse a change that is possible only if files name columns by physical names.

    Raises
    ------
    InvalidArgumentError
        If the table has no column mapping (Protocol § Column Mapping).
    """
    if not is_mapped(current.metadata.configuration):
        raise error(
            "DELTAIC_COLUMN_MAPPING_NEEDED", table=table, version=current.version, change=change
        )


def require_droppable(table: str, current: TableSnapshot, paths: Sequence[Sequence[str]]) -> None:
    """Refuse to drop partition and clustering columns.

    Raises
    ------
    InvalidArgumentError
        If the table is partitioned or clustered by one of the columns.
    """
    partitions = [(name,) for name in current.metadata.partition_columns]
    clustered = clustering_columns(table, current.protocol, current.metadata, current.domains)
    for path in paths:
        if tuple(path) in partitions:
            reason, advice = "partitioned by it", "Write the rows to a new table without it."
        elif any(column[: len(path)] == tuple(path) for column in clustered):
            reason = "clustered by it"
            advice = "Choose other columns first with ALTER TABLE ... CLUSTER BY, or none."
        else:
            continue
        raise error(
            "DELTAIC_CANNOT_ALTER_COLUMN",
            table=table,
            column=path_text(path),
            reason=f"the table is {reason}",
            advice=advice,
        )
