"""ALTER TABLE REPLACE COLUMNS: the columns, stated anew, of rows that stay as they are."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from deltaic.commands.add_columns import fields_of
from deltaic.commands.alteration import Alteration, alter, altered_header
from deltaic.commands.altered_schema import require_droppable, require_mapping, with_schema
from deltaic.commands.column_changes import require_widening, retyped
from deltaic.commands.column_parameters import column_parameter, compact
from deltaic.commands.dependents import require_independent
from deltaic.commit.clock import Clock
from deltaic.commit.operations import Operation
from deltaic.commit.ports import Tables
from deltaic.commit.transaction import CommitResult, RetryPolicy
from deltaic.exceptions import error
from deltaic.protocol.column_lists import without_columns
from deltaic.protocol.limited_texts import LIMITED_TEXT_KEY, is_longer
from deltaic.protocol.schema import (
    ArrayType,
    DataType,
    Field,
    MapType,
    PrimitiveType,
    StructType,
    folded_name,
    parse_schema,
    type_text,
)
from deltaic.protocol.schema_checks import check_nested_not_null
from deltaic.protocol.schema_edits import edit_field, path_text


@dataclass(frozen=True, slots=True)
class ReplaceColumns:
    """The arguments: all columns that the table is to have, and how the statement has them."""

    table: str
    columns: Sequence[Field]
    stated: Sequence[Field]

    @staticmethod
    def from_json(body: Mapping[str, Any]) -> ReplaceColumns:
        """Read the JSON of ``Committer.run``."""
        columns = [fields_of(column) for column in body["columns"]]
        return ReplaceColumns(
            body["table"],
            tuple(stored for stored, _ in columns),
            tuple(stated for _, stated in columns),
        )


def replace_columns(
    arguments: ReplaceColumns, tables: Tables, policy: RetryPolicy, clock_ms: Clock
) -> CommitResult:
    """Give a table other columns: reordered, with other comments, more of them, or fewer.

    A column of the same name stays the same column. Fewer columns need column mapping.

    Raises
    ------
    InvalidArgumentError
        If the rows that are there do not fit.
    """
    table = arguments.table
    current = altered_header(table, tables)
    before = current.metadata
    schema = parse_schema(before.schema_string, table)
    numbered = next(
        (column for column in schema.fields if "delta.identity.start" in column.metadata), None
    )
    if numbered is not None:
        raise _refused(table, [numbered.name], "it is an identity column, which stays as it is")
    check_nested_not_null(table, StructType(tuple(arguments.columns)))
    merge = _Merge(table)
    after = merge.structs(schema, StructType(tuple(arguments.columns)), [])
    if merge.dropped:
        dropped = ", ".join(map(path_text, merge.dropped))
        if merge.added:
            reason = f"{dropped} would be dropped at the same time; RENAME COLUMN keeps values"
            raise _refused(table, merge.added[0], reason)
        require_mapping(table, current, f"drop the columns {dropped}")
        require_droppable(table, current, schema, merge.dropped)
    for path, newer in merge.retyped:
        require_widening(table, path, current, tables)
        after = _retyped(table, after, path, newer.name)
    configuration = without_columns(before.configuration, merge.dropped)
    metadata = with_schema(table, before, after, configuration=configuration)
    require_independent(table, "dropped", merge.dropped, metadata, tables)
    named = [column_parameter([], column) for column in arguments.stated]
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
    """The columns wanted, as far as they were there, with all that the table knows of them."""

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
        known = before.find(wanted.name)
        here = [*path, wanted.name if known is None else known.name]
        if known is None:
            if not wanted.nullable:
                reason = "it is NOT NULL, but would be null in the rows that are there"
                raise _refused(self.table, here, reason)
            self.added.append(here)
            return wanted
        if known.nullable and not wanted.nullable:
            raise _refused(self.table, here, "it may hold nulls, and cannot become NOT NULL")
        merged = replace(
            known, type=self._type(known.type, wanted.type, here), nullable=wanted.nullable
        )
        comment = wanted.metadata.get("comment")
        if comment is not None:
            merged = merged.with_entry("comment", comment)
        return self._with_limit(merged, wanted, here)

    def _with_limit(self, known: Field, wanted: Field, path: Sequence[str]) -> Field:
        """Return a column with the limit of its text's length that is wanted."""
        now, then = (column.metadata.get(LIMITED_TEXT_KEY) for column in (known, wanted))
        if now == then:
            return known
        if then is not None and not is_longer(now, then):
            reason = f"{now or type_text(known.type)} cannot become {then}"
            raise _refused(self.table, path, reason)
        return known.with_entry(LIMITED_TEXT_KEY, then)

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
