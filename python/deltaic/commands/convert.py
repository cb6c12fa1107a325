"""CONVERT TO DELTA: Parquet files become a Delta table, in one commit. No file is rewritten."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, field

from deltaic.commands.definitions.column_parameters import compact
from deltaic.commands.definitions.parquet_definition import (
    ParquetDefinition,
    parquet_definition,
    require_met,
)
from deltaic.commands.rows import RowSet, result_schema
from deltaic.commit.clock import Clock
from deltaic.commit.message import Message
from deltaic.commit.operations import Operation
from deltaic.commit.parquet_source import ParquetEntry, ParquetRequest, ParquetSummary
from deltaic.commit.plan import CommitPlan, Definition
from deltaic.commit.ports import CommitSummary, OperationInfo, TableAccess
from deltaic.commit.transaction import RetryPolicy, commit, with_user_metadata
from deltaic.exceptions import ProtocolChangedException
from deltaic.protocol.properties import recognized_defaults
from deltaic.protocol.schema import StructType, type_text

CONVERT_SCHEMA = result_schema("convertToDelta")

_PLAIN_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")


@dataclass(frozen=True, slots=True)
class ConvertToDelta(Message):
    """The arguments.

    Attributes
    ----------
    partition_schema
        The partition columns, as the JSON of a schema; None if they are not specified.
    """

    table: str
    entry: ParquetEntry = field(default_factory=ParquetEntry)
    partition_schema: str | None = None
    collect_statistics: bool = True


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
    entry = arguments.entry
    request = ParquetRequest(
        entry.catalog_table,
        arguments.partition_schema,
        arguments.collect_statistics,
        {**recognized_defaults(defaults), **entry.properties},
    )
    files = tables.read_parquet(arguments.table, request)
    found = files.summary()
    definition = parquet_definition(
        ParquetDefinition(arguments.table, found, entry, tables.allows_unknown_properties()),
        defaults,
        clock_ms(),
    )
    require_met(arguments.table, definition, has_statistics=arguments.collect_statistics)
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


def _summary(
    arguments: ConvertToDelta, definition: Definition, found: ParquetSummary
) -> CommitSummary:
    catalog_table = arguments.entry.catalog_table
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
