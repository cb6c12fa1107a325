"""Row tracking enabled on a table that has rows, without Spark (Protocol § Row Tracking)."""

from __future__ import annotations

from collections.abc import Callable, Container
from dataclasses import replace

import pytest

from deltaic.commands.alter.table_properties import AlterProperties, alter_properties
from deltaic.commit.transaction import RetryPolicy, commit
from deltaic.exceptions import ConcurrentModificationError, DeltaError
from deltaic.protocol import row_tracking
from tests.support.definitions import create
from tests.support.memory_log import ROWS, MemoryCommit, MemoryFile, MemoryLog

ENABLE = {"delta.enableRowTracking": "true"}


def enable(log: MemoryLog) -> None:
    alter_properties(AlterProperties(log.table, ENABLE, ()), log, RetryPolicy(), lambda: 1)


def operations(log: MemoryLog) -> list[str]:
    return [log.actions(v, "commitInfo")[0]["operation"] for v in range(1, log.version + 1)]


def first_ids(log: MemoryLog) -> dict[str, int | None]:
    return {file.path: file.base_row_id for file in log.files()}


def mark(log: MemoryLog) -> int:
    snapshot = log.snapshot(log.table)
    assert snapshot is not None
    return row_tracking.high_water_mark(log.table, snapshot.domains)


def meanwhile(log: MemoryLog, change: Callable[[], MemoryCommit], at: Container[int]) -> None:
    """Let another writer commit right before any of these versions is tried."""

    def race(tried: int) -> None:
        if tried in at:
            log.before_try = lambda _: None
            commit(change(), log)
            log.before_try = race

    log.before_try = race


def vector(log: MemoryLog, path: str) -> MemoryCommit:
    """Delete a row of a file by a new deletion vector."""
    (old,) = (file for file in log.files() if file.path == path)
    new = replace(old, dv_id=f"vector-{log.version}")
    return MemoryCommit(log, "DELETE", adds=[new], removes=[path], reads=frozenset({old.value}))


@pytest.mark.protocol("row-ids-1", "row-ids-2", "row-tracking-3", "writer-row-tracking-18")
@pytest.mark.protocol("writer-row-tracking-19")
def test_rows_that_are_there_get_ids_before_the_table_relies_on_them() -> None:
    log = create(MemoryFile("a"), MemoryFile("b"))
    log.session_metadata = {"usermetadata": "ours"}
    enable(log)
    assert operations(log) == ["UPGRADE PROTOCOL", "ROW TRACKING BACKFILL", "SET TBLPROPERTIES"]
    assert [log.actions(v, "commitInfo")[0]["userMetadata"] for v in (1, 2, 3)] == ["ours"] * 3
    assert first_ids(log) == {"a": 0, "b": ROWS}
    assert mark(log) == 2 * ROWS - 1
    assert all(not body["dataChange"] for body in log.actions(2, "add"))
    (metadata,) = log.actions(3, "metaData")
    assert metadata["configuration"]["delta.enableRowTracking"] == "true"
    assert row_tracking.has_materialized_column_names(log.snapshot(log.table).metadata)  # type: ignore[union-attr]


def test_an_empty_table_needs_no_backfill() -> None:
    log = create()
    enable(log)
    assert operations(log) == ["UPGRADE PROTOCOL", "SET TBLPROPERTIES"]


@pytest.mark.protocol("row-tracking-1")
def test_a_table_that_supports_the_feature_backfills_only_files_without_ids() -> None:
    log = create(MemoryFile("a"), **{"feature.rowTracking": "supported"})
    assert first_ids(log) == {"a": 0}
    enable(log)
    assert operations(log) == ["SET TBLPROPERTIES"]


@pytest.mark.parametrize(
    "other",
    [
        {"delta.columnMapping.mode": "id"},
        {"delta.dataSkippingStatsColumns": "nowhere"},
        {"delta.feature.nosuch": "supported"},
        {"delta.enableIcebergCompatV1": "true"},
    ],
    ids=lambda other: next(iter(other)),
)
def test_statement_that_is_refused_gives_no_ids(other: dict[str, str]) -> None:
    log = create(MemoryFile("a"))
    asked = AlterProperties(log.table, {**ENABLE, **other}, ())
    with pytest.raises(DeltaError):
        alter_properties(asked, log, RetryPolicy(), lambda: 1)
    assert log.version == 0


@pytest.mark.protocol("row-ids-2", "writer-row-tracking-19")
def test_an_append_that_comes_between_takes_other_ids() -> None:
    log = create(MemoryFile("a"))
    new = [MemoryFile("new")]
    meanwhile(log, lambda: MemoryCommit(log, "WRITE", adds=new, is_blind_append=True), at={2})
    enable(log)
    assert first_ids(log) == {"new": 0, "a": ROWS}
    assert mark(log) == 2 * ROWS - 1


def test_a_file_removed_meanwhile_does_not_come_back() -> None:
    log = create(MemoryFile("a", 1), MemoryFile("b", 2))
    meanwhile(log, lambda: MemoryCommit(log, "DELETE", removes=["a"], reads=frozenset({1})), at={2})
    enable(log)
    assert first_ids(log) == {"b": 0}
    assert operations(log)[-2:] == ["ROW TRACKING BACKFILL", "SET TBLPROPERTIES"]


def test_a_vector_added_meanwhile_stays() -> None:
    log = create(MemoryFile("a"))
    meanwhile(log, lambda: vector(log, "a"), at={2})
    enable(log)
    (file,) = log.files()
    assert file.dv_id is not None and file.base_row_id == 0


@pytest.mark.protocol("row-ids-2", "writer-row-tracking-18")
def test_files_that_others_never_leave_alone_end_in_a_conflict_and_a_whole_table() -> None:
    log = create(*(MemoryFile(f"f{i}", i) for i in range(150)))

    def remove_one() -> MemoryCommit:
        oldest = log.files()[0]
        reads = frozenset({oldest.value})
        return MemoryCommit(log, "DELETE", removes=[oldest.path], reads=reads)

    meanwhile(log, remove_one, at=range(2, 102))
    with pytest.raises(ConcurrentModificationError, match="ROW TRACKING BACKFILL"):
        enable(log)
    snapshot = log.snapshot(log.table)
    assert snapshot is not None and not row_tracking.is_enabled(
        snapshot.protocol, snapshot.metadata
    )
    enable(log)
    assert None not in first_ids(log).values() and len(first_ids(log)) == 50
