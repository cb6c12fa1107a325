"""ALTER TABLE DROP COLUMNS."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from deltaic.commands.alter.alteration import Alteration, alter, current_snapshot
from deltaic.commands.definitions.altered_schema import (
    require_droppable,
    require_mapping,
    with_schema,
)
from deltaic.commands.definitions.column_parameters import compact
from deltaic.commands.definitions.dependents import require_independent
from deltaic.commit.clock import Clock
from deltaic.commit.message import Message
from deltaic.commit.operations import Operation
from deltaic.commit.ports import TableAccess
from deltaic.commit.transaction import CommitResult, RetryPolicy
from deltaic.exceptions import error
from deltaic.protocol.columns.column_lists import without_columns
from deltaic.protocol.columns.schema_edits import edit_struct, find_field, path_text, spelled
from deltaic.protocol.schema import StructType


@dataclass(frozen=True, slots=True)
class DropColumns(Message):
    """The arguments: the paths of columns, and whether missing ones are ignored."""

    table: str
    columns: Sequence[Sequence[str]]
    if_exists: bool = False


def drop_columns(
    arguments: DropColumns, tables: TableAccess, policy: RetryPolicy, clock_ms: Clock
) -> CommitResult:
    """Drop columns from the schema; files keep their values, which are no longer read.

    Raises
    ------
    InvalidArgumentError
        If there is no such column, or it cannot be dropped.
    """
    table = arguments.table
    current = current_snapshot(table, tables)
    schema = current.metadata.schema
    paths = [
        spelled(schema, path)
        for path in arguments.columns
        if not arguments.if_exists or find_field(schema, path) is not None
    ]
    if not paths:
        return CommitResult(current.version, skipped=True)
    require_mapping(table, current, "drop the columns " + ", ".join(map(path_text, paths)))
    require_droppable(table, current, paths)
    after = schema
    for path in paths:
        after = _without(table, after, path)
    metadata = with_schema(
        table,
        current.metadata,
        after,
        configuration=without_columns(current.metadata.configuration, paths),
    )
    # Checked against the new definition: a generated column may be dropped with its source columns.
    require_independent(table, "dropped", paths, metadata, tables)
    return alter(
        Alteration(
            table,
            current,
            metadata,
            Operation.DROP_COLUMNS,
            {"columns": compact([path_text(path) for path in paths])},
        ),
        tables,
        policy,
        clock_ms,
    )


def _without(table: str, schema: StructType, path: Sequence[str]) -> StructType:
    def drop(struct: StructType) -> StructType:
        dropped = struct.find(path[-1])
        if dropped is None:
            raise error(
                "DELTAIC_COLUMN_NOT_FOUND",
                table=table,
                column=path_text(path),
                columns=", ".join(field.name for field in struct.fields),
            )
        if len(struct.fields) == 1:
            raise error(
                "DELTAIC_CANNOT_ALTER_COLUMN",
                table=table,
                column=path_text(path),
                reason="it is the only column at that level",
                advice="Drop the column that contains it, or add another one first.",
            )
        return StructType(tuple(field for field in struct.fields if field is not dropped))

    return edit_struct(table, schema, path[:-1], drop)
