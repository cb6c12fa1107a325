"""CLUSTER BY as commits, without Spark (Protocol § Clustered Table)."""

from __future__ import annotations

import json
from typing import Any

import pytest

from deltaic.commands.alter.upgrade_protocol import UpgradeProtocol, upgrade_protocol
from deltaic.commands.detail import detail
from deltaic.commands.registry import run_command
from deltaic.commit.operations import Operation
from deltaic.commit.transaction import RetryPolicy
from deltaic.exceptions import DeltaError
from deltaic.protocol.actions import Metadata, Protocol
from deltaic.protocol.columns.clustering import clustering_columns
from tests.support.definitions import column, command_arguments, plan, schema, struct
from tests.support.memory_log import MemoryLog

COLUMNS = schema("id", column("s", struct("x", column("t", "string"))), column("b", "boolean"), "p")

MAPPED, CLUSTERED = frozenset({"columnMapping"}), frozenset({"clustering", "domainMetadata"})


def create(**more: Any) -> MemoryLog:
    log = MemoryLog()
    run(log, "createTable", **{"schema": COLUMNS, "partitionBy": [], "properties": {}, **more})
    return log


def run(log: MemoryLog, command: str, **arguments: Any) -> None:
    run_command(
        command, command_arguments(log, command, **arguments), log, RetryPolicy(), lambda: 1
    )


def clustered_by(log: MemoryLog) -> Any:
    (domain,) = log.actions(log.version, "domainMetadata")
    assert domain["domain"] == "delta.clustering" and not domain["removed"]
    return json.loads(domain["configuration"])["clusteringColumns"]


def refusal(log: MemoryLog, command: str, **arguments: Any) -> str:
    with pytest.raises(DeltaError) as caught:
        run(log, command, **arguments)
    return f"{caught.value.condition}: {caught.value}"


@pytest.mark.protocol("clustered-table-1", "clustered-table-2", "domain-metadata-4")
@pytest.mark.protocol("domain-metadata-5", "writer-clustered-table-1", "writer-domain-metadata-4")
def test_new_table_lists_its_columns_and_both_features() -> None:
    log = create(clusterBy=[["ID"], ["s", "t"]])
    assert clustered_by(log) == [["id"], ["s", "t"]]
    (protocol,) = log.actions(0, "protocol")
    assert protocol["minWriterVersion"] == 7
    assert {"clustering", "domainMetadata"} < set(protocol["writerFeatures"])
    (info,) = log.actions(0, "commitInfo")
    assert info["operationParameters"]["clusterBy"] == '["ID","s.t"]'


@pytest.mark.protocol("writer-clustered-table-2")
def test_columns_go_by_their_physical_names_and_follow_a_rename() -> None:
    log = create(clusterBy=[["s", "x"]], properties={"delta.columnMapping.mode": "name"})
    (metadata,) = log.actions(0, "metaData")
    outer = json.loads(metadata["schemaString"])["fields"][1]
    names = [
        f["metadata"]["delta.columnMapping.physicalName"]
        for f in (outer, outer["type"]["fields"][0])
    ]
    assert clustered_by(log) == [names]
    run(log, "renameColumn", column=["s"], name="renamed")
    assert "DELTAIC_CANNOT_ALTER_COLUMN" in refusal(log, "dropColumns", columns=[["renamed"]])
    run(log, "clusterBy", columns=[["id"]])
    (info,) = log.actions(log.version, "commitInfo")
    assert info["operationParameters"] == {
        "oldClusteringColumns": "renamed.x",
        "newClusteringColumns": "id",
    }
    run(log, "dropColumns", columns=[["renamed"]])


@pytest.mark.parametrize(
    ("path", "shown"), [(["a.b"], "`a.b`"), (["a", "b"], "a.b"), (["my col"], "`my col`")]
)
def test_detail_names_columns_as_sql_reads_them(path: list[str], shown: str) -> None:
    columns = schema("a.b", column("a", struct("b")), "my col")
    mapped = {"delta.columnMapping.mode": "name"}
    log = create(schema=columns, properties=mapped, clusterBy=[path])
    (row,) = detail(log.table, log).rows
    assert row["clusteringColumns"] == [shown]


