"""ALTER TABLE RENAME COLUMN."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from deltaic.commands.alter.alteration import Alteration, alter, current_snapshot
from deltaic.commands.definitions.altered_schema import require_mapping, with_schema
from deltaic.commands.definitions.dependents import require_independent
from deltaic.commit.clock import Clock
from deltaic.commit.message import Message
from deltaic.commit.operations import Operation
from deltaic.commit.ports import TableAccess
from deltaic.commit.transaction import CommitResult, RetryPolicy
from deltaic.exceptions import error
from deltaic.protocol.columns.column_lists import with_renamed_column
from deltaic.protocol.columns.schema_edits import edit_field, path_text, spelled
from deltaic.protocol.schema import Field


@dataclass(frozen=True, slots=True)
class RenameColumn(Message):
    """The arguments: the path of the column, and its new name."""

    table: str
    column: Sequence[str]
    name: str


def rename_column(
    arguments: RenameColumn, tables: TableAccess, policy: RetryPolicy, clock_ms: Clock
) -> CommitResult:
    """Rename a column; files keep its physical name.

    Raises
    ------
    InvalidArgumentError
        If there is no such column, the name is taken, or an expression references the column.
    """
    table = arguments.table
    current = current_snapshot(table, tables)
    before = current.metadata
    schema = before.schema
    path = spelled(schema, arguments.column)
    after_path = (*path[:-1], arguments.name)

    def rename(column: Field, below: Sequence[str]) -> Field:
        if below:
            raise error(
                "DELTAIC_CANNOT_ALTER_COLUMN",
                table=table,
                column=path_text(path),
                reason=f"{below[-1]} is a part of a type, not a column",
                advice="Rename the column that contains it.",
            )
        return replace(column, name=arguments.name)

    after = edit_field(table, schema, path, rename)
    require_mapping(table, current, f"rename the column {path_text(path)}")
    require_independent(table, "renamed", [path], before, tables)
    partitions = before.partition_columns
    if len(path) == 1:
        partitions = tuple(arguments.name if p == path[0] else p for p in partitions)
    metadata = with_schema(
        table,
        before,
        after,
        partition_columns=partitions,
        configuration=with_renamed_column(before.configuration, path, arguments.name),
    )
    return alter(
        Alteration(
            table,
            current,
            metadata,
            Operation.RENAME_COLUMN,
            {"oldColumnPath": path_text(path), "newColumnPath": path_text(after_path)},
        ),
        tables,
        policy,
        clock_ms,
    )
