"""What is recomputed on retry: timestamps, row IDs, and the version a feature is enabled from."""

from __future__ import annotations

import dataclasses
import json
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from deltaic.commit.operations import Operation
from deltaic.commit.transaction import commit
from deltaic.protocol.validation.log import parse_commit, validate_log
from tests.support.definitions import create, plan, write
from tests.support.memory_log import ROWS, MemoryCommit, MemoryFile, MemoryLog

NOW_MS = 1_700_000_000_000


def timestamps(log: MemoryLog) -> list[int]:
    return [log.actions(v, "commitInfo")[0]["inCommitTimestamp"] for v in range(log.version + 1)]


def append(log: MemoryLog, path: str, **changes: Any) -> MemoryCommit:
    return MemoryCommit(log, "WRITE", adds=[MemoryFile(path)], is_blind_append=True, **changes)


def high_water_mark(log: MemoryLog) -> int:
    snapshot = log.snapshot(log.table)
    assert snapshot is not None
    return int(json.loads(snapshot.domains["delta.rowTracking"])["rowIdHighWaterMark"])


def test_in_commit_timestamp_is_the_first_field_and_the_time_of_the_clock() -> None:
    log = create(enableInCommitTimestamps="true")
    commit(append(log, "a"), log, clock_ms=lambda: NOW_MS * 2)
    (info,) = log.actions(1, "commitInfo")
    assert next(iter(info.items())) == ("inCommitTimestamp", NOW_MS * 2)


@pytest.mark.parametrize("lost_races", [0, 1, 3])
def test_timestamp_is_later_than_that_of_the_version_before_though_the_clock_went_back(
    lost_races: int,
) -> None:
    log = create(enableInCommitTimestamps="true")
    commit(append(log, "a"), log, clock_ms=lambda: NOW_MS * 2)
    ours = append(log, "ours")
    for i in range(lost_races):
        commit(append(log, f"theirs-{i}"), log, clock_ms=lambda: NOW_MS * 2)
    commit(ours, log, clock_ms=lambda: NOW_MS)
    assert timestamps(log)[1:] == [NOW_MS * 2 + i for i in range(lost_races + 2)]


def test_table_without_in_commit_timestamps_gets_none() -> None:
    log = create()
    commit(append(log, "a"), log)
    assert "inCommitTimestamp" not in log.actions(1, "commitInfo")[0]


@pytest.mark.parametrize("lost_races", [0, 2])
def test_commit_that_enables_timestamps_records_the_version_it_becomes(
    lost_races: int,
) -> None:
    log = create()
    log.file_time_ms = lambda version: NOW_MS + 1_000 + version
    planned = plan(
        log,
        "overwrite",
        operation=Operation.REPLACE_TABLE,
        properties={"delta.enableInCommitTimestamps": "true"},
    )
    ours = MemoryCommit(log, "REPLACE TABLE", plan=planned)
    for i in range(lost_races):
        commit(append(log, f"theirs-{i}"), log)
    version = commit(ours, log, clock_ms=lambda: NOW_MS).version
    assert version == lost_races + 1
    (metadata,) = log.actions(version, "metaData")
    later_than_the_file_before = NOW_MS + 1_000 + version
    assert metadata["configuration"] == {
        "delta.enableInCommitTimestamps": "true",
        "delta.inCommitTimestampEnablementVersion": str(version),
        "delta.inCommitTimestampEnablementTimestamp": str(later_than_the_file_before),
    }
    (info,) = log.actions(version, "commitInfo")
    assert info["inCommitTimestamp"] == later_than_the_file_before


@pytest.mark.protocol("writer-row-tracking-1", "writer-row-tracking-5", "writer-row-tracking-6")
def test_row_ids_of_a_commit_that_lost_follow_those_of_the_winners() -> None:
    log = create(MemoryFile("first"), enableRowTracking="true")
    ours = MemoryCommit(log, "WRITE", adds=[MemoryFile("b"), MemoryFile("c")], is_blind_append=True)
    commit(append(log, "a"), log)
    commit(ours, log)
    ids = {f.path: f.base_row_id for f in log.files()}
    assert ids == {"first": 0, "a": ROWS, "b": 2 * ROWS, "c": 3 * ROWS}
    assert high_water_mark(log) == 4 * ROWS - 1


