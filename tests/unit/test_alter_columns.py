"""ADD, DROP, RENAME and ALTER COLUMNS as commits, without Spark."""

from __future__ import annotations

import json
from typing import Any

import pytest

from tests.support.alterations import (
    COLUMNS,
    ID,
    LIST,
    MAP,
    NAME,
    alter,
    fields,
    metadata,
    new,
    operation,
    parsed,
    refusal,
    table,
)
from tests.support.definitions import column, struct


def test_columns_are_added_at_every_depth_and_place() -> None:
    log = table()
    alter(
        log,
        "addColumns",
        columns=[
            new("last"),
            new("first", position={"after": None}, comment="to the front"),
            new("s.between", "string", position={"after": "X"}),
            new("arr.element.more"),
            new("m.value.front", position={"after": None}),
        ],
    )
    assert list(fields(parsed(log))) == [
        *("first", "id", "s", "s.x", "s.between", "s.t"),
        *("arr", "arr.element.y", "arr.element.more"),
        *("m", "m.value.front", "m.value.z", "p", "last"),
    ]
    name, parameters = operation(log)
    columns = json.loads(parameters["columns"])
    assert name == "ADD COLUMNS"
    assert columns[1] == {
        "column": {
            "name": "first",
            "type": "long",
            "nullable": True,
            "metadata": {"comment": "to the front"},
        },
        "position": "FIRST",
    }
    assert columns[2]["column"]["name"] == "s.between"
    assert columns[2]["position"] == "AFTER X"


@pytest.mark.protocol("writer-column-mapping-11", "writer-column-mapping-13")
@pytest.mark.protocol("writer-column-mapping-14", "writer-column-mapping-9")
@pytest.mark.parametrize("mode", ["name", "id"])
def test_added_columns_get_ids_and_names_that_no_column_has_had(mode: str) -> None:
    log = table(mode=mode)
    before = fields(parsed(log))
    alter(log, "dropColumns", columns=[["m"]])
    alter(log, "addColumns", columns=[new("s.n", struct("a", "b")), new("m")])
    after = fields(parsed(log))
    for path in ("id", "s", "s.x", "arr", "arr.element.y", "p"):
        assert after[path]["metadata"] == before[path]["metadata"], path
    used = {field["metadata"][ID] for field in before.values()}
    fresh = [after[path]["metadata"] for path in ("s.n", "s.n.a", "s.n.b", "m")]
    assert [column[ID] for column in fresh] == [max(used) + n for n in (1, 2, 3, 4)]
    assert len({field["metadata"][NAME] for field in (*before.values(), *after.values())}) == 13
    assert metadata(log)["configuration"]["delta.columnMapping.maxColumnId"] == str(max(used) + 4)


@pytest.mark.parametrize("mode", ["name", "id"])
def test_column_with_a_dot_in_its_name_is_not_taken_for_a_field(mode: str) -> None:
    log = table(column("a", struct("b")), "a.b", "p", mode=mode)

    def mappings() -> list[dict[str, Any]]:
        outer, dotted, *_ = json.loads(metadata(log)["schemaString"])["fields"]
        found = [outer, *outer["type"]["fields"], dotted]
        return [field["metadata"] for field in found]

    before = mappings()
    assert len({mapping[ID] for mapping in before}) == 3
    alter(log, "addColumns", columns=[new("c")])
    assert mappings() == before


def test_columns_whose_names_differ_by_more_than_case_are_two() -> None:
    log = table("Masse", "Maße", "Ñ", "p", mode="name")
    alter(log, "dropColumns", columns=[["MAßE"], ["ñ"]])
    assert list(fields(parsed(log))) == ["Masse", "p"]
    alter(log, "addColumns", columns=[new("maße")])
    assert refusal(log, "addColumns", columns=[new("MASSE")]) == "DELTAIC_COLUMN_EXISTS"


def test_char_and_varchar_are_stored_as_strings() -> None:
    log = table()
    alter(
        log,
        "addColumns",
        columns=[new("v", "varchar(7)"), new("n", struct(column("c", "char(2)")))],
    )
    added = fields(parsed(log))
    assert (added["v"]["type"], added["n.c"]["type"]) == ("string", "string")
    assert added["v"]["metadata"] == {"__CHAR_VARCHAR_TYPE_STRING": "varchar(7)"}
    alter(log, "alterColumns", columns=[{"column": ["v"], "type": "varchar(9)"}])
    assert fields(parsed(log))["v"]["metadata"] == {"__CHAR_VARCHAR_TYPE_STRING": "varchar(9)"}
    alter(log, "alterColumns", columns=[{"column": ["v"], "type": "string"}])
    assert fields(parsed(log))["v"]["metadata"] == {}


