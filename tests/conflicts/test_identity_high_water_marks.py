"""Commits that generate identity values, and their conflicts with other commits."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import replace

import pytest

from deltaic.commit.transaction import commit
from deltaic.exceptions import MetadataChangedException
from tests.support.definitions import column, plan, schema
from tests.support.memory_log import MemoryCommit, MemoryFile, MemoryLog, set_property

IDENTITY = {"delta.identity.start": 1, "delta.identity.step": 1}


@pytest.fixture
def log() -> MemoryLog:
    memory = MemoryLog()
    planned = plan(memory, schema_string=schema(column("id", metadata=IDENTITY), "p"))
    commit(MemoryCommit(memory, "WRITE", adds=[MemoryFile("f")], plan=planned), memory)
    return memory


def generating(log: MemoryLog, path: str, mark: int) -> MemoryCommit:
    return MemoryCommit(
        log,
        "WRITE",
        adds=[MemoryFile(path)],
        is_blind_append=True,
        identity_high_water_marks={"id": mark},
    )


def specifying(log: MemoryLog, path: str, mark: int) -> MemoryCommit:
    """Return an append whose rows provide their identity values."""
    return replace(generating(log, path, mark), stated_columns=frozenset({"id"}))


def mark_of(log: MemoryLog, version: int) -> int:
    (metadata,) = log.actions(version, "metaData")
    found: int = json.loads(metadata["schemaString"])["fields"][0]["metadata"][
        "delta.identity.highWaterMark"
    ]
    return found


@pytest.mark.protocol("identity-columns-14")
def test_high_water_mark_is_committed_with_the_rows(log: MemoryLog) -> None:
    commit(generating(log, "a", 10), log)
    commit(generating(log, "b", 15), log)
    assert [mark_of(log, 1), mark_of(log, 2)] == [10, 15]
    assert log.actions(1, "commitInfo")[0]["isBlindAppend"] is False


def test_two_commits_that_generate_identity_values_conflict(log: MemoryLog) -> None:
    ours, theirs = generating(log, "ours", 5), generating(log, "theirs", 5)
    commit(theirs, log)
    with pytest.raises(MetadataChangedException):
        commit(ours, log)


@pytest.mark.parametrize(("theirs", "after"), [(5, 7), (7, 7), (20, 20)])
@pytest.mark.parametrize("winner", [generating, specifying])
def test_specified_values_do_not_conflict_and_the_furthest_applies(
    log: MemoryLog, winner: Callable[..., MemoryCommit], theirs: int, after: int
) -> None:
    ours = specifying(log, "ours", 7)
    commit(winner(log, "first", theirs - 1), log)
    commit(winner(log, "second", theirs), log)
    assert commit(ours, log).version == 3
    snapshot = log.snapshot(log.table)
    assert snapshot is not None
    fields = json.loads(snapshot.metadata.schema_string)["fields"]
    assert fields[0]["metadata"]["delta.identity.highWaterMark"] == after
    # Metadata that does not change is not written.
    assert bool(log.actions(3, "metaData")) is (after != theirs)
    assert {file.path for file in log.files()} == {"f", "first", "second", "ours"}


def test_generated_values_conflict_with_specified_ones_that_moved_the_mark(log: MemoryLog) -> None:
    ours = generating(log, "ours", 5)
    commit(specifying(log, "theirs", 3), log)
    with pytest.raises(MetadataChangedException):
        commit(ours, log)


def test_specified_values_conflict_with_another_change_of_the_definition(log: MemoryLog) -> None:
    ours = specifying(log, "ours", 5)
    commit(generating(log, "theirs", 3), log)
    commit(set_property(log), log)
    with pytest.raises(MetadataChangedException):
        commit(ours, log)


@pytest.mark.parametrize("winners", [1, 3])
def test_commit_that_generates_none_does_not_conflict(log: MemoryLog, winners: int) -> None:
    ours = MemoryCommit(log, "DELETE", removes=["f"], reads=frozenset({0}))
    for i in range(winners):
        commit(generating(log, f"theirs-{i}", 10 * (i + 1)), log)
    # The rows they added may match what ours has read: another rule checks that.
    ours.reads = frozenset({99})
    assert commit(ours, log).version == winners + 1
    assert mark_of(log, winners) == 10 * winners
    assert log.actions(winners + 1, "metaData") == []


def test_generated_values_do_not_conflict_with_an_append_without_any(log: MemoryLog) -> None:
    ours = generating(log, "ours", 5)
    commit(MemoryCommit(log, "WRITE", adds=[MemoryFile("g")], is_blind_append=True), log)
    assert commit(ours, log).version == 2
    assert mark_of(log, 2) == 5
