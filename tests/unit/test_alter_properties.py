"""SET and UNSET TBLPROPERTIES, and column mapping, as commits without Spark."""

from __future__ import annotations

import json
from typing import Any

import pytest

from deltaic.commands.alter.table_properties import AlterProperties, alter_properties
from deltaic.commit.transaction import CommitResult, RetryPolicy
from deltaic.exceptions import DeltaError, InvalidArgumentError, ProtocolError, TableStateError
from deltaic.protocol.actions import Metadata
from deltaic.protocol.change_data import require_recorded_changes
from deltaic.protocol.columns.column_mapping import upgraded
from deltaic.protocol.columns.identity import with_high_water_marks
from tests.support.alterations import LIST
from tests.support.definitions import column, create, plan, schema, struct, write
from tests.support.memory_log import MemoryFile, MemoryLog

MODE = "delta.columnMapping.mode"


def alter(log: MemoryLog, given: dict[str, str], *unset: str) -> CommitResult:
    return alter_properties(AlterProperties(log.table, given, unset), log, RetryPolicy(), lambda: 1)


def configuration(log: MemoryLog, version: int) -> dict[str, str]:
    return dict(log.actions(version, "metaData")[0]["configuration"])


def fields(metadata: Metadata) -> list[dict[str, Any]]:
    return list(json.loads(metadata.schema_string)["fields"])


@pytest.mark.protocol("deletion-vectors-1", "deletion-vectors-2")
@pytest.mark.protocol("table-features-for-new-and-existing-tables-5")
@pytest.mark.protocol("table-features-for-new-and-existing-tables-6")
def test_feature_of_a_property_is_added_to_what_the_old_versions_imply() -> None:
    log = create()
    alter(log, {"delta.enableDeletionVectors": "true"})
    assert log.actions(1, "protocol") == [
        {
            "minReaderVersion": 3,
            "minWriterVersion": 7,
            "readerFeatures": ["deletionVectors"],
            "writerFeatures": ["appendOnly", "deletionVectors", "invariants"],
        }
    ]


@pytest.mark.protocol("table-features-for-new-and-existing-tables-5")
@pytest.mark.protocol("table-features-for-new-and-existing-tables-6")
def test_change_data_feed_of_a_legacy_table_lists_what_version_2_meant() -> None:
    log = create()
    alter(log, {"delta.enableChangeDataFeed": "true"})
    (protocol,) = log.actions(1, "protocol")
    assert protocol["writerFeatures"] == ["appendOnly", "changeDataFeed", "invariants"]
    assert protocol["minReaderVersion"] == 1


@pytest.mark.parametrize("named", ["enableChangeDataFeed", "enableChangeDataCapture"])
@pytest.mark.parametrize("stored", ["enableChangeDataFeed", "enableChangeDataCapture"])
def test_property_is_unset_by_either_of_its_names(named: str, stored: str) -> None:
    log = create()
    alter(log, {"delta.enableChangeDataFeed": "true"})
    (metadata,) = log.actions(1, "metaData")
    theirs = {**metadata, "configuration": {f"delta.{stored}": "true", "x": "y"}}
    assert log.write_if_absent(2, [json.dumps({"metaData": theirs})])
    alter(log, {}, f"delta.{named}")
    assert configuration(log, 3) == {"x": "y"}


