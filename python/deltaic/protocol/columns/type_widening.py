"""Type changes that do not require rewriting files (Protocol § Type Widening)."""

from __future__ import annotations

import re
from collections.abc import Sequence

from deltaic.protocol import features
from deltaic.protocol.actions import Metadata, Protocol
from deltaic.protocol.schema import PrimitiveType

#: The key of column metadata for the history of a column's type.
TYPE_CHANGES = "delta.typeChanges"
PROPERTY = "delta.enableTypeWidening"

_DECIMAL = re.compile(r"decimal\((\d+),\s*(-?\d+)\)")
_WHOLE_NUMBERS = ("byte", "short", "integer", "long")
_WIDER = {
    "byte": {"short", "integer", "long", "double"},
    "short": {"integer", "long", "double"},
    "integer": {"long", "double"},
    "float": {"double"},
    "date": {"timestamp_ntz"},
}
#: Integer types that Parquet stores as one type.
_STORED_ALIKE = {("byte", "short"), ("byte", "integer"), ("short", "integer")}
#: The number of digits that a decimal needs to hold an integer type.
_DIGITS = {"byte": 10, "short": 10, "integer": 10, "long": 20}


def is_enabled(protocol: Protocol, metadata: Metadata) -> bool:
    """Whether writers may widen types."""
    return features.is_enabled(protocol, metadata, "typeWidening")


def widens(older: PrimitiveType, newer: PrimitiveType) -> bool:
    """Whether the protocol lists the type change as one that readers support."""
    if newer.name in _WIDER.get(older.name, ()):
        return True
    to = _decimal(newer)
    if to is None:
        return False
    before = _decimal(older)
    if before is None:
        digits = _DIGITS.get(older.name)
        if digits is None:
            return False
        before = (digits, 0)
    whole, scale = before[0] - before[1], before[1]
    return to[1] >= scale and to[0] - to[1] >= whole


def is_stored_alike(older: PrimitiveType, newer: PrimitiveType) -> bool:
    """Whether both types have the same representation in files."""
    return (older.name, newer.name) in _STORED_ALIKE


def widens_in_iceberg(older: PrimitiveType, newer: PrimitiveType) -> bool:
    """Whether Iceberg also supports the type change."""
    if older.name in _WHOLE_NUMBERS and newer.name in _WHOLE_NUMBERS:
        return widens(older, newer)
    if (older.name, newer.name) == ("float", "double"):
        return True
    before, to = _decimal(older), _decimal(newer)
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


def _decimal(data_type: PrimitiveType) -> tuple[int, int] | None:
    found = _DECIMAL.fullmatch(data_type.name)
    return None if found is None else (int(found[1]), int(found[2]))
