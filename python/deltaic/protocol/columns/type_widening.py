"""Type changes that do not require rewriting files (Protocol § Type Widening).

``resources/type-changes.json`` has the changes of each type, the number of digits that a decimal
needs to hold an integer type, and the integer types that Parquet stores as one type.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from deltaic.protocol import features
from deltaic.protocol.actions import Metadata, Protocol
from deltaic.protocol.schema import PrimitiveType, map_fields, write_schema
from deltaic.resources import load_json

#: The key of column metadata for the history of a column's type.
TYPE_CHANGES = "delta.typeChanges"
PROPERTY = "delta.enableTypeWidening"

_WHOLE_NUMBERS = ("byte", "short", "integer", "long")
_CHANGES: Mapping[str, Mapping[str, Any]] = load_json("type-changes.json")


def is_enabled(protocol: Protocol, metadata: Metadata) -> bool:
    """Whether writers may widen types."""
    return features.is_enabled(protocol, metadata, "typeWidening")


def without_type_changes(metadata: Metadata) -> Metadata:
    """Return the metadata of a table whose files have the types of its columns."""
    schema = map_fields(metadata.schema, lambda column: column.without_entries(TYPE_CHANGES))
    if schema == metadata.schema:
        return metadata
    return replace(metadata, schema_string=write_schema(schema))


def widens(older: PrimitiveType, newer: PrimitiveType) -> bool:
    """Whether the protocol lists the type change as one that readers support."""
    to = newer.decimal
    if to is None:
        return newer.name in _CHANGES["wider"].get(older.name, ())
    precision, scale = older.decimal or (_CHANGES["decimalDigits"].get(older.name), 0)
    if precision is None:
        return False
    return to[1] >= scale and to[0] - to[1] >= precision - scale


def is_stored_alike(older: PrimitiveType, newer: PrimitiveType) -> bool:
    """Whether both types have the same representation in files."""
    return newer.name in _CHANGES["storedAlike"].get(older.name, ())


def widens_in_iceberg(older: PrimitiveType, newer: PrimitiveType) -> bool:
    """Whether Iceberg also supports the type change."""
    if older.name in _WHOLE_NUMBERS and newer.name in _WHOLE_NUMBERS:
        return widens(older, newer)
    if (older.name, newer.name) == ("float", "double"):
        return True
    before, to = older.decimal, newer.decimal
    return before is not None and to is not None and before[1] == to[1] and before[0] <= to[0]


def type_change(older: PrimitiveType, newer: PrimitiveType, below: Sequence[str]) -> dict[str, str]:
    """Return the entry of a column's type changes for a wider type.

    Parameters
    ----------
    below
        The path from the column to the changed type; empty for the column's own type.
    """
    entry = {"toType": newer.name, "fromType": older.name}
    if below:
        entry["fieldPath"] = ".".join(below)
    return entry
