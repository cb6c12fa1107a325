"""ALTER TABLE ALTER COLUMN SYNC IDENTITY (Protocol § Identity Columns)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from deltaic.commands.alter.alteration import Alteration, alter, current_snapshot
from deltaic.commands.definitions.column_parameters import column_parameter, compact
from deltaic.commit.clock import Clock
from deltaic.commit.message import Message
from deltaic.commit.operations import Operation
from deltaic.commit.ports import TableAccess
from deltaic.commit.transaction import CommitResult, RetryPolicy
from deltaic.exceptions import error
from deltaic.protocol.columns.identity import (
    high_water_mark_at,
    identity_step,
    with_high_water_marks,
)
from deltaic.protocol.columns.schema_edits import find_field, path_text, spelled


@dataclass(frozen=True, slots=True)
class ExtremeValue(Message):
    """The largest value of a column, or the smallest if its values descend; None without rows."""

    value: int | None = None


@dataclass(frozen=True, slots=True)
class SyncIdentity(Message):
    """The arguments.

    Attributes
    ----------
    extreme
        The extreme value in the newest version; None if the column is not an identity column.
    """

    table: str
    column: Sequence[str]
    extreme: ExtremeValue | None = None


def sync_identity(
    arguments: SyncIdentity, tables: TableAccess, policy: RetryPolicy, clock_ms: Clock
) -> CommitResult:
    """Set the high-water mark of an identity column beyond all values in the table.

    Raises
    ------
    InvalidArgumentError
        If it is not an identity column.
    ConcurrentModificationError
        If rows were added concurrently.
    """
    table = arguments.table
    current = current_snapshot(table, tables)
    schema = current.metadata.schema
    path = spelled(schema, arguments.column)
    column = find_field(schema, path)
    step = None if column is None else identity_step(column)
    if column is None or step is None or arguments.extreme is None:
        names = [f.name for f in schema.fields if "delta.identity.step" in f.metadata]
        raise error(
            "DELTAIC_NOT_IDENTITY",
            table=table,
            column=path_text(path),
            columns=", ".join(names) or "none",
        )
    metadata = current.metadata
    if arguments.extreme.value is not None:
        mark = high_water_mark_at(column, arguments.extreme.value)
        metadata = with_high_water_marks(metadata, {} if mark is None else {column.name: mark})
    return alter(
        Alteration(
            table,
            current,
            metadata,
            Operation.CHANGE_COLUMN,
            {"column": compact(column_parameter([], column))},
            reads_whole_table=True,
        ),
        tables,
        policy,
        clock_ms,
    )
