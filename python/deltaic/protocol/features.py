"""Table features as data (Protocol § Table Features).

One record per feature, from ``resources/table-features.json``; what a table uses, and whether this
build can write to it, follow from the records.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import cache

from deltaic.exceptions import error
from deltaic.protocol.actions import (
    READER_VERSION_WITH_FEATURES,
    WRITER_VERSION_WITH_FEATURES,
    Metadata,
    Protocol,
)
from deltaic.protocol.properties import SYMLINK_MANIFEST_PROPERTY, is_true, property_value
from deltaic.protocol.schema import PrimitiveType, StructType, leaf_types, parse_schema, walk
from deltaic.resources import load_json


@dataclass(frozen=True, slots=True)
class UsedBy:
    """What in a table's metadata puts a feature to use; a final ``*`` stands for anything.

    Attributes
    ----------
    properties
        Names of table properties, whatever their value.
    column_metadata
        Keys of a column's metadata, nested columns included.
    column_types
        Types of columns, or of what is in them.
    """

    properties: tuple[str, ...] = ()
    column_metadata: tuple[str, ...] = ()
    column_types: frozenset[str] = frozenset()

    @staticmethod
    def from_json(body: Mapping[str, list[str]]) -> UsedBy:
        """Read the record's ``usedBy``."""
        return UsedBy(
            tuple(body.get("properties", ())),
            tuple(body.get("columnMetadata", ())),
            frozenset(body.get("columnTypes", ())),
        )


@dataclass(frozen=True, slots=True)
class Feature:
    """One table feature.

    Attributes
    ----------
    reads
        Whether readers, too, must know the feature.
    min_reader_version, min_writer_version
        The legacy versions that imply it, if any.
    property_name, property_values
        The table property and its values that put the feature to use, if one does.
    used_by
        What else puts it to use.
    requires
        Features that must be supported with it.
    writable
        Whether this build can write to a table that uses it.
    writable_when_inactive
        Whether a table that supports the feature without using it asks nothing of a writer.
    binds_earlier_files
        Whether it says something of files that were written before the table had it.
    """

    name: str
    reads: bool
    min_reader_version: int | None
    min_writer_version: int | None
    property_name: str | None
    property_values: frozenset[str]
    used_by: UsedBy
    requires: tuple[str, ...]
    aliases: frozenset[str]
    writable: bool
    writable_when_inactive: bool
    binds_earlier_files: bool

    def is_set(self, configuration: Mapping[str, str]) -> bool:
        """Whether its own property puts it to use."""
        name = self.property_name
        return name is not None and (
            property_value(configuration, name).casefold() in self.property_values
        )


@cache
def all_features() -> tuple[Feature, ...]:
    """Return every feature that Deltaic knows by name."""
    features = []
    for record in load_json("table-features.json"):
        enabled_by = record["enabledBy"] or {"property": None, "value": ""}
        features.append(
            Feature(
                name=record["name"],
                reads=record["kind"] == "readerWriter",
                min_reader_version=record["minReaderVersion"],
                min_writer_version=record["minWriterVersion"],
                property_name=enabled_by["property"],
                property_values=frozenset(enabled_by["value"].casefold().split("|")),
                used_by=UsedBy.from_json(record.get("usedBy", {})),
                requires=tuple(record["requires"]),
                aliases=frozenset(record["aliases"]),
                writable=record["write"],
                writable_when_inactive=record.get("writableWhenInactive", False),
                binds_earlier_files=record.get("bindsEarlierFiles", False),
            )
        )
    return tuple(features)


def find_feature(name: str) -> Feature | None:
    """Return the feature of this name, which may be an older spelling; case does not count."""
    return _by_name().get(name.casefold())


def writer_features(protocol: Protocol) -> frozenset[str]:
    """Return the features a writer must know, listed or implied by the writer version."""
    if protocol.min_writer_version >= WRITER_VERSION_WITH_FEATURES:
        return protocol.writer_features or frozenset()
    return legacy_writer_features(protocol.min_writer_version)


def reader_features(protocol: Protocol) -> frozenset[str]:
    """Return the features a reader must know, listed or implied by the reader version."""
    if protocol.min_reader_version >= READER_VERSION_WITH_FEATURES:
        return protocol.reader_features or frozenset()
    return legacy_reader_features(protocol.min_reader_version)


def supports(protocol: Protocol, name: str) -> bool:
    """Whether all who must know the feature are told so, under any spelling of its name."""
    return _contains(writer_features(protocol), name) and (
        not _reads(name) or _contains(reader_features(protocol), name)
    )


def supported_features(protocol: Protocol) -> frozenset[str]:
    """Return the features of a table: those that a list names, and those both versions imply."""
    listed = (protocol.reader_features or frozenset()) | (protocol.writer_features or frozenset())
    implied = reader_features(protocol) | writer_features(protocol)
    return frozenset(name for name in implied if name in listed or supports(protocol, name))


def is_listed(protocol: Protocol, name: str) -> bool:
    """Whether the protocol tells of the feature at all, under any spelling of its name.

    Some writers list a feature on one side only and use it all the same, so this is enough for
    reading (docs/decisions/0036). A writer version below the table features lists nothing: what
    readers must know, too, comes with the reader version.
    """
    if not _reads(name):
        return supports(protocol, name)
    return _contains(reader_features(protocol), name) or _contains(
        protocol.writer_features or (), name
    )


def is_enabled(protocol: Protocol, metadata: Metadata, name: str) -> bool:
    """Whether the protocol supports a feature and the feature's own property puts it to use.

    A property binds writers where its feature is supported, and nowhere else.
    """
    feature = find_feature(name)
    return feature is not None and (
        feature.is_set(metadata.configuration) and supports(protocol, name)
    )


