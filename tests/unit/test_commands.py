"""CREATE TABLE, DESCRIBE HISTORY and DESCRIBE DETAIL."""

from __future__ import annotations

import json
from typing import Any

import pytest

from deltaic.commands.detail import DETAIL_SCHEMA, detail
from deltaic.commands.history import HISTORY_SCHEMA, history
from deltaic.commands.registry import run_command
from deltaic.commands.rows import timestamp_text
from deltaic.commit.transaction import CommitResult, RetryPolicy
from deltaic.exceptions import InvalidArgumentError, TableStateError
from deltaic.protocol.columns.char_varchar import CHAR_VARCHAR_TYPE_KEY
from deltaic.resources import load_json
from tests.support.definitions import column, command_arguments, create, plan, schema, struct, write
from tests.support.memory_log import MemoryFile, MemoryLog

LIST = {"type": "array", "elementType": "string"}


def create_table(log: MemoryLog, **changes: Any) -> dict[str, Any]:
    specified = {
        "schema": schema("id", "p"),
        "partitionBy": ["p"],
        "properties": {"delta.appendOnly": "true", "owner": "me"},
        "description": "rows",
        **changes,
    }
    arguments = command_arguments(log, "createTable", **specified)
    return run_command("createTable", arguments, log, RetryPolicy(), lambda: 5_000)


def test_create_table_commits_the_definition_alone() -> None:
    log = MemoryLog()
    assert create_table(log) == CommitResult(0, attempts=1).to_json()
    (info,) = log.actions(0, "commitInfo")
    assert info["operation"] == "CREATE TABLE"
    assert info["operationParameters"] == {
        "isManaged": "false",
        "description": "rows",
        "partitionBy": '["p"]',
        "clusterBy": "[]",
        "properties": '{"delta.appendOnly":"true","owner":"me"}',
    }
    assert info["isBlindAppend"] is True
    assert not log.files()
    snapshot = log.snapshot(log.table)
    assert snapshot is not None
    assert snapshot.metadata.partition_columns == ("p",)


def test_a_table_may_get_its_columns_later_if_the_session_allows_it() -> None:
    log = MemoryLog()
    log.columnless = False
    with pytest.raises(InvalidArgumentError, match="without columns"):
        create_table(log, schema=schema(), partitionBy=[])
    log.columnless = True
    create_table(log, schema=schema(), partitionBy=[])
    assert log.actions(0, "metaData")[0]["schemaString"] == '{"type":"struct","fields":[]}'
    with pytest.raises(InvalidArgumentError, match="columns that table"):
        plan(log)
    with pytest.raises(InvalidArgumentError, match="no column"):
        plan(log, schema_string=schema())
    evolved = plan(log, evolved_schema_string=schema("id", "p")).definition.metadata
    assert json.loads(evolved.schema_string) == json.loads(schema("id", "p"))


@pytest.mark.parametrize(
    "changes",
    [
        {},
        {"schema": schema(), "partitionBy": [], "properties": {}},
        {"schema": None, "partitionBy": [], "properties": {}},
        {
            "schema": schema(column("id", metadata={"comment": "key"}), "p"),
            "properties": {"owner": "me"},
        },
    ],
)
def test_create_table_over_a_table_it_describes_commits_nothing(changes: dict[str, Any]) -> None:
    log = MemoryLog()
    create_table(log)
    assert create_table(log, **changes) == CommitResult(0, skipped=True).to_json()
    assert log.version == 0


def test_of_two_creators_at_once_the_later_takes_the_table_over() -> None:
    log = MemoryLog()

    def meanwhile(version: int) -> None:
        log.before_try = lambda v: None
        create_table(log)

    log.before_try = meanwhile
    assert create_table(log) == CommitResult(0, skipped=True).to_json()
    assert log.version == 0


def test_of_two_creators_of_different_tables_at_once_the_later_gets_the_differences() -> None:
    log = MemoryLog()

    def meanwhile(version: int) -> None:
        log.before_try = lambda v: None
        create_table(log, properties={"owner": "you"})

    log.before_try = meanwhile
    with pytest.raises(InvalidArgumentError, match="table property"):
        create_table(log)
    assert log.version == 0