@pytest.mark.parametrize(
    ("listed", "reason"),
    [
        ("nope", "no column nope"),
        ("id,`nope.x`", "no column `nope.x`"),
        ("`id", "backquotes"),
        ("a-b", "backquotes"),
        ("my col", "backquotes"),
        ("größe", "backquotes"),
        ("id,,s.x", "backquotes"),
        ("12", "backquotes"),
        ("s.nope", "no column s.nope"),
        ("id,p", "p is a partition column"),
        ("id,ID", "named twice"),
        ("s,S.x", "s.x is named twice"),
        ("b", "b is of type boolean"),
        ("arr", "arr is of type array<bigint>"),
    ],
)
def test_statistics_are_kept_of_columns_of_the_data_files_alone(listed: str, reason: str) -> None:
    property_name = "delta.dataSkippingStatsColumns"
    flag, numbers = column("b", "boolean"), {**LIST, "elementType": "long"}
    named = [column("s", struct("x", flag)), column("a-b"), column("my col"), column("größe")]
    named += [column("1st"), column("12")]
    columns = schema("id", "p", flag, column("arr", numbers), *named)
    log = MemoryLog()
    write(log, schema_string=columns, partition_by=["p"], properties={MODE: "name"})
    with pytest.raises(InvalidArgumentError, match=reason):
        alter(log, {property_name: listed})
    assert log.version == 0
    alter(log, {property_name: "ID, `s`.x,s.b,`a-b`,1st,`12`"})
    assert configuration(log, 1)[property_name] == "ID, `s`.x,s.b,`a-b`,1st,`12`"
    with pytest.raises(InvalidArgumentError, match=reason):
        plan(
            MemoryLog(),
            schema_string=columns,
            partition_by=["p"],
            properties={MODE: "name", property_name: listed},
        )


def test_commit_timestamp_is_when_it_was_written_and_not_when_its_command_began() -> None:
    log = create()
    now = 10

    def race(version: int) -> None:
        nonlocal now
        now = 20
        log.before_try = lambda _: None
        write(log, MemoryFile("meanwhile"))

    log.before_try = race
    asked = AlterProperties(log.table, {"delta.logRetentionDuration": "interval 20 days"})
    result = alter_properties(asked, log, RetryPolicy(), lambda: now)
    assert result.version == 2
    assert log.actions(2, "commitInfo")[0]["timestamp"] == 20


def test_nothing_new_makes_no_version() -> None:
    log = create(appendOnly="true")
    assert alter(log, {"delta.appendOnly": "true"}).skipped
    assert alter(log, {}, "delta.enableDeletionVectors").skipped
    assert log.version == 0


def test_property_outside_of_the_namespace_keeps_its_spelling() -> None:
    log = create()
    alter(log, {"My.Own": "1", "comment": "text"})
    assert configuration(log, 1) == {"My.Own": "1"}
    assert log.actions(1, "metaData")[0]["description"] == "text"


@pytest.mark.protocol("writer-column-mapping-12")
@pytest.mark.parametrize(
    ("given", "unset", "condition"),
    [
        ({"delta.constraints.c": "id > 0"}, (), "DELTAIC_CONSTRAINT_AS_PROPERTY"),
        ({"delta.appendOnly": "maybe"}, (), "DELTAIC_INVALID_TABLE_PROPERTY"),
        ({MODE: "id"}, (), "DELTAIC_COLUMN_MAPPING_CHANGE"),
        ({"delta.columnMapping.maxColumnId": "9"}, (), "DELTAIC_INTERNAL_TABLE_PROPERTY"),
        ({}, ("delta.constraints.c",), "DELTAIC_CANNOT_UNSET_PROPERTY"),
        ({}, ("DELTA.columnMapping.MODE",), "DELTAIC_CANNOT_UNSET_PROPERTY"),
        ({}, ("delta.rowTracking.materializedRowIdColumnName",), "DELTAIC_CANNOT_UNSET_PROPERTY"),
        ({}, ("delta.inCommitTimestampEnablementVersion",), "DELTAIC_CANNOT_UNSET_PROPERTY"),
    ],
)
def test_what_cannot_be_changed_is_refused(
    given: dict[str, str], unset: tuple[str, ...], condition: str
) -> None:
    log = create()
    with pytest.raises(InvalidArgumentError) as caught:
        alter(log, given, *unset)
    assert caught.value.condition == condition
    assert log.version == 0


def test_feature_that_this_build_cannot_write_is_refused() -> None:
    log = create(columnMapping_mode="name")
    with pytest.raises(ProtocolError, match="icebergWriterCompatV1"):
        alter(log, {"delta.enableIcebergWriterCompatV1": "true"})
    assert log.version == 0


