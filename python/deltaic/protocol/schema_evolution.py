"""A table's columns with those that rows written to it bring along.

Columns are only added, at the end of the struct they belong to, and are nullable: older rows have
no value for them. A type becomes wider where the table allows it (Protocol § Type Widening), or
where files hold the same in either.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any

from deltaic.exceptions import error
from deltaic.protocol.schema import (
    VOID,
    ArrayType,
    DataType,
    Field,
    MapType,
    PrimitiveType,
    StructType,
    map_fields,
    type_text,
)
from deltaic.protocol.type_widening import (
    PROPERTY,
    TYPE_CHANGES,
    is_stored_alike,
    type_change,
    widens,
)


@dataclass(frozen=True, slots=True)
class SchemaEvolution:
    """What a write may do to the columns of a table.

    Attributes
    ----------
    table, version
        For errors.
    widens_types
        Whether the table allows columns to take wider types.
    require_retypable
        Refuses another type of a column that is computed, or from which something is.
    """

    table: str
    version: int
    widens_types: bool
    require_retypable: Callable[[Sequence[str]], None]

    def evolved(self, current: StructType, written: StructType) -> StructType:
        """Return the columns after the write.

        Parameters
        ----------
        current
            The table's columns, as the log holds them.
        written
            The columns as the write wants them, as the log would hold them: those of the table, by
            name, some with wider types, and new ones.

        Raises
        ------
        InvalidArgumentError
            If a type would change in a way that the table does not allow.
        """
        return self._struct(current, written, ())

    def _struct(
        self, current: StructType, written: StructType, path: tuple[str, ...]
    ) -> StructType:
        fields = [self._field(f, written.find(f.name), path) for f in current.fields]
        added = [_added(f) for f in written.fields if current.find(f.name) is None]
        return StructType((*fields, *added))

    def _field(self, current: Field, written: Field | None, path: tuple[str, ...]) -> Field:
        if written is None:
            return current
        if current.type == VOID:
            # No file has a value of it, so it can take any type, as a new column does.
            return replace(current, type=_added(written).type)
        here = (*path, current.name)
        changes: list[dict[str, Any]] = []
        data_type = self._type(current.type, written.type, here, (), changes)
        if not changes:
            return replace(current, type=data_type)
        history = [*current.metadata.get(TYPE_CHANGES, ()), *changes]
        return replace(current, type=data_type).with_entry(TYPE_CHANGES, history)

    def _type(
        self,
        current: DataType,
        written: DataType,
        path: tuple[str, ...],
        below: tuple[str, ...],
        changes: list[dict[str, Any]],
    ) -> DataType:
        """Return the new type; `changes` gets what became wider below the field at `path`."""
        match current, written:
            case StructType(), StructType():
                return self._struct(current, written, (*path, *below))
            case ArrayType(), ArrayType():
                element = self._type(
                    current.element, written.element, path, (*below, "element"), changes
                )
                return replace(current, element=element)
            case MapType(), MapType():
                key = self._type(current.key, written.key, path, (*below, "key"), changes)
                value = self._type(current.value, written.value, path, (*below, "value"), changes)
                return replace(current, key=key, value=value)
            case _ if current == written:
                return current
            case PrimitiveType(name="void"), _:
                return _added(Field("element", written)).type
            case PrimitiveType(), PrimitiveType() if widens(current, written):
                self._require_widening(current, written, path, below)
                # As in delta-spark: without the feature there is no history.
                if self.widens_types:
                    changes.append(type_change(current, written, below))
                return written
            case _:
                raise self._refusal(current, written, path + below, "their types differ")

    def _require_widening(
        self,
        current: PrimitiveType,
        written: PrimitiveType,
        path: tuple[str, ...],
        below: tuple[str, ...],
    ) -> None:
        if not self.widens_types and not is_stored_alike(current, written):
            reason = f"table property {PROPERTY} is not true"
            raise self._refusal(current, written, path + below, reason)
        self.require_retypable(path)

    def _refusal(
        self, current: DataType, written: DataType, path: Sequence[str], reason: str
    ) -> Exception:
        return error(
            "DELTAIC_SCHEMA_EVOLUTION_REFUSED",
            table=self.table,
            version=self.version,
            column=".".join(path),
            current=type_text(current),
            written=type_text(written),
            reason=reason,
        )


def _added(column: Field) -> Field:
    """Return a new column, which older rows have no value for."""
    return map_fields(StructType((column,)), _nullable).fields[0]


def _nullable(column: Field) -> Field:
    """Return a column that may be null, as may all in it."""

    def lifted(data_type: DataType) -> DataType:
        match data_type:
            case ArrayType():
                return replace(data_type, element=lifted(data_type.element), contains_null=True)
            case MapType():
                return replace(
                    data_type,
                    key=lifted(data_type.key),
                    value=lifted(data_type.value),
                    value_contains_null=True,
                )
            case _:
                return data_type

    return replace(column, type=lifted(column.type), nullable=True)
