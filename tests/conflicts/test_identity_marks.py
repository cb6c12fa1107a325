"""Commits that number rows, and what they mean for others."""

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


def numbering(log: MemoryLog, path: str, mark: int) -> MemoryCommit:
    return MemoryCommit(
        log, "WRITE", adds=[MemoryFile(path)], is_blind_append=True, identity_marks={"id": mark}
    )


def stating(log: MemoryLog, path: str, mark: int) -> MemoryCommit:
    """Return an append whose rows bring their identity values along."""
    return replace(numbering(log, path, mark), stated_columns=frozenset({"id"}))


def mark_of(log: MemoryLog, version: int) -> int:
    (metadata,) = log.actions(version, "metaData")
    found: int = json.loads(metadata["schemaString"])["fields"][0]["metadata"][
        "delta.identity.highWaterMark"
    ]
    return found


def test_mark_is_committed_with_the_rows(log: MemoryLog) -> None:
    commit(numbering(log, "a", 10), log)
    commit(numbering(log, "b", 15), log)
    assert [mark_of(log, 1), mark_of(log, 2)] == [10, 15]
    assert log.actions(1, "commitInfo")[0]["isBlindAppend"] is False


def test_two_that_number_rows_conflict(log: MemoryLog) -> None:
    ours, theirs = numbering(log, "ours", 5), numbering(log, "theirs", 5)
    commit(theirs, log)
    with pytest.raises(MetadataChangedException):
        commit(ours, log)


@pytest.mark.parametrize(("theirs", "after"), [(5, 7), (7, 7), (20, 20)])
@pytest.mark.parametrize("winner", [numbering, stating])
def test_stated_values_follow_others_and_the_furthest_counts(
    log: MemoryLog, winner: Callable[..., MemoryCommit], theirs: int, after: int
) -> None:
    ours = stating(log, "ours", 7)
    commit(winner(log, "first", theirs - 1), log)
    commit(winner(log, "second", theirs), log)
    assert commit(ours, log).version == 3
    header = log.header(log.table)
    assert header is not None
    fields = json.loads(header.metadata.schema_string)["fields"]
    assert fields[0]["metadata"]["delta.identity.highWaterMark"] == after
    # Metadata that say nothing new are not written.
    assert bool(log.actions(3, "metaData")) is (after != theirs)
    assert {file.path for file in log.files()} == {"f", "first", "second", "ours"}


def test_numbered_values_conflict_with_stated_ones_that_moved_the_mark(log: MemoryLog) -> None:
    ours = numbering(log, "ours", 5)
    commit(stating(log, "theirs", 3), log)
    with pytest.raises(MetadataChangedException):
        commit(ours, log)


def test_stated_values_conflict_with_another_change_of_the_definition(log: MemoryLog) -> None:
    ours = stating(log, "ours", 5)
    commit(numbering(log, "theirs", 3), log)
    commit(set_property(log), log)
    with pytest.raises(MetadataChangedException):
        commit(ours, log)


@pytest.mark.parametrize("winners", [1, 3])
def test_one_that_numbers_none_follows_those_that_do(log: MemoryLog, winners: int) -> None:
    ours = MemoryCommit(log, "DELETE", removes=["f"], reads=frozenset({0}))
    for i in range(winners):
        commit(numbering(log, f"theirs-{i}", 10 * (i + 1)), log)
    # What they added may match what ours has read: that is another rule's matter.
    ours.reads = frozenset({99})
    assert commit(ours, log).version == winners + 1
    assert mark_of(log, winners) == 10 * winners
    assert log.actions(winners + 1, "metaData") == []


def test_numbering_follows_an_append_that_numbers_none(log: MemoryLog) -> None:
    ours = numbering(log, "ours", 5)
    commit(MemoryCommit(log, "WRITE", adds=[MemoryFile("g")], is_blind_append=True), log)
    assert commit(ours, log).version == 2
    assert mark_of(log, 2) == 5
