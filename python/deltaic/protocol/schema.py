"""The schema of a table in the log (Protocol § Schema Serialization Format)."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from functools import lru_cache
from typing import Any, TypeAlias

from deltaic.exceptions import error

PRIMITIVE_TYPES = frozenset(
    {
        "string",
        "long",
        "integer",
        "short",
        "byte",
        "float",
        "double",
        "boolean",
        "binary",
        "date",
        "timestamp",
        "timestamp_ntz",
        "variant",
        "void",
    }
)
_UNORDERED = frozenset({"boolean", "binary", "variant", "void"})
#: Types of metadata values that code relies on; they are checked when a schema is parsed.
_METADATA_KINDS: Mapping[str, type] = {
    "delta.columnMapping.id": int,
    "delta.columnMapping.physicalName": str,
    "delta.identity.start": int,
    "delta.identity.step": int,
    "delta.identity.highWaterMark": int,
    "delta.identity.allowExplicitInsert": bool,
    "delta.invariants": str,
    "delta.generationExpression": str,
    "CURRENT_DEFAULT": str,
    "EXISTS_DEFAULT": str,
}
_DECIMAL = re.compile(r"decimal(?:\(\s*([0-9]+)\s*,\s*([0-9]+)\s*\))?")
_MAX_DECIMAL_PRECISION = 38


@dataclass(frozen=True, slots=True)
class PrimitiveType:
    """A primitive type, by its name in the log; unknown names are preserved."""

    name: str

    @property
    def is_known(self) -> bool:
        """Whether the protocol lists the type."""
        return self.name in PRIMITIVE_TYPES or self.decimal is not None

    @property
    def decimal(self) -> tuple[int, int] | None:
        """The precision and scale of a decimal, as Spark reads its name; None for other types."""
        found = _DECIMAL.fullmatch(self.name)
        if found is None:
            return None
        precision, scale = int(found[1] or 10), int(found[2] or 0)
        return (precision, scale) if scale <= precision <= _MAX_DECIMAL_PRECISION else None


#: The type of columns that are null in every row, which files do not store.
VOID = PrimitiveType("void")


@dataclass(frozen=True, slots=True)
class ArrayType:
    """Protocol § Array Type."""

    element: DataType
    contains_null: bool


@dataclass(frozen=True, slots=True)
class MapType:
    """Protocol § Map Type."""

    key: DataType
    value: DataType
    value_contains_null: bool


@dataclass(frozen=True, slots=True)
class UserDefinedType:
    """A user-defined type of Spark, such as the vectors of its ml library.

    The protocol does not list it; files hold values of its SQL type.

    Attributes
    ----------
    node
        The type's JSON, which must be preserved.
    sql_type
        The type of the values in files.
    """

    node: Mapping[str, Any]
    sql_type: DataType

    @property
    def name(self) -> str:
        """Its name in messages; a type defined only in Python has no JVM class."""
        return f"udt({self.node.get('class') or self.node.get('pyClass')})"


@dataclass(frozen=True, slots=True)
class Field:
    """A column, or a field of a struct (Protocol § Struct Field)."""

    name: str
    type: DataType
    nullable: bool = True
    metadata: Mapping[str, Any] = field(default_factory=dict)

    @staticmethod
    def from_json(body: Mapping[str, Any]) -> Field:
        """Parse one column of the JSON of a schema."""
        return _parse_field(body)

    def to_json(self) -> dict[str, Any]:
        """Return the column as the JSON of a schema."""
        return {
            "name": self.name,
            "type": _write_type(self.type),
            "nullable": self.nullable,
            "metadata": dict(self.metadata),
        }

    def with_entry(self, key: str, value: Any) -> Field:
        """Return the column with an entry in its metadata; None removes the entry."""
        others = self.without_entries(key)
        if value is None:
            return others
        return replace(others, metadata={**others.metadata, key: value})

    def without_entries(self, *keys: str) -> Field:
        """Return the column without these entries in its metadata."""
        others = {name: other for name, other in self.metadata.items() if name not in keys}
        return replace(self, metadata=others)


@dataclass(frozen=True, slots=True)
class StructType:
    """A row's fields, in order; the schema of a table is one (Protocol § Struct Type)."""

    fields: tuple[Field, ...] = ()

    def find(self, name: str) -> Field | None:
        """Return the field of this name; column names are case-insensitive in Delta tables."""
        folded = folded_name(name)
        return next((f for f in self.fields if folded_name(f.name) == folded), None)


@lru_cache(maxsize=16384)
def folded_name(name: str) -> str:
    """Return a column name folded to one case, for comparison.

    It is folded letter by letter, as the JVM compares names: ``ß`` and ``ss`` are two names, unlike
    for `str.casefold`.
    """
    return name.lower() if name.isascii() else "".join(map(_folded_letter, name))


def _folded_letter(letter: str) -> str:
    upper = letter.upper()
    letter = upper if len(upper) == 1 else letter
    # Only ``İ`` has two lower-case letters; the first is the one of the JVM.
    return letter.lower()[0]


DataType: TypeAlias = PrimitiveType | ArrayType | MapType | StructType | UserDefinedType


def parse_schema(text: str, table: str) -> StructType:
    """Parse a schema string; the result is cached, as most commits have the same one.

    Raises
    ------
    ProtocolError
        If it is not a schema; `table` is named in the message.
    """
    try:
        schema = _parse_text(text)
    except (ValueError, KeyError, TypeError, RecursionError) as problem:
        raise error("DELTAIC_INVALID_SCHEMA", table=table, reason=problem) from problem
    if not isinstance(schema, StructType):
        raise error("DELTAIC_INVALID_SCHEMA", table=table, reason="it is not a struct")
    return schema


