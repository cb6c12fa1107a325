"""Columns in the ``operationParameters`` of commits, as delta-spark writes them."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any

from deltaic.protocol.columns.schema_edits import path_text
from deltaic.protocol.schema import (
    ArrayType,
    DataType,
    Field,
    MapType,
    PrimitiveType,
    UserDefinedType,
)


def column_parameter(parent: Sequence[str], column: Field) -> dict[str, Any]:
    """Return a column that is added or changed, as commits record it."""
    return {
        "name": path_text([*parent, column.name]),
        "type": _type_name(column.type),
        "nullable": column.nullable,
        "metadata": dict(column.metadata),
    }


def with_position(parameter: Mapping[str, Any], position: str | None) -> dict[str, Any]:
    """Add the position of the column, if it is specified."""
    return {**parameter, **({} if position is None else {"position": position})}


def compact(value: object) -> str:
    """Return JSON without spaces, as all parameters are written."""
    return json.dumps(value, ensure_ascii=False, separators=(",", ":"))


def _type_name(data_type: DataType) -> str:
    match data_type:
        case PrimitiveType(name=name):
            return name
        case ArrayType():
            return "array"
        case MapType():
            return "map"
        case UserDefinedType():
            return "udt"
        case _:
            return "struct"
