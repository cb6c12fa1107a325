"""The protocol of a table (Protocol § Table Features for New and Existing Tables).

The protocol requires of readers and writers only what the table needs: legacy versions if they
imply exactly these features, otherwise lists of features.
"""

from __future__ import annotations

from dataclasses import dataclass

from deltaic.exceptions import error
from deltaic.protocol.actions import (
    READER_VERSION_WITH_FEATURES,
    WRITER_VERSION_WITH_FEATURES,
    Metadata,
    Protocol,
)
from deltaic.protocol.features import (
    canonical_name,
    features_in_use,
    find_feature,
    legacy_reader_features,
    legacy_writer_features,
    reader_features,
    supports,
    with_requirements,
    writer_features,
)
from deltaic.protocol.properties import ProtocolRequest

#: The protocol of a new table that needs no features, as in delta-spark.
_DEFAULT = Protocol(1, 2)
_DEFAULT_IGNORED = Protocol(1, 1)


@dataclass(frozen=True, slots=True)
class _Needs:
    """The features a table must support, and the minimum versions that the user set."""

    features: frozenset[str]
    min_reader_version: int
    min_writer_version: int


def protocol_for_new_table(table: str, metadata: Metadata, request: ProtocolRequest) -> Protocol:
    """Return the protocol of a table that is being created.

    Parameters
    ----------
    table
        The table, for errors.
    metadata
        Its definition; the properties and columns make features active.
    request
        The protocol that the user requests by table properties.

    Raises
    ------
    InvalidArgumentError
        If a requested version or feature does not exist.
    """
    base = _DEFAULT_IGNORED if request.ignore_defaults else _DEFAULT
    return _smallest(
        _Needs(
            writer_features(base) | _requested(table, metadata, request),
            request.min_reader_version or base.min_reader_version,
            request.min_writer_version or base.min_writer_version,
        )
    )


def protocol_for_new_definition(
    table: str, current: Protocol, metadata: Metadata, request: ProtocolRequest
) -> Protocol:
    """Return the protocol of an existing table with a new definition: the current one or a newer.

    Features are never dropped here: files of earlier versions may depend on them
    (Protocol § Supported Features).
    """
    supported = writer_features(current) | reader_features(current)
    requested = _requested(table, metadata, request) | _of_both_versions(
        request.min_reader_version or 0, request.min_writer_version or 0
    )
    # A feature that is listed under an alias stays listed under it.
    needed = {n for n in requested if not supports(current, n)}
    versions_suffice = (request.min_reader_version or 0) <= current.min_reader_version and (
        request.min_writer_version or 0
    ) <= current.min_writer_version
    if not needed and versions_suffice:
        return current
    return _smallest(
        _Needs(
            supported | needed,
            max(current.min_reader_version, request.min_reader_version or 0),
            max(current.min_writer_version, request.min_writer_version or 0),
        )
    )


def merged_protocol(current: Protocol, other: Protocol) -> Protocol:
    """Return the protocol that supports the features of both: the current one, if that does."""
    features = writer_features(current) | reader_features(current)
    others = writer_features(other) | reader_features(other)
    if all(supports(current, name) or name in features for name in others):
        return current
    return _smallest(
        _Needs(
            features | {name for name in others if not supports(current, name)},
            max(current.min_reader_version, other.min_reader_version),
            max(current.min_writer_version, other.min_writer_version),
        )
    )


def protocol_without(current: Protocol, feature: str) -> Protocol:
    """Return the protocol of a table after a feature is dropped."""

    def others(names: frozenset[str]) -> frozenset[str]:
        return frozenset(name for name in names if canonical_name(name) != feature)

    features = others(writer_features(current)) | others(reader_features(current))
    return _smallest(_Needs(features, 1, 1))


def _requested(table: str, metadata: Metadata, request: ProtocolRequest) -> frozenset[str]:
    named = set()
    for name in request.features:
        feature = find_feature(name)
        if feature is None:
            raise error("DELTAIC_UNKNOWN_FEATURE", table=table, feature=name)
        named.add(feature.name)
    return with_requirements(named | features_in_use(metadata, table))


def _implied(reader_version: int, writer_version: int) -> frozenset[str]:
    """Return the features that versions imply; those with lists imply none."""
    features: frozenset[str] = frozenset()
    if reader_version < READER_VERSION_WITH_FEATURES:
        features |= legacy_reader_features(reader_version)
    if writer_version < WRITER_VERSION_WITH_FEATURES:
        features |= legacy_writer_features(writer_version)
    return features


def _of_both_versions(reader_version: int, writer_version: int) -> frozenset[str]:
    """Return the features that versions imply together: what readers must know, both imply."""
    implied = _implied(reader_version, writer_version)
    readers = _implied(reader_version, 0)
    writers = _implied(0, writer_version)
    reads = {name for name in implied if (f := find_feature(name)) is not None and f.reads}
    return (implied - reads) | (readers & writers)


def _smallest(needs: _Needs) -> Protocol:
    """Return legacy versions if they imply exactly the needed features, else lists of features."""
    features = needs.features | _implied(needs.min_reader_version, needs.min_writer_version)
    readers = frozenset(n for n in features if (f := find_feature(n)) is not None and f.reads)
    legacy = _legacy(needs, features, readers)
    if legacy is not None:
        return legacy
    if needs.min_reader_version < READER_VERSION_WITH_FEATURES:
        for version in range(needs.min_reader_version, READER_VERSION_WITH_FEATURES):
            if legacy_reader_features(version) == readers:
                return Protocol(version, WRITER_VERSION_WITH_FEATURES, None, features)
    return Protocol(READER_VERSION_WITH_FEATURES, WRITER_VERSION_WITH_FEATURES, readers, features)


def _legacy(needs: _Needs, features: frozenset[str], readers: frozenset[str]) -> Protocol | None:
    for reader in range(needs.min_reader_version, READER_VERSION_WITH_FEATURES):
        for writer in range(needs.min_writer_version, WRITER_VERSION_WITH_FEATURES):
            if legacy_reader_features(reader) == readers and (
                legacy_writer_features(writer) == features
            ):
                return Protocol(reader, writer)
    return None
