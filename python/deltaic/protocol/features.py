"""Table features as data (Protocol § Table Features).

``resources/table-features.json`` has one record per feature. The records define which features a
table uses, and whether this build can write to it.
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
    """The table metadata that makes a feature active; a trailing ``*`` matches any suffix.

    Attributes
    ----------
    properties
        Names of table properties, with any value.
    column_metadata
        Keys of the metadata of columns, including nested ones.
    column_types
        Types of columns, or of their elements and fields.
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
        Whether it is a reader-writer feature.
    min_reader_version, min_writer_version
        The legacy versions that imply it, if any.
    property_name, property_values
        The table property and its values that make the feature active, if any.
    used_by
        Other metadata that makes it active.
    requires
        The features that it requires.
    readable, writable
        Whether this build can read, and write to, a table that uses it.
    writable_when_inactive
        Whether this build can write to a table that supports the feature but does not use it.
    binds_earlier_files
        Whether the feature also applies to files written before the table supported it.
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
    readable: bool
    writable: bool
    writable_when_inactive: bool
    binds_earlier_files: bool

    @property
    def has_traces(self) -> bool:
        """Whether the metadata of a table shows that the feature is active."""
        return self.property_name is not None or self.used_by != UsedBy()

    def is_set(self, configuration: Mapping[str, str]) -> bool:
        """Whether its own property makes it active."""
        name = self.property_name
        return name is not None and (
            property_value(configuration, name).lower() in self.property_values
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
                property_values=frozenset(enabled_by["value"].split("|")),
                used_by=UsedBy.from_json(record.get("usedBy", {})),
                requires=tuple(record["requires"]),
                aliases=frozenset(record["aliases"]),
                readable=record["read"],
                writable=record["write"],
                writable_when_inactive=record.get("writableWhenInactive", False),
                binds_earlier_files=record.get("bindsEarlierFiles", False),
            )
        )
    return tuple(features)


def find_feature(name: str) -> Feature | None:
    """Return the feature of this name or alias; names are case-insensitive."""
    return _by_name().get(name.lower())


def writer_features(protocol: Protocol) -> frozenset[str]:
    """Return the features a writer must support, listed or implied by the writer version."""
    if protocol.min_writer_version >= WRITER_VERSION_WITH_FEATURES:
        return protocol.writer_features or frozenset()
    return legacy_writer_features(protocol.min_writer_version)


def reader_features(protocol: Protocol) -> frozenset[str]:
    """Return the features a reader must support, listed or implied by the reader version."""
    if protocol.min_reader_version >= READER_VERSION_WITH_FEATURES:
        return protocol.reader_features or frozenset()
    return legacy_reader_features(protocol.min_reader_version)


def supports(protocol: Protocol, name: str) -> bool:
    """Whether the protocol supports a feature, under any alias of its name."""
    return _contains(writer_features(protocol), name) and (
        not _reads(name) or _contains(reader_features(protocol), name)
    )


def supported_features(protocol: Protocol) -> frozenset[str]:
    """Return the features of a table: those that are listed, and those that versions imply."""
    listed = (protocol.reader_features or frozenset()) | (protocol.writer_features or frozenset())
    implied = reader_features(protocol) | writer_features(protocol)
    return frozenset(name for name in implied if name in listed or supports(protocol, name))


def is_listed(protocol: Protocol, name: str) -> bool:
    """Whether a feature is among the reader or the writer features, under any alias of its name.

    Some writers list a reader-writer feature in only one of the lists and use it, so this is
    sufficient for reading (docs/decisions/0036). A legacy writer version does not count: reader
    features are implied by the reader version.
    """
    if not _reads(name):
        return supports(protocol, name)
    return _contains(reader_features(protocol), name) or _contains(
        protocol.writer_features or (), name
    )


def is_enabled(protocol: Protocol, metadata: Metadata, name: str) -> bool:
    """Whether the protocol supports a feature and the feature's own property makes it active.

    A property binds writers only if the protocol supports its feature.
    """
    feature = find_feature(name)
    return feature is not None and (
        feature.is_set(metadata.configuration) and supports(protocol, name)
    )


def canonical_name(name: str) -> str:
    """Return the canonical name of a feature; an unknown name is returned in lower case."""
    feature = find_feature(name)
    return name.lower() if feature is None else feature.name


