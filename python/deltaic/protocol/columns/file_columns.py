"""The columns that a file action references, by their physical names."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from deltaic.protocol.actions import Metadata, Protocol
from deltaic.protocol.columns.column_mapping import PHYSICAL_NAME, has_physical_names
from deltaic.protocol.schema import DataType, StructType

#: The statistics that hold a value for each column (Protocol § Per-file Statistics).
_BY_COLUMN = ("minValues", "maxValues", "nullCount")

#: A column's path of physical names, and whether it has fields.
ColumnPaths = Mapping[tuple[str, ...], bool]


def column_paths(protocol: Protocol, metadata: Metadata) -> ColumnPaths:
    """Return every column of a table outside arrays and maps, including fields of structs."""
    return dict(_below(metadata.schema, (), has_physical_names(protocol, metadata)))


def physical_partition_columns(protocol: Protocol, metadata: Metadata) -> Iterator[str]:
    """Yield the names of the partition columns in ``partitionValues``."""
    columns = {c.name: c for c in metadata.schema.fields}
    mapped = has_physical_names(protocol, metadata)
    for name in metadata.partition_columns:
        column = columns.get(name)
        physical = column.metadata.get(PHYSICAL_NAME) if column else None
        yield str(physical) if mapped and physical is not None else name


def unknown_names(stats: Mapping[str, Any], known: ColumnPaths) -> Iterator[str]:
    """Yield the problems of statistics that reference unknown columns."""
    for kind in _BY_COLUMN:
        values = stats.get(kind)
        if values is not None and not isinstance(values, Mapping):
            yield f"{kind} is {values!r}"
            continue
        for path, has_fields in _statistics_paths(values or {}, ()):
            name = ".".join(path)
            if path not in known:
                yield f"{kind} of {name}, which is no column"
            elif has_fields and not known[path]:
                yield f"{kind} of {name} has fields, which the column does not have"


def _below(
    data_type: DataType, above: tuple[str, ...], mapped: bool
) -> Iterable[tuple[tuple[str, ...], bool]]:
    if not isinstance(data_type, StructType):
        return
    for column in data_type.fields:
        name = column.metadata.get(PHYSICAL_NAME, column.name) if mapped else column.name
        yield (*above, str(name)), isinstance(column.type, StructType)
        yield from _below(column.type, (*above, str(name)), mapped)


def _statistics_paths(
    values: Mapping[str, Any], above: tuple[str, ...]
) -> Iterator[tuple[tuple[str, ...], bool]]:
    for name, value in values.items():
        has_fields = isinstance(value, Mapping)
        yield (*above, name), has_fields
        if has_fields:
            yield from _statistics_paths(value, (*above, name))
