"""Strategies for names, types and schemas that the two languages have to agree on."""

from __future__ import annotations

from dataclasses import replace
from itertools import count

from hypothesis import strategies as st

from deltaic.protocol.columns.column_mapping import COLUMN_ID, PHYSICAL_NAME
from deltaic.protocol.schema import (
    PRIMITIVE_TYPES,
    ArrayType,
    DataType,
    Field,
    MapType,
    PrimitiveType,
    StructType,
    folded_name,
    map_fields,
)

#: Names with what separates or quotes names, and with letters that change their length or their
#: kind with their case.
_ODD_NAMES = [
    *("a", "A", "b.c", "`", "a``b", "a b", "a,b", ".", "1", "select", "element"),
    *("ΠΟΛΙΣ", "πολις", "πολισ", "İ", "i", "ı", "ß", "ẞ", "ſ", "s", "\u212a", "k", "ᾼ", "𐐀", "𐐨"),
]
names = st.one_of(
    st.sampled_from(_ODD_NAMES),
    st.text(st.characters(max_codepoint=0x24F, exclude_categories=["C"]), min_size=1, max_size=3),
)

decimals = st.one_of(
    st.builds(
        lambda precision, scale: f"decimal({precision},{min(scale, precision)})",
        st.integers(1, 38),
        st.integers(0, 38),
    )
)
primitive_names = st.one_of(st.sampled_from(sorted(PRIMITIVE_TYPES)), decimals)
primitives = primitive_names.map(PrimitiveType)


def _with_distinct_names(fields: list[Field]) -> StructType:
    return StructType(tuple({folded_name(field.name): field for field in fields}.values()))


def structs_of(types: st.SearchStrategy[DataType], *, columns: int = 3) -> st.SearchStrategy:
    """Return structs with at least one field, whose names differ in more than case."""
    fields = st.builds(Field, names, types, st.booleans())
    return st.lists(fields, min_size=1, max_size=columns).map(_with_distinct_names)


types: st.SearchStrategy[DataType] = st.recursive(
    primitives,
    lambda inner: st.one_of(
        structs_of(inner),
        st.builds(ArrayType, inner, st.booleans()),
        st.builds(MapType, inner, inner, st.booleans()),
    ),
    max_leaves=6,
)
schemas = structs_of(types, columns=4)


def mapped(schema: StructType) -> StructType:
    """Return the schema with a physical name and an id for each field."""
    ids = count(1)

    def with_mapping(field: Field) -> Field:
        number = next(ids)
        return replace(
            field, metadata={COLUMN_ID: number, PHYSICAL_NAME: f"col-{number}", **field.metadata}
        )

    return map_fields(schema, with_mapping)
