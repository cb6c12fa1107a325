"""A table's definition, as its first commit or a replacement states it."""

from __future__ import annotations

import uuid
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace

from deltaic.commit.plan import CommitPlan, Definition
from deltaic.commit.ports import TableHeader
from deltaic.exceptions import error
from deltaic.protocol import clustering, in_commit_timestamps, row_tracking
from deltaic.protocol.actions import DomainMetadata, Metadata, Protocol
from deltaic.protocol.change_data import check_feed_columns
from deltaic.protocol.column_expressions import EXISTS_DEFAULT
from deltaic.protocol.column_lists import (
    STATS_COLUMNS,
    check_statistics_columns,
    with_columns_of,
)
from deltaic.protocol.column_mapping import check_stated_mapping, is_mapped, new_mapping
from deltaic.protocol.constraints import (
    constraint_key,
    constraint_properties,
    require_free_name,
    without_constraints,
)
from deltaic.protocol.dormant_properties import require_still_dormant
from deltaic.protocol.features import require_definable, supports
from deltaic.protocol.iceberg_compat import (
    require_compatible,
    require_same_partitioning,
    with_column_mapping,
)
from deltaic.protocol.limited_texts import LIMITED_TEXT, LIMITED_TEXT_KEY
from deltaic.protocol.negotiation import protocol_for_new_definition, protocol_for_new_table
from deltaic.protocol.properties import (
    CONSTRAINT_PREFIX,
    CheckedProperties,
    ProtocolRequest,
    check_properties,
    known_defaults,
)
from deltaic.protocol.retention import check_retention
from deltaic.protocol.schema import (
    Field,
    PrimitiveType,
    StructType,
    map_fields,
    parse_schema,
    write_schema,
)
from deltaic.protocol.schema_checks import (
    check_nested_not_null,
    check_table_schema,
    resolve_partition_columns,
)
from deltaic.protocol.schema_edits import find_field

#: Metadata by which Spark carries another table's column mapping along with its rows.
_FOREIGN_METADATA_PREFIX = "delta.columnMapping."

_NOTHING_ASKED = ProtocolRequest()
_NO_PROPERTIES = CheckedProperties({}, _NOTHING_ASKED)


@dataclass(frozen=True, slots=True)
class DefinitionRequest:
    """What a user says about a table that is to be created or replaced.

    Attributes
    ----------
    schema_string
        The columns; None if the user gave none.
    default_properties
        The properties that the session gives every new table, and one that replaces another; those
        given take precedence.
    constraints
        The conditions of CHECK constraints, by name.
    cluster_by
        The columns to cluster by, each by the names that lead to it; None if that is not said.
    any_properties
        Whether the session allows properties of the ``delta.`` namespace that nobody knows.
    columnless
        Whether the table may have no columns, until some are added.
    states_columns
        Whether a statement lists the columns, and the user can so be held to what it says of them.
    copied_properties
        Properties of the table that this one is to be like, stored as they are: they are not the
        statement's to answer for. Those given take precedence.
    """

    table: str
    schema_string: str | None
    partition_by: Sequence[str] = ()
    properties: Mapping[str, str] | None = None
    description: str | None = None
    default_properties: Mapping[str, str] | None = None
    constraints: Mapping[str, str] | None = None
    cluster_by: Sequence[Sequence[str]] | None = None
    any_properties: bool = False
    columnless: bool = False
    states_columns: bool = False
    copied_properties: Mapping[str, str] = field(default_factory=dict)


def define_table(request: DefinitionRequest, now_ms: int) -> Definition:
    """Return the definition of a new table.

    Raises
    ------
    InvalidArgumentError
        If columns, partition columns or properties are not valid.
    ProtocolError
        If they call for a feature that this build cannot write.
    """
    checked = _checked_properties(request)
    configuration = with_column_mapping(checked.configuration)
    schema, partition_columns = _columns(request, configuration)
    if STATS_COLUMNS in request.copied_properties:
        # The list is another table's, whose columns its writer may have told otherwise.
        configuration = with_columns_of(schema, partition_columns, configuration)
    else:
        check_statistics_columns(request.table, schema, partition_columns, configuration)
    metadata = Metadata(
        id=str(uuid.uuid4()),
        schema_string=write_schema(schema),
        partition_columns=partition_columns,
        configuration=row_tracking.with_materialized_columns(
            {**configuration, **_constraint_properties(request)}, {}
        ),
        description=request.description,
        created_time_ms=now_ms,
    )
    metadata = new_mapping(metadata)
    protocol = protocol_for_new_table(request.table, metadata, _asked(request, checked))
    require_definable(request.table, protocol, metadata)
    require_compatible(request.table, protocol, metadata)
    return Definition(protocol, metadata)


