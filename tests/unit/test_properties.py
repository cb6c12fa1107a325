"""Table properties: what may be set, and what it means."""

from __future__ import annotations

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from deltaic.exceptions import DeltaError, InvalidArgumentError
from deltaic.protocol.actions import Metadata
from deltaic.protocol.features import features_in_use
from deltaic.protocol.properties import (
    TableProperty,
    all_properties,
    check_properties,
    checked_number,
    find_property,
    interval_ms,
    is_true,
    property_value,
    recognized_defaults,
    require_no_writer_binding_properties,
)

#: From the project's parity checklist.
PARITY = {
    "logRetentionDuration": "interval 30 days",
    "checkpointRetentionDuration": "interval 2 days",
    "deletedFileRetentionDuration": "interval 1 week",
    "enableExpiredLogCleanup": "true",
    "checkpointInterval": "10",
    "checkpointPolicy": "classic",
    "checkpoint.writeStatsAsJson": "true",
    "checkpoint.writeStatsAsStruct": "true",
    "dataSkippingNumIndexedCols": "32",
    "dataSkippingStringPrefixLength": "32",
    "randomPrefixLength": "2",
    "enableDeletionVectors": "false",
    "enableChangeDataFeed": "false",
    "columnMapping.mode": "none",
}


@pytest.mark.parametrize(("name", "default"), PARITY.items())
def test_default_is_that_of_the_parity_checklist(name: str, default: str) -> None:
    known = find_property(f"delta.{name}")
    assert known is not None
    assert known.default == default


@pytest.mark.parametrize("known", all_properties(), ids=lambda p: p.name)
def test_default_is_a_valid_value(known: TableProperty) -> None:
    assert known.name.startswith(("delta.", "deltaic."))
    if known.default is not None:
        assert known.problem_with(known.default) is None


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("delta.appendOnly", "yes"),
        ("delta.checkpointInterval", "0"),
        ("delta.checkpointInterval", "ten"),
        ("delta.checkpointInterval", "99999999999"),
        ("delta.checkpointInterval", " 7"),
        ("delta.dataSkippingNumIndexedCols", "1_0"),
        ("delta.dataSkippingNumIndexedCols", "\u0663"),
        ("delta.enableChangeDataFeed", "true "),
        ("delta.dataSkippingNumIndexedCols", "-2"),
        ("delta.logRetentionDuration", "30"),
        ("delta.logRetentionDuration", "interval 1 month"),
        ("delta.isolationLevel", "SnapshotIsolation"),
        ("delta.columnMapping.mode", "both"),
        ("delta.minReaderVersion", "4"),
        ("delta.minWriterVersion", "8"),
        ("delta.minWriterVersion", "0"),
        ("delta.feature.deletionVectors", "no"),
        ("deltaic.deletionVectors.maxDeletedRowsRatio", "1.5"),
        ("deltaic.deletionVectors.maxDeletedRowsRatio", "nan"),
        ("deltaic.deletionVectors.maxDeletedRowsRatio", "0_1"),
        ("deltaic.deletionVectors.maxDeletedRowsRatio", "\u0660"),
    ],
)
def test_value_that_a_property_cannot_have_is_refused(name: str, value: str) -> None:
    with pytest.raises(InvalidArgumentError) as caught:
        check_properties("/t", {name: value})
    assert name in str(caught.value) and value in str(caught.value) and "/t" in str(caught.value)


#: What delta-spark 4.4.0 made of properties of a new table, each of them alone: those that it
#: stored, and those that it refused.
STORED_BY_DELTA_SPARK = {
    "autoOptimize": "true",
    "autoOptimize.autoCompact": "true",
    "autoOptimize.optimizeWrite": "true",
    "checkpointRetentionDuration": "interval 3 days",
    "sampleRetentionDuration": "interval 1 day",
    "enableFullRetentionRollback": "true",
    "dropFeatureTruncateHistory.retentionDuration": "interval 3 hours",
    "castIcebergTimeType": "false",
    "ignoreIcebergBucketPartition": "false",
    "parquet.format.version": "2.12.0",
    "requireCheckpointProtectionBeforeVersion": "3",
    "universalFormat.iceberg.atomicConversion.supported": "true",
    "writePartitionColumnsToParquet": "true",
    "universalFormat.enabledFormats": "",
    "enableIcebergCompatV3": "false",
    "universalformat.config.iceberg.x": "3",
    "randomizeFilePrefixes": "true",
    "dataSkippingStringPrefixLength": "0",
    "rowTrackingSuspended": "true",
}
REFUSED_BY_DELTA_SPARK = [
    ("targetFileSize", "1"),
    ("tuneFileSizesForRewrites", "true"),
    ("parquet.compression.codec", "zstd"),
    ("foo", "1"),
    ("lastUpdateVersion", "3"),
    ("parquet.format.version", "x"),
    ("parquet.format.version", "2.0"),
    ("parquet.format.version", ""),
    ("autoOptimize.autoCompact", "auto"),
    ("checkpointRetentionDuration", "x"),
    ("sampleRetentionDuration", "x"),
    ("enableFullRetentionRollback", "x"),
    ("dropFeatureTruncateHistory.retentionDuration", "x"),
    ("castIcebergTimeType", "x"),
    ("ignoreIcebergBucketPartition", "x"),
    ("requireCheckpointProtectionBeforeVersion", "-1"),
    ("requireCheckpointProtectionBeforeVersion", "x"),
    ("writePartitionColumnsToParquet", "x"),
    ("enableIcebergCompatV3", "x"),
    ("rowTracking.materializedRowIdColumnName", "x"),
    ("columnMapping.maxColumnId", "7"),
    ("dataSkippingStringPrefixLength", "-1"),
    ("isolationLevel", "SnapshotIsolation"),
    ("autoOptimize", "x"),
]


