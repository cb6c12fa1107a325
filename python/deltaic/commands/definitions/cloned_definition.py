"""The definition of a clone: that of its source, except for what its history determines."""

from __future__ import annotations

import uuid
from dataclasses import dataclass, replace

from deltaic.commands.definitions.copied_clustering import without_excluded_clustering
from deltaic.commit.plan import Definition
from deltaic.commit.ports import TableSnapshot
from deltaic.protocol import in_commit_timestamps, row_tracking
from deltaic.protocol.actions import Metadata, Protocol
from deltaic.protocol.change_data import check_feed_columns
from deltaic.protocol.columns.column_lists import check_statistics_columns
from deltaic.protocol.columns.column_mapping import MAX_COLUMN_ID, upgraded, with_new_columns
from deltaic.protocol.columns.iceberg_compat import newly_active, require_compatible
from deltaic.protocol.columns.identity import with_merged_high_water_marks
from deltaic.protocol.features import require_definable, supports
from deltaic.protocol.negotiation import (
    merged_protocol,
    protocol_for_new_definition,
    protocol_without,
)
from deltaic.protocol.numbers import whole_number
from deltaic.protocol.properties import (
    CHECKPOINT_PROTECTION,
    PROTECTED_VERSION_PROPERTY,
    CheckedProperties,
    find_property,
)
from deltaic.protocol.retention import check_retention

#: Features of the history of a table: one protects checkpoints of its versions, with the other, a
#: coordinator makes its commits.
_OF_HISTORY = (CHECKPOINT_PROTECTION, "coordinatedCommits")
_COORDINATION = "delta.coordinatedCommits."


@dataclass(frozen=True, slots=True)
class CloneSource:
    """What the definition of a clone is made of.

    Attributes
    ----------
    source
        The version that is cloned.
    current
        The table that the clone replaces, if any.
    properties
        The properties that the statement sets.
    """

    table: str
    source: TableSnapshot
    current: TableSnapshot | None
    properties: CheckedProperties


def cloned_definition(request: CloneSource, now_ms: int) -> Definition:
    """Return the definition of a clone.

    It has the columns, partition columns, constraints and properties of the source, and supports
    its features. Properties that describe the history of the source are not copied. A table that is
    replaced keeps its id, the properties that describe its own history, and its features.

    Raises
    ------
    InvalidArgumentError
        If a property of the statement is not valid, or would require other files.
    ProtocolError
        If this build could not write to the clone.
    """
    metadata = _metadata(request, now_ms)
    protocol = _protocol(request, metadata)
    require_definable(request.table, protocol, metadata)
    require_compatible(request.table, protocol, metadata)
    return Definition(protocol, metadata)


def _metadata(request: CloneSource, now_ms: int) -> Metadata:
    table, source, current = request.table, request.source.metadata, request.current
    earlier = {} if current is None else current.metadata.configuration
    given = request.properties.configuration
    configuration = row_tracking.with_materialized_columns(
        {
            **{name: value for name, value in source.configuration.items() if _is_copied(name)},
            **given,
            **_history_of_target(source, request),
        },
        earlier,
    )
    check_retention(table, configuration, given)
    check_feed_columns(table, source.schema, configuration)
    check_statistics_columns(table, source.schema, source.partition_columns, given)
    metadata = replace(
        source,
        id=str(uuid.uuid4()) if current is None else current.metadata.id,
        created_time_ms=now_ms if current is None else current.metadata.created_time_ms,
        configuration=in_commit_timestamps.with_retained_enablement(configuration, earlier),
    )
    metadata = upgraded(table, metadata, source.configuration)
    if current is not None:
        metadata = with_merged_high_water_marks(metadata, current.metadata)
    if newly_active(metadata.configuration, source.configuration) is not None:
        metadata = with_new_columns(metadata)
    return metadata


def _is_copied(name: str) -> bool:
    """Whether a property describes the table, and not what has happened to it."""
    if name.startswith(_COORDINATION):
        return False
    known = find_property(name)
    return known is None or not known.internal or known.name == MAX_COLUMN_ID


def _history_of_target(source: Metadata, request: CloneSource) -> dict[str, str]:
    """Return the properties that depend on earlier versions of the table that is replaced."""
    if request.current is None:
        return {}
    configuration = request.current.metadata.configuration
    kept = {}
    if PROTECTED_VERSION_PROPERTY in configuration:
        kept[PROTECTED_VERSION_PROPERTY] = configuration[PROTECTED_VERSION_PROPERTY]
    # Column ids are not assigned again, whichever of the two tables has assigned them.
    ids = [whole_number(c.get(MAX_COLUMN_ID, "")) for c in (configuration, source.configuration)]
    assigned = [number for number in ids if number is not None]
    if assigned and MAX_COLUMN_ID in source.configuration:
        kept[MAX_COLUMN_ID] = str(max(assigned))
    return kept


def _protocol(request: CloneSource, metadata: Metadata) -> Protocol:
    protocol = request.source.protocol
    for feature in _OF_HISTORY:
        if supports(protocol, feature):
            protocol = protocol_without(protocol, feature)
    if request.current is not None:
        protocol = merged_protocol(request.current.protocol, protocol)
        protocol = without_excluded_clustering(protocol, metadata)
    return protocol_for_new_definition(
        request.table, protocol, metadata, request.properties.request
    )
