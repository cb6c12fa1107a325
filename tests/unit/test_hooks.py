"""When a log gets its checkpoints, compactions and cleanups."""

from __future__ import annotations

import logging
from typing import Any

import pytest

from deltaic.commit import hooks
from deltaic.commit.hooks import due_tasks
from deltaic.commit.ports import MaintenanceSettings
from deltaic.commit.transaction import commit
from deltaic.exceptions import error
from deltaic.protocol.actions import Metadata, Protocol
from tests.support.definitions import plan, write
from tests.support.memory_log import MemoryCommit, MemoryFile, MemoryLog
from tests.support.memory_maintenance import MemoryMaintenance

LEGACY = Protocol(1, 2)
WITH_V2 = Protocol(3, 7, frozenset({"v2Checkpoint"}), frozenset({"v2Checkpoint"}))


def metadata(**properties: str) -> Metadata:
    configuration = {f"delta.{name.replace('__', '.')}": v for name, v in properties.items()}
    return Metadata(
        id="t", schema_string='{"type":"struct","fields":[]}', configuration=configuration
    )


def commit_versions(
    maintenance: MemoryMaintenance,
    versions: range,
    definition: Metadata | None = None,
    protocol: Protocol = LEGACY,
) -> None:
    for version in versions:
        tasks = due_tasks(version, protocol, definition or metadata(), maintenance)
        maintenance.run(version, [task.to_json() for task in tasks])


def tasks_at(
    version: int, maintenance: MemoryMaintenance, definition: Metadata, protocol: Protocol = LEGACY
) -> dict[str, dict[str, Any]]:
    found = (task.to_json() for task in due_tasks(version, protocol, definition, maintenance))
    return {task["task"]: task for task in found}


def test_checkpoints_come_at_multiples_of_the_interval_but_not_with_the_first_version() -> None:
    maintenance = MemoryMaintenance()
    commit_versions(maintenance, range(35))
    assert maintenance.versions("classicCheckpoint") == [10, 20, 30]
    assert maintenance.versions("cleanup") == [10, 20, 30]
    assert maintenance.versions("checksum") == list(range(35))


def test_the_interval_is_the_tables_own() -> None:
    maintenance = MemoryMaintenance()
    commit_versions(maintenance, range(8), metadata(checkpointInterval="3"))
    assert maintenance.versions("classicCheckpoint") == [3, 6]


def test_a_checkpoint_that_failed_is_tried_again_by_the_next_commit() -> None:
    maintenance = MemoryMaintenance(fails={"checkpoint"})
    commit_versions(maintenance, range(13))
    assert maintenance.versions("classicCheckpoint") == []
    maintenance.fails.clear()
    commit_versions(maintenance, range(13, 25))
    assert maintenance.versions("classicCheckpoint") == [13, 20]


def test_a_checkpoint_that_another_process_did_not_write_is_written_an_interval_later() -> None:
    maintenance = MemoryMaintenance()
    commit_versions(maintenance, range(13, 20))  # the process that made version 10 died
    assert maintenance.versions("classicCheckpoint") == []
    commit_versions(maintenance, range(21, 24))
    assert maintenance.versions("classicCheckpoint") == [21]


def test_checkpoints_that_others_write_are_noticed_without_asking_each_time() -> None:
    maintenance = MemoryMaintenance(elsewhere=30)
    commit_versions(maintenance, range(41, 50))
    assert maintenance.versions("classicCheckpoint") == []
    assert maintenance.looked == 1


@pytest.mark.protocol("handling-backward-compatibility-while-moving-to-uuid-named-v2-checkpoints-1")
@pytest.mark.protocol("handling-backward-compatibility-while-moving-to-uuid-named-v2-checkpoints-2")
@pytest.mark.protocol("handling-backward-compatibility-while-moving-to-uuid-named-v2-checkpoints-3")
@pytest.mark.protocol("v2-checkpoint-table-feature-2")
def test_v2_checkpoints_need_the_feature_and_sometimes_bear_the_classic_name() -> None:
    maintenance = MemoryMaintenance()
    v2 = metadata(checkpointPolicy="v2")
    assert "classicCheckpoint" in tasks_at(10, maintenance, v2, LEGACY)
    assert "classicCheckpoint" in tasks_at(10, maintenance, metadata(), WITH_V2)
    commit_versions(maintenance, range(201), v2, WITH_V2)
    classic = [version for version, task in maintenance.done if task.get("alsoClassic")]
    assert maintenance.versions("v2Checkpoint") == list(range(10, 201, 10))
    assert classic == [10, 100, 200]