@pytest.mark.parametrize(("name", "value"), STORED_BY_DELTA_SPARK.items())
def test_property_that_delta_spark_stores_is_stored(name: str, value: str) -> None:
    given = {f"delta.{name}": value}
    assert check_properties("/t", given).configuration == given


@pytest.mark.parametrize(("name", "value"), REFUSED_BY_DELTA_SPARK)
def test_property_that_delta_spark_refuses_is_refused(name: str, value: str) -> None:
    with pytest.raises(InvalidArgumentError, match="delta." + re.escape(name)):
        check_properties("/t", {f"delta.{name}": value})


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("castIcebergTimeType", "true"),
        ("ignoreIcebergBucketPartition", "true"),
        ("universalFormat.enabledFormats", "iceberg"),
        ("redirectWriterOnly-preview", "{}"),
        ("coordinatedCommits.commitCoordinator-preview", "dynamodb"),
    ],
)
def test_property_that_promises_what_we_do_not_do_is_refused(name: str, value: str) -> None:
    with pytest.raises(InvalidArgumentError, match="delta." + re.escape(name)) as caught:
        check_properties("/t", {f"delta.{name}": value})
    assert caught.value.condition == "DELTAIC_UNSUPPORTED_TABLE_PROPERTY"
    known = find_property(f"delta.{name}")
    assert known is not None and known.instead and known.instead in str(caught.value)


@pytest.mark.parametrize("known", all_properties(), ids=lambda p: p.name)
def test_property_that_is_not_done_says_what_to_do(known: TableProperty) -> None:
    assert bool(known.instead) is not known.supported
    assert not (known.required_by_writers and known.supported)


def test_table_whose_property_binds_writers_is_refused_and_any_other_is_written() -> None:
    require_no_writer_binding_properties("/t", 3, {"delta.castIcebergTimeType": "true"})
    require_no_writer_binding_properties("/t", 3, {"delta.universalFormat.enabledFormats": ""})
    for name in ("universalFormat.enabledFormats", "coordinatedCommits.commitCoordinator-preview"):
        with pytest.raises(DeltaError, match=rf"delta\.{re.escape(name)} = x") as caught:
            require_no_writer_binding_properties("/t", 3, {f"delta.{name}": "x"})
        assert caught.value.condition == "DELTAIC_UNSUPPORTED_WRITER_PROPERTY"


def test_properties_that_nobody_knows_are_stored_where_the_session_allows_them() -> None:
    given = {"delta.targetFileSize": "1", "delta.Nonsense": "x"}
    assert check_properties("/t", given, any_name=True).configuration == given
    for known in ({"delta.appendOnly": "x"}, {"delta.columnMapping.maxColumnId": "1"}):
        with pytest.raises(InvalidArgumentError):
            check_properties("/t", known, any_name=True)


def test_default_of_a_session_that_names_no_property_is_passed_over() -> None:
    """As by delta-spark, which fails on values that a property cannot have."""
    defaults = {
        "delta.foo": "1",
        "delta.targetFileSize": "1",
        "delta.constraints.c": "id > 0",
        "delta.rowTracking.materializedRowIdColumnName": "x",
        "delta.appendOnly": "x",
        "delta.feature.deletionVectors": "supported",
        "delta.enableChangeDataCapture": "true",
    }
    assert recognized_defaults(defaults).keys() == {
        "delta.appendOnly",
        "delta.feature.deletionVectors",
        "delta.enableChangeDataCapture",
    }


def test_unknown_property_is_refused_with_a_suggestion() -> None:
    with pytest.raises(InvalidArgumentError, match=r"delta\.enableDeletionVectors"):
        check_properties("/t", {"delta.enableDeletionVector": "true"})


