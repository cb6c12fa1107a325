"""Transactions that delete rows of the same files: which conflict, and what they leave."""

from __future__ import annotations

import dataclasses
import json
from collections.abc import Sequence
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from deltaic.commit import conflicts
from deltaic.commit.conflicts import Conflict, Evidence
from deltaic.commit.current_transaction import CurrentTransaction, current_transaction_of
from deltaic.commit.ports import WinningCommit
from deltaic.commit.row_evidence import RowEvidence
from deltaic.commit.transaction import commit
from deltaic.exceptions import (
    ConcurrentAppendException,
    ConcurrentDeleteDeleteException,
    ConcurrentDeleteReadException,
    ConcurrentModificationError,
)
from tests.support.definitions import create
from tests.support.memory_log import EVERYTHING, MemoryCommit, MemoryFile, MemoryLog

ROWS = "abcdef"


def deleting(log: MemoryLog, rows: str, path: str = "f", **changes: Any) -> MemoryCommit:
    """Prepare a DELETE of these rows, at a version that may have deleted others."""
    version = changes.get("read_version", log.version)
    file = next(f for f in log.files(version) if f.path == path)
    after = dataclasses.replace(file, dv_id="".join(sorted(file.deleted | set(rows))))
    return MemoryCommit(
        log, "DELETE", removes=[path], adds=[after], reads=EVERYTHING, row_by_row=True, **changes
    )


@pytest.mark.protocol("dv-step-3-dml-with-existing-dvs-2")
def test_loser_deletes_its_rows_in_the_file_as_each_of_three_winners_leaves_it() -> None:
    log = create(MemoryFile("f", base_row_id=0), MemoryFile("g"))
    ours = deleting(log, "a")
    for winner in (deleting(log, "b"), deleting(log, "c", "g"), deleting(log, "d")):
        commit(winner, log)
    late = deleting(log, "e")

    def meanwhile(version: int) -> None:
        log.before_try = lambda v: None
        if version == 4:
            commit(late, log)
        else:
            log.before_try = meanwhile

    log.before_try = meanwhile
    result = commit(ours, log)
    assert (result.version, result.attempts) == (5, 3)
    (remove,), (add,) = log.actions(5, "remove"), log.actions(5, "add")
    assert remove["deletionVector"]["pathOrInlineDv"] == "bde", "the file as it was before"
    assert add["deletionVector"]["pathOrInlineDv"] == "abde"
    assert add["baseRowId"] == 0
    (info,) = log.actions(5, "commitInfo")
    assert info["readVersion"] == 0
    assert info["operationMetrics"]["numDeletionVectorsAdded"] == "1"
    assert info["operationMetrics"]["numDeletionVectorsRemoved"] == "1", "not so when it began"
    assert {f.path: f.dv_id for f in log.files()} == {"f": "abde", "g": "c"}


def test_error_names_the_file_and_how_many_rows_both_delete() -> None:
    log = create(MemoryFile("f", dv_id="a"))
    ours = deleting(log, "bcd")
    commit(deleting(log, "e"), log)
    commit(deleting(log, "cdf"), log)
    with pytest.raises(ConcurrentDeleteDeleteException, match="2 rows of the file f") as caught:
        commit(ours, log)
    assert caught.value.winning_version == 2
    assert log.version == 2


def test_error_says_that_rows_were_moved() -> None:
    log = create(MemoryFile("f"))
    ours = deleting(log, "a")
    moved = MemoryCommit(
        log, "OPTIMIZE", removes=["f"], adds=[MemoryFile("g")], data_change=False, reads=EVERYTHING
    )
    commit(moved, log)
    with pytest.raises(ConcurrentDeleteDeleteException, match="moved the rows of the file f"):
        commit(ours, log)


def test_rows_that_came_back_are_a_conflict() -> None:
    log = create(MemoryFile("f", dv_id="a"))
    ours = deleting(log, "b")
    restored = MemoryCommit(log, "RESTORE", removes=["f"], adds=[MemoryFile("f")], reads=EVERYTHING)
    commit(restored, log)
    with pytest.raises(ConcurrentDeleteDeleteException, match="file f"):
        commit(ours, log)


@pytest.mark.parametrize("found", [False, True])
def test_rows_are_read_where_statistics_are_inconclusive(found: bool) -> None:
    looks: list[list[int]] = []

    class Looking(MemoryCommit):
        def has_matching_row(self, versions: Sequence[int]) -> bool:
            looks.append([*versions])
            return found

    log = create(MemoryFile("f"))
    ours = Looking(**{f.name: getattr(deleting(log, "a"), f.name) for f in FIELDS})
    commit(deleting(log, "b"), log)
    assert looks == []
    updated = deleting(log, "c")
    updated.adds = [*updated.adds, MemoryFile("new")]
    commit(updated, log)
    if not found:
        assert commit(ours, log).version == 3
    else:
        with pytest.raises(ConcurrentAppendException, match="new"):
            commit(ours, log)
    assert looks == [[2]], "a commit that adds no row is not looked at"


@pytest.mark.parametrize("found", [False, True])
def test_deleted_rows_are_read_in_the_version_that_was_read(found: bool) -> None:
    looks: list[list[int]] = []

    class Looking(MemoryCommit):
        def has_deleted_row(self, versions: Sequence[int]) -> bool:
            looks.append([*versions])
            return found and 4 in versions

    log = create(MemoryFile("f"), MemoryFile("g", 1))
    ours = Looking(log, "MERGE", adds=[MemoryFile("inserted")], reads=frozenset({0}))
    commit(MemoryCommit(log, "WRITE", adds=[MemoryFile("h", 1)], is_blind_append=True), log)
    for rows, file in (("a", "g"), ("b", "f"), ("c", "f")):
        commit(deleting(log, rows, file), log)
    if not found:
        assert commit(ours, log).version == 5
        assert looks == [[3, 4]], "commits that took no row of a file that was read are left out"
    else:
        with pytest.raises(ConcurrentDeleteReadException, match=r"(?s)version 4.*file f"):
            commit(ours, log)
        assert looks == [[3, 4], [3]]


