"""Schema evolution: adds the columns of written rows to a table.

Columns are only added, at the end of their struct, and are nullable: older rows have no value for
them. A type is widened if the table allows it (Protocol § Type Widening), or if both types have the
same representation in files.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any

from deltaic.exceptions import error
from deltaic.protocol.columns.type_widening import (
    PROPERTY,
    TYPE_CHANGES,
    is_stored_alike,
    type_change,
    widens,
)
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


@dataclass(frozen=True, slots=True)
class SchemaEvolution:
    """The schema changes that a write may make.

    Attributes
    ----------
    table, version
        For errors.
    widens_types
        Whether type widening is enabled.
    require_retypable
        Refuses to change the type of a generated column, or of one that expressions reference.
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
            The table's columns, as in the log.
        written
            The columns of the write, as the log would store them: those of the table, by name, some
            with wider types, and new ones.

        Raises
        ------
        InvalidArgumentError
            If a change of a type is not allowed.
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
            # Files have no values of it, so its type can change to any other.
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
        """Return the new type; append the type changes within the field at `path` to `changes`."""
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
                # As in delta-spark, type changes are recorded only if the feature is enabled.
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
    """Return a new column as nullable, because older rows have no value for it."""
    return map_fields(StructType((column,)), _nullable).fields[0]


def _nullable(column: Field) -> Field:
    """Return a column that is nullable, with all its elements and values."""

    def nullable(data_type: DataType) -> DataType:
        match data_type:
            case ArrayType():
                return replace(data_type, element=nullable(data_type.element), contains_null=True)
            case MapType():
                return replace(
                    data_type,
                    key=nullable(data_type.key),
                    value=nullable(data_type.value),
                    value_contains_null=True,
                )
            case _:
                return data_type

    return replace(column, type=nullable(column.type), nullable=True)