@pytest.mark.protocol("writer-row-tracking-33", "writer-row-tracking-8")
def test_file_that_only_gets_another_deletion_vector_keeps_its_row_ids() -> None:
    log = create(MemoryFile("first"), MemoryFile("second"), enableRowTracking="true")
    second = next(f for f in log.files() if f.path == "second")
    vector = dataclasses.replace(second, dv_id="dv")
    prepared = MemoryCommit(log, "DELETE", removes=["second"], adds=[vector], reads=frozenset({0}))
    commit(prepared, log)
    assert {f.path: f.base_row_id for f in log.files()} == {"first": 0, "second": ROWS}
    assert not log.actions(1, "domainMetadata")
    assert log.actions(1, "commitInfo")[0]["tags"] == {"delta.rowTracking.preserved": "true"}


@pytest.mark.protocol("writer-row-tracking-32", "writer-row-tracking-33", "writer-row-tracking-34")
@pytest.mark.parametrize(
    ("metrics", "data_change", "preserved"),
    [
        ({}, True, "true"),
        ({"numDeletedRows": 3, "numInsertedRows": 2}, True, "true"),
        ({"numCopiedRows": 1}, True, "false"),
        ({"numUpdatedRows": 1}, True, "false"),
        ({"numUpdatedRows": 1, "numCopiedRows": 2, "numPreservedRows": 3}, True, "true"),
        ({}, False, "false"),
    ],
)
def test_commit_says_truthfully_whether_rows_keep_their_ids(
    metrics: dict[str, int], data_change: bool, preserved: str
) -> None:
    log = create(MemoryFile("first"), enableRowTracking="true")
    prepared = MemoryCommit(
        log,
        "MERGE",
        removes=["first"],
        adds=[MemoryFile("second")],
        metrics=metrics,
        data_change=data_change,
    )
    commit(prepared, log)
    (info,) = log.actions(1, "commitInfo")
    assert info["tags"] == {"delta.rowTracking.preserved": preserved}


@pytest.mark.protocol("row-tracking-1", "row-tracking-4")
def test_table_that_supports_row_tracking_unused_gets_row_ids_and_promises_nothing() -> None:
    log = create(MemoryFile("first"), feature_rowTracking="supported")
    assert [f.base_row_id for f in log.files()] == [0]
    assert "tags" not in log.actions(0, "commitInfo")[0]


def test_table_whose_row_tracking_is_suspended_gets_no_row_ids() -> None:
    log = create(MemoryFile("first"), feature_rowTracking="supported", rowTrackingSuspended="true")
    assert [f.base_row_id for f in log.files()] == [None]


@pytest.mark.protocol("writer-row-tracking-10", "writer-row-tracking-7")
def test_high_water_mark_is_understood_in_either_spelling() -> None:
    log = create(MemoryFile("first"), enableRowTracking="true")
    domain = {"domain": "delta.rowTracking", "removed": False}
    theirs = {**domain, "configuration": '{"highWaterMark":99}'}
    ours = append(log, "ours")
    log.write_if_absent(1, [json.dumps({"commitInfo": {}}), json.dumps({"domainMetadata": theirs})])
    commit(ours, log)
    assert {f.path: f.base_row_id for f in log.files()} == {"first": 0, "ours": 100}
    write(log, MemoryFile("next"))
    assert high_water_mark(log) == 119


@pytest.mark.protocol("writer-row-tracking-1")
@given(st.lists(st.tuples(st.integers(0, 3), st.integers(0, 2)), max_size=8))
@settings(max_examples=60, deadline=None)
def test_row_ids_and_times_are_right_whichever_commit_wins(steps: list[tuple[int, int]]) -> None:
    """Each step prepares an append of some files at a version some commits old, and commits it."""
    log = create(enableRowTracking="true", enableInCommitTimestamps="true")
    for number, (staleness, files) in enumerate(steps):
        prepared = MemoryCommit(
            log,
            "WRITE",
            read_version=max(0, log.version - staleness),
            adds=[MemoryFile(f"{number}-{i}") for i in range(files)],
            is_blind_append=True,
        )
        commit(prepared, log, clock_ms=lambda: NOW_MS)
    commits = [(v, parse_commit("\n".join(log.commits_lines[v]))) for v in range(log.version + 1)]
    problems = [p for p in validate_log(commits) if "Row Tracking" in p.rule or "In-C" in p.rule]
    assert not [p for p in problems if "defaultRowCommitVersion" not in p.detail]
    ids = [f.base_row_id for f in log.files()]
    assert sorted(ids, key=str) == sorted((ROWS * i for i in range(len(ids))), key=str)
