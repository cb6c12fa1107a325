"""VACUUM as Python plans it: its retention, and what it commits."""

from __future__ import annotations

from typing import Any

import pytest

from deltaic.commands.registry import run_command
from deltaic.commit.transaction import RetryPolicy
from deltaic.commit.unused_files import DeletedFileCounts, VacuumRequest
from deltaic.exceptions import InvalidArgumentError, ProtocolError, TableStateError
from tests.support.definitions import command_arguments, schema
from tests.support.memory_log import MemoryLog

HOUR_MS = 3_600_000
NOW_MS = 10**12


def table(**properties: str) -> MemoryLog:
    log = MemoryLog()
    arguments = command_arguments(
        log, "createTable", schema=schema("id"), partitionBy=[], properties=properties
    )
    run_command("createTable", arguments, log, RetryPolicy(), lambda: 5_000)
    return log


def vacuum(log: MemoryLog, **arguments: Any) -> dict[str, Any]:
    given = command_arguments(log, "vacuum", **arguments)
    return run_command("vacuum", given, log, RetryPolicy(), lambda: NOW_MS)


def infos(log: MemoryLog) -> list[dict[str, Any]]:
    return [log.actions(v, "commitInfo")[0] for v in range(1, log.version + 1)]


def test_run_is_committed_as_start_and_end_as_by_delta_spark() -> None:
    log = table()
    log.unused.deleted = DeletedFileCounts(2)
    assert vacuum(log, retentionHours="240.5") == {"shownFiles": None}
    assert log.unused.request == VacuumRequest(NOW_MS - int(240.5 * HOUR_MS))
    assert log.unused.calls == ["delete", "record", "close"]
    start, end = infos(log)
    assert [start["operation"], end["operation"]] == ["VACUUM START", "VACUUM END"]
    assert start["operationParameters"] == {
        "retentionCheckEnabled": True,
        "defaultRetentionMillis": 168 * HOUR_MS,
        "specifiedRetentionMillis": int(240.5 * HOUR_MS),
    }
    assert start["operationMetrics"] == {"numFilesToDelete": "3", "sizeOfDataToDelete": "300"}
    assert end["operationParameters"] == {"status": "COMPLETED"}
    assert end["operationMetrics"] == {"numDeletedFiles": "2", "numVacuumedDirectories": "2"}
    for info in (start, end):
        assert info["isBlindAppend"] is True


def test_dry_run_commits_and_deletes_nothing() -> None:
    log = table()
    request = VacuumRequest(NOW_MS - 168 * HOUR_MS, is_lite=True)
    assert vacuum(log, dryRun=True, isLite=True) == {"shownFiles": request.to_json()}
    assert log.version == 0
    assert not log.unused.calls


@pytest.mark.parametrize("hours", ["-1", "- 1", "nan", "inf", "abc", "0", "167.99"])
def test_retention_that_is_negative_or_shorter_than_the_tables_is_refused(hours: str) -> None:
    log = table()
    with pytest.raises(InvalidArgumentError, match="retention"):
        vacuum(log, retentionHours=hours)
    assert not log.unused.calls
    assert log.version == 0


def test_retention_of_no_fixed_length_which_another_writer_has_stored_is_refused() -> None:
    log = table(**{"delta.deletedFileRetentionDuration": "interval 5 days"})
    line = log.commits_lines[0]
    log.commits_lines[0] = [text.replace("interval 5 days", "interval 1 month") for text in line]
    with pytest.raises(TableStateError, match="interval 1 month"):
        vacuum(log)
    assert not log.unused.calls


def test_table_with_an_unknown_feature_is_refused() -> None:
    log = table(**{"delta.feature.vacuumProtocolCheck": "supported"})
    vacuum(log)
    (created,) = [line for line in log.commits_lines[0] if '"protocol"' in line]
    other = created.replace("vacuumProtocolCheck", "unheardOf")
    log.commits_lines[0] = [other if line == created else line for line in log.commits_lines[0]]
    log.unused.calls.clear()
    with pytest.raises(ProtocolError, match="unheardOf"):
        vacuum(log)
    assert not log.unused.calls


def test_files_that_cannot_be_deleted_are_an_error_and_not_recorded_as_deleted() -> None:
    log = table()
    log.unused.deleted = DeletedFileCounts(1, 2, "a/b: no permission")
    with pytest.raises(TableStateError, match=r"2 of 3 files. The first is a/b: no perm"):
        vacuum(log)
    assert log.unused.calls == ["delete", "close"]
    assert infos(log)[1]["operationParameters"] == {"status": "FAILED"}


def test_failed_run_is_recorded_as_failed() -> None:
    log = table()
    log.unused.failure = OSError("no disk")
    with pytest.raises(OSError, match="no disk"):
        vacuum(log)
    assert log.unused.calls == ["delete", "close"]
    assert [info["operation"] for info in infos(log)] == ["VACUUM START", "VACUUM END"]
    assert infos(log)[1]["operationParameters"] == {"status": "FAILED"}
