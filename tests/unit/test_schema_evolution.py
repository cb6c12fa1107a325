"""Columns that rows add, and how a table's schema evolves."""

from __future__ import annotations

import json
from typing import Any

import pytest

from deltaic.commit.plan import CommitPlan
from deltaic.commit.transaction import commit
from deltaic.exceptions import InvalidArgumentError, MetadataChangedException
from tests.support.definitions import column, plan, schema, struct, write
from tests.support.memory_log import MemoryCommit, MemoryFile, MemoryLog


def table_of(*columns: Any, **properties: str) -> MemoryLog:
    log = MemoryLog()
    named = {f"delta.{name.replace('_', '.')}": value for name, value in properties.items()}
    write(log, schema_string=schema(*columns), properties=named)
    return log


def evolve(log: MemoryLog, *columns: Any, mode: str = "append") -> CommitPlan:
    return plan(log, mode, evolved_schema_string=schema(*columns))


def fields(planned: CommitPlan) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = json.loads(planned.definition.metadata.schema_string)["fields"]
    return found


def array(element: Any) -> dict[str, Any]:
    return {"type": "array", "elementType": element, "containsNull": False}


def map_of(value: Any) -> dict[str, Any]:
    return {"type": "map", "keyType": "string", "valueType": value, "valueContainsNull": False}


def test_new_column_comes_last_may_be_null_and_keeps_its_comment() -> None:
    new = column("new", "string", nullable=False, metadata={"comment": "why"})
    for mode in ("append", "overwrite"):
        planned = evolve(table_of("id"), new, "id", mode=mode)
        stored = column("new", "string", metadata={"comment": "why"})
        assert fields(planned) == [column("id"), stored]
        assert planned.changes_metadata and not planned.changes_columns
        assert planned.is_blind_append is (mode == "append")


def test_columns_the_table_has_in_another_spelling_are_not_new() -> None:
    planned = evolve(
        table_of(column("Id"), column("St", struct("A"))), "ID", column("st", struct("a"))
    )
    assert not planned.changes_metadata and not planned.changes_protocol


def test_new_fields_come_last_wherever_they_are_nested() -> None:
    before, after = struct("a"), struct("b", "a")
    both = struct("a", "b")
    log = table_of(
        column("st", before),
        column("arr", array(before)),
        column("m", map_of(array(before))),
        "id",
    )
    planned = evolve(
        log,
        column("st", after),
        column("arr", array(after)),
        column("m", map_of(array(after))),
        column("new", array(struct(column("x", nullable=False)))),
    )
    assert fields(planned) == [
        column("st", both),
        column("arr", array(both)),
        column("m", map_of(array(both))),
        column("id"),
        column("new", {**array(struct("x")), "containsNull": True}),
    ]


def test_void_column_takes_the_type_of_the_rows_and_keeps_its_place() -> None:
    log = MemoryLog()
    write(log, schema_string=schema("v", "id"))
    lines = [
        line.replace('\\"name\\":\\"v\\",\\"type\\":\\"long\\"', VOID)
        for line in log.commits_lines[0]
    ]
    log.commits_lines[0] = lines
    assert fields(evolve(log, "id", column("v", "string"))) == [column("v", "string"), column("id")]


VOID = '\\"name\\":\\"v\\",\\"type\\":\\"void\\"'


def mapping(field: dict[str, Any]) -> tuple[int, str]:
    metadata = field["metadata"]
    return metadata["delta.columnMapping.id"], metadata["delta.columnMapping.physicalName"]


@pytest.mark.protocol("writer-column-mapping-14")
def test_new_columns_get_ids_above_all_that_were_given_and_others_keep_theirs() -> None:
    log = table_of("id", column("st", struct("a")), columnMapping_mode="name")
    before = fields(plan(log, schema_string=None))
    planned = evolve(
        log,
        "id",
        column("st", struct("a", column("b", metadata={"delta.columnMapping.id": 1}))),
        "new",
    )
    after = fields(planned)
    assert [mapping(f) for f in after[:2]] == [mapping(f) for f in before]
    a, b = after[1]["type"]["fields"]
    assert mapping(a) == mapping(before[1]["type"]["fields"][0])
    assert {mapping(b)[0], mapping(after[2])[0]} == {4, 5}
    assert len({name for _, name in map(mapping, [*after, a, b])}) == 5
    assert planned.definition.metadata.configuration["delta.columnMapping.maxColumnId"] == "5"


WIDENING = {"enableTypeWidening": "true"}