@pytest.mark.parametrize(
    ("changes", "what"),
    [
        ({"schema": schema("id")}, "schema"),
        ({"schema": schema("id", column("p", nullable=False))}, "schema"),
        ({"partitionBy": ["id"]}, "partitioning"),
        ({"partitionBy": []}, "partitioning"),
        ({"schema": None, "partitionBy": ["id"]}, "partitioning"),
        ({"properties": {"owner": "you"}}, "table property owner"),
    ],
)
def test_create_table_over_another_table_is_refused(changes: dict[str, Any], what: str) -> None:
    log = MemoryLog()
    create_table(log)
    with pytest.raises(InvalidArgumentError) as caught:
        create_table(log, **changes)
    assert caught.value.parameters["what"] == what


@pytest.mark.parametrize(
    ("there", "asked"),
    [
        (column("c", "varchar(10)"), column("c", "varchar(3)")),
        (column("c", "string"), column("c", "char(3)")),
        (column("c", struct("x")), column("c", struct(column("x", nullable=False)))),
        (column("c", {**LIST, "containsNull": True}), column("c", {**LIST, "containsNull": False})),
    ],
)
def test_create_table_that_says_what_rows_there_may_contradict_is_refused(
    there: dict[str, Any], asked: dict[str, Any]
) -> None:
    log = MemoryLog()
    create_table(log, schema=schema("p", there))
    with pytest.raises(InvalidArgumentError) as caught:
        create_table(log, schema=schema("p", asked))
    assert caught.value.parameters["what"] == "schema"
    assert caught.value.parameters["current"] != caught.value.parameters["requested"]


def test_length_of_a_char_is_the_same_wherever_the_metadata_has_it() -> None:
    log = MemoryLog()
    create_table(log, schema=schema("p", column("s", struct(column("t", "varchar(3)")))))
    stated = {CHAR_VARCHAR_TYPE_KEY: "struct<T:varchar(3)>"}
    whole = column("s", struct(column("T", "string")), metadata=stated)
    assert create_table(log, schema=schema("p", whole))["skipped"]


def test_unknown_command_is_refused_with_the_known_ones() -> None:
    with pytest.raises(InvalidArgumentError, match="createTable"):
        run_command("flyToTheMoon", {}, MemoryLog(), RetryPolicy(), lambda: 0)


HISTORY_COLUMNS = [
    "version", "timestamp", "userId", "userName", "operation", "operationParameters", "job",
    "notebook", "clusterId", "readVersion", "isolationLevel", "isBlindAppend", "operationMetrics",
    "userMetadata", "engineInfo",
]  # fmt: skip
DETAIL_COLUMNS = [
    "format", "id", "name", "description", "location", "createdAt", "lastModified",
    "partitionColumns", "clusteringColumns", "numFiles", "sizeInBytes", "properties",
    "minReaderVersion", "minWriterVersion", "tableFeatures",
]  # fmt: skip


def test_history_has_one_row_per_commit_newest_first() -> None:
    log = create(MemoryFile("one"))
    write(log, MemoryFile("two"), commit_options={"usermetadata": "nightly"})
    rows = history(log.table, log).rows
    assert [row["version"] for row in rows] == [1, 0]
    assert all(set(row) == set(HISTORY_COLUMNS) for row in rows)
    assert rows[0]["userMetadata"] == "nightly"
    assert rows[0]["readVersion"] == 0
    assert rows[1]["readVersion"] is None
    assert rows[0]["operationMetrics"]["numFiles"] == "1"
    assert rows[0]["timestamp"] == "1970-01-01T00:00:01.001Z"


def test_history_is_limited() -> None:
    log = create()
    write(log)
    assert [row["version"] for row in history(log.table, log, 1).rows] == [1]


def test_history_of_a_commit_without_commit_info_is_null() -> None:
    log = create()
    log.write_if_absent(1, ['{"txn":{"appId":"a","version":1}}'])
    row = history(log.table, log, 1).rows[0]
    assert row["version"] == 1
    assert {row[name] for name in HISTORY_COLUMNS if name not in ("version", "timestamp")} == {None}


def test_history_shows_parameters_of_any_type_as_text() -> None:
    log = create()
    log.write_if_absent(
        1, ['{"commitInfo":{"operationParameters":{"a":true,"b":[1],"c":"x","d":null}}}']
    )
    parameters = history(log.table, log, 1).rows[0]["operationParameters"]
    assert parameters == {"a": "true", "b": "[1]", "c": "x", "d": None}


