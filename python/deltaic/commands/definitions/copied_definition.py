"""The definition of CREATE TABLE LIKE: a table's definition as a statement could specify it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from deltaic.protocol.actions import WRITER_VERSION_WITH_FEATURES, Metadata, Protocol
from deltaic.protocol.columns.identity_high_water_marks import HIGH_WATER_MARK
from deltaic.protocol.columns.type_widening import TYPE_CHANGES
from deltaic.protocol.features import all_features
from deltaic.protocol.properties import CONSTRAINT_PREFIX, FEATURE_PREFIX, find_property
from deltaic.protocol.schema import map_fields, write_schema

#: Column metadata that records the history of a table's rows, not its definition.
_HISTORY = frozenset({HIGH_WATER_MARK, TYPE_CHANGES})


@dataclass(frozen=True, slots=True)
class CopiedDefinition:
    """Columns, properties, properties that request the same protocol, and CHECK constraints."""

    schema_string: str
    properties: Mapping[str, str]
    protocol_properties: Mapping[str, str]
    constraints: Mapping[str, str]


def copied_definition(protocol: Protocol, metadata: Metadata) -> CopiedDefinition:
    """Return all of a table's definition that does not depend on its rows or files.

    Internal properties, such as the maximum column id, are not copied: a new table gets its own.
    """
    schema = map_fields(metadata.schema, lambda column: column.without_entries(*_HISTORY))
    constraints, properties = {}, {}
    for name, value in metadata.configuration.items():
        if name.casefold().startswith(CONSTRAINT_PREFIX):
            constraints[name[len(CONSTRAINT_PREFIX) :]] = value
            continue
        known = find_property(name)
        if known is None or not known.internal:
            properties[name] = value
    return CopiedDefinition(
        write_schema(schema), properties, _protocol_properties(protocol), constraints
    )


def _protocol_properties(protocol: Protocol) -> dict[str, str]:
    if protocol.min_writer_version < WRITER_VERSION_WITH_FEATURES:
        return {
            "delta.minReaderVersion": str(protocol.min_reader_version),
            "delta.minWriterVersion": str(protocol.min_writer_version),
        }
    supported = protocol.writer_features or frozenset()
    known = {feature.name for feature in all_features()}
    return {FEATURE_PREFIX + name: "supported" for name in sorted(supported & known)}