def test_property_of_the_user_is_stored_as_it_is() -> None:
    assert check_properties("/t", {"Owner": "me"}).configuration == {"Owner": "me"}


def test_name_is_stored_in_its_documented_spelling() -> None:
    checked = check_properties("/t", {"DELTA.appendonly": "True"})
    assert checked.configuration == {"delta.appendOnly": "True"}
    assert is_true(checked.configuration, "delta.appendOnly")


def test_older_spelling_is_stored_as_the_newer() -> None:
    checked = check_properties("/t", {"delta.enableChangeDataCapture": "true"})
    assert checked.configuration == {"delta.enableChangeDataFeed": "true"}


@pytest.mark.parametrize(
    ("older", "newer", "expected"),
    [
        ("true", None, True),
        ("true", "false", False),
        ("false", "true", True),
        ("false", None, False),
    ],
)
def test_older_spelling_that_a_table_has_applies_where_the_newer_is_unset(
    older: str, newer: str | None, expected: bool
) -> None:
    stored = {"delta.enableChangeDataCapture": older}
    if newer is not None:
        stored["delta.enableChangeDataFeed"] = newer
    assert is_true(stored, "delta.enableChangeDataFeed") is expected
    used = features_in_use(
        Metadata("id", '{"type":"struct","fields":[]}', configuration=stored), "t"
    )
    assert ("changeDataFeed" in used) is expected


@pytest.mark.protocol("writer-column-mapping-12")
@pytest.mark.parametrize("name", ["delta.columnMapping.maxColumnId", "delta.constraints.c"])
def test_property_that_is_not_the_users_is_refused(name: str) -> None:
    with pytest.raises(InvalidArgumentError, match=name):
        check_properties("/t", {name: "1"})


def test_what_is_asked_of_the_protocol_is_not_stored() -> None:
    checked = check_properties(
        "/t",
        {
            "delta.minReaderVersion": "1",
            "delta.minWriterVersion": "7",
            "delta.feature.deletionVectors": "supported",
            "delta.ignoreProtocolDefaults": "true",
        },
    )
    assert checked.configuration == {}
    assert checked.request.min_writer_version == 7
    assert checked.request.features == ("deletionVectors",)
    assert checked.request.ignore_defaults


def test_value_of_a_property_that_is_not_set_is_its_default() -> None:
    assert property_value({}, "delta.checkpointInterval") == "10"
    assert property_value({}, "delta.dataSkippingStatsColumns") == ""
    assert checked_number("/t", {}, "delta.dataSkippingNumIndexedCols") == 32
    assert checked_number("/t", {}, "delta.columnMapping.maxColumnId") == 0


def test_stored_number_that_is_empty_is_no_number() -> None:
    with pytest.raises(DeltaError) as caught:
        checked_number("/t", {"delta.checkpointInterval": ""}, "delta.checkpointInterval")
    assert caught.value.condition == "DELTAIC_INVALID_STORED_PROPERTY"


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("interval 30 days", 30 * 86_400_000),
        ("INTERVAL 1 week", 7 * 86_400_000),
        ("2 hours 30 minutes", 9_000_000),
        ("interval 1 day -2 hours", 79_200_000),
        ("interval 86400000000 microseconds", 86_400_000),
        ("1.5 seconds -500999 microseconds", 999),
        ("interval .5 second 1. SECONDS", 1_500),
        ("interval 1.5 days", None),
        ("interval -1 microsecond", None),
        ("interval -1 days", None),
        ("interval 1 year", None),
        (" \t interval\n1 day ", 86_400_000),
        ("interval 7625142226 weeks", 7_625_142_226 * 604_800_000),
        ("interval 7625142227 weeks", None),  # the JVM could not subtract it from a time
        ("interval \u0661 day", None),
        ("interval 1 \u017fecond", None),
        ("\u00a0interval 1 day", None),
        ("interval", None),
        ("", None),
    ],
)
def test_interval(text: str, expected: int | None) -> None:
    assert interval_ms(text) == expected


@given(st.integers(0, 10_000), st.sampled_from(["hour", "HOURS", "hours"]))
def test_interval_of_any_length(amount: int, unit: str) -> None:
    assert interval_ms(f"interval {amount} {unit}") == amount * 3_600_000


def test_what_another_table_has_is_taken_unless_it_is_a_promise_that_is_not_kept() -> None:
    theirs = {"delta.targetFileSize": "1", "delta.checkpointInterval": "often"}
    assert check_properties("/t", theirs, copied=theirs).configuration == theirs
    promise = {"delta.universalFormat.enabledFormats": "iceberg"}
    with pytest.raises(DeltaError) as caught:
        check_properties("/t", promise, copied=promise)
    assert caught.value.condition == "DELTAIC_UNSUPPORTED_TABLE_PROPERTY"