def redefine_table(
    request: DefinitionRequest, current: TableHeader, *, keep_properties: bool
) -> Definition:
    """Return the definition of a table whose columns, and maybe properties, are replaced.

    A table whose properties are kept stays the same one. Else it is another, though at the same
    place: it gets another id, so that a stream does not go on into it unawares, and the properties
    of a new table, as in delta-spark.

    Raises
    ------
    InvalidArgumentError, ProtocolError, TableStateError
        As for `define_table` and `protocol_of_successor`.
    """
    checked = _NO_PROPERTIES if keep_properties else _checked_properties(request)
    before = current.metadata
    configuration = (
        before.configuration if keep_properties else with_column_mapping(checked.configuration)
    )
    schema, partition_columns = _columns(request, configuration)
    if keep_properties:
        configuration = with_columns_of(schema, partition_columns, configuration)
    else:
        check_statistics_columns(request.table, schema, partition_columns, configuration)
    metadata = replace(
        before,
        id=before.id if keep_properties else str(uuid.uuid4()),
        schema_string=write_schema(schema),
        partition_columns=partition_columns,
        configuration=configuration
        if keep_properties
        else _renewed({**configuration, **_constraint_properties(request)}, before.configuration),
        description=before.description if keep_properties else request.description,
    )
    if _same_columns(request.table, before, schema, partition_columns) and keep_properties:
        metadata = before
    else:
        metadata = new_mapping(metadata, before)
    protocol = protocol_of_successor(
        request.table,
        current,
        metadata,
        _asked(request, checked),
        keeps_properties=keep_properties,
    )
    require_same_partitioning(request.table, metadata, before)
    return Definition(protocol, metadata)


def protocol_of_successor(
    table: str,
    current: TableHeader,
    metadata: Metadata,
    request: ProtocolRequest = _NOTHING_ASKED,
    *,
    keeps_properties: bool = True,
) -> Protocol:
    """Return the protocol that a table needs with another definition, or refuse the definition.

    Parameters
    ----------
    request
        What the user asks of the protocol beside.
    keeps_properties
        Whether properties of the table are those that it had, but for those that were changed.

    Raises
    ------
    InvalidArgumentError
        If parts of the definition do not go together.
    ProtocolError
        If this build could not write to the table.
    TableStateError
        If a property would come into force by it that was without effect.
    """
    if keeps_properties:
        require_still_dormant(table, current.version, current.protocol, current.metadata, metadata)
    protocol = protocol_for_new_definition(table, current.protocol, metadata, request)
    require_definable(table, protocol, metadata)
    require_compatible(table, protocol, metadata)
    return protocol


def plan_of_successor(definition: Definition, current: TableHeader) -> CommitPlan:
    """Return the plan of a commit that gives a table another definition, maybe the one it has."""
    starts_timestamps = in_commit_timestamps.is_active(
        definition.protocol, definition.metadata
    ) and not in_commit_timestamps.is_active(current.protocol, current.metadata)
    return CommitPlan(
        definition,
        current.as_predecessor(),
        changes_protocol=definition.protocol != current.protocol,
        # The metadata says since when, even where only the protocol changes.
        changes_metadata=definition.metadata != current.metadata or starts_timestamps,
        enables_in_commit_timestamps=starts_timestamps,
    )


def _checked_properties(request: DefinitionRequest) -> CheckedProperties:
    given = request.properties or {}
    checked = check_properties(
        request.table,
        {
            **known_defaults(request.default_properties or {}),
            **request.copied_properties,
            **without_constraints(given),
        },
        any_name=request.any_properties,
        copied=request.copied_properties,
    )
    check_retention(request.table, checked.configuration, given)
    return checked


