"""What a write may do, decided before any data is written."""

from __future__ import annotations

import json
from typing import Any

import pytest

from deltaic.commands.alter.table_properties import AlterProperties, alter_properties
from deltaic.commands.alter.upgrade_protocol import UpgradeProtocol, upgrade_protocol
from deltaic.commands.plan_write import WriteRequest
from deltaic.commit.operations import Operation
from deltaic.commit.plan import CommitPlan
from deltaic.commit.transaction import RetryPolicy, commit
from deltaic.exceptions import DeltaError, InvalidArgumentError, ProtocolError, TableStateError
from deltaic.protocol.actions import Metadata, Protocol, log_line
from tests.support.definitions import column, create, plan, schema, write
from tests.support.memory_log import MemoryCommit, MemoryFile, MemoryLog


def test_first_write_defines_the_table() -> None:
    planned = plan(MemoryLog(), partition_by=("P",), description="rows")
    assert planned.protocol == Protocol(1, 2)
    metadata = planned.metadata
    assert metadata is not None
    assert metadata.partition_columns == ("p",)
    assert metadata.description == "rows"
    assert metadata.created_time_ms == 5_000
    assert (metadata.format_provider, metadata.format_options) == ("parquet", {})
    assert len(metadata.id) == 36
    assert planned.definition.metadata == metadata
    assert planned.is_blind_append is True


def test_first_write_stores_its_properties_and_the_sessions_defaults() -> None:
    log = MemoryLog()
    log.defaults = {"delta.appendOnly": "true", "delta.checkpointInterval": "5"}
    planned = plan(log, properties={"delta.checkpointInterval": "7", "owner": "me"})
    assert planned.definition.metadata.configuration == {
        "delta.appendOnly": "true",
        "delta.checkpointInterval": "7",
        "owner": "me",
    }


REPLACES = {"operation": Operation.CREATE_OR_REPLACE_TABLE, "options": {"overwriteschema": "true"}}


def test_replaced_table_gets_the_sessions_defaults_as_a_new_one_does() -> None:
    log = create(appendOnly="false")
    log.defaults = {
        "delta.checkpointInterval": "5",
        "delta.enableChangeDataFeed": "true",
        "delta.columnMapping.mode": "name",
        "delta.minWriterVersion": "6",
        "delta.feature.domainMetadata": "supported",
        "delta.fromAnotherEngine": "1",
    }
    planned = plan(log, "overwrite", properties={"delta.checkpointInterval": "7"}, **REPLACES)
    configuration = dict(planned.definition.metadata.configuration)
    assert configuration.pop("delta.columnMapping.maxColumnId") == "2"
    assert configuration == {
        "delta.checkpointInterval": "7",
        "delta.enableChangeDataFeed": "true",
        "delta.columnMapping.mode": "name",
    }
    assert "physicalName" in planned.definition.metadata.schema_string
    features = {"changeDataFeed", "columnMapping", "domainMetadata", "identityColumns"}
    assert features <= (planned.definition.protocol.writer_features or set())


def test_overwritten_schema_leaves_the_properties_as_they_are_whatever_the_defaults() -> None:
    log = create(checkpointInterval="7")
    log.defaults = {"delta.enableChangeDataFeed": "true"}
    planned = plan(
        log, "overwrite", schema_string=schema("n", "p"), options={"overwriteschema": "true"}
    )
    assert planned.definition.metadata.configuration == {"delta.checkpointInterval": "7"}


def test_defaults_that_name_nothing_do_not_fail_a_create_and_any_property_may_be_allowed() -> None:
    log = MemoryLog()
    log.defaults = {"delta.fromAnotherEngine": "1", "delta.checkpointInterval": "5"}
    assert plan(log).definition.metadata.configuration == {"delta.checkpointInterval": "5"}
    given = {"delta.targetFileSize": "1"}
    with pytest.raises(InvalidArgumentError, match="targetFileSize"):
        plan(log, properties=given)
    log.any_properties = True
    assert plan(log, properties=given).definition.metadata.configuration == {
        "delta.checkpointInterval": "5",
        "delta.targetFileSize": "1",
    }


