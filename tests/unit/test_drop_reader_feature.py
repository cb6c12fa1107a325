"""DROP FEATURE of features on which the history depends, as commits without Spark."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from deltaic.commands.registry import run_command
from deltaic.commit.transaction import RetryPolicy, commit
from deltaic.exceptions import ConcurrentModificationError, InvalidArgumentError, TableStateError
from deltaic.protocol.features import features_in_use, supports
from tests.support.definitions import column, command_arguments, create, write
from tests.support.memory_log import MemoryCommit, MemoryFile, MemoryLog

PROTECTED = "delta.requireCheckpointProtectionBeforeVersion"
HOUR_MS = 3_600_000


def run(log: MemoryLog, command: str, **arguments: Any) -> None:
    run_command(
        command, command_arguments(log, command, **arguments), log, RetryPolicy(), lambda: 1
    )


def drop(log: MemoryLog, feature: str = "deletionVectors", *, truncates: bool = False) -> None:
    run(log, "dropFeature", feature=feature, truncateHistory=truncates)


def operations(log: MemoryLog) -> list[str]:
    return [log.actions(v, "commitInfo")[0]["operation"] for v in range(log.version + 1)]


def features(log: MemoryLog) -> set[str]:
    snapshot = log.snapshot(log.table)
    assert snapshot is not None
    names = ("deletionVectors", "columnMapping", "typeWidening", "v2Checkpoint", "rowTracking")
    return {n for n in (*names, "checkpointProtection") if supports(snapshot.protocol, n)}


def configuration(log: MemoryLog) -> dict[str, str]:
    snapshot = log.snapshot(log.table)
    assert snapshot is not None
    return dict(snapshot.metadata.configuration)


def with_vectors() -> MemoryLog:
    return create(MemoryFile("a", dv_id="x"), MemoryFile("b"), enableDeletionVectors="true")


BARRIERS = ["Empty Commit"] * 3


@pytest.mark.protocol("dv-functional-7")
def test_vectors_are_purged_and_the_history_is_hidden_and_protected() -> None:
    log = with_vectors()
    drop(log)
    assert operations(log) == [
        "WRITE",
        "UNSET TBLPROPERTIES",
        "REORG",
        "Deletion Vector Tombstones",
        *BARRIERS,
        "DROP FEATURE",
    ]
    assert {file.path for file in log.files()} == {"a-new", "b"}
    assert log.checkpoints == [4, 5, 6, 7]
    assert features(log) == {"checkpointProtection"}
    assert configuration(log) == {PROTECTED: "7"}
    (info,) = log.actions(7, "commitInfo")
    assert info["operationParameters"] == {
        "featureName": "deletionVectors",
        "truncateHistory": "false",
    }
    (protocol,) = log.actions(7, "protocol")
    assert protocol["minReaderVersion"] == 1


def test_table_that_does_not_use_the_feature_still_has_older_versions_with_it() -> None:
    log = create(MemoryFile("a"), feature_deletionVectors="supported")
    drop(log)
    assert operations(log) == ["WRITE", *BARRIERS, "DROP FEATURE"]
    assert configuration(log) == {PROTECTED: "4"}


def add_vector(log: MemoryLog) -> None:
    run(log, "alterProperties", set={"delta.enableDeletionVectors": "true"})
    write(log, MemoryFile(f"again{log.version}", dv_id="y"))


def once(step: str, theirs: Callable[[MemoryLog], Any], log: MemoryLog) -> None:
    """Let another writer commit once before a step."""

    def act(reached: str) -> None:
        if reached == step:
            log.between = lambda _: None
            theirs(log)

    log.between = act


@pytest.mark.parametrize("step", ["rewrite", "checkpoint", "check"])
def test_feature_that_others_begin_to_use_again_is_removed_again(step: str) -> None:
    log = with_vectors()
    once(step, add_vector, log)
    drop(log)
    assert features(log) == {"checkpointProtection"}
    assert not any(file.dv_id for file in log.files())
    assert configuration(log) == {PROTECTED: str(log.version)}


@pytest.mark.parametrize("theirs", [lambda log: write(log, MemoryFile("c")), add_vector])
def test_drop_is_the_version_after_one_that_was_checked(theirs: Callable[[MemoryLog], Any]) -> None:
    log = with_vectors()

    def win(version: int) -> None:
        if operations(log)[-1] == "Empty Commit" and len(log.checkpoints) == 3:
            log.before_try = lambda _: None
            theirs(log)

    log.before_try = win
    drop(log)
    assert operations(log)[-1] == "DROP FEATURE"
    assert features(log) == {"checkpointProtection"}
    assert not any(file.dv_id for file in log.files())
    assert configuration(log) == {PROTECTED: str(log.version)}
    assert "c" in {file.path for file in log.files()} or operations(log).count("REORG") == 2


def test_use_that_never_ends_is_an_error(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("deltaic.commands.alter.drop_feature._MAX_ROUNDS", 5)
    log = with_vectors()

    def again(step: str) -> None:
        if step == "check":
            add_vector(log)

    log.between = again
    with pytest.raises(ConcurrentModificationError, match="deletionVectors") as caught:
        drop(log)
    assert caught.value.condition == "DELTAIC_FEATURE_USED_AGAIN"
    assert "deletionVectors" in features(log)


class Killed(Exception):
    pass


@pytest.mark.parametrize("nth", range(7))
def test_statement_that_was_killed_goes_on_where_it_was(nth: int) -> None:
    log = with_vectors()
    left = iter(range(nth))

    def kill(version: int) -> None:
        if next(left, None) is None:
            raise Killed

    log.before_try = kill
    try:
        drop(log)
    except Exception:
        assert "deletionVectors" in features(log)
        log.before_try = lambda _: None
        drop(log)
    assert features(log) == {"checkpointProtection"}
    assert not any(file.dv_id for file in log.files())
    assert operations(log).count("REORG") == 1


def test_checkpoint_that_cannot_be_written_is_an_error_and_nothing_is_dropped() -> None:
    log = with_vectors()

    def fail(step: str) -> None:
        if step == "checkpoint":
            raise OSError("no space left")

    log.between = fail
    with pytest.raises(TableStateError, match="no space left") as caught:
        drop(log)
    assert caught.value.condition == "DELTAIC_CHECKPOINT_FAILED"
    assert features(log) == {"deletionVectors"}
    log.between = lambda _: None
    drop(log)
    assert features(log) == {"checkpointProtection"}


def test_checkpoint_policy_ends_with_v2_checkpoints() -> None:
    log = create(MemoryFile("a"), checkpointPolicy="v2")
    assert features(log) == {"v2Checkpoint"}
    drop(log, "v2Checkpoint")
    assert operations(log) == ["WRITE", "UNSET TBLPROPERTIES", *BARRIERS, "DROP FEATURE"]
    assert features(log) == {"checkpointProtection"}
    assert configuration(log) == {PROTECTED: "5"}


def widened() -> MemoryLog:
    log = create(MemoryFile("a"), MemoryFile("b"), enableTypeWidening="true")
    run(log, "addColumns", columns=[{"parent": [], "specified": column("v", "integer")}])
    run(log, "alterColumns", columns=[{"column": ["v"], "type": "long"}])
    log.older = {"a"}
    return log


def test_file_of_an_older_type_that_is_added_meanwhile_is_rewritten_too() -> None:
    log = widened()

    def add_late(log: MemoryLog) -> None:
        write(log, MemoryFile("late"))
        log.older.add("late")

    once("nothing to rewrite", add_late, log)
    drop(log, "typeWidening")
    assert "late" not in {file.path for file in log.files()}
    assert "typeWidening" not in features(log)


def test_older_types_are_rewritten_before_their_metadata_is_removed() -> None:
    log = widened()
    drop(log, "typeWidening")
    assert operations(log)[-7:] == [
        "UNSET TBLPROPERTIES",
        "REORG",
        "CHANGE COLUMNS",
        *BARRIERS,
        "DROP FEATURE",
    ]
    assert {file.path for file in log.files()} == {"a-new", "b"}
    snapshot = log.snapshot(log.table)
    assert snapshot is not None
    assert "typeWidening" not in features_in_use(snapshot.metadata, log.table)
    assert snapshot.metadata.schema.find("v").type.name == "long"  # type: ignore[union-attr]
    assert features(log) == {"checkpointProtection"}


def test_files_are_rewritten_with_the_names_of_the_columns() -> None:
    log = create(MemoryFile("a"), columnMapping_mode="name")
    run(log, "renameColumn", column=["id"], name="key")
    drop(log, "columnMapping")
    assert operations(log)[2:] == ["REMOVE COLUMN MAPPING", *BARRIERS, "DROP FEATURE"]
    snapshot = log.snapshot(log.table)
    assert snapshot is not None
    assert [(f.name, f.metadata) for f in snapshot.metadata.schema.fields] == [
        ("key", {}),
        ("p", {}),
    ]
    assert configuration(log) == {PROTECTED: "6"}
    assert features(log) == {"checkpointProtection"}


def test_name_that_files_cannot_have_keeps_column_mapping() -> None:
    log = create(MemoryFile("a"), columnMapping_mode="name")
    run(log, "renameColumn", column=["id"], name="a b")
    with pytest.raises(InvalidArgumentError, match="a b"):
        drop(log, "columnMapping")
    with pytest.raises(InvalidArgumentError, match="a b"):
        run(log, "alterProperties", set={"delta.columnMapping.mode": "none"})
    assert log.version == 1


def test_mapping_is_removed_by_its_property_too_and_the_feature_stays() -> None:
    log = create(MemoryFile("a"), columnMapping_mode="name")
    run(log, "alterProperties", set={"delta.columnMapping.mode": "none", "owner": "me"})
    assert operations(log) == ["WRITE", "REMOVE COLUMN MAPPING", "SET TBLPROPERTIES"]
    assert configuration(log) == {"delta.columnMapping.mode": "none", "owner": "me"}
    assert features(log) == {"columnMapping"}
    run(log, "alterProperties", set={"delta.columnMapping.mode": "name"})
    assert features(log) == {"columnMapping"}


def test_row_ids_are_suspended_and_removed_with_their_domain() -> None:
    log = create(MemoryFile("a"), MemoryFile("b"), enableRowTracking="true")
    assert all(file.base_row_id is not None for file in log.files())
    drop(log, "rowTracking")
    assert operations(log) == [
        "WRITE",
        "SET TBLPROPERTIES",
        "ROW TRACKING UNBACKFILL",
        "SET DOMAIN METADATA",
        "DROP FEATURE",
    ]
    assert all(file.base_row_id is None for file in log.files())
    assert features(log) == set()
    assert configuration(log) == {}
    snapshot = log.snapshot(log.table)
    assert snapshot is not None and snapshot.domains == {}


def test_row_ids_that_another_commit_assigns_are_removed_too() -> None:
    log = create(MemoryFile("a"), enableRowTracking="true")

    def theirs(log: MemoryLog) -> None:
        run(log, "alterProperties", set={"delta.enableRowTracking": "true"})
        write(log, MemoryFile("c"))

    once("check", theirs, log)
    drop(log, "rowTracking")
    assert all(file.base_row_id is None for file in log.files())
    assert features(log) == set()


def test_history_is_truncated_when_it_is_old_enough() -> None:
    log = with_vectors()
    with pytest.raises(TableStateError) as caught:
        drop(log, truncates=True)
    assert caught.value.condition == "DELTAIC_FEATURE_IN_HISTORY"
    message = str(caught.value)
    assert "version 2 of the history" in message
    assert "1970-01-02 00:00:02 UTC" in message, "the checkpoint and 24 hours"
    assert features(log) == {"deletionVectors"}
    assert operations(log)[1:] == [
        "UNSET TBLPROPERTIES",
        "REORG",
        "Deletion Vector Tombstones",
        "Empty Commit",
    ]
    before = log.version
    with pytest.raises(TableStateError, match="version 2"):
        drop(log, truncates=True)
    assert log.version == before, "what was done is not done again"

    log.now_ms = 25 * HOUR_MS
    drop(log, truncates=True)
    assert features(log) == set()
    assert configuration(log) == {}
    assert log.first == 4
    (info,) = log.actions(log.version, "commitInfo")
    assert info["operationParameters"]["truncateHistory"] == "true"


def test_retention_of_the_truncation_is_a_table_property() -> None:
    log = with_vectors()
    name = "delta.dropFeatureTruncateHistory.retentionDuration"
    run(log, "alterProperties", set={name: "interval 0 hours"})
    log.now_ms = HOUR_MS
    drop(log, truncates=True)
    assert features(log) == set()


def test_history_ends_with_the_log_if_features_are_not_dropped_at_once() -> None:
    log = with_vectors()
    log.at_once = False
    log.now_ms = 25 * HOUR_MS
    with pytest.raises(TableStateError, match="interval 30 days"):
        drop(log)
    log.now_ms = 31 * 24 * HOUR_MS
    drop(log)
    assert features(log) == set()


def test_protection_ends_with_the_protected_history() -> None:
    log = with_vectors()
    drop(log)
    with pytest.raises(InvalidArgumentError, match="TRUNCATE HISTORY"):
        drop(log, "checkpointProtection")
    with pytest.raises(TableStateError, match="version 6 of the history"):
        drop(log, "checkpointProtection", truncates=True)
    assert features(log) == {"checkpointProtection"}
    log.now_ms = 25 * HOUR_MS
    drop(log, "checkpointProtection", truncates=True)
    assert features(log) == set()
    assert configuration(log) == {}
    assert log.first >= 7


def test_vector_of_a_commit_in_flight_is_a_conflict() -> None:
    log = with_vectors()
    theirs = MemoryCommit(log, "DELETE", adds=[MemoryFile("b", dv_id="z")], removes=["b"])
    drop(log)
    with pytest.raises(ConcurrentModificationError):
        commit(theirs, log)
