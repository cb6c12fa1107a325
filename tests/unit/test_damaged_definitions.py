"""Commands refuse damaged non-file actions of a log with errors of Deltaic.

The JVM passes on a protocol, and a metaData whose schema, properties and domains are strings. These
tests change the strings at random; each command works, or raises a `DeltaError`.
"""

from __future__ import annotations

import copy
import json
from collections.abc import Callable, Iterator
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from deltaic.commands.alter.upgrade_protocol import UpgradeProtocol, upgrade_protocol
from deltaic.commands.registry import run_command
from deltaic.commit.isolation import isolation_of
from deltaic.commit.operations import Operation
from deltaic.commit.transaction import RetryPolicy, commit
from deltaic.exceptions import INTERNAL_ERROR, DeltaError, ProtocolError, TableStateError
from deltaic.protocol import row_tracking
from deltaic.protocol.columns import clustering
from deltaic.protocol.columns.identity_high_water_marks import differ_only_in_high_water_marks
from deltaic.protocol.properties import all_properties
from deltaic.protocol.validation.log import validate_log
from tests.support.definitions import column, plan, schema, struct, write
from tests.support.memory_log import EVERYTHING, MemoryCommit, MemoryFile, MemoryLog

IDENTITY = {
    "delta.identity.start": 1,
    "delta.identity.step": 2,
    "delta.identity.highWaterMark": 5,
    "delta.identity.allowExplicitInsert": True,
}
COLUMNS = (
    "id",
    column("n", "long", metadata=IDENTITY),
    column("s", struct("x", column("t", "string"))),
    column("l", {"type": "array", "containsNull": True, "elementType": struct("y")}),
    column("d", "date", metadata={"CURRENT_DEFAULT": "current_date()", "comment": "day"}),
    column("g", "long", metadata={"delta.generationExpression": "id + 1"}),
    "p",
)
PROPERTIES = {
    "delta.columnMapping.mode": "name",
    "delta.enableRowTracking": "true",
    "delta.enableInCommitTimestamps": "true",
    "delta.checkpointInterval": "2",
    "delta.isolationLevel": "Serializable",
    "delta.dataSkippingStatsColumns": "id,s.x",
    "delta.feature.allowColumnDefaults": "supported",
}


def healthy() -> list[dict[str, Any]]:
    """Return the actions of a table whose non-file actions have most of what there is."""
    log = MemoryLog()
    planned = plan(log, schema_string=schema(*COLUMNS), properties=PROPERTIES, cluster_by=[("id",)])
    commit(MemoryCommit(log, "WRITE", plan=planned, adds=[MemoryFile("one")]), log)
    return [json.loads(line) for line in log.commits_lines[0]]


DEFINITION = healthy()

#: More than a parser goes down.
DEEP = pytest.param("[" * 9999, id="deep")

_texts = st.sampled_from(["", " ", "true", "-1", "1e3", "null", "9" * 30, "[]", "{}", "`", "long"])
_values: st.SearchStrategy[Any] = (
    st.none() | st.booleans() | st.integers() | st.floats() | _texts | st.text(max_size=5)
)
_any_json = st.recursive(
    _values,
    lambda inner: st.lists(inner, max_size=2) | st.dictionaries(_texts, inner, max_size=2),
    max_leaves=4,
)


