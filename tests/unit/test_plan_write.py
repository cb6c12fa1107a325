"""What a write may do, decided before any data is written."""

from __future__ import annotations

import json
from typing import Any

import pytest

from deltaic.commands.plan_write import WriteRequest
from deltaic.exceptions import DeltaError, InvalidArgumentError, ProtocolError, TableStateError
from deltaic.protocol.actions import Metadata, Protocol
from tests.support.definitions import column, create, plan, schema, write
from tests.support.memory_log import MemoryFile, MemoryLog


def test_first_write_defines_the_table() -> None:
    planned = plan(MemoryLog(), partition_by=("P",), description="rows").to_json()
    assert planned["protocol"] == {"minReaderVersion": 1, "minWriterVersion": 2}
    metadata = planned["metaData"]
    assert metadata["partitionColumns"] == ["p"]
    assert metadata["description"] == "rows"
    assert metadata["createdTime"] == 5_000
    assert metadata["format"] == {"provider": "parquet", "options": {}}
    assert len(metadata["id"]) == 36
    assert planned["effectiveMetaData"] == metadata
    assert planned["isBlindAppend"] is True


def test_first_write_stores_its_properties_and_the_sessions_defaults() -> None:
    log = MemoryLog()
    log.defaults = {"delta.appendOnly": "true", "delta.checkpointInterval": "5"}
    planned = plan(log, properties={"delta.checkpointInterval": "7", "owner": "me"})
    assert planned.effective.metadata.configuration == {
        "delta.appendOnly": "true",
        "delta.checkpointInterval": "7",
        "owner": "me",
    }


def test_first_write_of_a_table_with_deletion_vectors() -> None:
    planned = plan(MemoryLog(), properties={"delta.enableDeletionVectors": "true"})
    assert planned.effective.protocol.reader_features == frozenset({"deletionVectors"})


def test_column_mapping_of_another_table_does_not_come_along() -> None:
    mapped = column("id", metadata={"delta.columnMapping.id": 1, "comment": "key"})
    planned = plan(MemoryLog(), schema_string=schema(mapped))
    assert "columnMapping" not in planned.effective.metadata.schema_string
    assert "comment" in planned.effective.metadata.schema_string


def test_text_of_limited_length_is_stored_as_a_string() -> None:
    planned = plan(MemoryLog(), schema_string=schema(column("v", "varchar(10)")))
    (stored,) = json.loads(planned.effective.metadata.schema_string)["fields"]
    assert stored["type"] == "string"
    assert stored["metadata"] == {"__CHAR_VARCHAR_TYPE_STRING": "varchar(10)"}


@pytest.mark.parametrize(
    ("changes", "condition"),
    [
        ({"schema_string": None}, "DELTAIC_SCHEMA_MISSING"),
        ({"schema_string": schema("a", "A")}, "DELTAIC_DUPLICATE_COLUMNS"),
        ({"partition_by": ("nowhere",)}, "DELTAIC_PARTITION_COLUMN_NOT_FOUND"),
        ({"partition_by": ("id", "p")}, "DELTAIC_NO_DATA_COLUMNS"),
        ({"properties": {"delta.nowhere": "1"}}, "DELTAIC_UNKNOWN_TABLE_PROPERTY"),
        (
            {"properties": {"delta.enableIcebergCompatV1": "true"}},
            "DELTAIC_UNSUPPORTED_FEATURE_REQUESTED",
        ),
        (
            {"properties": {"delta.enableInCommitTimestamps": "true"}},
            "DELTAIC_UNSUPPORTED_FEATURE_REQUESTED",
        ),
        (
            {"properties": {"delta.universalFormat.enabledFormats": "iceberg"}},
            "DELTAIC_UNSUPPORTED_TABLE_PROPERTY",
        ),
        (
            {"properties": {"delta.compatibility.symlinkFormatManifest.enabled": "true"}},
            "DELTAIC_UNSUPPORTED_TABLE_PROPERTY",
        ),
        ({"options": {"replacewhere": "p = 1"}}, "DELTAIC_UNSUPPORTED_OPTION"),
        ({"options": {"datachange": "false"}}, "DELTAIC_UNSUPPORTED_OPTION"),
        ({"options": {"txnappid": "a"}}, "DELTAIC_TRANSACTION_OPTIONS_INCOMPLETE"),
        ({"options": {"txnversion": "1"}}, "DELTAIC_TRANSACTION_OPTIONS_INCOMPLETE"),
        ({"options": {"txnappid": "a", "txnversion": "x"}}, "DELTAIC_INVALID_WRITE_OPTION"),
    ],
)
def test_first_write_that_cannot_be_is_refused(changes: dict[str, Any], condition: str) -> None:
    log = MemoryLog()
    with pytest.raises(DeltaError) as caught:
        plan(log, **changes)
    assert caught.value.condition == condition


def test_append_leaves_the_definition_alone_whatever_properties_it_names() -> None:
    log = create()
    planned = plan(log, properties={"delta.appendOnly": "true"}).to_json()
    assert planned["protocol"] is None and planned["metaData"] is None
    assert planned["effectiveMetaData"]["configuration"] == {}
    assert planned["isBlindAppend"] is True


@pytest.mark.parametrize("written", [schema("ID"), schema("p", "id"), None])
def test_append_of_columns_the_table_has(written: str | None) -> None:
    plan(create(), schema_string=written)