@pytest.mark.parametrize("holding", [None, 1, 4, 7])
def test_rows_of_all_winners_are_read_together(holding: int | None) -> None:
    """Of those that hold such a row, the first is named, as if each were looked at by itself."""
    looks: list[list[int]] = []

    class Looking(MemoryCommit):
        def has_matching_row(self, versions: Sequence[int]) -> bool:
            looks.append([*versions])
            return holding is not None and any(version >= holding for version in versions)

    log = create(MemoryFile("f", 0))
    ours = Looking(log, "MERGE", adds=[MemoryFile("inserted")], reads=EVERYTHING)
    for version in range(1, 8):
        path = f"new-{version}"
        commit(MemoryCommit(log, "WRITE", adds=[MemoryFile(path)], is_blind_append=True), log)
    if holding is None:
        assert commit(ours, log).version == 8
        assert looks == [[*range(1, 8)]]
    else:
        with pytest.raises(ConcurrentAppendException, match=f"new-{holding}"):
            commit(ours, log)
        assert looks[0] == [*range(1, 8)]
        assert len(looks) <= 4


@pytest.mark.parametrize("found", [False, True])
def test_conflict_of_any_rule_that_rows_decide_is_confirmed_by_a_query(
    found: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    looks: list[list[int]] = []

    class Looking(MemoryCommit):
        def has_deleted_row(self, versions: Sequence[int]) -> bool:
            looks.append([*versions])
            return found

    def added_file(ours: CurrentTransaction, winner: WinningCommit) -> Conflict | None:
        if not winner.num_added:
            return None
        return Conflict("DELTAIC_CONCURRENT_APPEND", winner, "rule", Evidence.DELETED_ROWS)

    monkeypatch.setattr(conflicts, "RULES", (*conflicts.RULES, added_file))
    log = create(MemoryFile("f"))
    ours = Looking(log, "WRITE", adds=[MemoryFile("ours")], is_blind_append=True)
    for path in ("first", "second"):
        commit(MemoryCommit(log, "WRITE", adds=[MemoryFile(path)], is_blind_append=True), log)
    if not found:
        assert commit(ours, log).version == 3
        assert looks == [[1, 2]]
    else:
        with pytest.raises(ConcurrentAppendException, match=r"(?s)version 1.*rule"):
            commit(ours, log)


@pytest.mark.parametrize("evidence", [kind for kind in Evidence if kind is not Evidence.LOG])
def test_conflict_that_only_a_rebased_transaction_has_is_confirmed_by_a_query(
    evidence: Evidence,
) -> None:
    class WithoutRows(MemoryCommit):
        def has_matching_row(self, versions: Sequence[int]) -> bool:
            return False

        def has_deleted_row(self, versions: Sequence[int]) -> bool:
            return False

    log = create(MemoryFile("f"))
    ours = WithoutRows(log, "WRITE", adds=[MemoryFile("ours")], is_blind_append=True)
    commit(MemoryCommit(log, "WRITE", adds=[MemoryFile("new")], is_blind_append=True), log)
    winner = ours.winning_commit(1)
    assert winner is not None
    rows = RowEvidence(current_transaction_of(ours.summary(), txn=None), [winner], ours)
    assert not rows.confirms(Conflict("DELTAIC_CONCURRENT_APPEND", winner, "new", evidence))


def test_winners_that_commit_while_rows_are_read_are_read_once() -> None:
    looks: list[list[int]] = []
    log = create(MemoryFile("f", 0))

    class Looking(MemoryCommit):
        def has_matching_row(self, versions: Sequence[int]) -> bool:
            looks.append([*versions])
            if len(looks) == 1:
                append("third")
                append("fourth")
            return False

    def append(path: str) -> None:
        commit(MemoryCommit(log, "WRITE", adds=[MemoryFile(path)], is_blind_append=True), log)

    ours = Looking(log, "MERGE", adds=[MemoryFile("inserted")], reads=EVERYTHING)
    append("first")
    append("second")
    assert commit(ours, log).version == 5
    assert looks == [[1, 2], [3, 4]]


FIELDS = dataclasses.fields(MemoryCommit)

steps = st.lists(
    st.tuples(st.sampled_from("fg"), st.text(ROWS, min_size=1, max_size=2), st.integers(0, 4)),
    max_size=10,
)


@given(steps)
@settings(max_examples=150, deadline=None)
def test_each_acknowledged_row_is_deleted_once_and_only_overlaps_conflict(
    transactions: list[tuple[str, str, int]],
) -> None:
    log = create(MemoryFile("f"), MemoryFile("g"), isolationLevel="Serializable")
    deleted: list[tuple[int, str, str]] = []
    for path, wanted, staleness in transactions:
        version = max(0, log.version - staleness)
        live = set(ROWS) - next(f for f in log.files(version) if f.path == path).deleted
        rows = "".join(sorted(live & set(wanted)))
        if not rows:
            continue
        overlaps = any(
            v > version and where == path and set(gone) & set(rows) for v, where, gone in deleted
        )
        try:
            result = commit(deleting(log, rows, path, read_version=version), log)
        except ConcurrentModificationError:
            assert overlaps
            continue
        assert not overlaps
        deleted.append((result.version, path, rows))
    for path in "fg":
        everything = "".join(gone for _, where, gone in deleted if where == path)
        left = next(f for f in log.files() if f.path == path).dv_id or ""
        assert sorted(left) == sorted(everything), json.dumps(deleted)
