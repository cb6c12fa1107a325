"""Columns that one writer drops while another defines something that depends on them."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import pytest

from deltaic.commands.registry import run_command
from deltaic.commit.operations import Operation
from deltaic.commit.transaction import RetryPolicy, commit
from deltaic.exceptions import MetadataChangedException, ProtocolChangedException
from deltaic.protocol.columns.clustering import clustering_columns
from tests.support.definitions import column, command_arguments, plan, schema, struct
from tests.support.memory_log import MemoryCommit, MemoryLog

Change = tuple[str, Mapping[str, Any]]

COLUMNS = schema("id", column("s", struct("x", "y")), "v")
MAPPED = {"delta.columnMapping.mode": "name"}

CLUSTER: Change = ("clusterBy", {"columns": [["s", "x"]]})
ON_COLUMN: Mapping[str, Change] = {
    "clustering": CLUSTER,
    "constraint": ("addConstraint", {"name": "c", "expression": "s.x > 0"}),
    "generated column": (
        "addColumns",
        {
            "columns": [
                {
                    "parent": [],
                    "specified": column("g", metadata={"delta.generationExpression": "s.x + 1"}),
                }
            ]
        },
    ),
}
TAKEN_AWAY: Mapping[str, Change] = {
    "field": ("dropColumns", {"columns": [["s", "x"]]}),
    "struct around it": ("dropColumns", {"columns": [["s"]]}),
    "all but one": ("replaceColumns", {"columns": [{"parent": [], "specified": column("id")}]}),
}


def create(**more: Any) -> MemoryLog:
    log = MemoryLog()
    arguments = {"schema": COLUMNS, "partitionBy": [], "properties": MAPPED, **more}
    run(log, ("createTable", arguments))
    return log


def clustered() -> MemoryLog:
    """Return a table whose protocol has every feature that depends on columns."""
    features = ("checkConstraints", "generatedColumns")
    supported = {f"delta.feature.{name}": "supported" for name in features}
    return create(clusterBy=[["id"]], properties={**MAPPED, **supported})


def run(log: MemoryLog, change: Change) -> None:
    name, arguments = change
    named = command_arguments(log, name, **arguments)
    run_command(name, named, log, RetryPolicy(), lambda: 1)


def race(log: MemoryLog, first: Change, second: Change) -> None:
    """Run the first operation after the second has read the table and before it commits."""
    version = log.version

    def win(attempt: int) -> None:
        log.before_try = lambda _: None
        if attempt == version + 1:
            run(log, first)

    log.before_try = win
    run(log, second)


def clustering_of(log: MemoryLog) -> tuple[tuple[str, ...], ...]:
    snapshot = log.snapshot(log.table)
    assert snapshot is not None
    return clustering_columns(log.table, snapshot.protocol, snapshot.metadata, snapshot.domains)


@pytest.mark.parametrize("gone", TAKEN_AWAY)
@pytest.mark.parametrize("built", ON_COLUMN)
def test_column_that_a_concurrent_commit_depends_on_is_not_dropped(built: str, gone: str) -> None:
    log = clustered()
    with pytest.raises(MetadataChangedException) as caught:
        race(log, ON_COLUMN[built], TAKEN_AWAY[gone])
    assert caught.value.winning_version == 1
    assert log.version == 1
    if built == "clustering":
        assert "clustered the table by" in str(caught.value)


@pytest.mark.parametrize("gone", TAKEN_AWAY)
@pytest.mark.parametrize("built", ON_COLUMN)
def test_nothing_is_defined_on_a_column_that_was_just_dropped(built: str, gone: str) -> None:
    log = clustered()
    with pytest.raises(MetadataChangedException):
        race(log, TAKEN_AWAY[gone], ON_COLUMN[built])
    assert log.version == 1 and clustering_of(log) == (("id",),)


def test_first_clustering_of_a_table_changes_its_protocol_and_conflicts_as_such() -> None:
    with pytest.raises(ProtocolChangedException):
        race(create(), CLUSTER, TAKEN_AWAY["field"])


@pytest.mark.protocol("writer-clustered-table-2")
@pytest.mark.parametrize(
    "change",
    [
        ("dropColumns", {"columns": [["v"]]}),
        ("dropColumns", {"columns": [["s", "y"]]}),
        ("renameColumn", {"column": ["s", "x"], "name": "renamed"}),
        ("addColumns", {"columns": [{"parent": [], "specified": column("more")}]}),
        ("alterProperties", {"set": {"owner": "me"}}),
    ],
)
def test_other_changes_follow_a_choice_of_clustering_columns(change: Change) -> None:
    log = clustered()
    race(log, CLUSTER, change)
    assert log.version == 2
    name = "renamed" if change[0] == "renameColumn" else "x"
    assert clustering_of(log) == (("s", name),)


def replacing(
    log: MemoryLog, operation: Operation = Operation.WRITE, **request: Any
) -> MemoryCommit:
    planned = plan(log, "overwrite", operation=operation, **{"schema_string": COLUMNS, **request})
    return MemoryCommit(log, operation.value, plan=planned)


@pytest.mark.parametrize(
    ("prepare", "conflicts"),
    [
        (
            lambda log: replacing(
                log,
                Operation.REPLACE_TABLE_AS_SELECT,
                properties=MAPPED,
                cluster_by=[["id"]],
            ),
            True,
        ),
        (
            lambda log: replacing(
                log, schema_string=schema("id"), options={"overwriteschema": "true"}
            ),
            True,
        ),
        (
            lambda log: replacing(
                log,
                schema_string=schema("id", column("s", struct("x"))),
                options={"overwriteschema": "true"},
            ),
            False,
        ),
    ],
    ids=["statement of the table", "schema without the column", "schema with it"],
)
def test_replacement_of_columns_sees_which_are_clustered(
    prepare: Callable[[MemoryLog], MemoryCommit], conflicts: bool
) -> None:
    log = create(clusterBy=[["id"]], properties={})
    ours = prepare(log)
    run(log, CLUSTER)
    if not conflicts:
        commit(ours, log)
        assert clustering_of(log) == (("s", "x"),)
        return
    with pytest.raises(MetadataChangedException):
        commit(ours, log)
