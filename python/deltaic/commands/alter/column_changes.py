"""ALTER TABLE ALTER COLUMN: comments, positions, nullability, defaults and types."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from deltaic.commands.alter.add_columns import Position
from deltaic.commands.alter.alteration import Alteration, alter, current_snapshot
from deltaic.commands.definitions.altered_schema import with_schema
from deltaic.commands.definitions.column_parameters import column_parameter, compact, with_position
from deltaic.commands.definitions.dependents import require_retypable
from deltaic.commit.clock import Clock
from deltaic.commit.message import Message, json_name
from deltaic.commit.operations import Operation
from deltaic.commit.ports import TableAccess, TableSnapshot
from deltaic.commit.transaction import CommitResult, RetryPolicy
from deltaic.exceptions import error
from deltaic.protocol.columns import type_widening
from deltaic.protocol.columns.char_varchar import CHAR_VARCHAR_TYPE, CHAR_VARCHAR_TYPE_KEY
from deltaic.protocol.columns.column_expressions import DEFAULT, EXISTS_DEFAULT, GENERATED
from deltaic.protocol.columns.identity import START
from deltaic.protocol.columns.schema_edits import (
    edit_field,
    edit_struct,
    edit_type,
    find_field,
    path_text,
    spelled,
)
from deltaic.protocol.columns.type_widening import TYPE_CHANGES, type_change, widens
from deltaic.protocol.schema import (
    VOID,
    DataType,
    Field,
    PrimitiveType,
    StructType,
    type_text,
)

_COMPUTED = frozenset({GENERATED, START})
_TEXT = PrimitiveType("string")


@dataclass(frozen=True, slots=True)
class ColumnChange(Message):
    """The changes of one column, identified by its path.

    Attributes
    ----------
    default
        The SQL of the new default; the empty string drops it, None does not change it.
    data_type
        The name of the new type; None does not change it. The same applies to the attributes below.
    """

    column: Sequence[str]
    default: str | None = None
    data_type: str | None = field(default=None, metadata=json_name("type"))
    nullable: bool | None = None
    comment: str | None = None
    position: Position | None = None


@dataclass(frozen=True, slots=True)
class AlterColumns(Message):
    """The arguments: changes of different columns, committed together."""

    table: str
    changes: Sequence[ColumnChange] = field(metadata=json_name("columns"))


def alter_columns(
    arguments: AlterColumns, tables: TableAccess, policy: RetryPolicy, clock_ms: Clock
) -> CommitResult:
    """Change columns, all in one commit.

    Raises
    ------
    InvalidArgumentError
        If there is no such column, or the change is not supported.
    """
    table = arguments.table
    current = current_snapshot(table, tables)
    schema = current.metadata.schema
    named = []
    for change in arguments.changes:
        path = spelled(schema, change.column)
        field = find_field(schema, path)
        if change.data_type is not None and (field is None or field.type != VOID):
            _require_retypable(table, path, change.data_type, current, tables)
        changed = _Changed(table, path, change)
        schema = changed.in_schema(schema)
        position = None if change.position is None else str(change.position)
        named.append((column_parameter(changed.parent, changed.recorded), position))
    operation = Operation.CHANGE_COLUMN if len(named) == 1 else Operation.CHANGE_COLUMNS
    return alter(
        Alteration(
            table,
            current,
            with_schema(table, current.metadata, schema),
            operation,
            _parameters(named),
        ),
        tables,
        policy,
        clock_ms,
    )


def _parameters(named: Sequence[tuple[Mapping[str, Any], str | None]]) -> dict[str, str]:
    if len(named) > 1:
        return {"columns": compact([with_position(column, at) for column, at in named])}
    ((column, position),) = named
    return with_position({"column": compact(column)}, position)


class _Changed:
    """One change: the path of the parent, the changed field, and the field that commits record.

    The recorded field does not have the type change that the change itself adds to its metadata.
    """

    def __init__(self, table: str, path: Sequence[str], change: ColumnChange) -> None:
        self._table, self._path, self._change = table, path, change
        self.parent: Sequence[str] = path[:-1]
        self.field = self.recorded = Field("", _TEXT)

    def in_schema(self, schema: StructType) -> StructType:
        after = edit_field(self._table, schema, self._path, self._on_field)
        position = self._change.position
        if position is None:
            return after
        return edit_struct(
            self._table,
            after,
            self._path[:-1],
            lambda struct: position.place(self._table, struct, self.field),
        )

    def _on_field(self, column: Field, below: Sequence[str]) -> Field:
        change, whole = self._change, column
        of_columns = (change.default, change.nullable, change.comment, change.position)
        if below and any(part is not None for part in of_columns):
            raise _unsupported(self._table, self._path, "this is a part of a type, not a column")
        self.parent = self._path[: len(self._path) - 1 - len(below)]
        if change.default and not _COMPUTED.isdisjoint(column.metadata):
            reason = "its values are generated, and a default would never be used"
            raise _unsupported(self._table, self._path, reason)
        if change.default is not None:
            whole = whole.with_entry(DEFAULT, change.default or None)
            # An older commit, or another writer, may have stored it.
            whole = whole.with_entry(EXISTS_DEFAULT, None)
        if change.comment is not None:
            whole = whole.with_entry("comment", change.comment)
        if change.nullable is not None:
            if whole.nullable and not change.nullable:
                reason = "existing rows may hold nulls; add a CHECK constraint instead"
                raise _unsupported(self._table, self._path, reason)
            whole = replace(whole, nullable=change.nullable)
        if change.data_type is not None:
            whole = retyped(self._table, self._path, whole, below, change.data_type)
        self.field = whole
        history = column.metadata.get(TYPE_CHANGES)
        self.recorded = whole.with_entry(TYPE_CHANGES, history) if change.data_type else whole
        return whole


def retyped(
    table: str, path: Sequence[str], column: Field, below: Sequence[str], data_type: str
) -> Field:
    """Return the column with a wider type, and with the type change in its metadata.

    Parameters
    ----------
    below
        The path of the type to change within the column's type (Protocol § Type Change Metadata).

    Raises
    ------
    InvalidArgumentError
        If the protocol does not list the change.
    """
    if CHAR_VARCHAR_TYPE.fullmatch(data_type) and not below and column.type == _TEXT:
        return column.with_entry(CHAR_VARCHAR_TYPE_KEY, data_type)
    newer = PrimitiveType(data_type)
    if newer == column.type == _TEXT:
        return column.with_entry(CHAR_VARCHAR_TYPE_KEY, None)
    older: list[DataType] = []

    def widen(inner: DataType) -> DataType:
        older.append(inner)
        if inner == newer:
            return inner
        if inner != VOID and (not isinstance(inner, PrimitiveType) or not widens(inner, newer)):
            reason = f"{type_text(inner)} cannot be widened to {type_text(newer)}"
            raise _unsupported(table, path, reason)
        return newer

    wider = edit_type(table, column.type, below, widen)
    if wider == column.type:
        return column
    (before,) = older
    assert isinstance(before, PrimitiveType)
    if before == VOID:
        return replace(column, type=wider)
    history = [*column.metadata.get(TYPE_CHANGES, ()), type_change(before, newer, below)]
    return replace(column, type=wider).with_entry(TYPE_CHANGES, history)


def require_widening(
    table: str, path: Sequence[str], current: TableSnapshot, tables: TableAccess
) -> None:
    """Refuse to change a type where the table does not allow it.

    Raises
    ------
    InvalidArgumentError
        If type widening is not enabled, or the column is generated, or an expression depends on it.
    """
    if not type_widening.is_enabled(current.protocol, current.metadata):
        raise _unsupported(table, path, f"table property {type_widening.PROPERTY} is not true")
    require_retypable(table, path, current.metadata, tables)


def _require_retypable(
    table: str, path: Sequence[str], data_type: str, current: TableSnapshot, tables: TableAccess
) -> None:
    """Require type widening, except for a longer VARCHAR, which Spark has checked."""
    if data_type != "string" and not CHAR_VARCHAR_TYPE.fullmatch(data_type):
        require_widening(table, path, current, tables)


def _unsupported(table: str, path: Sequence[str], reason: str) -> Exception:
    return error(
        "DELTAIC_UNSUPPORTED_COLUMN_CHANGE", table=table, column=path_text(path), reason=reason
    )