def _asked(request: DefinitionRequest, checked: CheckedProperties) -> ProtocolRequest:
    asked = checked.request
    if not request.cluster_by:
        return asked
    return replace(asked, features=(*asked.features, clustering.FEATURE))


def clustering_of(
    request: DefinitionRequest,
    definition: Definition,
    current: TableHeader | None = None,
    *,
    keep_properties: bool = False,
) -> tuple[DomainMetadata, ...]:
    """Return what the commit of a definition says of clustering, if it has to say anything.

    Of a table that keeps its properties, clustering columns stay that are still there.

    Raises
    ------
    InvalidArgumentError
        If the table cannot be clustered like that.
    """
    metadata = definition.metadata
    if not supports(definition.protocol, clustering.FEATURE):
        return ()
    before: tuple[tuple[str, ...], ...] = ()
    if current is not None:
        if metadata.partition_columns and supports(current.protocol, clustering.FEATURE):
            raise error(
                "DELTAIC_CLUSTERED_TABLE_PARTITIONED",
                table=request.table,
                version=current.version,
                columns=", ".join(metadata.partition_columns),
            )
        known = parse_schema(current.metadata.schema_string, request.table)
        before = clustering.clustering_columns(request.table, known, current.domains)
    schema = parse_schema(metadata.schema_string, request.table)
    wanted = request.cluster_by or ()
    if request.cluster_by is None and keep_properties:
        wanted = [path for path in before if find_field(schema, path) is not None]
    columns = clustering.checked_columns(
        request.table, schema, metadata.partition_columns, metadata.configuration, wanted
    )
    domain = clustering.clustering_domain(metadata, columns)
    is_there = current is not None and (
        current.domains.get(clustering.DOMAIN) == domain.configuration
    )
    return () if is_there else (domain,)


def _constraint_properties(request: DefinitionRequest) -> dict[str, str]:
    stated = {
        **{constraint_key(name): sql for name, sql in (request.constraints or {}).items()},
        **constraint_properties(request.properties or {}),
    }
    for key in stated:
        require_free_name(request.table, key.removeprefix(CONSTRAINT_PREFIX))
    return stated


def _renewed(given: Mapping[str, str], before: Mapping[str, str]) -> Mapping[str, str]:
    """Return the properties of a replacement, with what features keep of the table before."""
    named = row_tracking.with_materialized_columns(given, before)
    return in_commit_timestamps.kept_provenance(named, before)


def _columns(
    request: DefinitionRequest, configuration: Mapping[str, str]
) -> tuple[StructType, tuple[str, ...]]:
    if request.schema_string is None:
        raise error("DELTAIC_SCHEMA_MISSING", table=request.table)
    stated = parse_schema(request.schema_string, request.table)
    schema = map_fields(stated, stored_column)
    if request.states_columns:
        if is_mapped(configuration):
            check_stated_mapping(request.table, stated)
        check_nested_not_null(request.table, schema)
    partition_columns = resolve_partition_columns(request.table, schema, request.partition_by)
    check_table_schema(
        request.table,
        schema,
        partition_columns,
        any_names=is_mapped(configuration),
        columnless=request.columnless,
    )
    check_feed_columns(request.table, schema, configuration)
    return schema, partition_columns


def stored_column(column: Field) -> Field:
    """Return a column as the log holds it.

    A text of limited length is a string there; Spark finds the limit in the column's metadata. What
    Spark says of the column beyond the log, or another table said of it there, is left out.
    """
    metadata = {
        key: value
        for key, value in column.metadata.items()
        if key != EXISTS_DEFAULT and not key.startswith(_FOREIGN_METADATA_PREFIX)
    }
    if isinstance(column.type, PrimitiveType) and LIMITED_TEXT.fullmatch(column.type.name):
        metadata[LIMITED_TEXT_KEY] = column.type.name
        return replace(column, type=PrimitiveType("string"), metadata=metadata)
    return replace(column, metadata=metadata)


def _same_columns(
    table: str, before: Metadata, schema: StructType, partition_columns: Sequence[str]
) -> bool:
    known = map_fields(parse_schema(before.schema_string, table), stored_column)
    return known == schema and (tuple(partition_columns) == before.partition_columns)
