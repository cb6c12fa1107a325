"""CREATE TABLE without a query: a commit that holds only the definition."""

from __future__ import annotations

from dataclasses import replace

from deltaic.commands.definitions.column_parameters import compact
from deltaic.commands.definitions.copied_definition import copied_definition
from deltaic.commands.definitions.create_statement import (
    CreateTable,
    LikeTable,
    RequestedDefinition,
)
from deltaic.commands.definitions.definition import (
    DefinitionRequest,
    clustering_of,
    define_table,
)
from deltaic.commands.definitions.existing_table import clustered_by, require_matching_table
from deltaic.commit.clock import Clock
from deltaic.commit.operations import Operation
from deltaic.commit.plan import CommitPlan, Definition
from deltaic.commit.ports import CommitSummary, OperationInfo, TableAccess, TableSnapshot
from deltaic.commit.transaction import CommitResult, RetryPolicy, commit_metadata
from deltaic.exceptions import ProtocolChangedException, error
from deltaic.protocol.actions import DomainMetadata
from deltaic.protocol.columns.schema_edits import path_text


def create_table(
    arguments: CreateTable, tables: TableAccess, policy: RetryPolicy, clock_ms: Clock
) -> CommitResult:
    """Commit the definition of a new table.

    If a table exists at the location, or another writer creates it concurrently, it is used as it
    is, without a commit, if its definition matches the statement.

    Raises
    ------
    InvalidArgumentError
        If the statement is not valid, or does not match the existing table.
    """
    if arguments.like is not None:
        arguments = _like(arguments, arguments.like, tables)
    current = tables.snapshot(arguments.table)
    if current is not None:
        return _use_existing_table(arguments, current, tables)
    request = DefinitionRequest(
        arguments.table,
        arguments.definition,
        tables.default_properties(),
        any_properties=tables.allows_unknown_properties(),
        columnless=tables.allows_no_columns(),
        specifies_columns=arguments.like is None,
        copied_properties=arguments.copied_properties,
    )
    definition = define_table(request, clock_ms())
    domains = clustering_of(request, definition)
    try:
        return commit_metadata(_summary(arguments, definition, domains), tables, policy, clock_ms)
    except ProtocolChangedException:
        created = tables.snapshot(arguments.table)
        if created is None:
            raise
        return _use_existing_table(arguments, created, tables)


def _like(arguments: CreateTable, source: LikeTable, tables: TableAccess) -> CreateTable:
    """Return the arguments with the definition copied from another table."""
    found = tables.snapshot(source.table, source.version)
    if found is None:
        raise error("DELTAIC_NOT_A_TABLE", table=source.table)
    copied = copied_definition(found.protocol, found.metadata)
    specified = arguments.definition
    definition = RequestedDefinition(
        schema_string=copied.schema_string,
        partition_by=found.metadata.partition_columns,
        properties={**copied.protocol_properties, **specified.properties},
        constraints={**copied.constraints, **specified.constraints},
        description=specified.description or found.metadata.description,
        cluster_by=clustered_by(found) or None,
    )
    return replace(arguments, definition=definition, copied_properties=copied.properties)


def _use_existing_table(
    arguments: CreateTable, current: TableSnapshot, tables: TableAccess
) -> CommitResult:
    require_matching_table(arguments, current, any_properties=tables.allows_unknown_properties())
    return CommitResult(current.version, skipped=True)


def _summary(
    arguments: CreateTable, definition: Definition, domains: tuple[DomainMetadata, ...]
) -> CommitSummary:
    specified = arguments.definition
    plan = CommitPlan(
        definition,
        is_blind_append=True,
        changes_protocol=True,
        changes_metadata=True,
        domains=domains,
    )
    return CommitSummary(
        table=arguments.table,
        read_version=-1,
        operation=OperationInfo(
            Operation.CREATE_TABLE,
            {
                "isManaged": "true" if arguments.is_managed else "false",
                "description": specified.description,
                "partitionBy": compact(list(definition.metadata.partition_columns)),
                "clusterBy": compact([path_text(path) for path in specified.cluster_by or ()]),
                "properties": compact(dict(definition.metadata.configuration)),
            },
        ),
        plan=plan,
        is_blind_append=True,
        reads_whole_table=False,
    )
