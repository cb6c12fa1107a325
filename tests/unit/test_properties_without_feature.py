"""Properties that other writers set while the protocol lacks their features."""

from __future__ import annotations

import json
from typing import Any

import pytest

from deltaic.commands.evolve_table import evolve_table
from deltaic.exceptions import TableStateError
from tests.support.alterations import alter, fields, metadata, new, parsed, refusal, table
from tests.support.definitions import plan, schema, write
from tests.support.memory_log import MemoryLog

MODE = "delta.columnMapping.mode"
DORMANT = [
    (MODE, "name"),
    (MODE, "id"),
    ("delta.enableRowTracking", "true"),
    ("delta.enableIcebergCompatV1", "true"),
    ("delta.enableIcebergCompatV2", "true"),
]


def having(**properties: str) -> MemoryLog:
    """Return a table whose metadata has properties that its protocol knows nothing of."""
    log = table("id", "p")

    def changed(line: str) -> str:
        action = json.loads(line)
        if "metaData" in action:
            action["metaData"]["configuration"] |= properties
        return json.dumps(action)

    log.commits_lines[0] = [changed(line) for line in log.commits_lines[0]]
    return log


@pytest.mark.protocol("row-tracking-3")
@pytest.mark.parametrize(("name", "value"), DORMANT)
@pytest.mark.parametrize(
    ("command", "arguments"),
    [
        ("addColumns", {"columns": [new("v")]}),
        ("alterProperties", {"set": {"delta.appendOnly": "true"}}),
        ("alterProperties", {"set": {"delta.columnMapping.mode": "name"}}),
        ("alterProperties", {"set": {"delta.feature.columnMapping": "supported"}}),
        ("alterProperties", {"unset": ["comment"]}),
        ("addConstraint", {"name": "c", "expression": "id > 0"}),
    ],
)
def test_no_other_definition_puts_it_into_force(
    name: str, value: str, command: str, arguments: dict[str, Any]
) -> None:
    log = having(**{name: value})
    assert refusal(log, command, **arguments) == "DELTAIC_PROPERTY_WITHOUT_FEATURE"


@pytest.mark.parametrize(("name", "value"), DORMANT)
def test_rows_may_come_but_no_columns(name: str, value: str) -> None:
    log = having(**{name: value})
    planned = plan(log)
    assert not planned.changes_protocol and not planned.changes_metadata
    snapshot = log.snapshot(log.table)
    assert snapshot is not None
    with pytest.raises(TableStateError, match=name):
        evolve_table(log.table, snapshot, schema("id", "p", "v"), log)
    with pytest.raises(TableStateError, match=name):
        plan(log, mode="overwrite", options={"overwriteschema": "true"})


def test_in_commit_timestamps_apply_from_the_overwrite_that_lists_their_feature() -> None:
    log = having(**{"delta.enableInCommitTimestamps": "true"})
    write(
        log,
        mode="overwrite",
        schema_string=schema("id", "p"),
        partition_by=("p",),
        commit_options={"overwriteschema": "true"},
    )
    assert metadata(log)["configuration"]["delta.inCommitTimestampEnablementVersion"] == "1"


@pytest.mark.parametrize("spelled", [MODE, "DELTA.columnMapping.MODE"])
def test_property_that_is_unset_and_set_again_names_columns_as_files_do(spelled: str) -> None:
    log = having(**{MODE: "name"})
    alter(log, "alterProperties", unset=[spelled])
    assert MODE not in metadata(log)["configuration"]
    alter(log, "alterProperties", set={MODE: "name"})
    mapped = {name: f["metadata"] for name, f in fields(parsed(log)).items()}
    assert {m["delta.columnMapping.physicalName"] for m in mapped.values()} == {"id", "p"}
    alter(log, "addColumns", columns=[new("v")])


def test_each_is_to_be_taken_away() -> None:
    log = having(**{MODE: "name", "delta.enableRowTracking": "true"})
    assert refusal(log, "alterProperties", unset=[MODE]) == "DELTAIC_PROPERTY_WITHOUT_FEATURE"
    alter(log, "alterProperties", unset=[MODE, "delta.enableRowTracking"])
    assert not metadata(log)["configuration"]