def canonical_name(name: str) -> str:
    """Return the name by which Deltaic knows a feature; one that it does not know is kept."""
    feature = find_feature(name)
    return name.casefold() if feature is None else feature.name


def is_append_only(protocol: Protocol, metadata: Metadata) -> bool:
    """Whether writers must not remove rows that count (Protocol § Append-only Tables)."""
    return is_enabled(protocol, metadata, "appendOnly")


def legacy_writer_features(version: int) -> frozenset[str]:
    """Return what a writer version below the table features implies."""
    return frozenset(
        f.name
        for f in all_features()
        if f.min_writer_version is not None and f.min_writer_version <= version
    )


def legacy_reader_features(version: int) -> frozenset[str]:
    """Return what a reader version below the table features implies."""
    return frozenset(
        f.name
        for f in all_features()
        if f.min_reader_version is not None and f.min_reader_version <= version
    )


def with_requirements(names: Iterable[str]) -> frozenset[str]:
    """Add the features that the named ones require, and those that these require."""
    complete: set[str] = set()
    pending = list(names)
    while pending:
        name = pending.pop()
        if name not in complete:
            complete.add(name)
            feature = find_feature(name)
            pending += feature.requires if feature else ()
    return frozenset(complete)


def features_in_use(metadata: Metadata, table: str) -> frozenset[str]:
    """Return the features that the metadata puts to use (Protocol § Active Features).

    By a table property, by the metadata of a column, or by the type of one.
    """
    schema = parse_schema(metadata.schema_string, table)
    return _used_by_properties(metadata.configuration) | _used_by_schema(schema)


def require_writable(table: str, version: int, protocol: Protocol, metadata: Metadata) -> None:
    """Refuse a table to which this build cannot write without breaking a feature's promise.

    Raises
    ------
    ProtocolError
        Naming the features, or the writer version if that is too new.
    """
    if protocol.min_writer_version > WRITER_VERSION_WITH_FEATURES:
        raise error(
            "DELTAIC_UNSUPPORTED_WRITER_VERSION",
            table=table,
            version=version,
            required=protocol.min_writer_version,
            supported=WRITER_VERSION_WITH_FEATURES,
        )
    refused = _unwritable_features(table, protocol, metadata)
    if refused:
        raise error(
            "DELTAIC_UNSUPPORTED_WRITER_FEATURE",
            table=table,
            version=version,
            features=", ".join(refused),
        )


def is_writable(table: str, protocol: Protocol, metadata: Metadata) -> bool:
    """Whether `require_writable` would let a table pass."""
    known = protocol.min_writer_version <= WRITER_VERSION_WITH_FEATURES
    return known and not _unwritable_features(table, protocol, metadata)


def require_definable(table: str, protocol: Protocol, metadata: Metadata) -> None:
    """Refuse a definition that a user gives and to which this build could not write.

    Raises
    ------
    ProtocolError
        Naming the features.
    InvalidArgumentError
        If two properties do not go together.
    """
    refused = _unwritable_features(table, protocol, metadata)
    if refused:
        raise error(
            "DELTAIC_UNSUPPORTED_FEATURE_REQUESTED", table=table, features=", ".join(refused)
        )
    if is_true(metadata.configuration, SYMLINK_MANIFEST_PROPERTY):
        _require_plain_files(table, metadata)


def _require_plain_files(table: str, metadata: Metadata) -> None:
    """Refuse what readers of a list of files would not know of: deleted rows, and other names."""
    mode = property_value(metadata.configuration, "delta.columnMapping.mode").casefold()
    for name, used in (
        (
            "delta.enableDeletionVectors",
            is_true(metadata.configuration, "delta.enableDeletionVectors"),
        ),
        ("delta.columnMapping.mode", mode not in ("", "none")),
    ):
        if used:
            raise error(
                "DELTAIC_PROPERTIES_EXCLUDE_EACH_OTHER",
                table=table,
                a=SYMLINK_MANIFEST_PROPERTY,
                b=name,
            )


def _unwritable_features(table: str, protocol: Protocol, metadata: Metadata) -> list[str]:
    used = features_in_use(metadata, table)
    return [n for n in sorted(writer_features(protocol)) if not _is_feature_writable(n, used)]


def _is_feature_writable(name: str, used: frozenset[str]) -> bool:
    feature = find_feature(name)
    if feature is None:
        return False
    return feature.writable or (feature.writable_when_inactive and feature.name not in used)


def _reads(name: str) -> bool:
    feature = find_feature(name)
    return feature is not None and feature.reads


def _contains(features: Iterable[str], name: str) -> bool:
    return canonical_name(name) in map(canonical_name, features)


@cache
def _by_name() -> dict[str, Feature]:
    return {
        spelling.casefold(): feature
        for feature in all_features()
        for spelling in (feature.name, *feature.aliases)
    }


def _used_by_properties(configuration: Mapping[str, str]) -> frozenset[str]:
    return frozenset(
        f.name
        for f in all_features()
        if f.is_set(configuration) or _any_matches(f.used_by.properties, configuration)
    )


def _used_by_schema(schema: StructType) -> frozenset[str]:
    keys = {key for _, column in walk(schema) for key in column.metadata}
    types = {leaf.name for leaf in leaf_types(schema) if isinstance(leaf, PrimitiveType)}
    return frozenset(
        f.name
        for f in all_features()
        if _any_matches(f.used_by.column_metadata, keys) or f.used_by.column_types & types
    )


def _any_matches(patterns: Iterable[str], names: Iterable[str]) -> bool:
    return any(
        name.startswith(pattern[:-1]) if pattern.endswith("*") else name == pattern
        for pattern in patterns
        for name in names
    )
