"""A table's definition, as its first commit or a replacement states it."""

from __future__ import annotations

import re
import uuid
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from deltaic.commit.plan import Definition
from deltaic.commit.ports import TableHeader
from deltaic.exceptions import error
from deltaic.protocol import in_commit_timestamps, row_tracking
from deltaic.protocol.actions import Metadata
from deltaic.protocol.change_data import check_feed_columns
from deltaic.protocol.column_mapping import is_mapped, new_mapping, with_new_columns
from deltaic.protocol.constraints import constraint_key
from deltaic.protocol.features import require_definable, supports
from deltaic.protocol.negotiation import protocol_for_new_definition, protocol_for_new_table
from deltaic.protocol.properties import ProtocolRequest, check_properties, is_true
from deltaic.protocol.schema import (
    Field,
    PrimitiveType,
    StructType,
    map_fields,
    parse_schema,
    write_schema,
)
from deltaic.protocol.schema_checks import check_table_schema, resolve_partition_columns
from deltaic.protocol.schema_evolution import SchemaEvolution
from deltaic.protocol.type_widening import PROPERTY as TYPE_WIDENING
from deltaic.protocol.type_widening import computed_from

#: Metadata by which Spark carries another table's column mapping along with its rows.
_FOREIGN_METADATA_PREFIX = "delta.columnMapping."

_LIMITED_TEXT = re.compile(r"(var)?char\(\d+\)")
_LIMITED_TEXT_KEY = "__CHAR_VARCHAR_TYPE_STRING"


@dataclass(frozen=True, slots=True)
class DefinitionRequest:
    """What a user says about a table that is to be created or replaced.

    Attributes
    ----------
    schema_string
        The columns; None if the user gave none.
    default_properties
        The properties that the session gives every new table; those given take precedence.
    constraints
        The conditions of CHECK constraints, by name.
    """

    table: str
    schema_string: str | None
    partition_by: Sequence[str] = ()
    properties: Mapping[str, str] | None = None
    description: str | None = None
    default_properties: Mapping[str, str] | None = None
    constraints: Mapping[str, str] | None = None


def define_table(request: DefinitionRequest, now_ms: int) -> Definition:
    """Return the definition of a new table.

    Raises
    ------
    InvalidArgumentError
        If columns, partition columns or properties are not valid.
    ProtocolError
        If they call for a feature that this build cannot write.
    """
    checked = check_properties(
        request.table, {**(request.default_properties or {}), **(request.properties or {})}
    )
    schema, partition_columns = _columns(request, checked.configuration)
    metadata = Metadata(
        id=str(uuid.uuid4()),
        schema_string=write_schema(schema),
        partition_columns=partition_columns,
        configuration=row_tracking.with_materialized_columns(
            {**checked.configuration, **_constraint_properties(request)}, {}
        ),
        description=request.description,
        created_time_ms=now_ms,
    )
    metadata = new_mapping(metadata)
    protocol = protocol_for_new_table(request.table, metadata, checked.request)
    require_definable(request.table, protocol, metadata)
    return Definition(protocol, metadata)


def redefine_table(
    request: DefinitionRequest, current: TableHeader, *, keep_properties: bool
) -> Definition:
    """Return the definition of a table whose columns, and maybe properties, are replaced.

    The table stays the same one: id and creation time are kept.
    """
    given = {} if keep_properties else request.properties or {}
    checked = check_properties(request.table, given)
    before = current.metadata
    configuration = before.configuration if keep_properties else checked.configuration
    schema, partition_columns = _columns(request, configuration)
    metadata = replace(
        before,
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
    protocol = protocol_for_new_definition(
        request.table, current.protocol, metadata, checked.request
    )
    require_definable(request.table, protocol, metadata)
    return Definition(protocol, metadata)


def evolve_table(table: str, current: TableHeader, written: str) -> Definition:
    """Return the definition of a table with the columns that rows bring along.

    Parameters
    ----------
    written
        The schema of the table with those columns in it.

    Raises
    ------
    InvalidArgumentError
        If a column cannot be added, or its type cannot become that of the rows.
    """
    before = current.metadata
    schema = parse_schema(before.schema_string, table)
    evolution = SchemaEvolution(
        table,
        current.version,
        widens_types=supports(current.protocol, "typeWidening")
        and is_true(before.configuration, TYPE_WIDENING),
        computed_from=lambda column: computed_from(before.configuration, schema, column),
    )
    evolved = evolution.evolved(schema, map_fields(parse_schema(written, table), stored_column))
    if evolved == schema:
        return Definition(current.protocol, before)
    _check_columns(table, evolved, before.partition_columns, before.configuration)
    metadata = with_new_columns(replace(before, schema_string=write_schema(evolved)))
    protocol = protocol_for_new_definition(table, current.protocol, metadata, ProtocolRequest())
    require_definable(table, protocol, metadata)
    return Definition(protocol, metadata)


def _constraint_properties(request: DefinitionRequest) -> dict[str, str]:
    return {constraint_key(name): sql for name, sql in (request.constraints or {}).items()}


def _renewed(given: Mapping[str, str], before: Mapping[str, str]) -> Mapping[str, str]:
    """Return the properties of a replacement, with what features keep of the table before."""
    named = row_tracking.with_materialized_columns(given, before)
    return in_commit_timestamps.kept_provenance(named, before)


def _columns(
    request: DefinitionRequest, configuration: Mapping[str, str]
) -> tuple[StructType, tuple[str, ...]]:
    if request.schema_string is None:
        raise error("DELTAIC_SCHEMA_MISSING", table=request.table)
    schema = map_fields(parse_schema(request.schema_string, request.table), stored_column)
    partition_columns = resolve_partition_columns(request.table, schema, request.partition_by)
    _check_columns(request.table, schema, partition_columns, configuration)
    return schema, partition_columns


def _check_columns(
    table: str,
    schema: StructType,
    partition_columns: Sequence[str],
    configuration: Mapping[str, str],
) -> None:
    check_table_schema(table, schema, partition_columns, any_names=is_mapped(configuration))
    check_feed_columns(table, schema, configuration)


def stored_column(column: Field) -> Field:
    """Return a column as the log holds it.

    A text of limited length is a string there; Spark finds the limit in the column's metadata.
    """
    metadata = {
        key: value
        for key, value in column.metadata.items()
        if not key.startswith(_FOREIGN_METADATA_PREFIX)
    }
    if isinstance(column.type, PrimitiveType) and _LIMITED_TEXT.fullmatch(column.type.name):
        metadata[_LIMITED_TEXT_KEY] = column.type.name
        return replace(column, type=PrimitiveType("string"), metadata=metadata)
    return replace(column, metadata=metadata)


def _same_columns(
    table: str, before: Metadata, schema: StructType, partition_columns: Sequence[str]
) -> bool:
    known = map_fields(parse_schema(before.schema_string, table), stored_column)
    return known == schema and (tuple(partition_columns) == before.partition_columns)
