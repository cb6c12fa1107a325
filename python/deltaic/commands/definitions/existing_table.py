"""Whether a CREATE TABLE matches the existing table."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TypeAlias

from deltaic.commands.definitions.create_statement import CreateTable
from deltaic.commands.definitions.definition import stored_column
from deltaic.commit.ports import TableSnapshot
from deltaic.exceptions import error
from deltaic.protocol.columns import clustering, identity
from deltaic.protocol.columns.char_varchar import CHAR_VARCHAR_TYPE, CHAR_VARCHAR_TYPE_KEY
from deltaic.protocol.columns.column_expressions import DEFAULT, GENERATED
from deltaic.protocol.columns.schema_checks import same_names
from deltaic.protocol.columns.schema_edits import path_text
from deltaic.protocol.constraints import find_constraint
from deltaic.protocol.properties import check_properties, explicit_value
from deltaic.protocol.schema import Field, StructType, map_fields, parse_schema, type_text, walk

#: What is compared, the value in the table, and the value in the statement.
_Difference: TypeAlias = tuple[str, str | Sequence[str] | None, str | Sequence[str]]

#: The keys of a column's metadata that define generated, default and identity values.
_COMPUTED = (
    GENERATED,
    DEFAULT,
    identity.START,
    identity.STEP,
    "delta.identity.allowExplicitInsert",
)


def require_matching_table(
    statement: CreateTable, current: TableSnapshot, *, any_properties: bool
) -> None:
    """Check that an existing table matches what the statement specifies.

    Raises
    ------
    InvalidArgumentError
        If the table does not match.
    """
    for what, is_now, requested in _differences(statement, current, any_properties):
        raise error(
            "DELTAIC_CREATE_MISMATCH",
            table=statement.table,
            version=current.version,
            what=what,
            current=_shown(is_now),
            requested=_shown(requested),
        )


def clustered_by(table: TableSnapshot) -> tuple[tuple[str, ...], ...]:
    """Return the columns that a table is clustered by, if any."""
    metadata = table.metadata
    return clustering.clustering_columns(metadata.id, table.protocol, metadata, table.domains)


def _differences(
    statement: CreateTable, current: TableSnapshot, any_properties: bool
) -> Iterator[_Difference]:
    metadata = current.metadata
    empty = '{"type":"struct","fields":[]}'
    schema = parse_schema(statement.definition.schema_string or empty, statement.table)
    current_schema = parse_schema(metadata.schema_string, statement.table)
    if schema.fields:
        requested = map_fields(schema, stored_column)
        current_columns, columns = map(_columns_with_types, (current_schema, requested))
        if not same_names(current_columns, columns):
            yield "schema", current_columns, columns
        for now, wanted in zip(current_schema.fields, requested.fields, strict=True):
            yield from _computed_differently(now, wanted)
    if (schema.fields or statement.definition.partition_by) and not same_names(
        statement.definition.partition_by, metadata.partition_columns
    ):
        yield "partitioning", metadata.partition_columns, statement.definition.partition_by
    if statement.definition.cluster_by is not None:
        current_clustering = [path_text(path) for path in clustered_by(current)]
        clustering_columns = [path_text(path) for path in statement.definition.cluster_by]
        if not same_names(current_clustering, clustering_columns):
            yield "clustering", current_clustering, clustering_columns
    configuration = metadata.configuration
    specified = check_properties(
        statement.table,
        {**statement.copied_properties, **statement.definition.properties},
        any_name=any_properties,
        copied=statement.copied_properties,
    ).configuration
    for name, value in specified.items():
        is_now = explicit_value(configuration, name)
        if is_now != value:
            yield f"table property {name}", is_now, value
    for name, condition in statement.definition.constraints.items():
        is_now = configuration.get(find_constraint(configuration, name) or "")
        if is_now != condition:
            yield f"constraint {name}", is_now, condition


def _computed_differently(now: Field, wanted: Field) -> Iterator[_Difference]:
    for key in _COMPUTED:
        value = wanted.metadata.get(key)
        present = now.metadata.get(key)
        # Another engine stores the expression without the cast to the type of the column.
        is_uncast = key == GENERATED and str(value).startswith(f"CAST(({present}) AS ")
        if value is not None and present != value and not is_uncast:
            what = f"{key} of column {now.name}"
            yield what, None if present is None else str(present), str(value)


def _columns_with_types(schema: StructType) -> list[str]:
    """Return columns with their types, without comments and other metadata."""
    return [
        f"{f.name} {type_text(f.type, nulls=True)}{_lengths(f)}{'' if f.nullable else ' NOT NULL'}"
        for f in schema.fields
    ]


def _lengths(column: Field) -> str:
    """Return the CHAR and VARCHAR types in a column.

    The metadata of the column holds them or, for a field that was added later, the field's own.
    """
    declared = [f.metadata.get(CHAR_VARCHAR_TYPE_KEY) for _, f in walk(StructType((column,)))]
    types = [match[0] for sql in declared for match in CHAR_VARCHAR_TYPE.finditer(str(sql).lower())]
    return f" with strings of {', '.join(sorted(types))}" if types else ""


def _shown(value: str | Sequence[str] | None) -> str:
    if value is None:
        return "unset"
    return value if isinstance(value, str) else f"({', '.join(value)})"
