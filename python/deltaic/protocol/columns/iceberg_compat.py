"""The definition of Iceberg-compatible tables (Protocol § Iceberg Compatibility V1, V2; V3).

The requirements on files are met where files are written: they hold partition values after the
other columns, timestamps are 64-bit numbers, and statistics have ``numRecords``. This module checks
the requirements on the table's definition. Those of version 3 are the ones of the protocol's
request for comments, and of delta-spark.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Set

from deltaic.exceptions import error
from deltaic.protocol import row_tracking
from deltaic.protocol.actions import Metadata, Protocol
from deltaic.protocol.columns.column_expressions import DEFAULT
from deltaic.protocol.columns.column_mapping import ICEBERG_COMPAT_V2 as V2
from deltaic.protocol.columns.column_mapping import ICEBERG_COMPAT_V3 as V3
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
#: By version.
PROPERTIES = {1: V1, 2: V2, 3: V3}
DELETION_VECTORS = "delta.enableDeletionVectors"

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

#: Literals of SQL: numbers, strings, binary strings, dates and timestamps, Booleans, null.
_LITERAL = re.compile(
    r"""[+-]?(\d+\.?\d*|\.\d+)(e[+-]?\d+)?[a-z]{0,2}
    |([xr]|date|timestamp|timestamp_ntz|timestamp_ltz)?\s*('([^'\\]|\\.|'')*'|"([^"\\]|\\.)*")
    |true|false|null""",
    re.IGNORECASE | re.VERBOSE | re.DOTALL,
)


def active_version(configuration: Mapping[str, str]) -> int | None:
    """Return the version that is enabled, if any."""
    enabled = (version for version, name in PROPERTIES.items() if is_true(configuration, name))
    return next(enabled, None)


def newly_active(configuration: Mapping[str, str], before: Mapping[str, str]) -> int | None:
    """Return the version that is newly enabled, if any."""
    turned_on = (
        version
        for version, name in PROPERTIES.items()
        if is_true(configuration, name) and not is_true(before, name)
    )
    return next(turned_on, None)


def with_required_properties(configuration: Mapping[str, str]) -> Mapping[str, str]:
    """Return a new table's properties, with those that are required and not set."""
    version = active_version(configuration)
    if version is None:
        return configuration
    required = {MODE: "name"}
    if version == 3:
        required[row_tracking.ENABLED] = "true"
    return {**required, **configuration}


def require_compatible(table: str, protocol: Protocol, metadata: Metadata) -> None:
    """Refuse a definition that is not compatible with Iceberg.

    Raises
    ------
    InvalidArgumentError
        Naming the property and the reason.
    """
    for name, problems in ((V1, _problems_v1), (V2, _problems_v2), (V3, _problems_v3)):
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
    version = active_version(metadata.configuration)
    if version is None or not before.partition_columns:
        return
    if metadata.partition_columns != before.partition_columns:
        raise error(
            "DELTAIC_ICEBERG_COMPATIBILITY",
            table=table,
            property=PROPERTIES[version],
            reason=f"it must stay partitioned by {', '.join(before.partition_columns)}",
        )


def _problems_v1(protocol: Protocol, metadata: Metadata) -> Iterator[str]:
    yield from _missing_mapping(metadata)
    if is_listed(protocol, "deletionVectors"):
        yield (
            "the table must not have the feature deletionVectors, which"
            " ALTER TABLE ... DROP FEATURE deletionVectors removes"
        )
    for path, data_type in _types(metadata):
        if isinstance(data_type, ArrayType | MapType) or data_type == PrimitiveType("void"):
            yield f"column {path} has a type that is not allowed: array, map or void"
    yield from _user_defined(metadata)
    yield from _foreign_changes(metadata)


def _problems_v2(protocol: Protocol, metadata: Metadata) -> Iterator[str]:
    yield from _missing_mapping(metadata)
    yield from _other_versions(metadata, V1)
    if is_listed(protocol, "deletionVectors") and is_true(metadata.configuration, DELETION_VECTORS):
        yield f"{DELETION_VECTORS} must not be true"
    yield from _foreign_types(metadata, _PRIMITIVES_OF_V2)
    yield from _foreign_changes(metadata)


def _problems_v3(protocol: Protocol, metadata: Metadata) -> Iterator[str]:
    yield from _missing_mapping(metadata)
    yield from _other_versions(metadata, V1, V2)
    if not is_true(metadata.configuration, row_tracking.ENABLED):
        yield f"{row_tracking.ENABLED} must be true"
    yield from _foreign_types(metadata, _PRIMITIVES_OF_V2 | {"variant"})
    yield from _foreign_changes(metadata)
    for path, column in walk(metadata.schema):
        default = column.metadata.get(DEFAULT)
        if default is not None and not _LITERAL.fullmatch(default.strip()):
            yield f"the default value of column {path} is no literal: {default}"


def _other_versions(metadata: Metadata, *names: str) -> Iterator[str]:
    for name in names:
        if is_true(metadata.configuration, name):
            yield f"{name} must not be true as well"


def _foreign_types(metadata: Metadata, allowed: Set[str]) -> Iterator[str]:
    for path, data_type in _types(metadata):
        if isinstance(data_type, PrimitiveType) and not (
            data_type.name in allowed or data_type.name.startswith("decimal")
        ):
            yield f"column {path} has the type {data_type.name}, which Iceberg lacks"
    yield from _user_defined(metadata)


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
