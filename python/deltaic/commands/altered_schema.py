"""A table's definition with other columns: what every change of columns has to keep true."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

from deltaic.commit.ports import TableHeader
from deltaic.exceptions import error
from deltaic.protocol.actions import Metadata
from deltaic.protocol.change_data import check_feed_columns
from deltaic.protocol.clustering import clustering_columns
from deltaic.protocol.column_mapping import PHYSICAL_NAME, is_mapped, with_new_columns
from deltaic.protocol.limited_texts import LIMITED_TEXT, LIMITED_TEXT_KEY
from deltaic.protocol.schema import Field, StructType, parse_schema, type_text, write_schema
from deltaic.protocol.schema_checks import check_table_schema
from deltaic.protocol.schema_edits import path_text


def with_schema(
    table: str,
    before: Metadata,
    schema: StructType,
    *,
    partition_columns: Sequence[str] | None = None,
    configuration: Mapping[str, str] | None = None,
) -> Metadata:
    """Return the definition with another schema; new columns get ids and physical names.

    Raises
    ------
    InvalidArgumentError
        If a table cannot have these columns.
    """
    partitions = before.partition_columns if partition_columns is None else partition_columns
    properties = before.configuration if configuration is None else configuration
    known = parse_schema(before.schema_string, table)
    check_table_schema(table, schema, partitions, any_names=is_mapped(properties), before=known)
    check_feed_columns(table, schema, properties)
    _require_stated_limits(table, known, schema)
    return with_new_columns(
        replace(
            before,
            schema_string=write_schema(schema),
            partition_columns=tuple(partitions),
            configuration=properties,
        )
    )


def _require_stated_limits(table: str, before: StructType, after: StructType) -> None:
    """Refuse another type of a column where limits of texts within it are stated by its whole type.

    Writers cut values to that type, and would leave out fields that it does not name.
    """
    types = {_name_in_files(column): type_text(column.type) for column in before.fields}
    for column in after.fields:
        stated = column.metadata.get(LIMITED_TEXT_KEY)
        if stated is None or LIMITED_TEXT.fullmatch(stated):
            continue
        now = type_text(column.type)
        if types.get(_name_in_files(column), now) != now:
            raise error(
                "DELTAIC_COLUMN_KEPT",
                table=table,
                column=path_text([column.name]),
                reason=f"the limits of its texts are stated by its whole type, {stated}",
                advice="State it with STRING for all its texts in ALTER TABLE ... REPLACE COLUMNS"
                " first, which lifts the limits.",
            )


def _name_in_files(column: Field) -> str:
    name: str = column.metadata.get(PHYSICAL_NAME, column.name)
    return name


def require_mapping(table: str, current: TableHeader, change: str) -> None:
    """Refuse a change that files can only follow if they know columns by physical names.

    Raises
    ------
    InvalidArgumentError
        If the table has no column mapping (Protocol § Column Mapping).
    """
    if not is_mapped(current.metadata.configuration):
        raise error(
            "DELTAIC_COLUMN_MAPPING_NEEDED", table=table, version=current.version, change=change
        )


def require_droppable(
    table: str, current: TableHeader, schema: StructType, paths: Sequence[Sequence[str]]
) -> None:
    """Refuse to drop what says where rows lie.

    Raises
    ------
    InvalidArgumentError
        If the table is partitioned or clustered by one of the columns.
    """
    partitions = [(name,) for name in current.metadata.partition_columns]
    clustered = clustering_columns(table, schema, current.domains)
    for path in paths:
        if tuple(path) in partitions:
            reason, advice = "partitioned by it", "Write the rows to a new table without it."
        elif any(column[: len(path)] == tuple(path) for column in clustered):
            reason = "clustered by it"
            advice = "Choose other columns first with ALTER TABLE ... CLUSTER BY, or none."
        else:
            continue
        raise error(
            "DELTAIC_COLUMN_KEPT",
            table=table,
            column=path_text(path),
            reason=f"the table is {reason}",
            advice=advice,
        )
