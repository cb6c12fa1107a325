"""CONVERT TO DELTA: Parquet files become a Delta table, in one commit. No file is rewritten."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from deltaic.commands.definitions.column_parameters import compact
from deltaic.commands.definitions.create_statement import RequestedDefinition
from deltaic.commands.definitions.definition import DefinitionRequest, define_table
from deltaic.commands.rows import RowSet, result_schema
from deltaic.commit.clock import Clock
from deltaic.commit.message import Message
from deltaic.commit.operations import Operation
from deltaic.commit.parquet_source import ParquetRequest, ParquetSummary
from deltaic.commit.plan import CommitPlan, Definition
from deltaic.commit.ports import CommitSummary, OperationInfo, TableAccess
from deltaic.commit.transaction import RetryPolicy, commit, with_user_metadata
from deltaic.exceptions import DeltaError, ProtocolChangedException, error
from deltaic.protocol import row_tracking
from deltaic.protocol.columns.column_mapping import is_mapped
from deltaic.protocol.features import supports
from deltaic.protocol.properties import recognized_defaults
from deltaic.protocol.schema import StructType, type_text

CONVERT_SCHEMA = result_schema("convertToDelta")

#: Features that require of data files what those of other writers do not have.
_UNMET_FEATURES = {
    "icebergCompatV1": "delta.enableIcebergCompatV1",
    "icebergCompatV2": "delta.enableIcebergCompatV2",
    "icebergCompatV3": "delta.enableIcebergCompatV3",
}
_PLAIN_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
_MAPPING_MODE = "delta.columnMapping.mode"


@dataclass(frozen=True, slots=True)
class ConvertToDelta(Message):
    """The arguments.

    Attributes
    ----------
    catalog_table
        The name of the table in the session catalog; None if the files are given by their path.
    partition_schema
        The partition columns, as the JSON of a schema; None if they are not specified.
    properties, description
        Those of the table in the catalog.
    """

    table: str
    catalog_table: str | None = None
    partition_schema: str | None = None
    collect_statistics: bool = True
    properties: Mapping[str, str] = field(default_factory=dict)
    description: str | None = None


def convert_to_delta(
    arguments: ConvertToDelta, tables: TableAccess, policy: RetryPolicy, clock_ms: Clock
) -> RowSet:
    """Commit the files of a folder as the first version of a table.

    The result has no rows if there is a Delta table already, also if another writer creates it
    concurrently.

    Raises
    ------
    InvalidArgumentError
        If the files do not have the columns of a table that Deltaic can write, or a property
        requires what they do not have.
    TableStateError
        If there are no files, or one of them is no Parquet file.
    """
    if tables.snapshot(arguments.table) is not None:
        return RowSet(CONVERT_SCHEMA, [])
    defaults = tables.default_properties()
    request = ParquetRequest(
        arguments.catalog_table,
        arguments.partition_schema,
        arguments.collect_statistics,
        {**recognized_defaults(defaults), **arguments.properties},
    )
    files = tables.read_parquet(arguments.table, request)
    found = files.summary()
    definition = _definition(arguments, found, tables, clock_ms())
    summary = with_user_metadata(_summary(arguments, definition, found), tables)
    prepared = tables.prepare_conversion(summary, files)
    try:
        commit(prepared, tables, policy, clock_ms)
    except ProtocolChangedException:
        if tables.snapshot(arguments.table) is None:
            raise
        return RowSet(CONVERT_SCHEMA, [])
    row = {
        "num_converted_files": found.num_files,
        "partitioned_by": _ddl(definition.metadata.schema, found.partition_columns),
        "partitioning_inferred": found.is_partitioning_inferred,
    }
    return RowSet(CONVERT_SCHEMA, [row])


def _definition(
    arguments: ConvertToDelta, found: ParquetSummary, tables: TableAccess, now_ms: int
) -> Definition:
    request = DefinitionRequest(
        arguments.table,
        RequestedDefinition(
            schema_string=found.schema_string,
            partition_by=found.partition_columns,
            properties=arguments.properties,
            description=arguments.description,
        ),
        tables.default_properties(),
        any_properties=tables.allows_unknown_properties(),
    )
    try:
        definition = define_table(request, now_ms)
    except DeltaError as problem:
        if problem.condition != "DELTAIC_INVALID_COLUMN_NAME":
            raise
        column = problem.parameters["column"]
        raise error(
            "DELTAIC_CONVERT_COLUMN_NAME", table=arguments.table, column=column
        ) from problem
    _require_met(arguments, definition)
    return definition


def _require_met(arguments: ConvertToDelta, definition: Definition) -> None:
    """Refuse properties that require what the files do not have."""
    protocol, metadata = definition.protocol, definition.metadata
    for feature, name in _UNMET_FEATURES.items():
        if supports(protocol, feature):
            raise _unmet(arguments, name, "it requires column IDs in the files")
    if is_mapped(metadata.configuration):
        raise _unmet(
            arguments,
            _MAPPING_MODE,
            "a new table with column mapping has other names of columns in its files",
        )
    if metadata.partition_columns and supports(protocol, "materializePartitionColumns"):
        raise _unmet(
            arguments,
            "delta.feature.materializePartitionColumns",
            "it requires the partition columns in the files",
        )
    if not arguments.collect_statistics and row_tracking.assigns_row_ids(protocol, metadata):
        raise _unmet(
            arguments,
            "delta.enableRowTracking",
            "it requires the number of rows of each file, which NO STATISTICS leaves out",
        )


def _unmet(arguments: ConvertToDelta, name: str, reason: str) -> DeltaError:
    return error(
        "DELTAIC_CONVERT_PROPERTY_UNMET", table=arguments.table, property=name, reason=reason
    )


def _summary(
    arguments: ConvertToDelta, definition: Definition, found: ParquetSummary
) -> CommitSummary:
    catalog_table = arguments.catalog_table
    return CommitSummary(
        table=arguments.table,
        read_version=-1,
        operation=OperationInfo(
            Operation.CONVERT,
            {
                "numFiles": str(found.num_files),
                "partitionedBy": compact(list(found.partition_columns)),
                "collectStats": "true" if arguments.collect_statistics else "false",
                **({} if catalog_table is None else {"catalogTable": catalog_table}),
                "sourceFormat": "parquet",
            },
        ),
        plan=CommitPlan(definition, changes_protocol=True, changes_metadata=True),
        is_blind_append=False,
        reads_whole_table=False,
    )


def _ddl(schema: StructType, columns: Sequence[str]) -> str:
    """Return the partition columns as PARTITIONED BY takes them."""
    found = (column for name in columns if (column := schema.find(name)) is not None)
    return ", ".join(f"{_quoted(column.name)} {type_text(column.type).upper()}" for column in found)


def _quoted(name: str) -> str:
    return name if _PLAIN_NAME.fullmatch(name) else f"`{name.replace('`', '``')}`"
