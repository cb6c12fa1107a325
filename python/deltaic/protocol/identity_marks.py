"""How far identity columns have been counted (Protocol § Identity Columns)."""

from __future__ import annotations

from dataclasses import replace

from deltaic.protocol.actions import Metadata
from deltaic.protocol.schema import Field, map_fields, parse_schema, write_schema

#: Column metadata: the value furthest from the start that any commit holds.
HIGH_WATER_MARK = "delta.identity.highWaterMark"


def differ_in_marks_alone(before: Metadata, after: Metadata) -> bool:
    """Whether two definitions of a table are the same but for how far its identity columns are."""
    return _without_marks(before) == _without_marks(after)


def moved_marks(table: str, before: Metadata, after: Metadata) -> frozenset[str]:
    """Return the identity columns that are counted otherwise in another definition of a table."""
    return frozenset(name for name, _ in _marks(table, before) ^ _marks(table, after))


def _marks(table: str, metadata: Metadata) -> frozenset[tuple[str, int]]:
    return frozenset(
        (column.name, column.metadata[HIGH_WATER_MARK])
        for column in parse_schema(metadata.schema_string, table).fields
        if HIGH_WATER_MARK in column.metadata
    )


def _without_marks(metadata: Metadata) -> Metadata:
    schema = map_fields(parse_schema(metadata.schema_string, metadata.id), _unmarked)
    return replace(metadata, schema_string=write_schema(schema))


def _unmarked(column: Field) -> Field:
    return column.with_entry(HIGH_WATER_MARK, None)