@pytest.mark.protocol("clustered-table-2", "writer-clustered-table-1")
def test_columns_are_set_changed_and_taken_back() -> None:
    log = create()
    run(log, "clusterBy", columns=[])
    assert log.version == 0
    run(log, "clusterBy", columns=[["id"]])
    assert clustered_by(log) == [["id"]]
    (protocol,) = log.actions(1, "protocol")
    assert protocol["writerFeatures"] == [
        "appendOnly",
        "clustering",
        "domainMetadata",
        "invariants",
    ]
    run(log, "clusterBy", columns=[])
    assert clustered_by(log) == [] and not log.actions(2, "protocol")


@pytest.mark.parametrize(
    ("columns", "reason"),
    [
        ([["nowhere"]], "no column nowhere"),
        ([["s", "y"]], "no column s.y"),
        ([["b"]], "type boolean"),
        ([["s"]], "type struct"),
        ([["id"], ["ID"]], "named twice"),
        ([["id"], ["p"], ["s", "x"], ["s", "t"], ["b"]], "more than 4"),
    ],
)
def test_columns_without_bounds_are_refused(columns: list[list[str]], reason: str) -> None:
    log = create()
    refused = refusal(log, "clusterBy", columns=columns)
    assert "DELTAIC_CLUSTERING_INVALID" in refused and reason in refused
    assert log.version == 0


@pytest.mark.parametrize(
    ("properties", "path"),
    [
        ({"delta.dataSkippingNumIndexedCols": "2"}, ["s", "t"]),
        ({"delta.dataSkippingStatsColumns": "id,`s`.x"}, ["s", "t"]),
    ],
)
def test_columns_without_statistics_are_refused(
    properties: dict[str, str], path: list[str]
) -> None:
    log = create(properties=properties)
    assert "no statistics" in refusal(log, "clusterBy", columns=[path])
    run(log, "clusterBy", columns=[["s", "x"]])


@pytest.mark.protocol("clustered-table-2", "writer-clustered-table-6")
def test_clustered_and_partitioned_exclude_each_other() -> None:
    log = create(partitionBy=["p"])
    assert "partitioned by p" in refusal(log, "clusterBy", columns=[["id"]])
    with pytest.raises(DeltaError, match="partitioned by p"):
        create(partitionBy=["p"], clusterBy=[["id"]])
    clustered = create(clusterBy=[["id"]])
    with pytest.raises(DeltaError, match="DELTAIC_CLUSTERED_TABLE_PARTITIONED"):
        replaced(clustered, partition_by=("p",))


def replaced(log: MemoryLog, operation: Operation = Operation.REPLACE_TABLE, **more: Any) -> Any:
    """Plan what takes the place of a table; return the columns it is said to be clustered by."""
    planned = plan(log, "overwrite", operation=operation, **{"schema_string": COLUMNS, **more})
    (domain,) = planned.domains
    return json.loads(domain.configuration)["clusteringColumns"]


def test_replaced_table_is_clustered_as_the_statement_says() -> None:
    log = create(clusterBy=[["id"], ["s", "t"]])
    assert replaced(log) == []
    assert replaced(log, cluster_by=[["p"]]) == [["p"]]
    options = {"overwriteschema": "true"}
    assert replaced(log, Operation.WRITE, options=options, schema_string=schema("id")) == [["id"]]
    kept = plan(log, "overwrite", options=options, schema_string=COLUMNS)
    assert kept.domains == ()