@pytest.mark.protocol("default-columns-1")
@pytest.mark.parametrize(
    ("column_", "condition"),
    [
        (new("ID"), "DELTAIC_COLUMN_EXISTS"),
        (new("s.T"), "DELTAIC_COLUMN_EXISTS"),
        (new("n", nullable=False), "DELTAIC_COLUMN_NOT_ADDED"),
        (new("n", default="1"), "DELTAIC_COLUMN_NOT_ADDED"),
        (new("nowhere.n"), "DELTAIC_COLUMN_NOT_FOUND"),
        (new("id.n"), "DELTAIC_COLUMN_NOT_FOUND"),
        (new("arr.y.n"), "DELTAIC_COLUMN_NOT_FOUND"),
        (new("n", position={"after": "nowhere"}), "DELTAIC_COLUMN_NOT_FOUND"),
        (new("a b"), "DELTAIC_INVALID_COLUMN_NAME"),
        (new("_change_type"), "DELTAIC_RESERVED_COLUMN_NAME"),
    ],
)
def test_columns_that_cannot_be_added_are_refused(column_: Any, condition: str) -> None:
    log = table(enableChangeDataFeed="true")
    assert refusal(log, "addColumns", columns=[new("fine"), column_]) == condition


@pytest.mark.protocol("writer-row-tracking-16")
@pytest.mark.parametrize("mode", ["none", "name"])
def test_names_of_materialized_row_ids_are_no_names_of_columns(mode: str) -> None:
    log = table(mode=mode, enableRowTracking="true")
    names = [
        value
        for key, value in metadata(log)["configuration"].items()
        if key.startswith("delta.rowTracking.materialized")
    ]
    assert len(names) == 2
    for name in names:
        refused = refusal(log, "addColumns", columns=[new(name.upper())])
        assert refused == "DELTAIC_RESERVED_COLUMN_NAME"
    alter(log, "addColumns", columns=[new("s.more")])


@pytest.mark.parametrize("mode", ["none", "name"])
def test_void_columns_are_added_and_dropped_and_take_any_type(mode: str) -> None:
    log = table(column("s", struct("t")), "id", "p", mode=mode)
    alter(log, "addColumns", columns=[new("w", "void"), new("s.v", "void"), new("u", "void")])
    assert fields(parsed(log))["s.v"]["type"] == "void"
    alter(log, "alterColumns", columns=[{"column": ["w"], "type": "integer"}])
    assert fields(parsed(log))["w"]["type"] == "integer"
    assert "delta.typeChanges" not in fields(parsed(log))["w"]["metadata"]
    if mode == "name":
        alter(log, "dropColumns", columns=[["u"]])
        assert list(fields(parsed(log))) == ["s", "s.t", "s.v", "id", "p", "w"]


def test_columns_are_dropped_at_every_depth() -> None:
    log = table(mode="name", dataSkippingStatsColumns="id, s.x,`s`.t")
    alter(log, "dropColumns", columns=[["S", "X"], ["id"], ["nowhere"]], ifExists=True)
    assert list(fields(parsed(log)))[:3] == ["s", "s.t", "arr"]
    assert metadata(log)["configuration"]["delta.dataSkippingStatsColumns"] == "s.t"
    assert operation(log) == ("DROP COLUMNS", {"columns": '["s.x","id"]'})
    assert alter(log, "dropColumns", columns=[["id"]], ifExists=True)["skipped"]


CHECKED = ("id", "v", column("g", metadata={"delta.generationExpression": "v + d.x"}), "p")


@pytest.mark.parametrize(
    ("path", "condition"),
    [
        (["p"], "DELTAIC_CANNOT_ALTER_COLUMN"),
        (["arr", "element", "y"], "DELTAIC_CANNOT_ALTER_COLUMN"),
        (["arr", "element"], "DELTAIC_COLUMN_NOT_FOUND"),
        (["nowhere"], "DELTAIC_COLUMN_NOT_FOUND"),
        (["s", "nowhere"], "DELTAIC_COLUMN_NOT_FOUND"),
    ],
)
def test_columns_that_a_table_needs_are_not_dropped(path: list[str], condition: str) -> None:
    assert refusal(table(mode="name"), "dropColumns", columns=[path]) == condition


