"""VACUUM beside every other operation: its commits conflict with none but a later RESTORE."""

from __future__ import annotations

import pytest

from deltaic.commands.registry import run_command
from deltaic.commit.transaction import RetryPolicy
from tests.conflicts.test_operation_pairs import OPERATIONS, Operation, outcome
from tests.support.memory_log import MemoryLog


def run(log: MemoryLog) -> None:
    run_command("vacuum", {"table": log.table}, log, RetryPolicy(), lambda: 1)


VACUUM = Operation(run, lambda paths, snapshot: True)
LEVELS = ("WriteSerializable", "Serializable")


@pytest.mark.parametrize("name", OPERATIONS)
def test_vacuum_commits_after_each_other_operation(name: str) -> None:
    _, theirs = OPERATIONS[name]
    assert [outcome(VACUUM, theirs, level) for level in LEVELS] == [".", "."]


@pytest.mark.parametrize("name", OPERATIONS)
def test_each_other_operation_commits_after_vacuum(name: str) -> None:
    _, mine = OPERATIONS[name]
    # It has found the files of the restored version, which VACUUM may be deleting.
    expected = "w" if name == "RESTORE" else "."
    assert [outcome(mine, VACUUM, level) for level in LEVELS] == [expected, expected]
