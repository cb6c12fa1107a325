"""Ids and physical names of columns (Protocol § Column Mapping)."""

from __future__ import annotations

import uuid
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import replace
from typing import Any

from deltaic.exceptions import error
from deltaic.protocol.actions import Metadata, Protocol
from deltaic.protocol.features import is_listed
from deltaic.protocol.properties import checked_number, is_true, property_value
from deltaic.protocol.schema import (
    ArrayType,
    DataType,
    Field,
    MapType,
    StructType,
    map_fields,
    walk,
    write_schema,
)

COLUMN_MAPPING = "columnMapping"
MODE = "delta.columnMapping.mode"
MAX_COLUMN_ID = "delta.columnMapping.maxColumnId"
COLUMN_ID = "delta.columnMapping.id"
PHYSICAL_NAME = "delta.columnMapping.physicalName"
#: The ids of the elements, keys and values within a column (Protocol § Iceberg Compatibility V2).
NESTED_IDS = "parquet.field.nested.ids"
#: The key under which delta-spark stores them.
_NESTED_IDS_OF_DELTA_SPARK = "delta.columnMapping.nested.ids"
#: The table properties that require them.
ICEBERG_COMPAT_V2 = "delta.enableIcebergCompatV2"
ICEBERG_COMPAT_V3 = "delta.enableIcebergCompatV3"


def is_mapped(configuration: Mapping[str, str]) -> bool:
    """Whether columns have physical names, by the properties; the protocol is not checked."""
    return _mode(configuration) != "none"


def has_physical_names(protocol: Protocol, metadata: Metadata) -> bool:
    """Whether columns are mapped; a mode without the feature is ignored (§ Column Mapping)."""
    return is_listed(protocol, COLUMN_MAPPING) and is_mapped(metadata.configuration)


def check_specified_mapping(table: str, schema: StructType) -> None:
    """Refuse ids or physical names that a statement specifies for two columns.

    Raises
    ------
    InvalidArgumentError
        If there are any: the user relies on them, which is impossible for both columns.
    """
    for key in (COLUMN_ID, PHYSICAL_NAME):
        columns: dict[Any, str] = {}
        for path, column in walk(schema):
            value = column.metadata.get(key)
            if value is None:
                continue
            if key == PHYSICAL_NAME:  # it is unique among siblings
                value = (path.rpartition(".")[0], value)
            if value in columns:
                raise error(
                    "DELTAIC_DUPLICATE_COLUMN_MAPPING",
                    table=table,
                    first=columns[value],
                    second=path,
                    key=key,
                    value=column.metadata[key],
                )
            columns[value] = path


def new_mapping(metadata: Metadata, before: Metadata | None = None) -> Metadata:
    """Return the metadata of a new or replaced table with a mapping for each column.

    A column that existed with the same name and type keeps its mapping: it is the same column.
    Every other column gets a new physical name, and an id above all that the table has assigned.

    Parameters
    ----------
    metadata
        The definition.
    before
        The definition that it replaces.
    """
    if not is_mapped(metadata.configuration):
        return metadata
    known: dict[tuple[str, ...], Field] = {}
    last_id = 0
    if before is not None:
        last_id = checked_number(metadata.id, before.configuration, MAX_COLUMN_ID)
        if is_mapped(before.configuration):
            known = _by_path(before.schema, ())
    return _mapped(metadata, known, last_id, lambda _: f"col-{uuid.uuid4()}")


def with_new_columns(metadata: Metadata) -> Metadata:
    """Return the metadata of a table with a mapping for columns that were added."""
    if not is_mapped(metadata.configuration):
        return metadata
    last_id = checked_number(metadata.id, metadata.configuration, MAX_COLUMN_ID)
    known = _by_path(metadata.schema, ())
    return _mapped(metadata, known, last_id, lambda _: f"col-{uuid.uuid4()}")


def upgraded(table: str, metadata: Metadata, before: Mapping[str, str]) -> Metadata:
    """Return the metadata of a table after a change of the column mapping mode.

    From mode ``none`` to ``name``, files do not change: physical names are the current names.

    Parameters
    ----------
    before
        The properties with which the files were written.

    Raises
    ------
    InvalidArgumentError
        If the change is not allowed: the files of the table could no longer be read.
    """
    now, then = _mode(metadata.configuration), _mode(before)
    if now == then:
        return metadata
    if (then, now) != ("none", "name"):
        raise error("DELTAIC_COLUMN_MAPPING_CHANGE", table=table, current=then, requested=now)
    # A table that was mapped before has assigned ids, which are not assigned again.
    last_id = checked_number(table, metadata.configuration, MAX_COLUMN_ID)
    return _mapped(metadata, {}, last_id, lambda column: column.name)