def test_first_write_of_a_table_with_deletion_vectors() -> None:
    planned = plan(MemoryLog(), properties={"delta.enableDeletionVectors": "true"})
    assert planned.definition.protocol.reader_features == frozenset({"deletionVectors"})


def test_column_mapping_of_another_table_is_not_copied() -> None:
    mapped = column("id", metadata={"delta.columnMapping.id": 1, "comment": "key"})
    planned = plan(MemoryLog(), schema_string=schema(mapped))
    assert "columnMapping" not in planned.definition.metadata.schema_string
    assert "comment" in planned.definition.metadata.schema_string


def test_char_and_varchar_are_stored_as_strings() -> None:
    planned = plan(MemoryLog(), schema_string=schema(column("v", "varchar(10)")))
    (stored,) = json.loads(planned.definition.metadata.schema_string)["fields"]
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
            {"properties": {"delta.enableIcebergWriterCompatV1": "true"}},
            "DELTAIC_UNSUPPORTED_FEATURE_REQUESTED",
        ),
        (
            {"properties": {"delta.universalFormat.enabledFormats": "iceberg"}},
            "DELTAIC_UNSUPPORTED_TABLE_PROPERTY",
        ),
        (
            {
                "properties": {
                    "delta.compatibility.symlinkFormatManifest.enabled": "true",
                    "delta.enableDeletionVectors": "true",
                }
            },
            "DELTAIC_INCOMPATIBLE_PROPERTIES",
        ),
        (
            {
                "properties": {
                    "delta.compatibility.symlinkFormatManifest.enabled": "true",
                    "delta.columnMapping.mode": "name",
                }
            },
            "DELTAIC_INCOMPATIBLE_PROPERTIES",
        ),
        ({"options": {"replacewhere": "p = 1"}}, "DELTAIC_REPLACE_WHERE_REFUSED"),
        ({"options": {"replaceusing": "p"}}, "DELTAIC_REPLACE_WHERE_REFUSED"),
        ({"options": {"datachange": "perhaps"}}, "DELTAIC_INVALID_WRITE_OPTION"),
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
    planned = plan(log, properties={"delta.appendOnly": "true"})
    assert planned.protocol is None and planned.metadata is None
    assert planned.definition.metadata.configuration == {}
    assert planned.is_blind_append is True


@pytest.mark.parametrize("written", [schema("ID"), schema("p", "id"), None])
def test_append_of_columns_the_table_has(written: str | None) -> None:
    plan(create(), schema_string=written)


@pytest.mark.parametrize("mode", ["append", "overwrite"])
def test_write_of_columns_the_table_lacks_is_refused(mode: str) -> None:
    with pytest.raises(InvalidArgumentError, match="new") as caught:
        plan(create(), mode, schema_string=schema("id", "new"))
    assert "mergeSchema=true" in str(caught.value) and "overwriteSchema=true" in str(caught.value)


def test_replacement_of_some_rows_goes_with_no_other_kind() -> None:
    options = {"replacewhere": "p = 1", "partitionoverwritemode": "DYNAMIC"}
    with pytest.raises(InvalidArgumentError, match="p = 1"):
        plan(create(), "overwrite", options=options)
    plan(create(), "overwrite", options={"replacewhere": "p = 1", "overwriteschema": "true"})
    with pytest.raises(InvalidArgumentError, match="new"):
        plan(
            create(),
            "overwrite",
            schema_string=schema("id", "new"),
            options={"replacewhere": "p = 1", "overwriteschema": "true"},
        )


def test_rows_of_an_append_only_table_may_be_compacted() -> None:
    planned = plan(create(appendOnly="true"), "overwrite", options={"datachange": "false"})
    assert not planned.changes_data
    assert plan(create(), "overwrite").changes_data


