"""The definition of Iceberg-compatible tables (Protocol § Iceberg Compatibility V1, V2).

The requirements on files are met where files are written: they hold partition values after the
other columns, timestamps are 64-bit numbers, and statistics have ``numRecords``. This module checks
the requirements on the table's definition.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from deltaic.exceptions import error
from deltaic.protocol.actions import Metadata, Protocol
from deltaic.protocol.columns.column_mapping import ICEBERG_COMPAT_V2 as V2
from deltaic.protocol.columns.column_mapping import MODE, is_mapped
from deltaic.protocol.columns.type_widening import TYPE_CHANGES, widens_in_iceberg
from deltaic.protocol.features import is_listed
from deltaic.protocol.properties import is_true
from deltaic.protocol.schema import (
    ArrayType,
    DataType,
    MapType,
    PrimitiveType,
    StructType,
    UserDefinedType,
    walk,
)

V1 = "delta.enableIcebergCompatV1"
_DELETION_VECTORS = "delta.enableDeletionVectors"

_PRIMITIVES_OF_V2 = frozenset(
    {
        "byte",
        "short",
        "integer",
        "long",
        "float",
        "double",
        "string",
        "binary",
        "boolean",
        "timestamp",
        "timestamp_ntz",
        "date",
    }
)


def is_active(configuration: Mapping[str, str]) -> bool:
    """Whether Iceberg compatibility is enabled."""
    return is_true(configuration, V1) or is_true(configuration, V2)


def newly_active(configuration: Mapping[str, str], before: Mapping[str, str]) -> str | None:
    """Return the property that newly enables a compatibility version, if any."""
    turned_on = (
        name for name in (V1, V2) if is_true(configuration, name) and not is_true(before, name)
    )
    return next(turned_on, None)


def with_column_mapping(configuration: Mapping[str, str]) -> Mapping[str, str]:
    """Return a new table's properties, with column mapping if it is required and not set."""
    if not is_active(configuration) or MODE in configuration:
        return configuration
    return {**configuration, MODE: "name"}


def require_compatible(table: str, protocol: Protocol, metadata: Metadata) -> None:
    """Refuse a definition that is not compatible with Iceberg.

    Raises
    ------
    InvalidArgumentError
        Naming the property and the reason.
    """
    for name, problems in ((V1, _problems_v1), (V2, _problems_v2)):
        if is_true(metadata.configuration, name):
            reason = next(problems(protocol, metadata), None)
            if reason is not None:
                raise error(
                    "DELTAIC_ICEBERG_COMPATIBILITY", table=table, property=name, reason=reason
                )


def require_same_partitioning(table: str, metadata: Metadata, before: Metadata) -> None:
    """Refuse a replacement that changes the partition columns.

    Raises
    ------
    InvalidArgumentError
        If the table was partitioned, and Iceberg compatibility is enabled.
    """
    if not is_active(metadata.configuration) or not before.partition_columns:
        return
    if metadata.partition_columns != before.partition_columns:
        raise error(
            "DELTAIC_ICEBERG_COMPATIBILITY",
            table=table,
            property=V1 if is_true(metadata.configuration, V1) else V2,
            reason=f"it must stay partitioned by {', '.join(before.partition_columns)}",
        )


def _problems_v1(protocol: Protocol, metadata: Metadata) -> Iterator[str]:
    yield from _missing_mapping(metadata)
    if is_listed(protocol, "deletionVectors"):
        yield "the table must not have the feature deletionVectors"
    for path, data_type in _types(metadata):
        if isinstance(data_type, ArrayType | MapType) or data_type == PrimitiveType("void"):
            yield f"column {path} has a type that is not allowed: array, map or void"
    yield from _user_defined(metadata)
    yield from _foreign_changes(metadata)


def _problems_v2(protocol: Protocol, metadata: Metadata) -> Iterator[str]:
    yield from _missing_mapping(metadata)
    if is_true(metadata.configuration, V1):
        yield f"{V1} must not be true as well"
    if is_listed(protocol, "deletionVectors") and is_true(
        metadata.configuration, _DELETION_VECTORS
    ):
        yield f"{_DELETION_VECTORS} must not be true"
    for path, data_type in _types(metadata):
        if isinstance(data_type, PrimitiveType) and not _is_allowed_in_v2(data_type):
            yield f"column {path} has the type {data_type.name}, which Iceberg lacks"
    yield from _user_defined(metadata)
    yield from _foreign_changes(metadata)


def _is_allowed_in_v2(data_type: PrimitiveType) -> bool:
    return data_type.name in _PRIMITIVES_OF_V2 or data_type.name.startswith("decimal")


def _missing_mapping(metadata: Metadata) -> Iterator[str]:
    if not is_mapped(metadata.configuration):
        yield f"{MODE} must be name or id"


def _user_defined(metadata: Metadata) -> Iterator[str]:
    for path, data_type in _types(metadata):
        if isinstance(data_type, UserDefinedType):
            yield f"column {path} has the type {data_type.name}, which Iceberg lacks"


def _foreign_changes(metadata: Metadata) -> Iterator[str]:
    """Yield the type changes that Iceberg does not support without rewriting files."""
    for path, column in walk(metadata.schema):
        for change in column.metadata.get(TYPE_CHANGES, ()):
            older, newer = change["fromType"], change["toType"]
            if not widens_in_iceberg(PrimitiveType(older), PrimitiveType(newer)):
                yield f"column {path} was of type {older}, which Iceberg cannot read as {newer}"


def _types(metadata: Metadata) -> Iterator[tuple[str, DataType]]:
    """Yield every type in the schema with the path of its column or field."""
    for path, column in walk(metadata.schema):
        yield from ((path, part) for part in _parts(column.type))


def _parts(data_type: DataType) -> Iterator[DataType]:
    """Yield a type and its parts, except fields of structs, which have their own paths."""
    yield data_type
    match data_type:
        case ArrayType():
            yield from _parts(data_type.element)
        case MapType():
            yield from _parts(data_type.key)
            yield from _parts(data_type.value)
        case StructType() | PrimitiveType() | UserDefinedType():
            pass
