"""A table's definition in its first commit or in a replacement."""

from __future__ import annotations

import uuid
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace

from deltaic.commands.definitions.create_statement import RequestedDefinition
from deltaic.commit.plan import CommitPlan, Definition
from deltaic.commit.ports import TableSnapshot
from deltaic.exceptions import error
from deltaic.protocol import in_commit_timestamps, row_tracking
from deltaic.protocol.actions import DomainMetadata, Metadata, Protocol
from deltaic.protocol.change_data import check_feed_columns
from deltaic.protocol.columns import clustering
from deltaic.protocol.columns.char_varchar import CHAR_VARCHAR_TYPE, CHAR_VARCHAR_TYPE_KEY
from deltaic.protocol.columns.column_expressions import EXISTS_DEFAULT
from deltaic.protocol.columns.column_lists import (
    STATS_COLUMNS,
    check_statistics_columns,
    with_columns_of,
)
from deltaic.protocol.columns.column_mapping import check_specified_mapping, is_mapped, new_mapping
from deltaic.protocol.columns.iceberg_compat import (
    require_compatible,
    require_same_partitioning,
    with_required_properties,
)
from deltaic.protocol.columns.schema_checks import (
    check_nested_not_null,
    check_table_schema,
    resolve_partition_columns,
)
from deltaic.protocol.columns.schema_edits import find_field
from deltaic.protocol.constraints import (
    constraint_key,
    constraint_properties,
    require_free_name,
    without_constraints,
)
from deltaic.protocol.features import require_definable, supports
from deltaic.protocol.negotiation import protocol_for_new_definition, protocol_for_new_table
from deltaic.protocol.properties import (
    CONSTRAINT_PREFIX,
    CheckedProperties,
    ProtocolRequest,
    check_properties,
    recognized_defaults,
)
from deltaic.protocol.properties_without_feature import require_not_activated
from deltaic.protocol.retention import check_retention
from deltaic.protocol.schema import (
    Field,
    PrimitiveType,
    StructType,
    map_fields,
    parse_schema,
    write_schema,
)

#: Column metadata in which a DataFrame retains the column mapping of the table that it reads.
_FOREIGN_METADATA_PREFIX = "delta.columnMapping."

_NO_REQUEST = ProtocolRequest()
_NO_PROPERTIES = CheckedProperties({}, _NO_REQUEST)


@dataclass(frozen=True, slots=True)
class DefinitionRequest:
    """The definition of a table to create or replace, with what the session adds.

    Attributes
    ----------
    default_properties
        The properties that the session sets for every new or replaced table; those given take
        precedence.
    any_properties
        Whether the session allows unknown properties of the ``delta.`` namespace.
    columnless
        Whether the table may have no columns, until some are added.
    specifies_columns
        Whether a statement lists the columns, so that their metadata is the user's and is checked.
    copied_properties
        Properties of the table in LIKE, stored as they are and not checked as the statement's own.
        Those given take precedence.
    """

    table: str
    requested: RequestedDefinition
    default_properties: Mapping[str, str] | None = None
    any_properties: bool = False
    columnless: bool = False
    specifies_columns: bool = False
    copied_properties: Mapping[str, str] = field(default_factory=dict)


def define_table(request: DefinitionRequest, now_ms: int) -> Definition:
    """Return the definition of a new table.

    Raises
    ------
    InvalidArgumentError
        If columns, partition columns or properties are not valid.
    ProtocolError
        If they require a feature that this build cannot write.
    """
    checked = _checked_properties(request)
    configuration = with_required_properties(checked.configuration)
    schema, partition_columns = _columns(request, configuration)
    if STATS_COLUMNS in request.copied_properties:
        # The list is another table's, and its writer may have spelled the columns differently.
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
        description=request.requested.description,
        created_time_ms=now_ms,
    )
    metadata = new_mapping(metadata)
    protocol = protocol_for_new_table(request.table, metadata, _asked(request, checked))
    require_definable(request.table, protocol, metadata)
    require_compatible(request.table, protocol, metadata)
    return Definition(protocol, metadata)


def redefine_table(
    request: DefinitionRequest, current: TableSnapshot, *, keep_properties: bool
) -> Definition:
    """Return the definition of a table whose columns, and maybe properties, are replaced.

    A table that keeps its properties keeps its id. Otherwise it gets a new id, so that a stream of
    the old table fails instead of reading the new one, and the properties of a new table, as in
    delta-spark.

    Raises
    ------
    InvalidArgumentError, ProtocolError, TableStateError
        As for `define_table` and `upgraded_protocol`.
    """
    checked = _NO_PROPERTIES if keep_properties else _checked_properties(request)
    before = current.metadata
    configuration = (
        before.configuration if keep_properties else with_required_properties(checked.configuration)
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
        else _replaced_properties(
            {**configuration, **_constraint_properties(request)}, before.configuration
        ),
        description=before.description if keep_properties else request.requested.description,
    )
    if _same_columns(before, schema, partition_columns) and keep_properties:
        metadata = before
    else:
        metadata = new_mapping(metadata, before)
    protocol = upgraded_protocol(
        request.table,
        current,
        metadata,
        _asked(request, checked),
        keeps_properties=keep_properties,
    )
    require_same_partitioning(request.table, metadata, before)
    return Definition(protocol, metadata)


