"""ALTER TABLE ALTER COLUMN: defaults and types."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from deltaic.commands.alteration import Alteration, alter, altered_header
from deltaic.commit.operations import Operation
from deltaic.commit.ports import TableHeader, Tables
from deltaic.commit.transaction import CommitResult, RetryPolicy
from deltaic.exceptions import error
from deltaic.protocol.actions import Metadata
from deltaic.protocol.features import supports
from deltaic.protocol.properties import is_true
from deltaic.protocol.schema import (
    ArrayType,
    DataType,
    Field,
    MapType,
    PrimitiveType,
    StructType,
    parse_schema,
    type_text,
    write_schema,
)
from deltaic.protocol.type_widening import (
    PROPERTY,
    TYPE_CHANGES,
    computed_from,
    type_change,
    widens,
)

_DEFAULT = "CURRENT_DEFAULT"


@dataclass(frozen=True, slots=True)
class AlterColumn:
    """The arguments: the column, by the names that lead to it, and one change of it.

    Attributes
    ----------
    default
        The SQL of the new default; the empty text drops it, None leaves it alone.
    data_type
        The name of the new type; None leaves it alone.
    """

    table: str
    column: Sequence[str]
    default: str | None = None
    data_type: str | None = None

    @staticmethod
    def from_json(body: Mapping[str, Any]) -> AlterColumn:
        """Read the JSON of ``Committer.run``."""
        return AlterColumn(
            body["table"], tuple(body["column"]), body.get("default"), body.get("type")
        )


def alter_column(
    arguments: AlterColumn, tables: Tables, policy: RetryPolicy, now_ms: int
) -> CommitResult:
    """Change one column.

    Raises
    ------
    InvalidArgumentError
        If there is no such column, or it cannot be changed like that.
    """
    current = altered_header(arguments.table, tables)
    before = current.metadata
    if arguments.data_type is not None:
        _require_widening(arguments, current)
    schema = parse_schema(before.schema_string, arguments.table)
    after = replace(before, schema_string=write_schema(_changed(arguments, schema)))
    return alter(
        Alteration(
            arguments.table,
            current,
            after,
            Operation.CHANGE_COLUMN,
            _parameters(arguments, after),
        ),
        tables,
        policy,
        now_ms,
    )


def _require_widening(arguments: AlterColumn, current: TableHeader) -> None:
    configuration = current.metadata.configuration
    if not supports(current.protocol, "typeWidening") or not is_true(configuration, PROPERTY):
        raise _unsupported(arguments, f"table property {PROPERTY} is not true")
    schema = parse_schema(current.metadata.schema_string, arguments.table)
    using = computed_from(configuration, schema, arguments.column[0])
    if using is not None:
        raise _unsupported(arguments, f"what is computed from it could change: {using}")


def _changed(arguments: AlterColumn, schema: StructType) -> StructType:
    if arguments.default is not None:
        return _on_field(arguments, schema, arguments.column, _with_default(arguments.default))
    newer = PrimitiveType(arguments.data_type or "")
    return _on_field(
        arguments,
        schema,
        arguments.column,
        lambda column, path: _retyped(arguments, column, path, newer),
    )


_Change = Callable[[Field, Sequence[str]], Field]


def _on_field(
    arguments: AlterColumn, struct: StructType, path: Sequence[str], change: _Change
) -> StructType:
    """Apply `change` to the innermost field of a path, with what the path says below it."""
    found = struct.find(path[0])
    if found is None:
        raise error(
            "DELTAIC_COLUMN_NOT_FOUND",
            table=arguments.table,
            column=".".join(arguments.column),
            columns=", ".join(column.name for column in struct.fields),
        )
    rest, inner = list(path[1:]), found.type
    wrap: _Wrap = _same
    below: list[str] = []
    while rest and not isinstance(inner, StructType):
        part = rest.pop(0)
        inner, wrap = _step(arguments, inner, part, wrap)
        below.append(part)
    if rest and isinstance(inner, StructType):
        changed = replace(found, type=wrap(_on_field(arguments, inner, rest, change)))
    else:
        changed = change(found, below)
    return StructType(tuple(changed if c is found else c for c in struct.fields))


_Wrap = Callable[[DataType], DataType]


def _same(data_type: DataType) -> DataType:
    return data_type


def _step(
    arguments: AlterColumn, outer: DataType, part: str, wrap: _Wrap
) -> tuple[DataType, _Wrap]:
    match outer, part:
        case ArrayType(), "element":
            return outer.element, lambda t: wrap(replace(outer, element=t))
        case MapType(), "key":
            return outer.key, lambda t: wrap(replace(outer, key=t))
        case MapType(), "value":
            return outer.value, lambda t: wrap(replace(outer, value=t))
        case _:
            raise _unsupported(arguments, f"{type_text(outer)} has no part {part}")


def _with_default(default: str) -> _Change:
    def change(column: Field, _: Sequence[str]) -> Field:
        metadata = {key: value for key, value in column.metadata.items() if key != _DEFAULT}
        return replace(column, metadata={**metadata, **({_DEFAULT: default} if default else {})})

    return change


def _retyped(
    arguments: AlterColumn, column: Field, below: Sequence[str], newer: PrimitiveType
) -> Field:
    inner = column.type
    wrap: _Wrap = _same
    for part in below:
        inner, wrap = _step(arguments, inner, part, wrap)
    if inner == newer:
        return column
    if not isinstance(inner, PrimitiveType) or not widens(inner, newer):
        raise _unsupported(arguments, f"{type_text(inner)} is not widened to {type_text(newer)}")
    history = [*column.metadata.get(TYPE_CHANGES, ()), type_change(inner, newer, below)]
    return replace(column, type=wrap(newer), metadata={**column.metadata, TYPE_CHANGES: history})


def _parameters(arguments: AlterColumn, after: Metadata) -> dict[str, str]:
    schema = parse_schema(after.schema_string, arguments.table)
    column = schema.find(arguments.column[0])
    body = StructType((column,) if column is not None else ())
    return {"column": write_schema(body)}


def _unsupported(arguments: AlterColumn, reason: str) -> Exception:
    return error(
        "DELTAIC_UNSUPPORTED_COLUMN_CHANGE",
        table=arguments.table,
        column=".".join(arguments.column),
        type=type_text(PrimitiveType(arguments.data_type or "")),
        reason=reason,
    )
