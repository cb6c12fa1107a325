"""The commit path: what a commit holds, when it is skipped, and what happens when it fails."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

import pytest

from deltaic.commit.isolation import Isolation
from deltaic.commit.metrics import operation_metrics
from deltaic.commit.plan import CommitPlan
from deltaic.commit.ports import FileCounts
from deltaic.commit.transaction import RetryPolicy, commit
from deltaic.exceptions import InvalidArgumentError, TableStateError, error
from tests.support.definitions import create, plan, write
from tests.support.memory_log import EVERYTHING, MemoryCommit, MemoryFile, MemoryLog


def info_of(log: MemoryLog, version: int) -> dict[str, Any]:
    (info,) = log.actions(version, "commitInfo")
    return info


def test_first_commit_holds_commit_info_first_then_the_definition() -> None:
    log = create(MemoryFile("one"))
    kinds = [next(iter(json.loads(line))) for line in log.commits_lines[0]]
    assert kinds == ["commitInfo", "protocol", "metaData", "add"]


def test_commit_info_says_who_did_what() -> None:
    log = create()
    result = write(log, MemoryFile("one"), commit_options={"usermetadata": "nightly"})
    info = info_of(log, result.version)
    assert isinstance(info.pop("timestamp"), int)
    assert len(info.pop("txnId")) == 36
    assert info == {
        "userMetadata": "nightly",
        "operation": "WRITE",
        "operationParameters": {"mode": "Append", "partitionBy": "[]"},
        "readVersion": 0,
        "isolationLevel": "Serializable",
        "isBlindAppend": True,
        "operationMetrics": {"numFiles": "1", "numOutputBytes": "100", "numOutputRows": "10"},
        "engineInfo": "Deltaic/test",
    }


def test_commit_that_creates_a_table_read_no_version() -> None:
    info = info_of(create(MemoryFile("one")), 0)
    assert "readVersion" not in info
    assert info["isBlindAppend"] is True
    assert info["isolationLevel"] == "Serializable"


@pytest.mark.parametrize(
    ("level", "data_change", "expected"),
    [
        ("Serializable", True, "Serializable"),
        ("WriteSerializable", True, "WriteSerializable"),
        ("Serializable", False, "SnapshotIsolation"),
    ],
)
def test_isolation_level_is_recorded(level: str, data_change: bool, expected: str) -> None:
    log = create(MemoryFile("one"), isolationLevel=level)
    prepared = MemoryCommit(
        log, "OPTIMIZE", removes=["one"], adds=[MemoryFile("two")], data_change=data_change
    )
    assert info_of(log, commit(prepared, log).version)["isolationLevel"] == expected


@pytest.mark.parametrize(
    ("properties", "session_level", "expected"),
    [
        ({}, None, "Serializable"),
        ({}, Isolation.WRITE_SERIALIZABLE, "WriteSerializable"),
        ({"isolationLevel": "serializable"}, Isolation.WRITE_SERIALIZABLE, "Serializable"),
        ({"isolationLevel": "WriteSerializable"}, Isolation.SERIALIZABLE, "WriteSerializable"),
    ],
)
def test_session_sets_the_isolation_level_of_tables_that_set_none(
    properties: dict[str, str], session_level: Isolation | None, expected: str
) -> None:
    log = create(MemoryFile("one"), **properties)
    log.session_level = session_level
    version = write(log, MemoryFile("two")).version
    assert info_of(log, version)["isolationLevel"] == expected


def test_txn_is_recorded_and_applies_once() -> None:
    log = create()
    options = {"txnappid": "app", "txnversion": "3"}
    first = write(log, MemoryFile("one"), commit_options=options)
    second = write(log, MemoryFile("two"), commit_options=options)
    assert (first.version, first.skipped) == (1, False)
    assert (second.version, second.skipped) == (1, True)
    (txn,) = log.actions(1, "txn")
    assert (txn["appId"], txn["version"]) == ("app", 3)
    assert isinstance(txn["lastUpdated"], int)


@pytest.mark.parametrize(
    "version", ["9223372036854775808", "-1", "1_0", " 7", "\uff11", "", "1.0", "-"]
)
def test_progress_that_no_reader_could_read_is_refused(version: str) -> None:
    log = create()
    with pytest.raises(InvalidArgumentError, match="txnVersion"):
        write(log, MemoryFile("one"), commit_options={"txnappid": "app", "txnversion": version})
    assert log.version == 0


def test_delete_that_matches_nothing_makes_no_version() -> None:
    log = create(MemoryFile("one"))
    result = commit(MemoryCommit(log, "DELETE", reads=frozenset({7})), log)
    assert (result.version, result.skipped, log.version) == (0, True, 0)


def test_empty_append_makes_a_version() -> None:
    log = create()
    assert not commit(MemoryCommit(log, "WRITE", is_blind_append=True), log).skipped
    assert log.version == 1


@pytest.mark.protocol("append-only-tables-3", "supported-features-5")
def test_commit_refuses_to_remove_rows_from_an_append_only_table() -> None:
    log = create(MemoryFile("one"), appendOnly="true")
    with pytest.raises(TableStateError, match="append-only"):
        commit(MemoryCommit(log, "MERGE", removes=["one"], reads=EVERYTHING), log)
    assert log.version == 0


def test_append_only_table_may_be_compacted() -> None:
    log = create(MemoryFile("one"), appendOnly="true")
    prepared = MemoryCommit(
        log, "OPTIMIZE", removes=["one"], adds=[MemoryFile("two")], data_change=False
    )
    assert commit(prepared, log).version == 1


class BrokenStore(MemoryCommit):
    """A commit whose log store fails."""

    failure: Exception = OSError("connection reset")

    def try_commit(
        self, version: int, action_lines: Sequence[str], first_row_id: int | None = None
    ) -> bool:
        raise self.failure


def test_failure_that_may_have_written_says_so() -> None:
    log = create()
    prepared = BrokenStore(log, "WRITE", is_blind_append=True)
    with pytest.raises(TableStateError, match="not known whether version 1") as caught:
        commit(prepared, log)
    assert caught.value.condition == "DELTAIC_COMMIT_STATE_UNKNOWN"
    assert "connection reset" in str(caught.value)


def test_failure_that_certainly_wrote_nothing_passes() -> None:
    log = create()
    prepared = BrokenStore(log, "WRITE", is_blind_append=True)
    prepared.failure = error("DELTAIC_LOG_STORE_UNSUPPORTED", path="s3:/t", scheme="s3")
    with pytest.raises(TableStateError, match="s3:/t"):
        commit(prepared, log)


def test_commit_stands_if_the_jvm_stops_responding_once_it_is_written(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    log = create()

    def no_answer(*_: object) -> None:
        raise ConnectionError("no answer")

    def maintenance(self: MemoryLog, prepared: MemoryCommit) -> None:
        monkeypatch.setattr(MemoryCommit, "summary", no_answer)
        no_answer()

    monkeypatch.setattr(MemoryLog, "maintenance", maintenance)
    assert write(log, MemoryFile("a")).version == 1


def test_attempts_are_counted() -> None:
    log = create()
    prepared = MemoryCommit(log, "WRITE", is_blind_append=True)
    write(log)
    result = commit(prepared, log)
    assert (result.version, result.attempts) == (2, 2)


def test_waits_are_bounded_and_the_first_retry_does_not_wait() -> None:
    policy = RetryPolicy(first_delay_ms=2.0, max_delay_ms=50.0)
    assert policy.delay_ms(1) == policy.delay_ms(2) == 0.0
    assert all(0.0 <= policy.delay_ms(n) <= 50.0 for n in range(1, 2_000))
    assert all(policy.delay_ms(3) <= 2.0 for _ in range(100))


#: The table of the project's parity checklist, without what only some forms of an operation have.
PARITY_METRICS = {
    "WRITE": {"numFiles", "numOutputBytes", "numOutputRows"},
    "CREATE TABLE AS SELECT": {"numFiles", "numOutputBytes", "numOutputRows"},
    "STREAMING UPDATE": {"numAddedFiles", "numRemovedFiles", "numOutputRows", "numOutputBytes"},
    "DELETE": {
        "numAddedFiles", "numRemovedFiles", "numDeletionVectorsAdded",
        "numDeletionVectorsRemoved", "numDeletionVectorsUpdated", "numAddedChangeFiles",
        "numDeletedRows", "numCopiedRows", "executionTimeMs", "scanTimeMs", "rewriteTimeMs",
        "numRemovedBytes", "numAddedBytes",
    },
    "UPDATE": {
        "numAddedFiles", "numRemovedFiles", "numDeletionVectorsAdded",
        "numDeletionVectorsRemoved", "numDeletionVectorsUpdated", "numAddedChangeFiles",
        "numUpdatedRows", "numCopiedRows", "executionTimeMs", "scanTimeMs", "rewriteTimeMs",
        "numRemovedBytes", "numAddedBytes",
    },
    "MERGE": {
        "numSourceRows", "numTargetRowsInserted", "numTargetRowsUpdated",
        "numTargetRowsMatchedUpdated", "numTargetRowsNotMatchedBySourceUpdated",
        "numTargetRowsDeleted", "numTargetRowsMatchedDeleted",
        "numTargetRowsNotMatchedBySourceDeleted", "numTargetRowsCopied", "numTargetBytesAdded",
        "numTargetBytesRemoved", "numOutputRows", "numTargetFilesAdded", "numTargetFilesRemoved",
        "numTargetChangeFilesAdded", "executionTimeMs", "materializeSourceTimeMs", "scanTimeMs",
        "rewriteTimeMs", "numTargetDeletionVectorsAdded", "numTargetDeletionVectorsRemoved",
        "numTargetDeletionVectorsUpdated",
    },
    "OPTIMIZE": {
        "numAddedFiles", "numRemovedFiles", "numAddedBytes", "numRemovedBytes", "minFileSize",
        "p25FileSize", "p50FileSize", "p75FileSize", "maxFileSize", "numDeletionVectorsRemoved",
    },
    "TRUNCATE": {"numRemovedFiles", "executionTimeMs"},
    "CREATE TABLE": set(),
}  # fmt: skip


@pytest.mark.parametrize(("operation", "names"), PARITY_METRICS.items())
def test_metrics_have_the_names_of_the_parity_checklist(operation: str, names: set[str]) -> None:
    metrics = operation_metrics(MemoryCommit(create(), operation).summary())
    assert set(metrics) == names
    assert all(value == "0" for value in metrics.values())


def test_overwrite_counts_what_it_removed() -> None:
    log = create(MemoryFile("one"), MemoryFile("two"))
    prepared = MemoryCommit(
        log, "WRITE", removes=["one", "two"], adds=[MemoryFile("three")], reads=EVERYTHING
    )
    metrics = info_of(log, commit(prepared, log).version)["operationMetrics"]
    assert metrics["numRemovedFiles"] == "2"
    assert metrics["numRemovedBytes"] == "200"
    assert metrics["numFiles"] == "1"


@pytest.mark.parametrize(
    ("operation", "mode", "counted"),
    [
        ("WRITE", "Overwrite", True),
        ("WRITE", "Append", False),
        ("CREATE OR REPLACE TABLE AS SELECT", None, True),
        ("REPLACE TABLE AS SELECT", None, True),
        ("CREATE TABLE AS SELECT", None, False),
        ("CREATE OR REPLACE TABLE", None, False),
    ],
)
def test_what_replaces_says_how_much_it_removed_even_if_that_is_nothing(
    operation: str, mode: str | None, counted: bool
) -> None:
    """As delta-spark 4.4.0 does, of a new or an empty table."""
    prepared = MemoryCommit(create(), operation, parameters={"mode": mode})
    removed = {k: v for k, v in operation_metrics(prepared.summary()).items() if "Removed" in k}
    assert removed == ({"numRemovedFiles": "0", "numRemovedBytes": "0"} if counted else {})


def test_deletion_by_a_deletion_vector_neither_adds_nor_removes_a_file() -> None:
    log = create(MemoryFile("one"))
    prepared = MemoryCommit(
        log,
        "DELETE",
        removes=["one"],
        adds=[MemoryFile("one", dv_id="dv")],
        reads=EVERYTHING,
        metrics={"numDeletedRows": 4, "scanTimeMs": 12},
    )
    metrics = info_of(log, commit(prepared, log).version)["operationMetrics"]
    assert metrics["numAddedFiles"] == metrics["numRemovedFiles"] == "0"
    assert metrics["numDeletionVectorsAdded"] == "1"
    assert metrics["numDeletedRows"] == "4"
    assert metrics["scanTimeMs"] == "12"


def test_file_counts_are_read_from_what_the_jvm_sends() -> None:
    counts = FileCounts.from_json({"numAdded": 2, "addedBytes": 30, "dataChange": True})
    assert counts == FileCounts(num_added=2, added_bytes=30, data_change=True)
    assert not counts.removes_data and not counts.is_empty


def test_plan_travels_back_with_the_commit() -> None:
    log = MemoryLog()
    planned = plan(log, properties={"delta.enableDeletionVectors": "true"})
    travelled = CommitPlan.from_json(json.loads(json.dumps(planned.to_json())))
    assert travelled == planned
    commit(MemoryCommit(log, "WRITE", plan=travelled), log)
    assert log.actions(0, "protocol") == [planned.definition.protocol.to_json()]
    assert log.actions(0, "metaData") == [planned.definition.metadata.to_json()]
