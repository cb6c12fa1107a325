"""ALTER TABLE REPLACE COLUMNS: replaces the columns of a table without rewriting its rows."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace

from deltaic.commands.alter.add_columns import NewColumn
from deltaic.commands.alter.alteration import Alteration, alter, current_snapshot
from deltaic.commands.alter.column_changes import require_widening, retyped
from deltaic.commands.definitions.altered_schema import (
    require_droppable,
    require_mapping,
    with_schema,
)
from deltaic.commands.definitions.column_parameters import column_parameter, compact
from deltaic.commands.definitions.dependents import require_independent
from deltaic.commit.clock import Clock
from deltaic.commit.message import Message
from deltaic.commit.operations import Operation
from deltaic.commit.ports import TableAccess
from deltaic.commit.transaction import CommitResult, RetryPolicy
from deltaic.exceptions import error
from deltaic.protocol.columns.char_varchar import CHAR_VARCHAR_TYPE_KEY, is_longer
from deltaic.protocol.columns.column_lists import without_columns
from deltaic.protocol.columns.schema_checks import check_nested_not_null
from deltaic.protocol.columns.schema_edits import edit_field, path_text
from deltaic.protocol.schema import (
    ArrayType,
    DataType,
    Field,
    MapType,
    PrimitiveType,
    StructType,
    folded_name,
    type_text,
)


@dataclass(frozen=True, slots=True)
class ReplaceColumns(Message):
    """The arguments: all columns of the table, whose positions are those of the list."""

    table: str
    columns: Sequence[NewColumn]


def replace_columns(
    arguments: ReplaceColumns, tables: TableAccess, policy: RetryPolicy, clock_ms: Clock
) -> CommitResult:
    """Replace the columns of a table: reorder, comment, add or drop them.

    A column of the same name is the same column. Dropping columns requires column mapping.

    Raises
    ------
    InvalidArgumentError
        If existing rows do not fit the new columns.
    """
    table = arguments.table
    current = current_snapshot(table, tables)
    before = current.metadata
    schema = before.schema
    identity = next(
        (column for column in schema.fields if "delta.identity.start" in column.metadata), None
    )
    if identity is not None:
        raise _refused(table, [identity.name], "it is an identity column")
    columns = StructType(tuple(new.column for new in arguments.columns))
    check_nested_not_null(table, columns)
    merge = _Merge(table)
    after = merge.structs(schema, columns, [])
    if merge.dropped:
        dropped = ", ".join(map(path_text, merge.dropped))
        if merge.added:
            reason = f"{dropped} would be dropped at the same time; RENAME COLUMN keeps values"
            raise _refused(table, merge.added[0], reason)
        require_mapping(table, current, f"drop the columns {dropped}")
        require_droppable(table, current, merge.dropped)
    for path, newer in merge.retyped:
        require_widening(table, path, current, tables)
        after = _retyped(table, after, path, newer.name)
    configuration = without_columns(before.configuration, merge.dropped)
    metadata = with_schema(table, before, after, configuration=configuration)
    require_independent(table, "dropped", merge.dropped, metadata, tables)
    named = [column_parameter([], new.specified) for new in arguments.columns]
    return alter(
        Alteration(
            table, current, metadata, Operation.REPLACE_COLUMNS, {"columns": compact(named)}
        ),
        tables,
        policy,
        clock_ms,
    )


@dataclass
class _Merge:
    """The new columns, merged with the metadata of existing columns of the same names."""

    table: str
    added: list[Sequence[str]] = field(default_factory=list)
    dropped: list[Sequence[str]] = field(default_factory=list)
    retyped: list[tuple[Sequence[str], PrimitiveType]] = field(default_factory=list)

    def structs(self, before: StructType, after: StructType, path: Sequence[str]) -> StructType:
        names = {folded_name(column.name) for column in after.fields}
        self.dropped += [
            [*path, column.name]
            for column in before.fields
            if folded_name(column.name) not in names
        ]
        return StructType(tuple(self._column(before, column, path) for column in after.fields))

    def _column(self, before: StructType, wanted: Field, path: Sequence[str]) -> Field:
        current = before.find(wanted.name)
        here = [*path, wanted.name if current is None else current.name]
        if current is None:
            if not wanted.nullable:
                reason = "it is NOT NULL, but would be null in existing rows"
                raise _refused(self.table, here, reason)
            self.added.append(here)
            return wanted
        if current.nullable and not wanted.nullable:
            raise _refused(self.table, here, "it may hold nulls, and cannot become NOT NULL")
        merged = replace(
            current, type=self._type(current.type, wanted.type, here), nullable=wanted.nullable
        )
        comment = wanted.metadata.get("comment")
        if comment is not None:
            merged = merged.with_entry("comment", comment)
        return self._with_char_varchar_type(merged, wanted, here)

    def _with_char_varchar_type(self, current: Field, wanted: Field, path: Sequence[str]) -> Field:
        """Return a column with the CHAR or VARCHAR type that is wanted, if any."""
        before, after = (column.metadata.get(CHAR_VARCHAR_TYPE_KEY) for column in (current, wanted))
        if before == after:
            return current
        if after is not None and not is_longer(before, after):
            reason = f"{before or type_text(current.type)} cannot become {after}"
            raise _refused(self.table, path, reason)
        return current.with_entry(CHAR_VARCHAR_TYPE_KEY, after)

    def _type(self, before: DataType, after: DataType, path: Sequence[str]) -> DataType:
        match before, after:
            case StructType(), StructType():
                return self.structs(before, after, path)
            case ArrayType(), ArrayType():
                element = self._type(before.element, after.element, [*path, "element"])
                return replace(before, element=element)
            case MapType(), MapType():
                return replace(
                    before,
                    key=self._type(before.key, after.key, [*path, "key"]),
                    value=self._type(before.value, after.value, [*path, "value"]),
                )
            case PrimitiveType(), PrimitiveType():
                if before != after:
                    self.retyped.append((path, after))
                return before
            case _:
                reason = f"{type_text(before)} cannot become {type_text(after)}"
                raise _refused(self.table, path, reason)


def _retyped(table: str, schema: StructType, path: Sequence[str], name: str) -> StructType:
    def change(column: Field, below: Sequence[str]) -> Field:
        return retyped(table, path, column, below, name)

    return edit_field(table, schema, path, change)


def _refused(table: str, path: Sequence[str], reason: str) -> Exception:
    return error(
        "DELTAIC_UNSUPPORTED_COLUMN_CHANGE", table=table, column=path_text(path), reason=reason
    )
