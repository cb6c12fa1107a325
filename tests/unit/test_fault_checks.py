"""The test of racing writers finds lost commits."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from tests.faults.test_racing_writers import _hold_against_log, _replayed
from tests.support.log import write_commit

APPEND, DELETE = ["append", 10, 15], ["delete", 12, 15]


def journal(tag: str, operation: list[Any], outcome: str, changed: int | None) -> list[Any]:
    return [[tag, "begun", operation, None], [tag, outcome, operation, changed]]


@pytest.fixture
def table(tmp_path: Path) -> str:
    """The log of a table that was made, appended to, and deleted from."""
    (tmp_path / "_delta_log").mkdir()
    for version, tag in enumerate((None, "a", "d")):
        write_commit(tmp_path, version, {"commitInfo": {"userMetadata": tag}})
    return str(tmp_path)


def test_history_is_replayed_in_the_order_of_its_versions(table: str) -> None:
    operations = [*journal("a", APPEND, "done", 5), *journal("d", DELETE, "done", 3)]
    assert _hold_against_log(table, operations) == 2
    assert _replayed(table, operations) == ([-1, 10, 11], [])


@pytest.mark.parametrize("kind", [APPEND, DELETE])
def test_acknowledged_operation_without_a_version_is_lost(table: str, kind: list[Any]) -> None:
    operations = [
        *journal("a", APPEND, "done", 5),
        *journal("d", DELETE, "done", 3),
        *journal("x", kind, "done", 1),
    ]
    assert _replayed(table, operations)[1] == ["x"]


def test_delete_that_changes_other_rows_than_reported_is_found(table: str) -> None:
    operations = [*journal("a", APPEND, "done", 5), *journal("d", DELETE, "done", 1)]
    assert _replayed(table, operations)[1] == ["d, which changed 3 rows and reported 1"]


def test_what_was_killed_or_found_no_row_may_be_there_or_not(table: str) -> None:
    operations = [
        *journal("a", APPEND, "done", 5),
        *journal("d", DELETE, "begun", None),
        *journal("y", DELETE, "begun", None),
        *journal("z", DELETE, "done", 0),
    ]
    assert _hold_against_log(table, operations) == 1
    assert _replayed(table, operations) == ([-1, 10, 11], [])


def test_operation_that_failed_and_is_there_is_found(table: str) -> None:
    operations = [
        *journal("a", APPEND, "done", 5),
        *journal("d", DELETE, "DELTAIC_CONCURRENT_APPEND", None),
    ]
    with pytest.raises(AssertionError, match="d failed with"):
        _hold_against_log(table, operations)