def unmapped(metadata: Metadata) -> Metadata:
    """Return the metadata of a table whose files name the columns as the schema does."""
    keys = (COLUMN_ID, PHYSICAL_NAME, NESTED_IDS, _NESTED_IDS_OF_DELTA_SPARK)
    schema = map_fields(metadata.schema, lambda column: column.without_entries(*keys))
    configuration = {
        name: value
        for name, value in metadata.configuration.items()
        if name not in (MODE, MAX_COLUMN_ID)
    }
    return replace(metadata, schema_string=write_schema(schema), configuration=configuration)


def _by_path(data_type: DataType, path: tuple[str, ...]) -> dict[tuple[str, ...], Field]:
    """Return the fields by path, as a tuple because names may contain dots."""
    found: dict[tuple[str, ...], Field] = {}
    match data_type:
        case StructType():
            for column in data_type.fields:
                here = (*path, column.name)
                found |= {here: column, **_by_path(column.type, here)}
        case ArrayType():
            found = _by_path(data_type.element, (*path, "element"))
        case MapType():
            found = _by_path(data_type.key, (*path, "key"))
            found |= _by_path(data_type.value, (*path, "value"))
    return found


def _mode(configuration: Mapping[str, str]) -> str:
    return property_value(configuration, MODE).lower()


def _mapped(
    metadata: Metadata,
    known: Mapping[tuple[str, ...], Field],
    last_id: int,
    physical_name: Callable[[Field], str],
) -> Metadata:
    ids = _ids_after(last_id, known.values())
    nested = any(
        is_true(metadata.configuration, name) for name in (ICEBERG_COMPAT_V2, ICEBERG_COMPAT_V3)
    )

    def on_struct(struct: StructType, path: tuple[str, ...]) -> StructType:
        return StructType(tuple(on_field(column, path) for column in struct.fields))

    def on_field(column: Field, path: tuple[str, ...]) -> Field:
        here = (*path, column.name)
        mapping = _same_column(known.get(here), column) or {
            COLUMN_ID: next(ids),
            PHYSICAL_NAME: physical_name(column),
        }
        data_type = on_type(column.type, here)
        if nested and (paths := list(_nested_paths(column.type, mapping[PHYSICAL_NAME]))):
            existing = mapping.get(NESTED_IDS, {})
            mapping[NESTED_IDS] = {p: existing[p] if p in existing else next(ids) for p in paths}
        return replace(column, type=data_type, metadata={**column.metadata, **mapping})

    def on_type(data_type: DataType, path: tuple[str, ...]) -> DataType:
        match data_type:
            case StructType():
                return on_struct(data_type, path)
            case ArrayType():
                return replace(data_type, element=on_type(data_type.element, (*path, "element")))
            case MapType():
                return replace(
                    data_type,
                    key=on_type(data_type.key, (*path, "key")),
                    value=on_type(data_type.value, (*path, "value")),
                )
            case _:
                return data_type

    schema = on_struct(metadata.schema, ())
    newest = max([last_id, *(i for _, column in walk(schema) for i in _ids_of(column))])
    return replace(
        metadata,
        schema_string=write_schema(schema),
        configuration={**metadata.configuration, MAX_COLUMN_ID: str(newest)},
    )


def _ids_after(last_id: int, known: Iterable[Field]) -> Iterator[int]:
    newest = max([last_id, *(i for column in known for i in _ids_of(column))])
    while True:
        newest += 1
        yield newest


def _ids_of(column: Field) -> Iterator[int]:
    yield column.metadata.get(COLUMN_ID, 0)
    yield from _nested_ids(column).values()


def _nested_ids(column: Field) -> dict[str, int]:
    ids = column.metadata.get(NESTED_IDS) or column.metadata.get(_NESTED_IDS_OF_DELTA_SPARK)
    return dict(ids or {})


def _nested_paths(data_type: DataType, path: str) -> Iterator[str]:
    """Yield the paths of elements, keys and values, except those within structs."""
    match data_type:
        case ArrayType():
            parts = {"element": data_type.element}
        case MapType():
            parts = {"key": data_type.key, "value": data_type.value}
        case _:
            parts = {}
    for name, part in parts.items():
        yield f"{path}.{name}"
        yield from _nested_paths(part, f"{path}.{name}")


def _same_column(before: Field | None, now: Field) -> dict[str, Any] | None:
    if before is None or _bare(before.type) != _bare(now.type):
        return None
    mapping = {key: before.metadata.get(key) for key in (COLUMN_ID, PHYSICAL_NAME)}
    if None in mapping.values():
        return None
    nested = _nested_ids(before)
    return {**mapping, NESTED_IDS: nested} if nested else mapping


def _bare(data_type: DataType) -> DataType:
    """Return a type with only the names and types of its fields."""
    wrapped = StructType((Field("", data_type),))
    bare = map_fields(wrapped, lambda column: Field(column.name, column.type))
    return bare.fields[0].type