def test_save_over_a_table_keeps_its_definition_whatever_the_history_calls_it() -> None:
    log = create(checkpointInterval="5")
    operation = Operation.CREATE_OR_REPLACE_TABLE_AS_SELECT
    planned = plan(log, "overwrite", operation=operation, keeps_definition=True)
    assert not planned.changes_metadata
    with pytest.raises(InvalidArgumentError, match="new"):
        plan(
            log,
            "overwrite",
            operation=operation,
            keeps_definition=True,
            schema_string=schema("id", "new"),
        )


def test_merge_schema_without_new_columns_has_no_effect() -> None:
    plan(create(), options={"mergeschema": "true"})


def test_append_partitioned_otherwise_is_refused() -> None:
    with pytest.raises(InvalidArgumentError, match=r"partitioned by \[\].*specifies \[p\]"):
        plan(create(), partition_by=("p",))


def test_overwrite_keeps_the_definition() -> None:
    planned = plan(create(), "overwrite")
    assert not planned.changes_metadata and not planned.is_blind_append


def test_overwrite_of_columns_keeps_identity_and_properties() -> None:
    log = create(checkpointInterval="5")
    before = log.snapshot(log.table)
    assert before is not None
    planned = plan(
        log,
        "overwrite",
        schema_string=schema("other", "p"),
        partition_by=("p",),
        options={"overwriteschema": "true"},
    )
    after = planned.definition.metadata
    assert planned.changes_metadata and planned.changes_columns and not planned.changes_protocol
    assert (after.id, after.configuration) == (before.metadata.id, before.metadata.configuration)
    assert after.partition_columns == ("p",)


def test_overwrite_of_columns_lists_none_for_statistics_that_cannot_have_them() -> None:
    listed = "delta.dataSkippingStatsColumns"
    log = MemoryLog()
    write(log, schema_string=schema("id", "p", "b", "gone"), properties={listed: "gone,b,ID,p"})
    planned = plan(
        log,
        "overwrite",
        schema_string=schema("id", "p", column("b", "boolean")),
        partition_by=("p",),
        options={"overwriteschema": "true"},
    )
    assert planned.definition.metadata.configuration == {listed: "ID"}


def test_overwrite_of_columns_that_specifies_none_keeps_those_of_the_table() -> None:
    options = {"overwriteschema": "true"}
    planned = plan(create(), "overwrite", schema_string=None, options=options)
    assert not planned.changes_metadata and not planned.changes_columns


def test_overwrite_of_columns_by_the_same_columns_changes_nothing() -> None:
    planned = plan(create(), "overwrite", options={"overwriteschema": "true"})
    assert not planned.changes_metadata and not planned.changes_columns


@pytest.mark.protocol("primitive-types-4", "timestamp-without-timezone-timestampntz-2")
def test_overwrite_of_columns_adds_the_feature_they_need() -> None:
    planned = plan(
        create(),
        "overwrite",
        schema_string=schema(column("t", "timestamp_ntz")),
        options={"overwriteschema": "true"},
    )
    assert planned.changes_protocol
    assert planned.definition.protocol.reader_features == frozenset({"timestampNtz"})


def test_replaced_table_gets_the_statements_properties() -> None:
    log = create(checkpointInterval="5")
    before = log.snapshot(log.table)
    assert before is not None
    planned = plan(
        log,
        "overwrite",
        operation=Operation.CREATE_OR_REPLACE_TABLE_AS_SELECT,
        properties={"delta.enableDeletionVectors": "true"},
    )
    after = planned.definition
    assert after.metadata.id != before.metadata.id, "a stream must not go on into it"
    assert after.metadata.configuration == {"delta.enableDeletionVectors": "true"}
    assert planned.changes_protocol and planned.changes_metadata and not planned.changes_columns


def replace_table(log: MemoryLog, **properties: str) -> CommitPlan:
    named = {f"delta.{name}": value for name, value in properties.items()}
    return plan(log, "overwrite", operation=Operation.REPLACE_TABLE_AS_SELECT, properties=named)


def test_in_commit_timestamps_are_enabled_by_the_commit_that_replaces_a_table_with_them() -> None:
    planned = replace_table(create(), enableInCommitTimestamps="true")
    assert planned.enables_in_commit_timestamps
    features = frozenset({"appendOnly", "invariants", "inCommitTimestamp"})
    assert planned.definition.protocol == Protocol(1, 7, None, features)