def test_names_as_in_the_example_of_the_protocol_are_read() -> None:
    log = create(clusterBy=[["id"]])
    log.commits_lines[0] = [
        line.replace('[[\\"id\\"]]', '[\\"id\\"]') for line in log.commits_lines[0]
    ]
    run(log, "clusterBy", columns=[["p"]])
    (info,) = log.actions(1, "commitInfo")
    assert info["operationParameters"]["oldClusteringColumns"] == "id"


def test_feature_without_columns_is_not_asked_for_by_its_name() -> None:
    log = create()
    named = {"delta.feature.clustering": "supported"}
    assert "DELTAIC_CLUSTERING_BY_FEATURE" in refusal(log, "alterProperties", set=named)
    with pytest.raises(DeltaError, match="DELTAIC_CLUSTERING_BY_FEATURE"):
        upgrade(log, features=("clustering",))
    assert clustered_by(create(properties=named)) == []


def upgrade(log: MemoryLog, *versions: int, features: tuple[str, ...] = ()) -> None:
    reader, writer = versions or (None, None)
    arguments = UpgradeProtocol(log.table, reader, writer, features)
    upgrade_protocol(arguments, log, RetryPolicy(), lambda: 1)


@pytest.mark.protocol("supported-features-2")
def test_protocol_is_raised_and_never_lowered() -> None:
    log = create()
    upgrade(log, 1, 4)
    (info,) = log.actions(1, "commitInfo")
    assert info["operation"] == "UPGRADE PROTOCOL"
    assert json.loads(info["operationParameters"]["newProtocol"]) == {
        "minReaderVersion": 1,
        "minWriterVersion": 4,
        "readerFeatures": None,
        "writerFeatures": None,
    }
    upgrade(log, 1, 4)
    assert log.version == 1
    upgrade(log, features=("deletionVectors", "ROWTRACKING"))
    (protocol,) = log.actions(2, "protocol")
    assert protocol["readerFeatures"] == ["deletionVectors"]
    assert {"checkConstraints", "rowTracking", "domainMetadata"} < set(protocol["writerFeatures"])
    upgrade(log, 1, 7)
    assert log.version == 2, "nothing is lowered"
    upgrade(log, 2, 5)
    (protocol,) = log.actions(3, "protocol")
    assert protocol["readerFeatures"] == ["columnMapping", "deletionVectors"]
    for versions, condition in (
        ((4, 7), "DELTAIC_INVALID_ARGUMENT"),
        ((3, 0), "DELTAIC_INVALID_ARGUMENT"),
    ):
        with pytest.raises(DeltaError, match=condition):
            upgrade(log, *versions)
    with pytest.raises(DeltaError, match="DELTAIC_UNKNOWN_FEATURE"):
        upgrade(log, features=("warpDrive",))
    with pytest.raises(DeltaError, match="DELTAIC_UNSUPPORTED_FEATURE_REQUESTED"):
        upgrade(log, features=("collations",))


@pytest.mark.parametrize(
    ("protocol", "mode", "expected"),
    [
        (Protocol(3, 7, MAPPED, MAPPED | CLUSTERED), "name", (("c", "x"),)),
        (Protocol(1, 7, None, CLUSTERED), "name", (("b", "x"),)),  # the mode is ignored
        (Protocol(3, 7, MAPPED, MAPPED | CLUSTERED), "none", (("b", "x"),)),
        (Protocol(3, 7, MAPPED, MAPPED), "name", ()),
    ],
)
def test_columns_of_a_domain_go_by_physical_names_only_if_the_table_has_them(
    protocol: Protocol, mode: str, expected: tuple[tuple[str, ...], ...]
) -> None:
    inner = struct(column("x"))
    columns = schema(
        column("b", inner, metadata={"delta.columnMapping.physicalName": "c"}),
        column("c", inner, metadata={"delta.columnMapping.physicalName": "b"}),
    )
    metadata = Metadata("/t", columns, configuration={"delta.columnMapping.mode": mode})
    domains = {"delta.clustering": '{"clusteringColumns":[["b","x"]]}'}
    assert clustering_columns("/t", protocol, metadata, domains) == expected
