"""Two writers that create one table at the same time."""

from __future__ import annotations

import json
from typing import Any

import pytest

from deltaic.commit.transaction import commit
from deltaic.exceptions import MetadataChangedException, ProtocolChangedException
from deltaic.protocol.actions import Protocol, log_line
from tests.support.definitions import column, plan, schema
from tests.support.memory_log import MemoryCommit, MemoryFile, MemoryLog, set_property


def creation(
    log: MemoryLog, path: str, joins: bool = True, mode: str = "append", **request: Any
) -> MemoryCommit:
    planned = plan(log, mode, appends_if_created_concurrently=joins, **request)
    return MemoryCommit(
        log,
        "WRITE",
        adds=[MemoryFile(path)],
        plan=planned,
        options=request.get("options", {}),
        is_blind_append=planned.is_blind_append,
    )


@pytest.mark.protocol("writer-row-tracking-8")
def test_second_creator_of_a_table_appends_to_it_if_it_may() -> None:
    log = MemoryLog()
    properties = {"delta.enableRowTracking": "true", "delta.enableInCommitTimestamps": "true"}
    first, second = creation(log, "a", properties=properties), creation(log, "b")
    assert commit(first, log).version == 0
    assert commit(second, log).version == 1
    kinds = [next(iter(json.loads(line))) for line in log.commits_lines[1]]
    assert kinds == ["commitInfo", "domainMetadata", "add"], "it is written as the table asks"
    (info,) = log.actions(1, "commitInfo")
    assert (info["readVersion"], info["isBlindAppend"]) == (0, True)
    assert info["isolationLevel"] == "Serializable"
    assert info["inCommitTimestamp"] > log.actions(0, "commitInfo")[0]["inCommitTimestamp"]
    assert [f.base_row_id for f in log.files()] == [0, 10]


def test_second_creator_checks_all_that_was_committed_since() -> None:
    log = MemoryLog()
    second = creation(log, "b")
    commit(creation(log, "a"), log)
    commit(set_property(log), log)
    with pytest.raises(MetadataChangedException):
        commit(second, log)


OTHER_COLUMNS = {"schema_string": schema("id", column("p", "string"))}


@pytest.mark.parametrize(
    ("theirs", "ours"),
    [
        ({}, {"joins": False}),
        ({}, {"joins": False, "mode": "overwrite"}),
        ({}, OTHER_COLUMNS),
        (OTHER_COLUMNS, {}),
        ({}, {"partition_by": ("p",)}),
        ({"partition_by": ("p",)}, {}),
        ({"constraints": {"c": "id > 0"}}, {}),
        (
            {"options": {"txnappid": "app", "txnversion": "1"}},
            {"options": {"txnappid": "app", "txnversion": "2"}},
        ),
    ],
)
def test_second_creator_that_cannot_append_fails_because_the_table_was_created(
    theirs: dict[str, Any], ours: dict[str, Any]
) -> None:
    log = MemoryLog()
    first, second = creation(log, "a", **theirs), creation(log, "b", **ours)
    if "options" in ours:
        log.before_try = lambda version: first_commits(log, first)
    else:
        commit(first, log)
    with pytest.raises(ProtocolChangedException, match="created concurrently"):
        commit(second, log)
    assert log.version == 0


def first_commits(log: MemoryLog, first: MemoryCommit) -> None:
    """Commit before the one that is about to try."""
    log.before_try = lambda version: None
    commit(first, log)


def test_second_creator_does_not_append_to_a_table_it_cannot_write() -> None:
    log = MemoryLog()
    second = creation(log, "b")
    created = plan(log).definition
    features = frozenset({"appendOnly", "invariants", "warpDrive"})
    protocol = Protocol(1, 7, None, features)
    lines = [log_line("protocol", protocol.to_json())]
    log.write_if_absent(0, [*lines, log_line("metaData", created.metadata.to_json())])
    with pytest.raises(ProtocolChangedException):
        commit(second, log)


def test_maintenance_after_both_is_what_the_table_asks_for() -> None:
    log = MemoryLog()
    manifests = {"delta.compatibility.symlinkFormatManifest.enabled": "true"}
    interval = {"delta.checkpointInterval": "1"}
    first = creation(log, "a", properties=manifests | interval)
    second = creation(log, "b")
    commit(first, log)
    commit(second, log)
    assert log.maintained.versions("symlinkManifest") == [0, 1]
    assert log.maintained.versions("classicCheckpoint") == [1]


@pytest.mark.protocol("writer-clustered-table-3")
def test_second_creator_without_statistics_of_clustering_columns_is_refused() -> None:
    log = MemoryLog()
    second = creation(log, "b", properties={"delta.dataSkippingNumIndexedCols": "0"})
    commit(creation(log, "a", cluster_by=BY_ID), log)
    with pytest.raises(ProtocolChangedException):
        commit(second, log)


BY_ID = [["id"]]


@pytest.mark.parametrize(
    ("theirs", "ours", "joins"),
    [
        (None, BY_ID, False),
        ([["p"]], BY_ID, False),
        (BY_ID, BY_ID, True),
        (BY_ID, None, True),
    ],
)
def test_second_creator_appends_to_a_table_that_is_clustered_as_it_wants(
    theirs: list[list[str]] | None, ours: list[list[str]] | None, joins: bool
) -> None:
    log = MemoryLog()
    first = creation(log, "a", cluster_by=theirs)
    second = creation(log, "b", cluster_by=ours)
    commit(first, log)
    if joins:
        commit(second, log)
        assert log.actions(1, "domainMetadata") == []
    else:
        with pytest.raises(ProtocolChangedException):
            commit(second, log)
        assert log.version == 0
