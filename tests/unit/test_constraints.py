"""ADD CONSTRAINT and DROP CONSTRAINT as commits, without Spark."""

from __future__ import annotations

import json

import pytest

from deltaic.commands.alter.constraints import (
    AddConstraint,
    DropConstraint,
    add_constraint,
    drop_constraint,
)
from deltaic.commit.transaction import CommitResult, RetryPolicy
from deltaic.exceptions import (
    ConcurrentAppendException,
    InvalidArgumentError,
    TableStateError,
)
from tests.support.definitions import create
from tests.support.memory_log import MemoryCommit, MemoryFile, MemoryLog

POLICY = RetryPolicy()


@pytest.fixture
def memory() -> MemoryLog:
    return create(MemoryFile("f0"))


def add(log: MemoryLog, name: str = "positive", expression: str = "id > 0") -> CommitResult:
    return add_constraint(AddConstraint(log.table, name, expression), log, POLICY, lambda: 1)


@pytest.mark.protocol("check-constraints-6")
def test_constraint_is_a_property_and_raises_the_writer_version(memory: MemoryLog) -> None:
    assert add(memory, "Positive").version == 1
    (metadata,) = memory.actions(1, "metaData")
    assert metadata["configuration"]["delta.constraints.positive"] == "id > 0"
    assert memory.actions(1, "protocol") == [{"minReaderVersion": 1, "minWriterVersion": 3}]


def test_second_constraint_leaves_the_protocol_alone(memory: MemoryLog) -> None:
    add(memory)
    assert add(memory, "small", "id < 9").version == 2
    assert memory.actions(2, "protocol") == []


@pytest.mark.protocol("supported-features-2")
def test_dropped_constraint_leaves_the_feature(memory: MemoryLog) -> None:
    add(memory)
    drop_constraint(DropConstraint(memory.table, "POSITIVE"), memory, POLICY, lambda: 1)
    (metadata,) = memory.actions(2, "metaData")
    assert "delta.constraints.positive" not in metadata["configuration"]
    assert memory.actions(2, "protocol") == []


def test_dropping_what_is_not_there_is_an_error_unless_allowed(memory: MemoryLog) -> None:
    with pytest.raises(InvalidArgumentError, match="DELTAIC_CONSTRAINT_NOT_FOUND"):
        drop_constraint(DropConstraint(memory.table, "c"), memory, POLICY, lambda: 1)
    result = drop_constraint(
        DropConstraint(memory.table, "c", if_exists=True), memory, POLICY, lambda: 1
    )
    assert result.skipped
    assert memory.version == 0


@pytest.mark.protocol("check-constraints-8", "check-constraints-9")
def test_broken_constraint_is_not_added(memory: MemoryLog) -> None:
    memory.violation = "id = -1"
    with pytest.raises(TableStateError, match="id = -1"):
        add(memory)
    assert memory.version == 0


@pytest.mark.protocol("check-constraints-7")
@pytest.mark.parametrize("blind", [True, False])
def test_rows_appended_during_validation_are_a_conflict(memory: MemoryLog, blind: bool) -> None:
    def append(version: int) -> None:
        memory.before_try = lambda _: None
        info = json.dumps({"commitInfo": {"operation": "WRITE", "isBlindAppend": blind}})
        winner = MemoryCommit(memory, "WRITE", adds=[MemoryFile("f", 1)])
        assert winner.try_commit(version, [info])

    memory.before_try = append
    with pytest.raises(ConcurrentAppendException):
        add(memory)