def test_replacement_keeps_the_enablement_version_and_timestamp() -> None:
    log = create()
    write_replacement(log, enableInCommitTimestamps="true")
    before = configuration(log)
    planned = replace_table(log, enableInCommitTimestamps="true")
    assert not planned.enables_in_commit_timestamps
    assert planned.definition.metadata.configuration == before
    assert replace_table(log).definition.metadata.configuration == {}


@pytest.mark.protocol("row-tracking-2", "row-tracking-3", "writer-row-tracking-14")
def test_columns_of_row_tracking_are_named_when_it_is_enabled_and_keep_their_names() -> None:
    log = create(enableRowTracking="true")
    names = {k: v for k, v in configuration(log).items() if "materialized" in k}
    assert {
        k.removeprefix("delta.rowTracking.materialized"): v[:-36] for k, v in names.items()
    } == {
        "RowIdColumnName": "_row-id-col-",
        "RowCommitVersionColumnName": "_row-commit-version-col-",
    }
    planned = replace_table(log, enableRowTracking="true")
    assert planned.definition.metadata.configuration == configuration(log)
    assert plan(log, "overwrite").definition.metadata.configuration == configuration(log)
    features = planned.definition.protocol.writer_features
    assert features is not None and {"rowTracking", "domainMetadata"} <= features


def write_replacement(log: MemoryLog, **properties: str) -> None:
    commit(MemoryCommit(log, "WRITE", plan=replace_table(log, **properties)), log)


def configuration(log: MemoryLog) -> dict[str, str]:
    snapshot = log.snapshot(log.table)
    assert snapshot is not None
    return dict(snapshot.metadata.configuration)


@pytest.mark.protocol("append-only-tables-3", "supported-features-5")
@pytest.mark.parametrize("mode", ["overwrite", "delete", "update"])
def test_removal_from_an_append_only_table_is_refused(mode: str) -> None:
    with pytest.raises(TableStateError, match="append-only"):
        plan(create(appendOnly="true"), mode)


@pytest.mark.protocol("append-only-tables-1", "append-only-tables-2", "supported-features-5")
def test_property_alone_binds_no_writer() -> None:
    """A protocol that lists its features, and not this one, does not know it."""
    log = create(MemoryFile("one"), appendOnly="true", enableInCommitTimestamps="true")
    for protocol, binds in (
        (Protocol(1, 7, None, frozenset({"invariants"})), False),
        (Protocol(1, 1), False),
        (Protocol(1, 2), True),
        (Protocol(1, 7, None, frozenset({"appendOnly"})), True),
    ):
        log.write_if_absent(log.version + 1, [log_line("protocol", protocol.to_json())])
        if binds:
            with pytest.raises(TableStateError, match="append-only"):
                plan(log, "delete")
            continue
        planned = plan(log, "overwrite")
        removed = [file.path for file in log.files()]
        added = [MemoryFile(f"new-{log.version}")]
        ours = MemoryCommit(log, "WRITE", plan=planned, adds=added, removes=removed)
        commit(ours, log)
        assert "inCommitTimestamp" not in log.actions(log.version, "commitInfo")[0]


def test_timestamps_begin_when_the_protocol_knows_them() -> None:
    log = create(enableInCommitTimestamps="true")
    without = Protocol(1, 7, None, frozenset({"invariants"}))
    log.write_if_absent(1, [log_line("protocol", without.to_json())])
    arguments = UpgradeProtocol(log.table, features=("inCommitTimestamp",))
    upgrade_protocol(arguments, log, RetryPolicy(), lambda: 7_000)
    assert log.actions(2, "commitInfo")[0]["inCommitTimestamp"] == 7_000
    assert configuration(log) == {
        "delta.enableInCommitTimestamps": "true",
        "delta.inCommitTimestampEnablementVersion": "2",
        "delta.inCommitTimestampEnablementTimestamp": "7000",
    }