@pytest.mark.protocol("writer-column-mapping-1", "writer-column-mapping-10")
def test_upgrade_names_columns_as_files_do() -> None:
    log = create()
    alter(log, {MODE: "name"})
    (metadata,) = log.actions(1, "metaData")
    mapped = [f["metadata"] for f in json.loads(metadata["schemaString"])["fields"]]
    assert mapped == [
        {"delta.columnMapping.id": 1, "delta.columnMapping.physicalName": "id"},
        {"delta.columnMapping.id": 2, "delta.columnMapping.physicalName": "p"},
    ]
    assert configuration(log, 1)["delta.columnMapping.maxColumnId"] == "2"
    (protocol,) = log.actions(1, "protocol")
    assert (protocol["minReaderVersion"], protocol["minWriterVersion"]) == (2, 7)


@pytest.mark.protocol("writer-column-mapping-13")
def test_ids_go_on_after_those_of_a_mapping_before_a_restore() -> None:
    """RESTORE to a version before the mapping keeps `maxColumnId`."""
    configuration = {MODE: "name", "delta.columnMapping.maxColumnId": "9"}
    metadata = Metadata("m", schema("id", "v"), configuration=configuration)
    mapped = upgraded("t", metadata, {"delta.columnMapping.maxColumnId": "9"})
    ids = [f["metadata"]["delta.columnMapping.id"] for f in fields(mapped)]
    assert ids == [10, 11]
    assert mapped.configuration["delta.columnMapping.maxColumnId"] == "11"


@pytest.mark.protocol("writer-column-mapping-10")
def test_new_mapped_table_numbers_fields_at_every_depth() -> None:
    nested = struct("x", column("m", {**_MAP, "valueType": struct("y")}))
    text = schema("id", column("s s", nested))
    planned = plan(MemoryLog(), schema_string=text, properties={MODE: "name"})
    metadata = planned.definition.metadata
    _, outer = fields(metadata)
    inner, mapped = outer["type"]["fields"]
    deepest = mapped["type"]["valueType"]["fields"][0]
    ids = [f["metadata"]["delta.columnMapping.id"] for f in (outer, inner, mapped, deepest)]
    assert ids == [2, 3, 4, 5]
    assert metadata.configuration["delta.columnMapping.maxColumnId"] == "5"


_MAP = {"type": "map", "keyType": "string", "valueContainsNull": True}


@pytest.mark.protocol("identity-columns-5")
@pytest.mark.parametrize(
    ("step", "before", "mark", "after"),
    [(1, None, 5, 5), (1, 7, 5, 7), (2, 7, 9, 9), (-1, -7, -5, -7), (-1, None, -5, -5)],
)
def test_high_water_mark_only_moves_on(
    step: int, before: int | None, mark: int, after: int
) -> None:
    identity = {"delta.identity.start": 1, "delta.identity.step": step}
    known = {} if before is None else {"delta.identity.highWaterMark": before}
    metadata = Metadata("m", schema(column("id", metadata={**identity, **known}), "v"))
    changed, other = fields(with_high_water_marks(metadata, {"id": mark, "v": 3}))
    assert changed["metadata"]["delta.identity.highWaterMark"] == after
    assert other["metadata"] == {}


@pytest.mark.protocol("writer-addcdcfile-2")
def test_changes_that_files_do_not_record_are_refused() -> None:
    metrics_of_merge = {"numUpdatedRows": 2, "numInsertedRows": 3, "numRecordedChanges": 7}
    require_recorded_changes("/t", 1, "DELETE", {"numDeletedRows": 5, "numCopiedRows": 0}, 0)
    require_recorded_changes("/t", 1, "MERGE", metrics_of_merge, 2)
    for metrics in ({"numUpdatedRows": 1}, {"numCopiedRows": 2}):
        with pytest.raises(TableStateError, match="DELTAIC_CHANGE_DATA_FILES_NEEDED"):
            require_recorded_changes("/t", 1, "MERGE", metrics, 0)
    with pytest.raises(DeltaError, match="DELTAIC_CHANGE_DATA_INCOMPLETE"):
        require_recorded_changes("/t", 1, "MERGE", {**metrics_of_merge, "numDeletedRows": 1}, 2)