@pytest.mark.protocol("file-types-checkpoints-5", "multi-part-checkpoint-1")
@pytest.mark.protocol("problems-with-multi-part-checkpoints-1")
def test_parts_are_only_made_where_they_are_allowed() -> None:
    maintenance = MemoryMaintenance(wanted=MaintenanceSettings(part_size=5))
    assert tasks_at(10, maintenance, metadata())["classicCheckpoint"]["partSize"] == 5
    assert "partSize" not in tasks_at(10, maintenance, metadata(), WITH_V2)["classicCheckpoint"]
    v2 = tasks_at(10, maintenance, metadata(checkpointPolicy="v2"), WITH_V2)["v2Checkpoint"]
    assert v2["sidecarSize"] == 5


def test_cleanup_follows_a_checkpoint_unless_the_table_forbids_it() -> None:
    maintenance = MemoryMaintenance()
    assert "cleanup" not in tasks_at(10, maintenance, metadata(enableExpiredLogCleanup="false"))
    kept = tasks_at(10, maintenance, metadata(logRetentionDuration="interval 2 days"))["cleanup"]
    assert kept["retentionMs"] == 2 * 86_400_000
    # The JVM would take it for a negative number, and delete all commits before the checkpoint.
    overflowing = metadata(logRetentionDuration="interval 20000000000 weeks")
    assert "cleanup" not in tasks_at(10, maintenance, overflowing)


def test_a_cleanup_that_failed_is_tried_again_by_the_next_commit_without_a_checkpoint() -> None:
    maintenance = MemoryMaintenance(fails={"cleanup"})
    commit_versions(maintenance, range(13))
    maintenance.fails.clear()
    commit_versions(maintenance, range(13, 16))
    assert maintenance.versions("cleanup") == [13]
    assert maintenance.versions("classicCheckpoint") == [10]


def test_compactions_cover_each_interval_once_and_make_up_for_one_that_failed() -> None:
    maintenance = MemoryMaintenance(wanted=MaintenanceSettings(compaction_interval=4))
    commit_versions(maintenance, range(8))
    maintenance.fails.add("compaction")
    commit_versions(maintenance, range(8, 13))
    maintenance.fails.clear()
    commit_versions(maintenance, range(13, 17))
    ranges = [(t["first"], t["last"]) for _, t in maintenance.done if t["task"] == "compaction"]
    assert ranges == [(0, 3), (4, 7), (8, 11), (12, 15)]


def test_nothing_is_compacted_and_nothing_summed_up_when_it_is_not_wanted() -> None:
    maintenance = MemoryMaintenance(wanted=MaintenanceSettings(writes_checksums=False))
    commit_versions(maintenance, range(10))
    assert maintenance.done == []