@pytest.mark.parametrize(
    ("info", "shown"),
    [
        ({"job": "nightly-42", "notebook": 7}, {"job": None, "notebook": None}),
        ({"job": {"jobId": 3, "jobName": None}}, {"job": {"jobId": "3", "jobName": None}}),
        ({"operationParameters": "none", "operationMetrics": [1]}, {"operationMetrics": None}),
        ({"readVersion": "7", "userId": 12}, {"readVersion": 7, "userId": "12"}),
        ({"readVersion": 2**63, "isBlindAppend": "no"}, {"readVersion": None}),
        ({"readVersion": True, "clusterId": {"a": 1}}, {"clusterId": '{"a": 1}'}),
    ],
)
def test_history_shows_of_each_field_what_its_column_can_show(
    info: dict[str, Any], shown: dict[str, Any]
) -> None:
    log = create()
    log.write_if_absent(1, [json.dumps({"commitInfo": info})])
    row = history(log.table, log, 1).rows[0]
    others = set(row) - {"version", "timestamp", *shown}
    assert {name: row[name] for name in shown} == shown
    assert {row[name] for name in others} == {None}


def test_detail_describes_the_table() -> None:
    log = create(MemoryFile("one"), MemoryFile("two"), enableDeletionVectors="true")
    (row,) = detail(log.table, log, "spark_catalog.default.t").rows
    assert list(row) == DETAIL_COLUMNS
    assert row["format"] == "delta"
    assert row["name"] == "spark_catalog.default.t"
    assert row["numFiles"] == 2
    assert row["sizeInBytes"] == 200
    assert row["createdAt"] == "1970-01-01T00:00:05.000Z"
    assert (row["minReaderVersion"], row["minWriterVersion"]) == (3, 7)
    assert row["tableFeatures"] == ["appendOnly", "deletionVectors", "invariants"]


def test_detail_lists_the_features_that_legacy_versions_imply() -> None:
    log = create()
    (row,) = detail(log.table, log).rows
    assert row["name"] is None
    assert row["tableFeatures"] == ["appendOnly", "invariants"]


def test_detail_without_a_table_is_refused() -> None:
    log = MemoryLog()
    with pytest.raises(TableStateError, match="memory:/t"):
        detail(log.table, log)


@pytest.mark.parametrize(
    ("text", "names"), [(HISTORY_SCHEMA, HISTORY_COLUMNS), (DETAIL_SCHEMA, DETAIL_COLUMNS)]
)
def test_schema_names_the_columns_of_the_parity_checklist(text: str, names: list[str]) -> None:
    depth, top = 0, ""
    for character in text:
        depth += {"<": 1, ">": -1}.get(character, 0)
        top += character if depth == 0 else ""
    assert [part.split()[0] for part in top.split(", ")] == names


def test_time_is_written_in_utc_with_milliseconds() -> None:
    assert timestamp_text(1_700_000_000_007) == "2023-11-14T22:13:20.007Z"
    assert timestamp_text(-1) == "1969-12-31T23:59:59.999Z"


@pytest.mark.parametrize(
    ("command", "arguments", "expected"),
    [
        ("describeHistory", {"limit": 1}, [{"version": 0, "operation": "CREATE TABLE"}]),
        ("describeHistory", {}, [{"version": 0, "operation": "CREATE TABLE"}]),
        ("describeHistory", {"limit": 0}, []),
        ("describeDetail", {"name": "spark_catalog.a.b"}, [{"name": "spark_catalog.a.b"}]),
        ("describeDetail", {}, [{"name": None, "partitionColumns": ["p"]}]),
    ],
)
def test_statement_replies_with_the_rows_that_its_schema_declares(
    command: str, arguments: dict[str, Any], expected: list[dict[str, Any]]
) -> None:
    log = MemoryLog()
    create_table(log)
    reply = run_command(
        command, {"table": log.table, **arguments}, log, RetryPolicy(), lambda: 5_000
    )
    assert [
        {name: row[name] for name in known}
        for row, known in zip(reply["rows"], expected, strict=True)
    ] == expected
    columns = {column.split(" ", 1)[0] for column in load_json("command-results.json")[command]}
    assert all(set(row) <= columns for row in reply["rows"])
