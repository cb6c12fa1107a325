"""Changes of a schema at a path.

A path is a list of names: that of a column, followed by those of nested fields, with `element`,
`key` and `value` for the parts of an array or a map.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import TypeAlias

from deltaic.exceptions import error
from deltaic.protocol.schema import ArrayType, DataType, Field, MapType, StructType

#: Returns the new field; the second argument is the rest of the path, within the field's type.
FieldChange: TypeAlias = Callable[[Field, Sequence[str]], Field]

#: A name that Spark's parser accepts without quotes.
PLAIN_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")


def path_text(path: Sequence[str]) -> str:
    """Return a path as Spark writes the name of a column: names with dots are quoted."""
    return ".".join(f"`{part}`" if "." in part else part for part in path)


def quoted_path(path: Sequence[str]) -> str:
    """Return a path as SQL parses it: names that are not plain identifiers are quoted."""
    return ".".join(
        part if PLAIN_NAME.fullmatch(part) else "`" + part.replace("`", "``") + "`" for part in path
    )


def find_field(schema: StructType, path: Sequence[str]) -> Field | None:
    """Return the field at the end of a path; None if there is none."""
    found: Field | None = None
    inner: DataType | None = schema
    for part in path:
        if isinstance(inner, StructType):
            found = inner.find(part)
            inner = None if found is None else found.type
        else:
            found, inner = None, _part(inner, part)
    return found


def spelled(schema: StructType, path: Sequence[str]) -> tuple[str, ...]:
    """Return a path to an existing field in the schema's own spelling."""
    names = []
    for end in range(1, len(path) + 1):
        field = find_field(schema, path[:end])
        names.append(path[end - 1] if field is None else field.name)
    return tuple(names)


def edit_field(
    table: str, schema: StructType, path: Sequence[str], change: FieldChange
) -> StructType:
    """Apply `change` to the innermost field of a path.

    Raises
    ------
    InvalidArgumentError
        If there is no such field; `table` is named in the message.
    """
    return _edit(schema, path, change, _Missing(table, path))


def edit_struct(
    table: str,
    schema: StructType,
    path: Sequence[str],
    change: Callable[[StructType], StructType],
) -> StructType:
    """Apply `change` to the struct at a path; to the schema if the path is empty.

    Raises
    ------
    InvalidArgumentError
        If there is no such struct.
    """
    if not path:
        return change(schema)
    missing = _Missing(table, path)

    def on_type(data_type: DataType) -> DataType:
        if not isinstance(data_type, StructType):
            raise missing.below(data_type)
        return change(data_type)

    return _edit(
        schema,
        path,
        lambda field, below: replace(field, type=_retype(field.type, below, on_type, missing)),
        missing,
    )


def edit_type(
    table: str,
    data_type: DataType,
    path: Sequence[str],
    change: Callable[[DataType], DataType],
) -> DataType:
    """Apply `change` to the type at a path of parts of arrays and maps."""
    return _retype(data_type, path, change, _Missing(table, path))


class _Missing:
    """Creates the errors of a path that does not exist."""

    def __init__(self, table: str, path: Sequence[str]) -> None:
        self._table, self._path = table, path

    def among(self, names: Sequence[str]) -> Exception:
        return error(
            "DELTAIC_COLUMN_NOT_FOUND",
            table=self._table,
            column=path_text(self._path),
            columns=", ".join(names) or "no columns",
        )

    def below(self, data_type: DataType | None) -> Exception:
        match data_type:
            case ArrayType():
                return self.among(["element"])
            case MapType():
                return self.among(["key", "value"])
            case StructType(fields=fields):
                return self.among([field.name for field in fields])
            case _:
                return self.among([])


def _edit(
    struct: StructType, path: Sequence[str], change: FieldChange, missing: _Missing
) -> StructType:
    found = struct.find(path[0])
    if found is None:
        raise missing.below(struct)
    below, rest, inner = [], list(path[1:]), found.type
    while rest and not isinstance(inner, StructType):
        deeper = _part(inner, rest[0])
        if deeper is None:
            raise missing.below(inner)
        inner = deeper
        below.append(rest.pop(0))

    def on_struct(data_type: DataType) -> DataType:
        assert isinstance(data_type, StructType)
        return _edit(data_type, rest, change, missing)

    if rest:
        changed = replace(found, type=_retype(found.type, below, on_struct, missing))
    else:
        changed = change(found, below)
    return StructType(tuple(changed if field is found else field for field in struct.fields))


def _retype(
    data_type: DataType,
    path: Sequence[str],
    change: Callable[[DataType], DataType],
    missing: _Missing,
) -> DataType:
    if not path:
        return change(data_type)
    part, rest = path[0], path[1:]
    match data_type, part:
        case ArrayType(element=element), "element":
            return replace(data_type, element=_retype(element, rest, change, missing))
        case MapType(key=key), "key":
            return replace(data_type, key=_retype(key, rest, change, missing))
        case MapType(value=value), "value":
            return replace(data_type, value=_retype(value, rest, change, missing))
        case _:
            raise missing.below(data_type)


def _part(data_type: DataType | None, part: str) -> DataType | None:
    match data_type, part:
        case ArrayType(element=element), "element":
            return element
        case MapType(key=key), "key":
            return key
        case MapType(value=value), "value":
            return value
        case _:
            return None