def test_types_grow_wider_where_the_table_has_that_on() -> None:
    log = table_of(column("n", "short"), column("m", map_of("integer")), column("id"), **WIDENING)
    planned = evolve(log, column("n", "integer"), column("m", map_of("long")), "id")
    n, m, _ = fields(planned)
    assert n["type"] == "integer"
    assert n["metadata"]["delta.typeChanges"] == [{"toType": "integer", "fromType": "short"}]
    assert m["type"] == map_of("long")
    change = {"toType": "long", "fromType": "integer", "fieldPath": "value"}
    assert m["metadata"]["delta.typeChanges"] == [change]


def test_types_that_files_store_alike_grow_wider_in_any_table_without_a_note() -> None:
    log = table_of(
        column("n", "byte"), column("m", map_of(array("short"))), column("st", struct("a")), "id"
    )
    wider = (column("n", "integer"), column("m", map_of(array("integer"))))
    planned = evolve(log, *wider, column("st", struct("a")), "id")
    assert fields(planned) == [*wider, column("st", struct("a")), column("id")]
    assert not planned.changes_protocol


@pytest.mark.parametrize(
    ("properties", "before", "after", "says"),
    [
        ({}, "integer", "long", "enableTypeWidening is not true"),
        (WIDENING, "long", "integer", "their types differ"),
        (WIDENING, "string", "long", "their types differ"),
        (WIDENING, "long", struct("a"), "their types differ"),
    ],
)
def test_other_types_are_refused_by_the_columns_name(
    properties: dict[str, str], before: Any, after: Any, says: str
) -> None:
    log = table_of("id", column("st", struct(column("n", before))), **properties)
    with pytest.raises(InvalidArgumentError, match=says) as caught:
        evolve(log, "id", column("st", struct(column("n", after))))
    assert "Column st.n" in str(caught.value)


@pytest.mark.parametrize("widening", ["true", "false"])
def test_type_stays_where_a_condition_references_the_column_or_computes_it(widening: str) -> None:
    log = MemoryLog()
    generated = column("g", "short", metadata={"delta.generationExpression": "year(d)"})
    write(
        log,
        schema_string=schema(column("n", "short"), generated, "id"),
        properties={"delta.enableTypeWidening": widening},
        constraints={"small": "N < 10"},
    )
    with pytest.raises(InvalidArgumentError, match="N < 10"):
        evolve(log, column("n", "integer"), "id")
    with pytest.raises(InvalidArgumentError, match=r"Column g .*year\(d\)"):
        evolve(log, column("g", "integer"), "id")


@pytest.mark.protocol("partition-value-serialization-1", "primitive-types-4")
@pytest.mark.protocol("timestamp-without-timezone-timestampntz-2")
def test_new_column_adds_the_feature_that_it_needs() -> None:
    planned = evolve(table_of("id"), "id", column("t", "timestamp_ntz"))
    assert planned.changes_protocol
    assert planned.definition.protocol.reader_features == frozenset({"timestampNtz"})


@pytest.mark.parametrize(
    ("properties", "name", "condition"),
    [
        ({}, "a b", "DELTAIC_INVALID_COLUMN_NAME"),
        ({"enableChangeDataFeed": "true"}, "_change_type", "DELTAIC_RESERVED_COLUMN_NAME"),
    ],
)
def test_names_that_no_column_may_have_are_refused(
    properties: dict[str, str], name: str, condition: str
) -> None:
    with pytest.raises(InvalidArgumentError) as caught:
        evolve(table_of("id", **properties), "id", name)
    assert caught.value.condition == condition


def written(log: MemoryLog, planned: CommitPlan, path: str) -> MemoryCommit:
    return MemoryCommit(
        log, "WRITE", adds=[MemoryFile(path)], plan=planned, is_blind_append=planned.is_blind_append
    )


def test_rows_appended_meanwhile_do_not_hinder_new_columns_but_others_columns_do() -> None:
    log = table_of("id")
    mine, others = evolve(log, "id", "mine"), evolve(log, "id", "others")
    before = plan(log, schema_string=None)
    write(log, MemoryFile("plain"), schema_string=None)
    assert commit(written(log, mine, "f"), log).version == 2
    assert log.actions(2, "commitInfo")[0]["isBlindAppend"] is True
    with pytest.raises(MetadataChangedException):
        commit(written(log, others, "g"), log)
    with pytest.raises(MetadataChangedException):
        commit(written(log, before, "h"), log)
