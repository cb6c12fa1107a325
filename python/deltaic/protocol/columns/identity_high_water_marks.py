"""The high-water marks of identity columns (Protocol § Identity Columns)."""

from __future__ import annotations

from dataclasses import replace

from deltaic.protocol.actions import Metadata
from deltaic.protocol.schema import Field, map_fields, parse_schema, write_schema

#: The key of column metadata for the value furthest from the start in any commit.
HIGH_WATER_MARK = "delta.identity.highWaterMark"


def differ_only_in_high_water_marks(before: Metadata, after: Metadata) -> bool:
    """Whether two definitions of a table differ only in identity high-water marks, if at all."""
    return _without_high_water_marks(before) == _without_high_water_marks(after)


def changed_high_water_marks(table: str, before: Metadata, after: Metadata) -> frozenset[str]:
    """Return the identity columns whose high-water marks differ between two definitions."""
    changed = _high_water_marks(table, before) ^ _high_water_marks(table, after)
    return frozenset(name for name, _ in changed)


def _high_water_marks(table: str, metadata: Metadata) -> frozenset[tuple[str, int]]:
    return frozenset(
        (column.name, column.metadata[HIGH_WATER_MARK])
        for column in parse_schema(metadata.schema_string, table).fields
        if HIGH_WATER_MARK in column.metadata
    )


def _without_high_water_marks(metadata: Metadata) -> Metadata:
    schema = map_fields(metadata.schema, _without_high_water_mark)
    return replace(metadata, schema_string=write_schema(schema))


def _without_high_water_mark(column: Field) -> Field:
    return column.with_entry(HIGH_WATER_MARK, None)