def upgraded_protocol(
    table: str,
    current: TableSnapshot,
    metadata: Metadata,
    request: ProtocolRequest = _NO_REQUEST,
    *,
    keeps_properties: bool = True,
) -> Protocol:
    """Return the protocol that a table requires with a new definition, or refuse the definition.

    Parameters
    ----------
    request
        What the user requests of the protocol in addition.
    keeps_properties
        Whether the table keeps its properties, except for those that were changed.

    Raises
    ------
    InvalidArgumentError
        If parts of the definition exclude each other.
    ProtocolError
        If this build could not write to the table.
    TableStateError
        If it would activate a property that had no effect before.
    """
    if keeps_properties:
        require_not_activated(table, current.version, current.protocol, current.metadata, metadata)
    protocol = protocol_for_new_definition(table, current.protocol, metadata, request)
    require_definable(table, protocol, metadata)
    require_compatible(table, protocol, metadata)
    return protocol


def plan_metadata_update(definition: Definition, current: TableSnapshot) -> CommitPlan:
    """Return the plan of a commit that sets a table's definition, which may be unchanged."""
    starts_timestamps = in_commit_timestamps.is_active(
        definition.protocol, definition.metadata
    ) and not in_commit_timestamps.is_active(current.protocol, current.metadata)
    return CommitPlan(
        definition,
        current.as_previous_version(),
        changes_protocol=definition.protocol != current.protocol,
        # The metadata records the enablement version, even if only the protocol changes.
        changes_metadata=definition.metadata != current.metadata or starts_timestamps,
        enables_in_commit_timestamps=starts_timestamps,
    )


def _checked_properties(request: DefinitionRequest) -> CheckedProperties:
    given = request.requested.properties
    checked = check_properties(
        request.table,
        {
            **recognized_defaults(request.default_properties or {}),
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
    if not request.requested.cluster_by:
        return asked
    return replace(asked, features=(*asked.features, clustering.FEATURE))


def clustering_of(
    request: DefinitionRequest,
    definition: Definition,
    current: TableSnapshot | None = None,
    *,
    keep_properties: bool = False,
) -> tuple[DomainMetadata, ...]:
    """Return the clustering domain that the commit of a definition sets, if it changes.

    A table that keeps its properties keeps those clustering columns that it still has.

    Raises
    ------
    InvalidArgumentError
        If the table cannot be clustered by these columns.
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
        before = clustering.clustering_columns(
            request.table, current.protocol, current.metadata, current.domains
        )
    wanted = request.requested.cluster_by or ()
    if request.requested.cluster_by is None and keep_properties:
        wanted = [path for path in before if find_field(metadata.schema, path) is not None]
    columns = clustering.checked_columns(request.table, metadata, wanted)
    domain = clustering.clustering_domain(metadata, columns)
    is_unchanged = current is not None and (
        current.domains.get(clustering.DOMAIN) == domain.configuration
    )
    return () if is_unchanged else (domain,)


def _constraint_properties(request: DefinitionRequest) -> dict[str, str]:
    specified = {
        **{constraint_key(name): sql for name, sql in request.requested.constraints.items()},
        **constraint_properties(request.requested.properties),
    }
    for key in specified:
        require_free_name(request.table, key.removeprefix(CONSTRAINT_PREFIX))
    return specified


def _replaced_properties(given: Mapping[str, str], before: Mapping[str, str]) -> Mapping[str, str]:
    """Return the properties of a replacement, with those that features retain from before."""
    named = row_tracking.with_materialized_columns(given, before)
    return in_commit_timestamps.with_retained_enablement(named, before)


def _columns(
    request: DefinitionRequest, configuration: Mapping[str, str]
) -> tuple[StructType, tuple[str, ...]]:
    if request.requested.schema_string is None:
        raise error("DELTAIC_SCHEMA_MISSING", table=request.table)
    specified = parse_schema(request.requested.schema_string, request.table)
    schema = map_fields(specified, stored_column)
    if request.specifies_columns:
        if is_mapped(configuration):
            check_specified_mapping(request.table, specified)
        check_nested_not_null(request.table, schema)
    partition_columns = resolve_partition_columns(
        request.table, schema, request.requested.partition_by
    )
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
    """Return a column as the log stores it.

    CHAR and VARCHAR are strings there; Spark finds the length in the column's metadata. Metadata
    that only Spark uses, and the column mapping of another table, are removed.
    """
    metadata = {
        key: value
        for key, value in column.metadata.items()
        if key != EXISTS_DEFAULT and not key.startswith(_FOREIGN_METADATA_PREFIX)
    }
    if isinstance(column.type, PrimitiveType) and CHAR_VARCHAR_TYPE.fullmatch(column.type.name):
        metadata[CHAR_VARCHAR_TYPE_KEY] = column.type.name
        return replace(column, type=PrimitiveType("string"), metadata=metadata)
    return replace(column, metadata=metadata)


def _same_columns(before: Metadata, schema: StructType, partition_columns: Sequence[str]) -> bool:
    current = map_fields(before.schema, stored_column)
    return current == schema and (tuple(partition_columns) == before.partition_columns)