def places(node: Any, path: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    """Yield the path to every value in JSON, the whole included."""
    yield path
    if isinstance(node, dict | list):
        items = node.items() if isinstance(node, dict) else enumerate(node)
        for key, value in items:
            yield from places(value, (*path, key))


@st.composite
def damaged_json(draw: st.DrawFn, text: str) -> str:
    """Replace one or two values of a JSON string, or break the string."""
    body = json.loads(text)
    for _ in range(draw(st.integers(1, 2))):
        way = draw(st.sampled_from(list(places(body))))
        if not way:
            broken = st.sampled_from([text[:-1], "[" * 5000])
            return draw(broken | _any_json.map(json.dumps))
        parent = body
        for key in way[:-1]:
            parent = parent[key]
        if draw(st.booleans()) and isinstance(parent, dict):
            del parent[way[-1]]
        else:
            parent[way[-1]] = draw(_any_json)
    return json.dumps(body)


@st.composite
def damaged_definitions(draw: st.DrawFn) -> list[dict[str, Any]]:
    definition = copy.deepcopy(DEFINITION)
    (metadata,) = (action["metaData"] for action in definition if "metaData" in action)
    domains = [action["domainMetadata"] for action in definition if "domainMetadata" in action]
    parts = draw(st.sets(st.sampled_from(["schema", "property", "domain"]), min_size=1))
    if "schema" in parts:
        metadata["schemaString"] = draw(damaged_json(metadata["schemaString"]))
    if "property" in parts:
        name = draw(st.sampled_from([known.name for known in all_properties()]))
        metadata["configuration"][name] = draw(_texts | st.text(max_size=5))
    if "domain" in parts:
        domain = draw(st.sampled_from(domains))
        domain["configuration"] = draw(damaged_json(domain["configuration"]))
    return definition


def command(name: str, /, **arguments: Any) -> Callable[[MemoryLog], object]:
    return lambda log: run_command(
        name, {"table": log.table, **arguments}, log, RetryPolicy(max_attempts=2), lambda: 1
    )


def overwrite(**request: Any) -> Callable[[MemoryLog], object]:
    def run(log: MemoryLog) -> None:
        planned = plan(log, "overwrite", **request)
        removes = [file.path for file in log.files()]
        commit(MemoryCommit(log, "WRITE", plan=planned, removes=removes, reads=EVERYTHING), log)

    return run


def after_another(log: MemoryLog) -> None:
    """Commit after one that sets the domains again: the actions of a winner are read, too."""
    ours = MemoryCommit(log, "WRITE", adds=[MemoryFile("two")], is_blind_append=True)
    domains = [line for line in log.commits_lines[0] if line.startswith('{"domainMetadata"')]
    log.write_if_absent(1, ['{"commitInfo":{"operation":"WRITE"}}', *domains])
    commit(ours, log)
    snapshot = log.snapshot(log.table)
    assert snapshot is not None
    differ_only_in_high_water_marks(snapshot.metadata, snapshot.metadata)


COMMANDS: dict[str, Callable[[MemoryLog], object]] = {
    "append": lambda log: write(log, MemoryFile("two")),
    "append with identity": lambda log: commit(
        MemoryCommit(log, "WRITE", adds=[MemoryFile("two")], identity_high_water_marks={"n": 9}),
        log,
    ),
    "append with columns": lambda log: write(
        log, evolved_schema_string=schema(*COLUMNS, column("new")), schema_string=None
    ),
    "append after another": after_another,
    "overwrite": overwrite(),
    "overwrite the schema": overwrite(options={"overwriteschema": "true"}),
    "replace": overwrite(
        operation=Operation.REPLACE_TABLE_AS_SELECT,
        properties=PROPERTIES,
        schema_string=schema(*COLUMNS),
    ),
    "delete": lambda log: commit(
        MemoryCommit(log, "DELETE", removes=["one"], reads=EVERYTHING), log
    ),
    "set": command("alterProperties", set={"delta.logRetentionDuration": "interval 20 days"}),
    "widen": command("alterProperties", set={"delta.enableTypeWidening": "true"}),
    "unset": command("alterProperties", unset=["delta.enableRowTracking"]),
    "add columns": command("addColumns", columns=[{"parent": ["s"], "specified": column("new")}]),
    "drop columns": command("dropColumns", columns=[["d"]]),
    "rename": command("renameColumn", column=["p"], name="key"),
    "cluster by": command("clusterBy", columns=[["id"]]),
    "add constraint": command("addConstraint", name="c", expression="id > 0"),
    "sync identity": command("syncIdentity", column=["n"], extreme={"value": 7}),
    "detail": command("describeDetail"),
    "upgrade": lambda log: upgrade_protocol(
        UpgradeProtocol(log.table, features=("deletionVectors",)), log, RetryPolicy(), lambda: 1
    ),
}


def damaged_log(definition: list[dict[str, Any]]) -> MemoryLog:
    log = MemoryLog()
    log.write_if_absent(0, [json.dumps(action) for action in definition])
    return log


@pytest.mark.parametrize("name", COMMANDS)
def test_commands_on_undamaged_actions_work(name: str) -> None:
    """Otherwise they could all refuse for another reason."""
    COMMANDS[name](damaged_log(DEFINITION))


@settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(damaged_definitions())
def test_damaged_actions_are_refused_with_a_delta_error(definition: list[dict[str, Any]]) -> None:
    for name, run in COMMANDS.items():
        try:
            run(damaged_log(definition))
        except DeltaError as refusal:
            assert refusal.condition != INTERNAL_ERROR, name
    validate_log([(0, [next(iter(action.items())) for action in definition])])


def test_isolation_level_that_there_is_not_is_an_error_that_names_it() -> None:
    for level in ("Chaos", "SnapshotIsolation", ""):
        configuration = {"delta.isolationLevel": level}
        with pytest.raises(TableStateError, match=f"'{level}'"):
            isolation_of("/t", configuration, changes_data=True, changes_metadata=False)
        isolation_of("/t", configuration, changes_data=True, changes_metadata=True)


@pytest.mark.parametrize("text", ["", "{", "[]", "3", '{"rowIdHighWaterMark":"x"}', "{}", DEEP])
def test_count_of_row_ids_that_is_none_is_an_error(text: str) -> None:
    with pytest.raises(ProtocolError, match=r"delta\.rowTracking of table /t"):
        row_tracking.high_water_mark("/t", {"delta.rowTracking": text})


@pytest.mark.parametrize("columns", ["1", '"id"', "[1]", "[[]]", "[[null]]", '{"a":1}'])
def test_clustering_columns_that_are_none_are_an_error(columns: str) -> None:
    text = f'{{"clusteringColumns":{columns}}}'
    with pytest.raises(ProtocolError, match=r"delta\.clustering of table /t"):
        clustering.physical_paths("/t", text)
