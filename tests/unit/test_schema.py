"""Schema strings and what a table's schema must be."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from deltaic.exceptions import InvalidArgumentError, ProtocolError
from deltaic.protocol.actions import Metadata
from deltaic.protocol.columns.schema_checks import (
    check_table_schema,
    extra_columns,
    resolve_partition_columns,
)
from deltaic.protocol.schema import (
    PrimitiveType,
    folded_name,
    parse_schema,
    walk,
    write_schema,
)
from tests.support.definitions import column, schema, struct

#: The example of Protocol § Schema Serialization Format.
PROTOCOL_EXAMPLE = {
    "type": "struct",
    "fields": [
        column("a", "integer", nullable=False),
        column("b", struct(column("d", "integer", nullable=False))),
        column("c", {"type": "array", "elementType": "integer", "containsNull": False}),
        column(
            "e",
            {
                "type": "array",
                "elementType": struct(column("d", "integer", nullable=False)),
                "containsNull": True,
            },
        ),
        column(
            "f",
            {
                "type": "map",
                "keyType": "string",
                "valueType": "string",
                "valueContainsNull": True,
            },
        ),
    ],
}

names = st.text(st.characters(min_codepoint=97, max_codepoint=122), min_size=1, max_size=4)
types = st.recursive(
    st.sampled_from(["string", "long", "decimal(10,2)", "timestamp_ntz", "unheard_of"]),
    lambda inner: st.one_of(
        st.fixed_dictionaries(
            {"type": st.just("array"), "elementType": inner, "containsNull": st.booleans()}
        ),
        st.fixed_dictionaries(
            {
                "type": st.just("map"),
                "keyType": inner,
                "valueType": inner,
                "valueContainsNull": st.booleans(),
            }
        ),
        st.fixed_dictionaries(
            {"type": st.just("udt"), "class": st.just("a.PointUDT"), "sqlType": inner}
        ),
        st.lists(st.builds(column, names, inner, st.booleans()), max_size=3).map(
            lambda columns: struct(*columns)
        ),
    ),
    max_leaves=8,
)
schemas = st.lists(st.builds(column, names, types, st.booleans()), max_size=4).map(
    lambda columns: struct(*columns)
)


def check(text: str, *partition_columns: str) -> None:
    check_table_schema("/t", parse_schema(text, "/t"), partition_columns)


@given(schemas)
def test_schema_is_written_as_it_was_read(body: Any) -> None:
    assert json.loads(write_schema(parse_schema(json.dumps(body), "/t"))) == body


def test_example_of_the_protocol_is_read() -> None:
    parsed = parse_schema(json.dumps(PROTOCOL_EXAMPLE), "/t")
    assert [path for path, _ in walk(parsed)] == ["a", "b", "c", "e", "f", "b.d", "e.element.d"]
    check(json.dumps(PROTOCOL_EXAMPLE))


@pytest.mark.parametrize("text", ["", "[]", '"long"', '{"type":"tuple"}', '{"type":"struct"}', "3"])
def test_string_that_is_no_schema_is_refused(text: str) -> None:
    with pytest.raises(ProtocolError, match="/t"):
        parse_schema(text, "/t")


def test_schema_of_a_metadata_action_is_parsed_once() -> None:
    metadata = Metadata("id", schema("a"))
    assert metadata.schema is metadata.schema is parse_schema(schema("a"), "/t")
    with pytest.raises(ProtocolError, match="table no-schema"):
        Metadata("no-schema", "[]").schema  # noqa: B018


def test_field_without_nullable_or_metadata_is_read() -> None:
    parsed = parse_schema('{"type":"struct","fields":[{"name":"a","type":"long"}]}', "/t")
    assert parsed.fields[0].nullable
    assert parsed.fields[0].metadata == {}


@pytest.mark.parametrize(
    ("text", "condition", "says"),
    [
        (schema(), "DELTAIC_SCHEMA_EMPTY", "/t"),
        (schema("a", "A"), "DELTAIC_DUPLICATE_COLUMNS", "a, A"),
        (schema(column("s", struct("x", "X"))), "DELTAIC_DUPLICATE_COLUMNS", "s.x, s.X"),
        (
            schema(
                column(
                    "l", {"type": "array", "elementType": struct("x", "x"), "containsNull": True}
                )
            ),
            "DELTAIC_DUPLICATE_COLUMNS",
            "l.element.x",
        ),
        (schema("a b"), "DELTAIC_INVALID_COLUMN_NAME", "a b"),
        (schema(column("s", struct("x;y"))), "DELTAIC_INVALID_COLUMN_NAME", "s.x;y"),
        (schema(column("v", "interval year to month")), "DELTAIC_UNSUPPORTED_TYPE", "interval"),
    ],
)
def test_schema_that_a_table_cannot_have_is_refused(text: str, condition: str, says: str) -> None:
    with pytest.raises(InvalidArgumentError) as caught:
        check(text)
    assert caught.value.condition == condition
    assert says in str(caught.value)


def test_dotted_name_is_not_taken_for_a_nested_one() -> None:
    check(schema("a.b", column("a", struct("b"))))


@pytest.mark.parametrize(
    ("partition_columns", "condition"),
    [
        (["a", "b", "s"], "DELTAIC_PARTITION_COLUMN_TYPE"),
        (["s"], "DELTAIC_PARTITION_COLUMN_TYPE"),
        (["a", "a"], "DELTAIC_DUPLICATE_COLUMNS"),
    ],
)
def test_partition_columns_that_do_not_fit_are_refused(
    partition_columns: list[str], condition: str
) -> None:
    with pytest.raises(InvalidArgumentError) as caught:
        check(schema("a", "b", column("s", struct("x"))), *partition_columns)
    assert caught.value.condition == condition


def test_table_of_partition_columns_alone_is_refused() -> None:
    with pytest.raises(InvalidArgumentError, match="no column but partition columns"):
        check(schema("a", "b"), "a", "b")


def test_partition_columns_take_the_spelling_of_the_schema() -> None:
    assert resolve_partition_columns("/t", parse_schema(schema("Id", "Day"), "/t"), ["day"]) == (
        "Day",
    )


def test_partition_column_that_is_missing_is_refused_with_what_there_is() -> None:
    with pytest.raises(InvalidArgumentError, match="Id, Day"):
        resolve_partition_columns("/t", parse_schema(schema("Id", "Day"), "/t"), ["month"])


@pytest.mark.parametrize(
    ("written", "extra"),
    [
        (schema("a"), []),
        (schema("A", "S"), []),
        (schema("a", "b"), ["b"]),
        (schema(column("s", struct("x", "y"))), ["s.y"]),
    ],
)
def test_columns_that_the_table_lacks_are_found(written: str, extra: list[str]) -> None:
    table = parse_schema(schema("a", column("s", struct("x"))), "/t")
    assert extra_columns(table, parse_schema(written, "/t")) == extra


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("decimal", (10, 0)),
        ("decimal( 38 ,38)", (38, 38)),
        ("decimal(5,2)", (5, 2)),
        ("decimal(39,0)", None),
        ("decimal(5,6)", None),
        ("decimal(5,-2)", None),
        ("double", None),
    ],
)
def test_decimal(name: str, expected: tuple[int, int] | None) -> None:
    assert PrimitiveType(name).decimal == expected


@pytest.mark.parametrize(
    ("name", "other", "equal"),
    [("ΠΟΛΙΣ", "πολις", True), ("πολισ", "πολις", True), ("İd", "id", True), ("ß", "ss", False)],
)
def test_names_are_compared_letter_by_letter(name: str, other: str, equal: bool) -> None:
    assert (folded_name(name) == folded_name(other)) == equal