def is_append_only(protocol: Protocol, metadata: Metadata) -> bool:
    """Whether writers must not delete rows (Protocol § Append-only Tables)."""
    return is_enabled(protocol, metadata, "appendOnly")


def legacy_writer_features(version: int) -> frozenset[str]:
    """Return the features that a legacy writer version implies."""
    return frozenset(
        f.name
        for f in all_features()
        if f.min_writer_version is not None and f.min_writer_version <= version
    )


def legacy_reader_features(version: int) -> frozenset[str]:
    """Return the features that a legacy reader version implies."""
    return frozenset(
        f.name
        for f in all_features()
        if f.min_reader_version is not None and f.min_reader_version <= version
    )


def with_requirements(names: Iterable[str]) -> frozenset[str]:
    """Add the features that the named ones require, transitively."""
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
    """Return the features that the metadata makes active (Protocol § Active Features).

    A table property, the metadata of a column, or its type can make a feature active.
    """
    schema = parse_schema(metadata.schema_string, table)
    return _used_by_properties(metadata.configuration) | _used_by_schema(schema)


def unreadable_features(protocol: Protocol) -> tuple[str, ...]:
    """Return the features that readers must support and this build does not.

    A feature that is known as one of readers counts on either side (docs/decisions/0036).
    """
    required = reader_features(protocol) | frozenset(
        name for name in protocol.writer_features or () if _reads(name)
    )
    known = {name: find_feature(name) for name in required}
    return tuple(sorted(n for n, feature in known.items() if not feature or not feature.readable))


def unwritable_features(table: str, protocol: Protocol, metadata: Metadata) -> tuple[str, ...]:
    """Return the features that writers must support and this build does not."""
    return tuple(_unwritable_features(table, protocol, metadata))


def require_writable(table: str, version: int, protocol: Protocol, metadata: Metadata) -> None:
    """Refuse a table to which this build cannot write.

    Raises
    ------
    ProtocolError
        Naming the unsupported features, or the writer version if that is too new or lists none.
    """
    if protocol.min_writer_version > WRITER_VERSION_WITH_FEATURES:
        raise error(
            "DELTAIC_UNSUPPORTED_WRITER_VERSION",
            table=table,
            version=version,
            required=protocol.min_writer_version,
            supported=WRITER_VERSION_WITH_FEATURES,
        )
    if not _lists_features(protocol):
        reason = f"writer version {protocol.min_writer_version} without writerFeatures"
        raise error("DELTAIC_PROTOCOL_INVALID", table=table, version=version, reason=reason)
    refused = _unwritable_features(table, protocol, metadata)
    if refused:
        raise error(
            "DELTAIC_UNSUPPORTED_WRITER_FEATURE",
            table=table,
            version=version,
            features=", ".join(refused),
        )


def is_writable(table: str, protocol: Protocol, metadata: Metadata) -> bool:
    """Whether this build can write to a table, as `require_writable` checks."""
    if protocol.min_writer_version > WRITER_VERSION_WITH_FEATURES or not _lists_features(protocol):
        return False
    return not _unwritable_features(table, protocol, metadata)


def require_definable(table: str, protocol: Protocol, metadata: Metadata) -> None:
    """Refuse a definition of a user if this build could not write to the table.

    Raises
    ------
    ProtocolError
        Naming the features.
    InvalidArgumentError
        If two properties exclude each other.
    """
    refused = _unwritable_features(table, protocol, metadata)
    if refused:
        raise error(
            "DELTAIC_UNSUPPORTED_FEATURE_REQUESTED", table=table, features=", ".join(refused)
        )
    if is_true(metadata.configuration, SYMLINK_MANIFEST_PROPERTY):
        _require_plain_files(table, metadata)


def _require_plain_files(table: str, metadata: Metadata) -> None:
    """Refuse what readers of symlink manifests do not support: deletion vectors, column mapping."""
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
                "DELTAIC_INCOMPATIBLE_PROPERTIES",
                table=table,
                a=SYMLINK_MANIFEST_PROPERTY,
                b=name,
            )


def _lists_features(protocol: Protocol) -> bool:
    is_legacy = protocol.min_writer_version < WRITER_VERSION_WITH_FEATURES
    return is_legacy or protocol.writer_features is not None


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
        spelling.lower(): feature
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
