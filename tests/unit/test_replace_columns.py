"""REPLACE COLUMNS as commits, without Spark."""

from __future__ import annotations

import json
from typing import Any

import pytest

from tests.support.alterations import (
    COLUMNS,
    ID,
    NAME,
    alter,
    fields,
    new,
    operation,
    parsed,
    refusal,
    table,
)
from tests.support.definitions import column, schema, struct


def stated(*columns: Any) -> list[dict[str, Any]]:
    return [{"parent": [], "specified": c} for c in json.loads(schema(*columns))["fields"]]


def test_replaced_columns_are_the_same_columns_in_another_order() -> None:
    log = table(
        column("id", "integer", False), *COLUMNS[1:], mode="name", enableTypeWidening="true"
    )
    before = fields(parsed(log))
    columns = stated(
        "p",
        column("S", struct(column("t", "string", metadata={"comment": "c"}), "u", "x")),
        column("id", "long"),
        *COLUMNS[2:4],
    )
    alter(log, "replaceColumns", columns=columns)
    after = fields(parsed(log))
    assert list(after)[:7] == ["p", "s", "s.t", "s.u", "s.x", "id", "arr"]
    for path in ("p", "s", "s.x", "arr.element.y", "m.value.z"):
        assert after[path] | {"type": 0} == before[path] | {"type": 0}, path
    assert after["s.t"]["metadata"] == {**before["s.t"]["metadata"], "comment": "c"}
    assert {ID, NAME} == set(after["s.u"]["metadata"])
    assert (after["id"]["type"], after["id"]["nullable"]) == ("long", True)
    assert after["id"]["metadata"]["delta.typeChanges"] == [
        {"toType": "long", "fromType": "integer"}
    ]
    name, parameters = operation(log)
    assert name == "REPLACE COLUMNS"
    assert [c["name"] for c in json.loads(parameters["columns"])] == ["p", "S", "id", "arr", "m"]


def test_replaced_columns_take_longer_strings() -> None:
    limited = (column("v", "varchar(3)"), column("c", "char(3)"), column("l", "char(3)"))
    log = table("id", *limited, "p")
    wanted = (column("v", "varchar(5)"), column("c", "varchar(3)"), column("l", "string"))
    alter(log, "replaceColumns", columns=stated("id", *wanted, "p"))
    after = {name: field["metadata"] for name, field in fields(parsed(log)).items()}
    assert after == {
        "id": {},
        "v": {"__CHAR_VARCHAR_TYPE_STRING": "varchar(5)"},
        "c": {"__CHAR_VARCHAR_TYPE_STRING": "varchar(3)"},
        "l": {},
        "p": {},
    }


@pytest.mark.parametrize(
    ("before", "then"),
    [
        ("varchar(5)", "varchar(4)"),
        ("varchar(5)", "char(5)"),
        ("char(5)", "char(6)"),
        ("string", "varchar(5)"),
    ],
)
def test_replaced_columns_take_no_shorter_strings(before: str, then: str) -> None:
    log = table(column("v", before), "p")
    columns = stated(column("v", then), "p")
    assert refusal(log, "replaceColumns", columns=columns) == "DELTAIC_UNSUPPORTED_COLUMN_CHANGE"


NESTED_LIMIT = {"__CHAR_VARCHAR_TYPE_STRING": "struct<a:varchar(3),n:int>"}


def test_fields_beside_char_and_varchar_stay_until_the_lengths_are_removed() -> None:
    fields_of = (column("a", "string"), column("n", "integer"))
    log = table(column("s", struct(*fields_of), metadata=NESTED_LIMIT), "p", mode="name")
    for command, arguments in (
        ("addColumns", {"columns": [new("s.b")]}),
        ("dropColumns", {"columns": [["s", "n"]]}),
        ("renameColumn", {"column": ["s", "n"], "name": "m"}),
    ):
        assert refusal(log, command, **arguments) == "DELTAIC_CANNOT_ALTER_COLUMN"
    alter(log, "renameColumn", column=["s"], name="r")
    alter(log, "addColumns", columns=[new("id")])
    same = column("r", struct(*fields_of), metadata=NESTED_LIMIT)
    alter(log, "replaceColumns", columns=stated("p", same, "id"))
    assert NESTED_LIMIT.items() <= fields(parsed(log))["r"]["metadata"].items()
    alter(log, "replaceColumns", columns=stated("p", column("r", struct(*fields_of, "b")), "id"))
    assert not NESTED_LIMIT.items() & fields(parsed(log))["r"]["metadata"].items()


@pytest.mark.parametrize(
    ("columns", "mode", "condition"),
    [
        (("id", "p"), "none", "DELTAIC_COLUMN_MAPPING_NEEDED"),
        (("id", *COLUMNS[1:4]), "name", "DELTAIC_CANNOT_ALTER_COLUMN"),
        (("id", "new", "p"), "name", "DELTAIC_UNSUPPORTED_COLUMN_CHANGE"),
        ((*COLUMNS, column("n", nullable=False)), "name", "DELTAIC_UNSUPPORTED_COLUMN_CHANGE"),
        ((column("id", nullable=False), *COLUMNS[1:]), "name", "DELTAIC_UNSUPPORTED_COLUMN_CHANGE"),
        ((column("id", "string"), *COLUMNS[1:]), "none", "DELTAIC_UNSUPPORTED_COLUMN_CHANGE"),
        ((column("id", struct("x")), *COLUMNS[1:]), "none", "DELTAIC_UNSUPPORTED_COLUMN_CHANGE"),
    ],
)
def test_columns_that_rows_do_not_fit_are_refused(columns: Any, mode: str, condition: str) -> None:
    assert refusal(table(mode=mode), "replaceColumns", columns=stated(*columns)) == condition


def test_fewer_columns_are_dropped_from_the_table() -> None:
    log = table(mode="name")
    alter(log, "replaceColumns", columns=stated(column("s", struct("x")), "p"))
    assert list(fields(parsed(log))) == ["s", "s.x", "p"]