@pytest.mark.parametrize(
    ("mode", "options", "says"),
    [
        ("append", {}, "mergeSchema"),
        ("overwrite", {}, "overwriteSchema=true"),
        ("append", {"mergeschema": "true"}, "mergeSchema is not supported"),
    ],
)
def test_write_of_columns_the_table_lacks_is_refused(
    mode: str, options: dict[str, str], says: str
) -> None:
    with pytest.raises(InvalidArgumentError, match="new") as caught:
        plan(create(), mode, schema_string=schema("id", "new"), options=options)
    assert says in str(caught.value)


def test_merge_schema_without_new_columns_is_no_matter() -> None:
    plan(create(), options={"mergeschema": "true"})


def test_append_partitioned_otherwise_is_refused() -> None:
    with pytest.raises(InvalidArgumentError, match=r"partitioned by \[\].*asks for \[p\]"):
        plan(create(), partition_by=("p",))


def test_overwrite_keeps_the_definition() -> None:
    planned = plan(create(), "overwrite")
    assert not planned.changes_metadata and not planned.is_blind_append


def test_overwrite_of_columns_keeps_identity_and_properties() -> None:
    log = create(checkpointInterval="5")
    before = log.header(log.table)
    assert before is not None
    planned = plan(
        log,
        "overwrite",
        schema_string=schema("other", "p"),
        partition_by=("p",),
        options={"overwriteschema": "true"},
    )
    after = planned.effective.metadata
    assert planned.changes_metadata and planned.changes_columns and not planned.changes_protocol
    assert (after.id, after.configuration) == (before.metadata.id, before.metadata.configuration)
    assert after.partition_columns == ("p",)


def test_overwrite_of_columns_by_the_same_columns_changes_nothing() -> None:
    planned = plan(create(), "overwrite", options={"overwriteschema": "true"})
    assert not planned.changes_metadata and not planned.changes_columns


def test_overwrite_of_columns_adds_the_feature_they_need() -> None:
    planned = plan(
        create(),
        "overwrite",
        schema_string=schema(column("t", "timestamp_ntz")),
        options={"overwriteschema": "true"},
    )
    assert planned.changes_protocol
    assert planned.effective.protocol.reader_features == frozenset({"timestampNtz"})


def test_replaced_table_gets_the_statements_properties() -> None:
    log = create(checkpointInterval="5")
    before = log.header(log.table)
    assert before is not None
    planned = plan(
        log,
        "overwrite",
        operation="CREATE OR REPLACE TABLE AS SELECT",
        properties={"delta.enableDeletionVectors": "true"},
    )
    after = planned.effective
    assert after.metadata.id == before.metadata.id
    assert after.metadata.configuration == {"delta.enableDeletionVectors": "true"}
    assert planned.changes_protocol and planned.changes_metadata and not planned.changes_columns


@pytest.mark.parametrize("mode", ["overwrite", "delete", "update"])
def test_removal_from_an_append_only_table_is_refused(mode: str) -> None:
    with pytest.raises(TableStateError, match="append-only"):
        plan(create(appendOnly="true"), mode, operation=mode.upper())


@pytest.mark.parametrize("mode", ["append", "merge"])
def test_addition_to_an_append_only_table_is_planned(mode: str) -> None:
    plan(create(appendOnly="true"), mode)


def test_write_to_a_table_with_a_foreign_feature_is_refused_by_name() -> None:
    log = create()
    protocol = Protocol(1, 7, None, frozenset({"warpDrive"}))
    log.write_if_absent(1, ['{"protocol":' + json.dumps(protocol.to_json()) + "}"])
    with pytest.raises(ProtocolError, match="warpDrive"):
        plan(log)


def test_table_with_constraints_is_refused_by_name() -> None:
    log = create()
    header = log.header(log.table)
    assert header is not None
    metadata = Metadata(
        header.metadata.id,
        header.metadata.schema_string,
        configuration={"delta.enableIcebergCompatV1": "true"},
    )
    log.write_if_absent(
        1,
        [
            '{"protocol":{"minReaderVersion":1,"minWriterVersion":7,'
            '"writerFeatures":["icebergCompatV1"]}}',
            '{"metaData":' + json.dumps(metadata.to_json()) + "}",
        ],
    )
    with pytest.raises(ProtocolError, match="icebergCompatV1"):
        plan(log)


@pytest.mark.parametrize(("version", "skipped"), [("6", True), ("7", True), ("8", False)])
def test_write_that_was_made_already_is_skipped(version: str, skipped: bool) -> None:
    log = create()
    write(log, MemoryFile("f"), commit_options={"txnappid": "app", "txnversion": "7"})
    planned = plan(log, options={"txnappid": "app", "txnversion": version})
    assert planned.skipped is skipped
    assert planned.to_json()["skipped"] is skipped


def test_request_is_read_from_what_the_jvm_sends() -> None:
    request = WriteRequest.from_json(
        {
            "table": "file:/t",
            "operation": "WRITE",
            "operationParameters": {"mode": "Append"},
            "readVersion": -1,
            "mode": "append",
            "schema": schema("id"),
            "partitionBy": None,
            "properties": {},
            "description": None,
            "options": {"mergeschema": "TRUE"},
        }
    )
    assert request.partition_by == ()
    assert request.option_is_true("mergeschema")
    assert not request.replaces_columns