def test_a_hook_that_fails_leaves_the_commit_and_says_which(
    caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    log = MemoryLog()

    def refuse(version: int, tasks: object) -> None:
        raise RuntimeError("no thread left")

    monkeypatch.setattr(log.maintained, "run", refuse)
    with caplog.at_level(logging.WARNING, "deltaic.commit.hooks"):
        result = write(log, MemoryFile("a"))
    assert result.version == 0 and log.version == 0
    (record,) = caplog.records
    assert log.table in record.getMessage() and "version 0" in record.getMessage()
    assert "no thread left" in str(record.exc_info)


def test_files_are_listed_after_every_commit_where_the_property_is_on() -> None:
    maintenance = MemoryMaintenance()
    commit_versions(maintenance, range(3))
    assert maintenance.versions("symlinkManifest") == []
    listed = metadata(compatibility__symlinkFormatManifest__enabled="true")
    commit_versions(maintenance, range(3, 6), listed)
    assert maintenance.versions("symlinkManifest") == [3, 4, 5]


PROTECTED = Protocol(1, 7, None, frozenset({"checkpointProtection"}))
BEFORE = "requireCheckpointProtectionBeforeVersion"


@pytest.mark.parametrize(
    ("protocol", "version", "protected"),
    [
        (PROTECTED, "9", 9),
        (PROTECTED, "0", None),
        (LEGACY, "9", None),  # a property binds writers by its feature
    ],
)
def test_cleanup_gets_the_version_before_which_it_deletes_all_or_nothing(
    protocol: Protocol, version: str, protected: int | None
) -> None:
    definition = metadata(**{BEFORE: version})
    task = tasks_at(10, MemoryMaintenance(), definition, protocol)["cleanup"]
    assert task.get("protectedVersion") == protected


def test_nothing_is_cleaned_up_where_the_protected_version_is_not_understood() -> None:
    tasks = tasks_at(10, MemoryMaintenance(), metadata(**{BEFORE: "nine"}), PROTECTED)
    assert "cleanup" not in tasks and "classicCheckpoint" in tasks


@pytest.mark.parametrize(("checkpoints", "days"), [("3 days", 3), ("1 day", 2)])
def test_checkpoints_are_kept_as_long_as_their_own_retention_says(
    checkpoints: str, days: int
) -> None:
    definition = metadata(
        logRetentionDuration="interval 2 days",
        checkpointRetentionDuration=f"interval {checkpoints}",
    )
    task = tasks_at(10, MemoryMaintenance(), definition)["cleanup"]
    assert task["retentionMs"] == days * 86_400_000


def test_what_another_engine_asks_for_in_vain_is_logged_once(
    caplog: pytest.LogCaptureFixture,
) -> None:
    table_properties = {"delta.castIcebergTimeType": "true", "delta.appendOnly": "true"}
    report = hooks._warn_of_unsupported_properties
    with caplog.at_level(logging.WARNING):
        for _ in range(2):
            report("/once", Metadata("t", "", configuration=table_properties))
    (record,) = caplog.records
    assert "/once has the property delta.castIcebergTimeType" in record.getMessage()


AUTO_COMPACT, AUTO_OPTIMIZE = "delta.autoOptimize.autoCompact", "delta.autoOptimize"


@pytest.mark.parametrize(
    ("properties", "session", "compacts"),
    [
        ({}, None, False),
        ({}, True, True),
        ({AUTO_COMPACT: "true"}, None, True),
        ({AUTO_COMPACT: "true"}, False, False),
        ({AUTO_COMPACT: "false"}, None, False),
        ({AUTO_OPTIMIZE: "true"}, None, True),
        ({AUTO_OPTIMIZE: "true", AUTO_COMPACT: "false"}, None, False),
        ({"delta.autoOptimize.optimizeWrite": "true"}, None, False),
    ],
)
def test_auto_compaction_is_due_where_the_session_or_else_the_table_asks_for_it(
    properties: dict[str, str], session: bool | None, compacts: bool
) -> None:
    log = MemoryLog()
    log.maintained.compacts = session
    write(log, MemoryFile("a"), properties=properties)
    assert log.maintained.versions("autoCompaction") == ([0] if compacts else [])


def test_auto_compaction_follows_only_commits_that_add_files_with_new_rows() -> None:
    log = MemoryLog()
    log.maintained.compacts = True
    write(log, MemoryFile("a"))
    for rearranged in (
        MemoryCommit(log, "WRITE", adds=[MemoryFile("b")], plan=plan(log), data_change=False),
        MemoryCommit(log, "DELETE", removes=["a"], plan=plan(log)),
    ):
        commit(rearranged, log)
    write(log, MemoryFile("c"))
    assert log.version == 3
    assert log.maintained.versions("autoCompaction") == [0, 3]


def test_invalid_setting_of_auto_compaction_is_logged_once_and_other_maintenance_is_done(
    caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    log = MemoryLog()
    setting = "spark.deltaic.autoCompact.enabled"

    def refuse() -> bool:
        raise error(
            "DELTAIC_INVALID_SESSION_SETTING", setting=setting, value="auto", reason="it is true"
        )

    monkeypatch.setattr(log.maintained, "compacts_files", refuse)
    with caplog.at_level(logging.WARNING):
        write(log, MemoryFile("a"), properties={AUTO_COMPACT: "true"})
        write(log, MemoryFile("b"))
    (record,) = caplog.records
    assert setting in record.getMessage() and "auto" in record.getMessage()
    assert log.maintained.versions("checksum") == [0, 1]
    assert log.maintained.versions("autoCompaction") == []