def write_schema(schema: StructType) -> str:
    """Write a schema string."""
    return json.dumps(_write_type(schema), ensure_ascii=False, separators=(",", ":"))


def walk(schema: StructType) -> Iterator[tuple[str, Field]]:
    """Yield every field with its dotted path, outer fields first."""
    for prefix, struct in structs(schema):
        for column in struct.fields:
            yield prefix + column.name, column


def structs(data_type: DataType, path: str = "") -> Iterator[tuple[str, StructType]]:
    """Yield a type's structs, including itself, each with the prefix of its fields' paths."""
    match data_type:
        case StructType(fields=fields):
            yield path, data_type
            for part in fields:
                yield from structs(part.type, f"{path}{part.name}.")
        case ArrayType(element=element):
            yield from structs(element, f"{path}element.")
        case MapType(key=key, value=value):
            yield from structs(key, f"{path}key.")
            yield from structs(value, f"{path}value.")
        case _:
            pass


def leaf_types(data_type: DataType) -> Iterator[PrimitiveType]:
    """Yield the primitive types that files hold for a type, including those of nested fields."""
    match data_type:
        case PrimitiveType():
            yield data_type
        case ArrayType(element=element):
            yield from leaf_types(element)
        case MapType(key=key, value=value):
            yield from leaf_types(key)
            yield from leaf_types(value)
        case StructType(fields=fields):
            for part in fields:
                yield from leaf_types(part.type)
        case UserDefinedType(sql_type=sql_type):
            yield from leaf_types(sql_type)


def map_fields(schema: StructType, change: Callable[[Field], Field]) -> StructType:
    """Apply `change` to every field, inner fields first."""

    def on_type(data_type: DataType) -> DataType:
        match data_type:
            case ArrayType():
                return replace(data_type, element=on_type(data_type.element))
            case MapType():
                return replace(
                    data_type, key=on_type(data_type.key), value=on_type(data_type.value)
                )
            case StructType():
                return on_struct(data_type)
            case _:
                return data_type

    def on_struct(struct: StructType) -> StructType:
        return StructType(tuple(change(replace(f, type=on_type(f.type))) for f in struct.fields))

    return on_struct(schema)


@lru_cache(maxsize=32)
def _parse_text(text: str) -> DataType:
    return _parse_type(json.loads(text))


def _parse_type(node: Any) -> DataType:
    if isinstance(node, str):
        return PrimitiveType(node)
    kind = node["type"]
    if kind == "struct":
        return StructType(tuple(_parse_field(part) for part in node["fields"]))
    if kind == "array":
        return ArrayType(_parse_type(node["elementType"]), node["containsNull"])
    if kind == "map":
        return MapType(
            _parse_type(node["keyType"]), _parse_type(node["valueType"]), node["valueContainsNull"]
        )
    if kind == "udt":
        return UserDefinedType(node, _parse_type(node["sqlType"]))
    raise ValueError(f"there is no type {kind!r}")


def _parse_field(node: Any) -> Field:
    # Old tables may lack `nullable` or `metadata`; Spark reads them as true and empty.
    name, nullable = node["name"], node.get("nullable", True)
    metadata = node.get("metadata") or {}
    if not (isinstance(name, str) and isinstance(nullable, bool) and isinstance(metadata, dict)):
        raise ValueError(f"this is no column: {node}")
    for key, value in metadata.items():
        kind = _METADATA_KINDS.get(key)
        if kind is not None and type(value) is not kind:
            raise ValueError(f"{key} of column {name} is {value!r}")
    return Field(name, _parse_type(node["type"]), nullable, metadata)


def has_bounds(data_type: DataType) -> bool:
    """Whether writers collect min and max values of a column of this type."""
    return (
        isinstance(data_type, PrimitiveType)
        and data_type.is_known
        and data_type.name not in _UNORDERED
    )


def type_text(data_type: DataType, *, nulls: bool = False) -> str:
    """Return a type as SQL spells it, for messages.

    Parameters
    ----------
    nulls
        Whether NOT NULL is included for elements, values and fields.
    """

    def text(inner: DataType, nullable: bool = True) -> str:
        return type_text(inner, nulls=nulls) + (" NOT NULL" if nulls and not nullable else "")

    match data_type:
        case PrimitiveType(name=name):
            return {"long": "bigint", "integer": "int"}.get(name, name)
        case ArrayType(element=element, contains_null=nullable):
            return f"array<{text(element, nullable)}>"
        case MapType(key=key, value=value, value_contains_null=nullable):
            return f"map<{text(key)},{text(value, nullable)}>"
        case StructType(fields=fields):
            parts = ",".join(f"{part.name}:{text(part.type, part.nullable)}" for part in fields)
            return f"struct<{parts}>"
        case UserDefinedType():
            return data_type.name


def _write_type(data_type: DataType) -> Any:
    match data_type:
        case PrimitiveType(name=name):
            return name
        case ArrayType(element=element, contains_null=contains_null):
            return {
                "type": "array",
                "elementType": _write_type(element),
                "containsNull": contains_null,
            }
        case MapType(key=key, value=value, value_contains_null=contains_null):
            return {
                "type": "map",
                "keyType": _write_type(key),
                "valueType": _write_type(value),
                "valueContainsNull": contains_null,
            }
        case StructType(fields=fields):
            return {"type": "struct", "fields": [part.to_json() for part in fields]}
        case UserDefinedType(node=node):
            return node
