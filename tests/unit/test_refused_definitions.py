"""Definitions that other writers would not keep, or could not."""

from __future__ import annotations

from typing import Any

import pytest

from deltaic.commands.registry import run_command
from deltaic.commit.operations import Operation
from deltaic.commit.transaction import RetryPolicy
from deltaic.exceptions import InvalidArgumentError
from tests.support.definitions import column, command_arguments, create, plan, schema, struct
from tests.support.memory_log import MemoryLog

LOG, FILES = "delta.logRetentionDuration", "delta.deletedFileRetentionDuration"


def run(log: MemoryLog, command: str, **arguments: Any) -> dict[str, Any]:
    return run_command(
        command, command_arguments(log, command, **arguments), log, RetryPolicy(), lambda: 1
    )


def days(number: int) -> str:
    return f"interval {number} days"


@pytest.mark.parametrize(
    ("given", "refused"),
    [
        ({FILES: days(30)}, False),
        ({FILES: "interval 30 days 1 second"}, True),
        ({LOG: days(7)}, False),
        ({LOG: days(6)}, True),
        ({LOG: days(40), FILES: days(40)}, False),
        ({LOG: days(40), FILES: days(41)}, True),
        ({LOG: "interval 5 weeks", FILES: days(34)}, False),
    ],
)
def test_deleted_files_are_kept_no_longer_than_the_log(
    given: dict[str, str], refused: bool
) -> None:
    statements = {
        "created": lambda: plan(MemoryLog(), properties=given),
        "altered": lambda: run(create(), "alterProperties", set=given),
        "replaced": lambda: plan(
            create(), "overwrite", operation=Operation.CREATE_OR_REPLACE_TABLE, properties=given
        ),
    }
    for run_statement in statements.values():
        if refused:
            with pytest.raises(InvalidArgumentError, match="DELETED_FILE_RETENTION_TOO_LONG"):
                run_statement()
        else:
            run_statement()


def test_retention_is_checked_by_what_the_table_has_and_only_when_it_changes() -> None:
    log = create(logRetentionDuration=days(50))
    run(log, "alterProperties", set={FILES: days(45)})
    for changes in ({"set": {LOG: days(40)}}, {"unset": [LOG]}):
        with pytest.raises(InvalidArgumentError, match="45 days"):
            run(log, "alterProperties", **changes)
    run(log, "alterProperties", unset=[LOG, FILES])
    log = MemoryLog()
    log.defaults = {FILES: days(60)}
    plan(log)  # the session's defaults are not the statement's to answer for, as in delta-spark
    with pytest.raises(InvalidArgumentError, match="60 days"):
        plan(log, properties={LOG: days(40)})


@pytest.mark.parametrize(
    "name", ["__CHAR_VARCHAR_STRING_LENGTH_CHECK__", "__char_varchar_string_length_check__"]
)
def test_reserved_name_of_a_constraint_is_refused(name: str) -> None:
    with pytest.raises(InvalidArgumentError, match="RESERVED_CONSTRAINT_NAME"):
        run(create(), "addConstraint", name=name, expression="id > 0")
    with pytest.raises(InvalidArgumentError, match="RESERVED_CONSTRAINT_NAME"):
        plan(MemoryLog(), constraints={name: "id > 0"})


def not_null(name: str) -> dict[str, Any]:
    return column(name, nullable=False)


def array(element: Any) -> dict[str, Any]:
    return {"type": "array", "elementType": element, "containsNull": True}


def mapping(key: Any, value: Any) -> dict[str, Any]:
    return {"type": "map", "keyType": key, "valueType": value, "valueContainsNull": True}


WITHIN = {
    "a.element.b": column("a", array(struct(not_null("b")))),
    "m.key.b": column("m", mapping(struct(not_null("b")), "long")),
    "m.value.b": column("m", mapping("long", struct(not_null("b")))),
    "s.a.element.b": column("s", struct(column("a", array(struct(not_null("b")))))),
}


@pytest.mark.parametrize("path", WITHIN)
def test_not_null_within_an_array_or_a_map_is_refused(path: str) -> None:
    columns = schema("id", "p", WITHIN[path])
    replaced = [{"parent": [], "specified": f} for f in (column("id"), column("p"), WITHIN[path])]
    for statement in (
        lambda: run(MemoryLog(), "createTable", schema=columns),
        lambda: run(create(), "replaceColumns", columns=replaced),
        lambda: plan(
            create(),
            "overwrite",
            operation=Operation.CREATE_OR_REPLACE_TABLE,
            schema_string=columns,
        ),
    ):
        with pytest.raises(InvalidArgumentError, match=f"NESTED_NOT_NULL.*{path}"):
            statement()
    plan(MemoryLog(), schema_string=columns)  # rows of a DataFrame: nobody asked for it


def test_not_null_within_a_struct_is_enforced_and_so_allowed() -> None:
    columns = schema("id", column("s", struct(not_null("b")), nullable=False))
    run(MemoryLog(), "createTable", schema=columns)


@pytest.mark.parametrize("added", [column("s", struct(not_null("b"))), *WITHIN.values()])
def test_column_with_a_field_that_is_not_null_is_not_added(added: dict[str, Any]) -> None:
    with pytest.raises(InvalidArgumentError, match=r"COLUMN_NOT_ADDED.*NOT NULL"):
        run(create(), "addColumns", columns=[{"parent": [], "specified": added}])


def mapped(name: str, number: int, physical: str) -> dict[str, Any]:
    metadata = {"delta.columnMapping.id": number, "delta.columnMapping.physicalName": physical}
    return column(name, metadata=metadata)


@pytest.mark.parametrize(
    ("second", "refused"),
    [(mapped("b", 1, "q"), True), (mapped("b", 2, "p"), True), (mapped("b", 2, "q"), False)],
)
def test_ids_and_physical_names_that_two_columns_share_are_refused(
    second: dict[str, Any], refused: bool
) -> None:
    def define(mode: str) -> None:
        properties = {"delta.columnMapping.mode": mode}
        columns = schema(mapped("a", 1, "p"), second)
        run(MemoryLog(), "createTable", schema=columns, properties=properties)

    define("none")
    if refused:
        with pytest.raises(InvalidArgumentError, match="DUPLICATE_COLUMN_MAPPING"):
            define("name")
    else:
        define("name")
