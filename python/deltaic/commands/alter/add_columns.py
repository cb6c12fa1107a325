"""ALTER TABLE ADD COLUMNS."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from deltaic.commands.alter.alteration import Alteration, alter, current_snapshot
from deltaic.commands.definitions.altered_schema import with_schema
from deltaic.commands.definitions.column_parameters import column_parameter, compact, with_position
from deltaic.commands.definitions.definition import stored_column
from deltaic.commit.clock import Clock
from deltaic.commit.message import Message
from deltaic.commit.operations import Operation
from deltaic.commit.ports import TableAccess
from deltaic.commit.transaction import CommitResult, RetryPolicy
from deltaic.exceptions import error
from deltaic.protocol.columns.schema_edits import edit_struct, path_text, spelled
from deltaic.protocol.schema import (
    Field,
    StructType,
    folded_name,
    map_fields,
    walk,
)


@dataclass(frozen=True, slots=True)
class Position(Message):
    """The position of a column among its siblings: FIRST, or AFTER the named column."""

    after: str | None = None

    def __str__(self) -> str:
        """Return the position as commits record it."""
        return "FIRST" if self.after is None else f"AFTER {self.after}"

    def place(self, table: str, struct: StructType, column: Field) -> StructType:
        """Return the struct with the column at this position.

        Raises
        ------
        InvalidArgumentError
            If the column of AFTER does not exist.
        """
        others = [field for field in struct.fields if field.name != column.name]
        if self.after is None:
            return StructType((column, *others))
        if folded_name(self.after) == folded_name(column.name):
            return struct
        before = StructType(tuple(others)).find(self.after)
        if before is None:
            raise error(
                "DELTAIC_COLUMN_NOT_FOUND",
                table=table,
                column=self.after,
                columns=", ".join(field.name for field in others),
            )
        at = others.index(before) + 1
        return StructType((*others[:at], column, *others[at:]))


@dataclass(frozen=True, slots=True)
class NewColumn(Message):
    """A column to add to the struct at the path `parent`.

    Attributes
    ----------
    specified
        The column as the statement specifies it, which commits record.
    stored
        The column with the types that the log stores; None if they are the same.
    """

    parent: Sequence[str]
    specified: Field
    stored: Field | None = None
    position: Position | None = None
    default: str | None = None

    @property
    def column(self) -> Field:
        """The column as the log stores it."""
        stored = self.specified if self.stored is None else self.stored
        return map_fields(StructType((stored,)), stored_column).fields[0]


@dataclass(frozen=True, slots=True)
class AddColumns(Message):
    """The arguments."""

    table: str
    columns: Sequence[NewColumn]


def add_columns(
    arguments: AddColumns, tables: TableAccess, policy: RetryPolicy, clock_ms: Clock
) -> CommitResult:
    """Add columns, which are null in existing rows.

    Raises
    ------
    InvalidArgumentError
        If a column already exists, or cannot be added.
    """
    table = arguments.table
    current = current_snapshot(table, tables)
    schema = current.metadata.schema
    named = []
    for new in arguments.columns:
        _require_addable(table, new)
        parent = spelled(schema, new.parent)
        schema = edit_struct(table, schema, parent, _insertion(table, new, new.column))
        position = None if new.position is None else str(new.position)
        named.append(with_position({"column": column_parameter(parent, new.specified)}, position))
    return alter(
        Alteration(
            table,
            current,
            with_schema(table, current.metadata, schema),
            Operation.ADD_COLUMNS,
            {"columns": compact(named)},
        ),
        tables,
        policy,
        clock_ms,
    )


def _require_addable(table: str, new: NewColumn) -> None:
    """Refuse a column that existing rows cannot have."""
    reason = None
    fields = dict(walk(StructType((new.column,))))
    not_null = next((path for path, field in fields.items() if not field.nullable), None)
    if not_null is not None:
        reason = f"{not_null} is NOT NULL, but is null in existing rows"
        advice = "Add it without NOT NULL; a CHECK constraint can require values later."
    elif new.default is not None:
        reason = "it has a DEFAULT, which would have to apply to existing rows"
        advice = "Add it without DEFAULT, then use ALTER COLUMN ... SET DEFAULT for new rows."
    if reason is not None:
        column = path_text([*new.parent, new.column.name])
        raise error(
            "DELTAIC_COLUMN_NOT_ADDED", table=table, column=column, reason=reason, advice=advice
        )


def _insertion(table: str, new: NewColumn, column: Field) -> Any:
    def insert(struct: StructType) -> StructType:
        if struct.find(column.name) is not None:
            raise error(
                "DELTAIC_COLUMN_EXISTS",
                table=table,
                column=path_text([*new.parent, column.name]),
                columns=", ".join(field.name for field in struct.fields),
            )
        if new.position is None:
            return StructType((*struct.fields, column))
        return new.position.place(table, struct, column)

    return insert
