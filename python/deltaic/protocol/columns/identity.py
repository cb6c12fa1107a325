"""Identity columns in a table's schema (Protocol § Identity Columns)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

from deltaic.exceptions import error
from deltaic.protocol.actions import Metadata
from deltaic.protocol.columns.column_mapping import PHYSICAL_NAME
from deltaic.protocol.columns.identity_high_water_marks import HIGH_WATER_MARK
from deltaic.protocol.schema import Field, PrimitiveType, StructType, type_text, write_schema

_PREFIX = "delta.identity."
START = "delta.identity.start"
STEP = "delta.identity.step"


def check_identity(table: str, path: str, column: Field, partition_columns: Sequence[str]) -> None:
    """Refuse an invalid identity column of a new table.

    Raises
    ------
    InvalidArgumentError
        If the column is declared as an identity column and cannot be one.
    """
    if not any(key.startswith(_PREFIX) for key in column.metadata):
        return
    if column.type != PrimitiveType("long"):
        raise error(
            "DELTAIC_IDENTITY_TYPE_UNSUPPORTED",
            table=table,
            column=path,
            type=type_text(column.type),
        )
    reason = None
    if path != column.name:
        reason = "it is a field of a struct"
    elif column.name in partition_columns:
        reason = "the table is partitioned by it"
    elif not isinstance(column.metadata.get(START), int):
        reason = f"it has no {START}"
    elif not isinstance(column.metadata.get(STEP), int) or column.metadata[STEP] == 0:
        reason = "its step is 0 or missing"
    if reason is not None:
        raise error("DELTAIC_IDENTITY_INVALID", table=table, column=path, reason=reason)


def identity_step(column: Field) -> int | None:
    """Return the step of an identity column; None if it is not one, or not a valid one."""
    start, step = column.metadata.get(START), column.metadata.get(STEP)
    return int(step) if isinstance(start, int) and isinstance(step, int) and step else None


def high_water_mark_at(column: Field, value: int) -> int | None:
    """Return the high-water mark of an identity column whose furthest value is the given one.

    It is the first value of the column's sequence that is not before the given one; None if the
    given value is before the start of the sequence.
    """
    start, step = int(column.metadata[START]), int(column.metadata[STEP])
    distance = value - start
    if distance * step < 0:
        return None
    mark = start - (-abs(distance) // abs(step)) * step
    return mark if -(2**63) <= mark < 2**63 else value


def with_merged_high_water_marks(metadata: Metadata, newer: Metadata) -> Metadata:
    """Return the metadata with the high-water marks of newer metadata, where these are further.

    A column that was renamed in between is found by its physical name.
    """
    reached = {
        _physical_name(column): column.metadata.get(HIGH_WATER_MARK)
        for column in newer.schema.fields
        if identity_step(column) is not None
    }
    marks: dict[str, int] = {}
    for column in metadata.schema.fields:
        value = reached.get(_physical_name(column))
        mark = None
        if value is not None and identity_step(column) is not None:
            mark = high_water_mark_at(column, value)
        if mark is not None:
            marks[column.name] = mark
    return with_high_water_marks(metadata, marks) if marks else metadata


def _physical_name(column: Field) -> str:
    return str(column.metadata.get(PHYSICAL_NAME, column.name))


def with_high_water_marks(metadata: Metadata, marks: Mapping[str, int]) -> Metadata:
    """Return the metadata after rows with these values, by column, were written.

    A high-water mark only moves away from the start: it is the largest value ever written, or the
    smallest if the step is negative.
    """

    def with_high_water_mark(column: Field) -> Field:
        mark = marks.get(column.name)
        step = identity_step(column)
        if mark is None or step is None:
            return column
        before = column.metadata.get(HIGH_WATER_MARK)
        pick = max if step > 0 else min
        newest = mark if before is None else pick(mark, before)
        return column.with_entry(HIGH_WATER_MARK, newest)

    schema = metadata.schema
    after = StructType(tuple(with_high_water_mark(column) for column in schema.fields))
    return replace(metadata, schema_string=write_schema(after))
