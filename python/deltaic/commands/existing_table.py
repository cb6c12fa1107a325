"""Whether a CREATE TABLE is true of the table that is there already."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, TypeAlias

from deltaic.commands.definition import stored_column
from deltaic.commit.ports import TableHeader
from deltaic.exceptions import error
from deltaic.protocol import clustering, identity
from deltaic.protocol.column_expressions import DEFAULT, GENERATED
from deltaic.protocol.constraints import find_constraint
from deltaic.protocol.limited_texts import LIMITED_TEXT, LIMITED_TEXT_KEY
from deltaic.protocol.properties import check_properties, set_value
from deltaic.protocol.schema import Field, StructType, map_fields, parse_schema, type_text, walk
from deltaic.protocol.schema_checks import same_names
from deltaic.protocol.schema_edits import path_text

if TYPE_CHECKING:
    from deltaic.commands.create_table import CreateTable

#: What is compared, what the table has and what the statement says.
_Difference: TypeAlias = tuple[str, str | Sequence[str] | None, str | Sequence[str]]

#: What a column's metadata say of the values that are computed for it.
_COMPUTED = (
    GENERATED,
    DEFAULT,
    identity.START,
    identity.STEP,
    "delta.identity.allowExplicitInsert",
)


def require_true_of(statement: CreateTable, current: TableHeader, *, any_properties: bool) -> None:
    """Check what the statement says of a table that is there, but not what it leaves out.

    Raises
    ------
    InvalidArgumentError
        If something else is true of the table.
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


def clustered_by(table: TableHeader) -> tuple[tuple[str, ...], ...]:
    """Return the columns that a table is clustered by, if any."""
    schema = parse_schema(table.metadata.schema_string, table.metadata.id)
    return clustering.clustering_columns(table.metadata.id, schema, table.domains)


def _differences(
    statement: CreateTable, current: TableHeader, any_properties: bool
) -> Iterator[_Difference]:
    metadata = current.metadata
    empty = '{"type":"struct","fields":[]}'
    schema = parse_schema(statement.schema_string or empty, statement.table)
    known = parse_schema(metadata.schema_string, statement.table)
    if schema.fields:
        requested = map_fields(schema, stored_column)
        if not same_names(_outline(known), _outline(requested)):
            yield "schema", _outline(known), _outline(requested)
        for now, asked in zip(known.fields, requested.fields, strict=True):
            yield from _computed_otherwise(now, asked)
    states_partitioning = bool(schema.fields or statement.partition_by)
    if states_partitioning and not same_names(statement.partition_by, metadata.partition_columns):
        yield "partitioning", metadata.partition_columns, statement.partition_by
    if statement.cluster_by is not None:
        columns = [path_text(path) for path in clustered_by(current)]
        asked_columns = [path_text(path) for path in statement.cluster_by]
        if not same_names(columns, asked_columns):
            yield "clustering", columns, asked_columns
    has = metadata.configuration
    stated = check_properties(
        statement.table,
        {**statement.copied_properties, **statement.properties},
        any_name=any_properties,
        copied=statement.copied_properties,
    ).configuration
    for name, value in stated.items():
        is_now = set_value(has, name)
        if is_now != value:
            yield f"table property {name}", is_now, value
    for name, condition in statement.constraints.items():
        is_now = has.get(find_constraint(has, name) or "")
        if is_now != condition:
            yield f"constraint {name}", is_now, condition


def _computed_otherwise(now: Field, asked: Field) -> Iterator[_Difference]:
    for key in _COMPUTED:
        value = asked.metadata.get(key)
        present = now.metadata.get(key)
        # Of a table that another engine made, without the cast to its column's type.
        as_given = key == GENERATED and str(value).startswith(f"CAST(({present}) AS ")
        if value is not None and present != value and not as_given:
            what = f"{key} of column {now.name}"
            yield what, None if present is None else str(present), str(value)


def _outline(schema: StructType) -> list[str]:
    """Return columns with their types, without comments and other metadata."""
    return [
        f"{f.name} {type_text(f.type, nulls=True)}{_limits(f)}{'' if f.nullable else ' NOT NULL'}"
        for f in schema.fields
    ]


def _limits(column: Field) -> str:
    """Return the types of the texts of limited length in a column.

    The metadata of the column states them or, of a field that came later, the field's own.
    """
    stated = [f.metadata.get(LIMITED_TEXT_KEY) for _, f in walk(StructType((column,)))]
    types = [found[0] for text in stated for found in LIMITED_TEXT.finditer(str(text).lower())]
    return f" with texts of {', '.join(sorted(types))}" if types else ""


def _shown(value: str | Sequence[str] | None) -> str:
    if value is None:
        return "unset"
    return value if isinstance(value, str) else f"({', '.join(value)})"
