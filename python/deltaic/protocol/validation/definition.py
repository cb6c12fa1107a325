"""Checks of the protocol and metadata in a commit."""

from __future__ import annotations

from deltaic.exceptions import DeltaError
from deltaic.protocol import row_tracking
from deltaic.protocol.actions import (
    READER_VERSION_WITH_FEATURES,
    WRITER_VERSION_WITH_FEATURES,
    Metadata,
    Protocol,
)
from deltaic.protocol.columns.column_mapping import (
    COLUMN_ID,
    MAX_COLUMN_ID,
    PHYSICAL_NAME,
    is_mapped,
)
from deltaic.protocol.features import features_in_use, find_feature, supports
from deltaic.protocol.properties import checked_number
from deltaic.protocol.schema import StructType, walk
from deltaic.protocol.validation.log_state import Problems


def definition_problems(protocol: Protocol, metadata: Metadata) -> Problems:
    """Check that both are complete, and that the protocol supports all active features."""
    rule = "Protocol § Table Features"
    reader, writer = protocol.reader_features, protocol.writer_features
    if (protocol.min_reader_version >= READER_VERSION_WITH_FEATURES) != (reader is not None):
        yield rule, f"reader version {protocol.min_reader_version}, readerFeatures {reader}"
    if (protocol.min_writer_version >= WRITER_VERSION_WITH_FEATURES) != (writer is not None):
        yield rule, f"writer version {protocol.min_writer_version}, writerFeatures {writer}"
    if unlisted := (reader or frozenset()) - (writer or frozenset()):
        yield rule, f"only among the readerFeatures: {', '.join(sorted(unlisted))}"
    for name in sorted(writer or ()):
        feature = find_feature(name)
        reads = feature is not None and feature.reads
        # Below reader version 3 a legacy reader feature is implied by the version, not listed.
        if reads and reader is not None and name not in reader:
            yield rule, f"{name} is not among the readerFeatures"
    try:
        used = features_in_use(metadata, metadata.id)
        columns = metadata.schema
    except DeltaError as invalid:
        yield "Protocol § Schema Serialization Format", str(invalid)
        return
    if unsupported := {name for name in used if not supports(protocol, name)}:
        yield rule, f"in use, but not supported by the protocol: {', '.join(sorted(unsupported))}"
    if row_tracking.is_enabled(
        protocol, metadata
    ) and not row_tracking.has_materialized_column_names(metadata):
        yield "Protocol § Row Tracking", "the columns of preserved row IDs have no names"
    names = {column.name for column in columns.fields}
    if unknown := [c for c in metadata.partition_columns if c not in names]:
        yield "Protocol § Change Metadata", f"partition columns without a column: {unknown}"
    for name in sorted(writer or ()):
        feature = find_feature(name)
        missing = [n for n in (feature.requires if feature else ()) if not supports(protocol, n)]
        if missing:
            yield rule, f"{name} is supported without {', '.join(missing)}"
    if is_mapped(metadata.configuration):
        yield from _mapping_problems(metadata, columns)


def _mapping_problems(metadata: Metadata, columns: StructType) -> Problems:
    rule = "Protocol § Column Mapping"
    newest = checked_number(metadata.id, metadata.configuration, MAX_COLUMN_ID)
    seen: dict[int, str] = {}
    for path, column in walk(columns):
        number, name = column.metadata.get(COLUMN_ID), column.metadata.get(PHYSICAL_NAME)
        if not isinstance(number, int) or not name:
            yield rule, f"{path} has the id {number!r} and the physical name {name!r}"
        elif number in seen:
            yield rule, f"{path} and {seen[number]} share the id {number}"
        elif number > newest:
            yield rule, f"{path} has the id {number}, but maxColumnId is {newest}"
        seen.setdefault(number or -1, path)
