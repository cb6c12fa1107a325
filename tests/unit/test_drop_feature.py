"""DROP FEATURE as commits, without Spark; the protocols are those that delta-spark 4.4.0 leaves."""

from __future__ import annotations

from typing import Any

import pytest

from deltaic.commands.domain_metadata import set_domain_metadata
from deltaic.commands.registry import run_command
from deltaic.commit.transaction import RetryPolicy
from deltaic.exceptions import (
    ConcurrentTransactionException,
    DeltaError,
    InvalidArgumentError,
    MetadataChangedException,
)
from deltaic.protocol.features import supports
from tests.support.definitions import column, command_arguments, schema
from tests.support.memory_log import MemoryLog

PLAIN = {"minReaderVersion": 1, "minWriterVersion": 2}


def create(*features: str, **more: Any) -> MemoryLog:
    log = MemoryLog()
    properties = {f"delta.feature.{name}": "supported" for name in features}
    properties |= {f"delta.{k}": v for k, v in more.pop("properties", {}).items()}
    run(log, "createTable", schema=schema("id", "v"), properties=properties, **more)
    return log


def run(log: MemoryLog, command: str, **arguments: Any) -> None:
    run_command(
        command, command_arguments(log, command, **arguments), log, RetryPolicy(), lambda: 1
    )


def drop(log: MemoryLog, feature: str, **more: Any) -> None:
    run(log, "dropFeature", feature=feature, **more)


def refusal(log: MemoryLog, feature: str, **more: Any) -> str:
    before = log.version
    with pytest.raises(InvalidArgumentError) as caught:
        drop(log, feature, **more)
    assert log.version == before
    return f"{caught.value.condition}: {caught.value}"


def test_constraints_are_dropped_before_their_feature() -> None:
    log = create()
    run(log, "addConstraint", name="c", expression="id > 0")
    assert log.actions(1, "protocol") == [{"minReaderVersion": 1, "minWriterVersion": 3}]
    assert "the constraints c" in refusal(log, "checkConstraints")
    run(log, "dropConstraint", name="c")
    drop(log, "CHECKCONSTRAINTS")
    assert log.actions(3, "protocol") == [PLAIN]
    assert log.actions(3, "metaData") == []
    (info,) = log.actions(3, "commitInfo")
    assert info["operation"] == "DROP FEATURE"
    expected = {"featureName": "checkConstraints", "truncateHistory": "false"}
    assert info["operationParameters"] == expected
    assert "DELTAIC_FEATURE_NOT_PRESENT" in refusal(log, "checkConstraints")
    run(log, "addConstraint", name="c", expression="id > 0")
    assert log.actions(4, "protocol") == [{"minReaderVersion": 1, "minWriterVersion": 3}]


def test_what_else_the_protocol_asks_for_stays() -> None:
    log = create("deletionVectors", "checkConstraints", "changeDataFeed")
    drop(log, "checkConstraints")
    (protocol,) = log.actions(1, "protocol")
    assert (protocol["minReaderVersion"], protocol["minWriterVersion"]) == (3, 7)
    assert protocol["readerFeatures"] == ["deletionVectors"]
    assert set(protocol["writerFeatures"]) == {
        "appendOnly",
        "invariants",
        "changeDataFeed",
        "deletionVectors",
    }


def test_commits_have_no_in_commit_timestamp_from_the_drop_on() -> None:
    log = create(properties={"enableInCommitTimestamps": "true"})
    run(log, "alterProperties", set={"owner": "me"})
    drop(log, "inCommitTimestamp")
    assert log.actions(2, "protocol") == [PLAIN]
    (metadata,) = log.actions(2, "metaData")
    assert metadata["configuration"] == {"owner": "me"}
    assert ["inCommitTimestamp" in log.actions(v, "commitInfo")[0] for v in range(3)] == [
        True,
        True,
        False,
    ]


def test_domains_are_removed_with_their_feature() -> None:
    log = create("domainMetadata")
    set_domain_metadata(log.table, "app", "{}", log, RetryPolicy())
    drop(log, "domainMetadata")
    (removed,) = log.actions(2, "domainMetadata")
    assert removed == {"domain": "app", "configuration": "{}", "removed": True}
    assert log.actions(3, "protocol") == [PLAIN]
    assert log.version == 3


def test_partitions_are_no_longer_materialized() -> None:
    log = create(properties={"enableMaterializePartitionColumnsFeature": "true"})
    drop(log, "materializePartitionColumns")
    assert log.actions(1, "protocol") == [PLAIN]
    assert log.actions(1, "metaData")[0]["configuration"] == {}


def test_check_of_vacuum_leaves_no_traces_although_readers_need_it() -> None:
    log = create("vacuumProtocolCheck")
    drop(log, "vacuumProtocolCheck")
    assert log.actions(1, "protocol") == [PLAIN]


@pytest.mark.parametrize(
    ("features", "arguments", "says"),
    [
        ((), {"feature": "nowhere"}, "DELTAIC_UNKNOWN_FEATURE"),
        ((), {"feature": "deletionVectors"}, "DELTAIC_FEATURE_NOT_PRESENT"),
        ((), {"feature": "appendOnly"}, "those that can be dropped"),
        (("rowTracking",), {"feature": "domainMetadata"}, "rowTracking requires it"),
        (("icebergCompatV2",), {"feature": "columnMapping"}, "icebergCompatV2 requires it"),
        (
            ("checkConstraints",),
            {"feature": "checkConstraints", "truncateHistory": True},
            "Leave out TRUNCATE HISTORY",
        ),
    ],
)
def test_feature_that_stays_says_why(
    features: tuple[str, ...], arguments: dict[str, Any], says: str
) -> None:
    assert says in refusal(create(*features), **arguments)


@pytest.mark.parametrize(
    ("feature", "theirs", "conflict"),
    [
        (
            "checkConstraints",
            lambda log: run(log, "addConstraint", name="c", expression="id > 0"),
            MetadataChangedException,
        ),
        (
            "domainMetadata",
            lambda log: set_domain_metadata(log.table, "app", "{}", log, RetryPolicy()),
            ConcurrentTransactionException,
        ),
    ],
)
def test_use_that_another_commit_begins_keeps_the_feature(
    feature: str, theirs: Any, conflict: type[DeltaError]
) -> None:
    log = create("checkConstraints", "domainMetadata")

    def win(version: int) -> None:
        log.before_try = lambda _: None
        theirs(log)

    log.before_try = win
    with pytest.raises(conflict):
        drop(log, feature)
    snapshot = log.snapshot(log.table)
    assert snapshot is not None and supports(snapshot.protocol, feature)
    log.before_try = lambda _: None


def test_columns_keep_their_features() -> None:
    log = create()
    generated = column("g", metadata={"delta.generationExpression": "id + 1"})
    run(log, "addColumns", columns=[{"parent": [], "specified": generated}])
    assert "DELTAIC_CANNOT_DROP_FEATURE" in refusal(log, "generatedColumns")