@pytest.mark.parametrize("mode", ["append", "merge"])
def test_addition_to_an_append_only_table_is_planned(mode: str) -> None:
    plan(create(appendOnly="true"), mode)


@pytest.mark.protocol("supported-features-1", "table-features-6")
def test_write_to_a_table_with_a_foreign_feature_is_refused_by_name() -> None:
    log = create()
    protocol = Protocol(1, 7, None, frozenset({"warpDrive"}))
    log.write_if_absent(1, ['{"protocol":' + json.dumps(protocol.to_json()) + "}"])
    with pytest.raises(ProtocolError, match="warpDrive"):
        plan(log)


def test_table_with_a_feature_that_is_not_written_is_refused_by_name() -> None:
    log = create()
    snapshot = log.snapshot(log.table)
    assert snapshot is not None
    metadata = Metadata(
        snapshot.metadata.id,
        snapshot.metadata.schema_string,
        configuration={"delta.enableIcebergWriterCompatV1": "true"},
    )
    log.write_if_absent(
        1,
        [
            '{"protocol":{"minReaderVersion":1,"minWriterVersion":7,'
            '"writerFeatures":["icebergWriterCompatV1"]}}',
            '{"metaData":' + json.dumps(metadata.to_json()) + "}",
        ],
    )
    with pytest.raises(ProtocolError, match="icebergWriterCompatV1"):
        plan(log)


@pytest.mark.parametrize(("version", "skipped"), [("6", True), ("7", True), ("8", False)])
def test_write_that_was_made_already_is_skipped(version: str, skipped: bool) -> None:
    log = create()
    write(log, MemoryFile("f"), commit_options={"txnappid": "app", "txnversion": "7"})
    planned = plan(log, options={"txnappid": "app", "txnversion": version})
    assert planned.already_committed is skipped


def test_request_is_read_from_what_the_jvm_sends() -> None:
    request = WriteRequest.from_json(
        {
            "table": "file:/t",
            "operation": {
                "name": "WRITE",
                "parameters": {"mode": "Append"},
                "options": {"mergeschema": "TRUE"},
            },
            "readVersion": -1,
            "mode": "append",
            "definition": {
                "schema": schema("id"),
                "partitionBy": [],
                "properties": {},
                "description": None,
            },
        }
    )
    assert request.definition.partition_by == ()
    assert request.option_is_true("mergeschema")
    assert not request.replaces_columns


@pytest.mark.protocol("append-only-tables-4")
@pytest.mark.parametrize("operation", [Operation.REPLACE_TABLE_AS_SELECT, Operation.WRITE])
def test_replacement_that_makes_a_table_append_only_may_remove_what_was_there(
    operation: Operation,
) -> None:
    log = create(MemoryFile("old"))
    append_only = {"delta.appendOnly": "true"}

    def replaced(path: str, **request: Any) -> MemoryCommit:
        planned = plan(log, "overwrite", operation=operation, **request)
        assert CommitPlan.from_json(planned.to_json()) == planned
        there = [file.path for file in log.files()]
        return MemoryCommit(
            log, operation.value, adds=[MemoryFile(path)], removes=there, plan=planned
        )

    if operation is Operation.WRITE:
        commit(replaced("new"), log)
        alter_properties(AlterProperties(log.table, append_only), log, RetryPolicy(), lambda: 1)
    else:
        commit(replaced("new", properties=append_only), log)
    assert [file.path for file in log.files()] == ["new"]
    # From then on, whatever the statement itself says.
    for properties in ({}, append_only, {"delta.appendOnly": "false"}):
        with pytest.raises(DeltaError, match="DELTAIC_APPEND_ONLY"):
            replaced("newer", properties=properties)
    evolving = plan(log, schema_string=None, evolved_schema_string=schema("id", "p", "more"))
    assert evolving.changes_metadata and evolving.forbids_removal
    with pytest.raises(DeltaError, match="DELTAIC_APPEND_ONLY"):
        commit(MemoryCommit(log, "MERGE", removes=["new"], plan=evolving), log)