def test_columns_that_something_is_computed_from_are_kept_as_they_are() -> None:
    log = table("id", "v", *CHECKED[2:], mode="name")
    log.commits_lines[0] = [
        line.replace('"configuration": {', '"configuration": {"delta.constraints.c": "id > 3", ')
        for line in log.commits_lines[0]
    ]
    for path in (["id"], ["V"]):
        assert refusal(log, "dropColumns", columns=[path]) == "DELTAIC_COLUMN_DEPENDED_ON"
        depended = refusal(log, "renameColumn", column=path, name="other")
        assert depended == "DELTAIC_COLUMN_DEPENDED_ON"
    alter(log, "dropColumns", columns=[["v"], ["g"]])
    assert list(fields(parsed(log))) == ["id", "p"]


def test_expression_that_cannot_be_read_keeps_every_column() -> None:
    log = table("v", column("g", metadata={"delta.generationExpression": "?"}), "w", "p", mode="id")
    assert refusal(log, "dropColumns", columns=[["w"]]) == "DELTAIC_COLUMN_DEPENDED_ON"


@pytest.mark.protocol("writer-column-mapping-5")
def test_renamed_column_keeps_its_name_in_files() -> None:
    log = table(mode="name", dataSkippingStatsColumns="s.x,id")
    before = fields(parsed(log))
    alter(log, "renameColumn", column=["P"], name="q.r")
    assert operation(log) == (
        "RENAME COLUMN",
        {"oldColumnPath": "p", "newColumnPath": "`q.r`"},
    )
    assert metadata(log)["partitionColumns"] == ["q.r"]
    alter(log, "renameColumn", column=["s"], name="S2")
    alter(log, "renameColumn", column=["m", "value", "z"], name="zz")
    alter(log, "renameColumn", column=["id"], name="i.d")
    after = fields(parsed(log))
    for old, now in (("p", "q.r"), ("s.x", "S2.x"), ("s", "S2"), ("m.value.z", "m.value.zz")):
        assert after[now]["metadata"] == before[old]["metadata"]
    assert metadata(log)["configuration"]["delta.dataSkippingStatsColumns"] == "S2.x,`i.d`"


@pytest.mark.parametrize("name", ["2024", "1d", "größe", "a-b"])
def test_names_that_sql_takes_quoted_alone_stay_quoted_in_a_list(name: str) -> None:
    log = table(column(name), "b", "p", mode="name", dataSkippingStatsColumns=f"`{name}`,b")
    alter(log, "renameColumn", column=["b"], name="d")
    assert metadata(log)["configuration"]["delta.dataSkippingStatsColumns"] == f"`{name}`,d"


@pytest.mark.parametrize(
    ("path", "name", "condition"),
    [
        (["id"], "S", "DELTAIC_DUPLICATE_COLUMNS"),
        (["s", "x"], "T", "DELTAIC_DUPLICATE_COLUMNS"),
        (["arr", "element"], "e", "DELTAIC_CANNOT_ALTER_COLUMN"),
        (["nowhere"], "e", "DELTAIC_COLUMN_NOT_FOUND"),
    ],
)
def test_names_that_columns_cannot_have_are_refused(
    path: list[str], name: str, condition: str
) -> None:
    assert refusal(table(mode="name"), "renameColumn", column=path, name=name) == condition


@pytest.mark.protocol("consistency-between-table-metadata-and-data-files-1")
def test_without_column_mapping_nothing_is_renamed_or_dropped() -> None:
    log = table()
    dropped = refusal(log, "dropColumns", columns=[["id"]])
    renamed = refusal(log, "renameColumn", column=["id"], name="e")
    assert dropped == renamed == "DELTAIC_COLUMN_MAPPING_NEEDED"


def test_column_gets_a_comment_another_place_and_nulls() -> None:
    log = table(column("id", nullable=False), *COLUMNS[1:])
    alter(
        log,
        "alterColumns",
        columns=[
            {"column": ["ID"], "comment": "a key", "nullable": True, "position": {"after": "m"}}
        ],
    )
    assert list(fields(parsed(log)))[-2:] == ["id", "p"]
    moved = fields(parsed(log))["id"]
    assert (moved["nullable"], moved["metadata"]) == (True, {"comment": "a key"})
    name, parameters = operation(log)
    assert (name, parameters["position"]) == ("CHANGE COLUMN", "AFTER m")
    assert json.loads(parameters["column"]) == {
        "name": "id",
        "type": "long",
        "nullable": True,
        "metadata": {"comment": "a key"},
    }


