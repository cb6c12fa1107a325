"""What RESTORE commits besides files."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import Any

import pytest

from deltaic.commands.alter.alteration import current_snapshot
from deltaic.commands.definitions.restored_definition import restored_definition
from deltaic.commands.registry import run_command
from deltaic.commit.ports import TableSnapshot
from deltaic.commit.transaction import RetryPolicy, commit
from deltaic.exceptions import InvalidArgumentError, ProtocolError, TableStateError
from deltaic.protocol.actions import DomainMetadata, Metadata, Protocol, log_line
from deltaic.protocol.negotiation import merged_protocol
from tests.support.definitions import column, plan, schema
from tests.support.memory_log import MemoryCommit, MemoryFile, MemoryLog

MARK = "delta.identity.highWaterMark"
LEGACY = Protocol(1, 2)


def listed(*features: str, reads: tuple[str, ...] = ()) -> Protocol:
    return Protocol(
        3 if reads else 1, 7, frozenset(reads) if reads else None, frozenset({*features, *reads})
    )


def snapshot(
    protocol: Protocol = LEGACY, /, columns: str = schema("p"), **properties: str
) -> TableSnapshot:
    metadata = Metadata(
        id="t",
        schema_string=columns,
        partition_columns=(),
        configuration={f"delta.{name}": value for name, value in properties.items()},
    )
    return TableSnapshot(1, 1, protocol, metadata)


def restored(older: TableSnapshot, current: TableSnapshot) -> Metadata:
    return restored_definition("t", older, current, allows_downgrade=False).metadata


@pytest.mark.protocol("dv-generate-1")
@pytest.mark.parametrize(
    ("current", "older", "merged"),
    [
        (Protocol(1, 2), Protocol(1, 1), Protocol(1, 2)),
        (Protocol(1, 1), Protocol(1, 2), Protocol(1, 2)),
        (Protocol(1, 4), Protocol(2, 5), Protocol(2, 5)),
        (
            listed("appendOnly"),
            Protocol(1, 2),
            listed("appendOnly", "invariants"),
        ),
        (
            listed("appendOnly", reads=("deletionVectors",)),
            listed("domainMetadata", "invariants", reads=("v2Checkpoint",)),
            listed(
                "appendOnly",
                "invariants",
                "domainMetadata",
                reads=("deletionVectors", "v2Checkpoint"),
            ),
        ),
        (Protocol(1, 2), listed("rowTracking"), listed("rowTracking", "appendOnly", "invariants")),
    ],
)
def test_protocol_supports_the_features_of_both_versions(
    current: Protocol, older: Protocol, merged: Protocol
) -> None:
    assert merged_protocol(current, older) in (merged, Protocol(1, 2))
    assert merged_protocol(merged, older) == merged


@pytest.mark.protocol("supported-features-2")
def test_protocol_of_the_older_version_is_restored_only_if_a_downgrade_is_allowed() -> None:
    older, current = snapshot(), snapshot(listed("appendOnly", "invariants", "rowTracking"))
    assert restored_definition("t", older, current, allows_downgrade=False).protocol == (
        current.protocol
    )
    assert restored_definition("t", older, current, allows_downgrade=True).protocol == LEGACY


@pytest.mark.protocol("writer-icebergcompatv1-2")
def test_older_version_that_new_features_make_incompatible_with_iceberg_is_not_restored() -> None:
    mapped = {"columnMapping.mode": "name", "columnMapping.maxColumnId": "1"}
    compatible = listed("icebergCompatV1", reads=("columnMapping",))
    older = snapshot(compatible, enableIcebergCompatV1="true", **mapped)
    current = snapshot(listed("icebergCompatV1", reads=("columnMapping", "deletionVectors")))
    with pytest.raises(InvalidArgumentError, match="must not have the feature deletionVectors"):
        restored(older, current)
    assert restored(older, snapshot(compatible, **mapped)) == older.metadata


def identity(
    name: str, mark: int | None, *, step: int = 1, start: int = 1, physical: str = ""
) -> Any:
    metadata: dict[str, Any] = {"delta.identity.start": start, "delta.identity.step": step}
    if physical:
        metadata["delta.columnMapping.physicalName"] = physical
    if mark is not None:
        metadata[MARK] = mark
    return column(name, "long", metadata=metadata)


@pytest.mark.parametrize(
    ("older", "current", "mark"),
    [
        (identity("a", 3), identity("a", 9), 9),
        (identity("a", None), identity("a", 9), 9),
        (identity("a", 3), identity("a", None), 3),
        (identity("a", 9), identity("a", 3), 9),
        (identity("a", -3, step=-2, start=1), identity("a", -9, step=-2, start=1), -9),
        (identity("a", 3), column("a", "long"), 3),
        (identity("a", 3), identity("other", 9), 3),
        (identity("a", 10, step=10, start=10), identity("a", 33), 40),
        (
            identity("a", 3, physical="col-1"),
            identity("renamed", 9, physical="col-1"),
            9,
        ),
    ],
)
def test_identity_high_water_mark_is_the_further_one(older: Any, current: Any, mark: int) -> None:
    metadata = restored(snapshot(columns=schema(older)), snapshot(columns=schema(current)))
    [field] = metadata.schema.fields
    assert field.metadata[MARK] == mark


def test_metadata_without_generated_values_is_exactly_that_of_the_older_version() -> None:
    older = snapshot(columns=schema("p", column("x", metadata={"comment": "ä"})), owner="me")
    assert restored(older, snapshot(columns=schema("q"))) is older.metadata


@pytest.mark.protocol("writer-column-mapping-13")
def test_column_ids_and_checkpoint_protection_are_not_lowered() -> None:
    names = "columnMapping.maxColumnId", "requireCheckpointProtectionBeforeVersion"
    for before, now, after in [("3", "5", "5"), ("5", "3", "5"), (None, "4", "4"), ("4", "?", "4")]:
        for name in names:
            older = snapshot(LEGACY, **({name: before} if before else {}))
            found = restored(older, snapshot(LEGACY, **{name: now})).configuration
            assert found == {f"delta.{name}": after}


ENABLED = {"enableInCommitTimestamps": "true"}
TIMED = listed("appendOnly", "invariants", "inCommitTimestamp")


def since(version: str) -> dict[str, str]:
    return {
        "inCommitTimestampEnablementVersion": version,
        "inCommitTimestampEnablementTimestamp": f"{version}000",
    }


@pytest.mark.parametrize(
    ("older", "current", "expected"),
    [
        ({**ENABLED, **since("3")}, {**ENABLED, **since("9")}, {**ENABLED, **since("9")}),
        ({**ENABLED, **since("3")}, ENABLED, ENABLED),
        ({**ENABLED, **since("3")}, {}, ENABLED),
        ({}, {**ENABLED, **since("3")}, {}),
    ],
)
def test_enablement_of_in_commit_timestamps_is_that_of_the_current_history(
    older: dict[str, str], current: dict[str, str], expected: dict[str, str]
) -> None:
    found = restored(snapshot(TIMED, **older), snapshot(TIMED, **current)).configuration
    assert found == {f"delta.{name}": value for name, value in expected.items()}


def build(**properties: Any) -> MemoryLog:
    """Version 0 has the file `old`; version 1 replaces it by `new`."""
    log = MemoryLog()
    planned = plan(log, schema_string=schema("p", "x"), **properties)
    commit(MemoryCommit(log, "WRITE", adds=[MemoryFile("old")], plan=planned), log)
    commit(MemoryCommit(log, "WRITE", adds=[MemoryFile("new")], removes=["old"]), log)
    return log


def run_restore(log: MemoryLog, version: str | int = "0") -> dict[str, Any]:
    arguments = {"table": log.table, "version": str(version)}
    return run_command("restore", arguments, log, RetryPolicy(), lambda: 7)


def test_result_has_the_operation_metrics() -> None:
    log = build()
    [row] = run_restore(log)["rows"]
    assert row["num_removed_files"] == row["num_restored_files"] == 1
    [info] = log.actions(2, "commitInfo")
    assert info["operation"] == "RESTORE"
    assert info["operationParameters"] == {"version": "0"}
    assert info["operationMetrics"]["numRestoredFiles"] == "1"
    assert [file.path for file in log.files()] == ["old"]


def test_timestamp_is_recorded_as_given() -> None:
    log = build()
    arguments = {"table": log.table, "timestamp": "1000"}
    run_command("restore", arguments, log, RetryPolicy(), lambda: 7)
    assert log.actions(2, "commitInfo")[0]["operationParameters"] == {"timestamp": "1000"}


@pytest.mark.parametrize("version", ["", "-1", "one", "1_0"])
def test_version_that_is_no_number_is_refused(version: str) -> None:
    with pytest.raises(InvalidArgumentError, match="whole number"):
        run_restore(build(), version)


def test_missing_table_is_refused() -> None:
    with pytest.raises(TableStateError):
        run_restore(MemoryLog())


def test_clustering_columns_are_those_of_the_older_version() -> None:
    log = build(cluster_by=[("p",)])
    run_command(
        "clusterBy", {"table": log.table, "columns": [["x"]]}, log, RetryPolicy(), lambda: 1
    )
    run_restore(log)
    assert log.actions(3, "domainMetadata") == log.actions(0, "domainMetadata")


def test_clustering_that_the_older_version_does_not_have_has_no_columns() -> None:
    log = build()
    run_command(
        "clusterBy", {"table": log.table, "columns": [["x"]]}, log, RetryPolicy(), lambda: 1
    )
    run_restore(log)
    domains = current_snapshot(log.table, log).domains
    assert domains == {"delta.clustering": '{"clusteringColumns":[]}'}


@pytest.mark.protocol("writer-clustered-table-6")
def test_version_with_partition_columns_does_not_support_clustering() -> None:
    log = build(partition_by=("p",))
    current = current_snapshot(log.table, log)
    clustered = listed("appendOnly", "invariants", "domainMetadata", "clustering")
    no_partitions = replace(current.metadata, partition_columns=())
    domain = DomainMetadata("delta.clustering", '{"clusteringColumns":[["x"]]}')
    log.write_if_absent(
        2,
        [
            log_line("protocol", clustered.to_json()),
            log_line("metaData", no_partitions.to_json()),
            log_line("domainMetadata", domain.to_json()),
        ],
    )
    run_restore(log)
    after = current_snapshot(log.table, log)
    assert after.metadata.partition_columns == ("p",) and not after.domains
    assert after.protocol == listed("appendOnly", "invariants", "domainMetadata")


@pytest.mark.protocol("writer-domain-metadata-1")
def test_domains_of_users_stay() -> None:
    log = build(properties={"delta.feature.domainMetadata": "supported"})
    log.write_if_absent(2, [log_line("domainMetadata", DomainMetadata("app", "x").to_json())])
    run_restore(log)
    assert current_snapshot(log.table, log).domains == {"app": "x"}


def high_water_mark(log: MemoryLog) -> int:
    mark = json.loads(current_snapshot(log.table, log).domains["delta.rowTracking"])
    return int(mark["rowIdHighWaterMark"])


@pytest.mark.protocol("writer-row-tracking-5", "writer-row-tracking-9")
def test_row_id_high_water_mark_is_not_lowered() -> None:
    log = build(properties={"delta.enableRowTracking": "true"})
    run_restore(log)
    assert high_water_mark(log) == 19
    assert [file.base_row_id for file in log.files()] == [0]


def test_rows_that_never_had_ids_get_new_ones() -> None:
    log = build()
    kept = current_snapshot(log.table, log)
    protocol = listed("appendOnly", "invariants", "domainMetadata", "rowTracking")
    log.write_if_absent(2, [log_line("protocol", protocol.to_json())])
    commit(MemoryCommit(log, "WRITE", adds=[MemoryFile("more")]), log)
    run_restore(log)
    assert kept.protocol != current_snapshot(log.table, log).protocol == protocol
    assert [(f.path, f.base_row_id) for f in log.files()] == [("old", 10)]
    assert high_water_mark(log) == 19


@pytest.mark.protocol("writer-row-tracking-9")
def test_high_water_mark_is_back_after_the_feature_was_dropped() -> None:
    log = build(properties={"delta.enableRowTracking": "true"})
    current = current_snapshot(log.table, log)
    properties = dict(current.metadata.configuration)
    del properties["delta.enableRowTracking"]
    mark = DomainMetadata("delta.rowTracking", current.domains["delta.rowTracking"], removed=True)
    log.write_if_absent(
        2,
        [
            log_line("protocol", listed("appendOnly", "invariants", "domainMetadata").to_json()),
            log_line("metaData", replace(current.metadata, configuration=properties).to_json()),
            log_line("domainMetadata", mark.to_json()),
        ],
    )
    run_restore(log, 1)
    assert high_water_mark(log) == 19


def test_feature_that_this_build_cannot_write_is_refused() -> None:
    log = build()
    unknown = listed("appendOnly", "invariants", "someday")
    older = log.commits_lines[0]
    log.commits_lines[0] = [
        log_line("protocol", unknown.to_json()) if '"protocol"' in line else line for line in older
    ]
    log.write_if_absent(2, [log_line("protocol", LEGACY.to_json())])
    with pytest.raises(ProtocolError, match="someday"):
        run_restore(log)
    assert log.version == 2
