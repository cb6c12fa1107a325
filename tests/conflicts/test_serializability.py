"""Serializability, which the conflict rules provide, checked by brute force."""

from __future__ import annotations

import threading
from dataclasses import dataclass

from hypothesis import given, settings
from hypothesis import strategies as st

from deltaic.commit.transaction import RetryPolicy, commit
from deltaic.exceptions import ConcurrentModificationError
from tests.support.definitions import create
from tests.support.memory_log import MemoryCommit, MemoryFile, MemoryLog

VALUES = st.integers(0, 3)


@dataclass(frozen=True)
class Step:
    """One transaction: what it reads, what it does there, and how old the version is it read."""

    reads: frozenset[int] | None
    adds: tuple[int, ...]
    removes_what_it_read: bool
    staleness: int


steps = st.lists(
    st.builds(
        Step,
        reads=st.one_of(st.none(), st.frozensets(VALUES, max_size=2)),
        adds=st.lists(VALUES, max_size=2).map(tuple),
        removes_what_it_read=st.booleans(),
        staleness=st.integers(0, 3),
    ),
    max_size=8,
)


def selected(log: MemoryLog, version: int, reads: frozenset[int] | None) -> set[str]:
    """Return what a transaction reads in a version."""
    return {f.path for f in log.files(version) if reads is None or f.value in reads}


def prepare(log: MemoryLog, number: int, step: Step) -> MemoryCommit:
    read_version = max(0, log.version - step.staleness)
    removes = sorted(selected(log, read_version, step.reads)) if step.removes_what_it_read else []
    return MemoryCommit(
        log,
        "UPDATE",
        read_version=read_version,
        adds=[MemoryFile(f"f{number}-{i}", value) for i, value in enumerate(step.adds)],
        removes=removes,
        reads=step.reads,
        is_blind_append=step.reads == frozenset() and not removes,
    )


@given(steps)
@settings(max_examples=200, deadline=None)
def test_serializable_transactions_read_what_the_version_before_theirs_holds(
    transactions: list[Step],
) -> None:
    log = create(MemoryFile("first", 0), MemoryFile("second", 1), isolationLevel="Serializable")
    for number, step in enumerate(transactions):
        prepared = prepare(log, number, step)
        read = selected(log, prepared.read_version, step.reads)
        try:
            result = commit(prepared, log)
        except ConcurrentModificationError:
            assert prepared.read_version < log.version, "a conflict without a concurrent commit"
            continue
        if not result.skipped and (step.adds or prepared.removes):
            assert selected(log, result.version - 1, step.reads) == read


@given(steps)
@settings(max_examples=200, deadline=None)
def test_no_file_is_removed_twice_under_any_level(transactions: list[Step]) -> None:
    log = create(MemoryFile("first", 0), MemoryFile("second", 1))
    for number, step in enumerate(transactions):
        prepared = prepare(log, number, step)
        active = {f.path for f in log.files()}
        try:
            commit(prepared, log)
        except ConcurrentModificationError:
            continue
        assert set(prepared.removes) <= active


def test_writers_on_many_threads_all_commit_once() -> None:
    log = create()
    writers, appends = 8, 20
    failures: list[Exception] = []

    def run(writer: int) -> None:
        for i in range(appends):
            file = MemoryFile(f"{writer}-{i}", writer)
            prepared = MemoryCommit(log, "WRITE", adds=[file], is_blind_append=True)
            try:
                commit(prepared, log, RetryPolicy(max_delay_ms=1.0))
            except Exception as problem:
                failures.append(problem)

    threads = [threading.Thread(target=run, args=(n,)) for n in range(writers)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not failures
    assert log.version == writers * appends
    assert len(log.files()) == writers * appends