def test_several_columns_are_changed_in_one_commit() -> None:
    log = table()
    alter(
        log,
        "alterColumns",
        columns=[
            {"column": ["s", "t"], "position": {"after": None}},
            {"column": ["arr", "element", "y"], "comment": "deep"},
        ],
    )
    assert list(fields(parsed(log)))[1:4] == ["s", "s.t", "s.x"]
    assert fields(parsed(log))["arr.element.y"]["metadata"] == {"comment": "deep"}
    name, parameters = operation(log)
    assert name == "CHANGE COLUMNS" and log.version == 1
    assert [c["name"] for c in json.loads(parameters["columns"])] == [
        "s.t",
        "arr.element.y",
    ]


def test_nothing_new_about_a_column_makes_no_version() -> None:
    log = table(column("id", metadata={"comment": "c"}), "p")
    assert alter(log, "alterColumns", columns=[{"column": ["id"], "comment": "c"}])["skipped"]


@pytest.mark.parametrize(
    "change",
    [
        {"column": ["id"], "nullable": False},
        {"column": ["arr", "element"], "comment": "c"},
        {"column": ["id"], "type": "double"},
        {"column": ["s"], "type": "string"},
    ],
)
def test_changes_that_rows_could_not_follow_are_refused(change: Any) -> None:
    log = table(enableTypeWidening="true")
    refused = refusal(log, "alterColumns", columns=[change])
    assert refused == "DELTAIC_UNSUPPORTED_COLUMN_CHANGE"


def test_column_whose_values_are_computed_takes_no_default() -> None:
    identity = {"delta.identity.start": 1, "delta.identity.step": 1}
    generated = {"delta.generationExpression": "v + 1"}
    log = table(column("n", metadata=identity), column("g", metadata=generated), "v", "p")
    for name in ("n", "G"):
        given = {"column": [name], "default": "5"}
        refused = refusal(log, "alterColumns", columns=[given])
        assert refused == "DELTAIC_UNSUPPORTED_COLUMN_CHANGE"
        assert alter(log, "alterColumns", columns=[{**given, "default": ""}])["skipped"]


def test_column_whose_values_are_computed_keeps_its_type() -> None:
    generated = column("g", "short", metadata={"delta.generationExpression": "v"})
    log = table(column("v", "short"), generated, "p", enableTypeWidening="true")
    wider = {"column": ["G"], "type": "integer"}
    refused = "DELTAIC_UNSUPPORTED_COLUMN_CHANGE"
    assert refusal(log, "alterColumns", columns=[wider]) == refused
    columns = [new("v", "short"), new("g", "integer"), new("p")]
    assert refusal(log, "replaceColumns", columns=columns) == refused


def test_type_is_widened_inside_of_arrays_and_noted_there() -> None:
    numbers = {**LIST, "elementType": {**MAP, "valueType": "short"}}
    log = table("id", column("n", numbers), "p", enableTypeWidening="true")
    path = ["n", "element", "value"]
    alter(log, "alterColumns", columns=[{"column": path, "type": "integer"}])
    widened = fields(parsed(log))["n"]
    assert widened["type"]["elementType"]["valueType"] == "integer"
    assert widened["metadata"]["delta.typeChanges"] == [
        {"toType": "integer", "fromType": "short", "fieldPath": "element.value"}
    ]


@pytest.mark.parametrize(
    ("step", "start", "value", "mark"),
    [
        (1, 1, 7, 7),
        (3, 1, 7, 7),
        (3, 1, 8, 10),
        (-2, 0, -3, -4),
        (5, 10, 3, None),
        (1, 1, None, None),
    ],
)
def test_identity_column_continues_after_the_values_of_the_table(
    step: int, start: int, value: int | None, mark: int | None
) -> None:
    identity = {"delta.identity.start": start, "delta.identity.step": step}
    identity["delta.identity.allowExplicitInsert"] = True
    log = table(column("n", metadata=identity), "v", "p")
    alter(log, "syncIdentity", column=["N"], extreme={"value": value})
    if mark is None:
        assert log.version == 0
    else:
        assert fields(parsed(log))["n"]["metadata"]["delta.identity.highWaterMark"] == mark
        assert operation(log)[0] == "CHANGE COLUMN"
    for name, extreme in (("v", {"value": value}), ("n", None)):
        refused = refusal(log, "syncIdentity", column=[name], extreme=extreme)
        assert refused == "DELTAIC_NOT_IDENTITY"
