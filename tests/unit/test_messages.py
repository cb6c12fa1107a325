"""The records of the bridge are those that ``bridge-messages.json`` declares for both languages."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from deltaic.commands.alter.add_columns import AddColumns, NewColumn, Position
from deltaic.commands.alter.clustering import ClusterBy
from deltaic.commands.alter.column_changes import AlterColumns, ColumnChange
from deltaic.commands.alter.constraints import AddConstraint, DropConstraint
from deltaic.commands.alter.drop_columns import DropColumns
from deltaic.commands.alter.drop_feature import DropFeature
from deltaic.commands.alter.rename_column import RenameColumn
from deltaic.commands.alter.replace_columns import ReplaceColumns
from deltaic.commands.alter.sync_identity import ExtremeValue, SyncIdentity
from deltaic.commands.alter.table_properties import AlterProperties
from deltaic.commands.alter.upgrade_protocol import UpgradeProtocol
from deltaic.commands.clone import CloneRequest, CloneTable
from deltaic.commands.convert import ConvertToDelta
from deltaic.commands.definitions.create_statement import (
    CreateTable,
    LikeTable,
    RequestedDefinition,
)
from deltaic.commands.detail import DescribeDetail
from deltaic.commands.domain_metadata import (
    DescribeDomainMetadata,
    RemoveDomainMetadata,
    SetDomainMetadata,
)
from deltaic.commands.generate import Generate
from deltaic.commands.history import DescribeHistory
from deltaic.commands.plan_write import WriteRequest
from deltaic.commands.restore import Restore
from deltaic.commands.rows import RowSet
from deltaic.commands.vacuum import Vacuum, VacuumResult
from deltaic.commit.downgrade import HistoricUse
from deltaic.commit.message import Message, codecs
from deltaic.commit.parquet_source import ParquetEntry, ParquetRequest, ParquetSummary
from deltaic.commit.plan import CommitPlan, Definition, PreviousVersion
from deltaic.commit.ports import (
    CommitRecord,
    CommitSummary,
    ConcurrentRowDeletion,
    FileCounts,
    IdentityValues,
    IncompatibleFile,
    OperationInfo,
    TableSnapshot,
    WinningCommit,
)
from deltaic.commit.transaction import CommitResult, FirstAttempt
from deltaic.commit.unused_files import DeletedFileCounts, UnusedFileCounts, VacuumRequest
from deltaic.protocol.actions import DomainMetadata, Metadata, Protocol
from deltaic.resources import load_json
from deltaic.spark.prefetched_state import (
    CommandRequest,
    MaintenanceState,
    PrefetchedState,
    SessionState,
)

DECLARED: Mapping[str, Mapping[str, str]] = load_json("bridge-messages.json")

#: The arguments of commands, and their parts.
ARGUMENTS: tuple[type[Message], ...] = (
    AddColumns,
    AddConstraint,
    AlterColumns,
    AlterProperties,
    ClusterBy,
    ColumnChange,
    ConvertToDelta,
    CreateTable,
    DescribeDetail,
    DescribeDomainMetadata,
    DescribeHistory,
    DropColumns,
    DropConstraint,
    DropFeature,
    ExtremeValue,
    Generate,
    LikeTable,
    NewColumn,
    Position,
    RemoveDomainMetadata,
    RenameColumn,
    ReplaceColumns,
    RequestedDefinition,
    CloneTable,
    Restore,
    SetDomainMetadata,
    SyncIdentity,
    UpgradeProtocol,
    Vacuum,
)

RECORDS: tuple[type[Message], ...] = (
    *ARGUMENTS,
    CloneRequest,
    CommandRequest,
    CommitPlan,
    CommitRecord,
    CommitResult,
    CommitSummary,
    ConcurrentRowDeletion,
    Definition,
    DeletedFileCounts,
    FileCounts,
    FirstAttempt,
    IdentityValues,
    HistoricUse,
    IncompatibleFile,
    MaintenanceState,
    OperationInfo,
    ParquetEntry,
    ParquetRequest,
    ParquetSummary,
    PrefetchedState,
    PreviousVersion,
    RowSet,
    SessionState,
    TableSnapshot,
    UnusedFileCounts,
    VacuumRequest,
    VacuumResult,
    WinningCommit,
    WriteRequest,
)

#: Declared fields that are no attributes: only the JVM reads the first, the committer the second.
ONLY_IN_JSON = {
    "CommitPlan": {"writesChangeDataFeed": "boolean"},
    "WriteRequest": {"prefetched": "PrefetchedState"},
}


@pytest.mark.parametrize("record", RECORDS)
def test_record_is_the_declared_one(record: type[Message]) -> None:
    attributes = {codec.key: codec.declared for codec in codecs(record)}
    others = ONLY_IN_JSON.get(record.__name__, {})
    assert {**attributes, **others} == DECLARED[record.__name__]


def test_every_declared_record_has_a_class() -> None:
    assert {record.__name__ for record in RECORDS} == set(DECLARED)


def values_of(hint: str) -> st.SearchStrategy[Any]:
    """Return values of a declared type, as JSON."""
    if hint.endswith("?"):
        return st.none() | values_of(hint[:-1])
    if hint.startswith("["):
        return st.lists(values_of(hint[1:-1]), max_size=3)
    if hint.startswith("{"):
        return st.dictionaries(st.text(max_size=4), values_of(hint[1:-1]), max_size=3)
    scalars = {
        "string": st.text(max_size=5),
        "long": st.integers(-(2**63), 2**63 - 1),
        "boolean": st.booleans(),
        # Only columns are objects in the records below.
        "object": st.just({"name": "c", "type": "long", "nullable": False, "metadata": {"x": 1}}),
    }
    if hint in DECLARED:
        return st.fixed_dictionaries({k: values_of(part) for k, part in DECLARED[hint].items()})
    return scalars[hint]


#: Records without the objects of the protocol.
SIMPLE = (
    *ARGUMENTS,
    FileCounts,
    IdentityValues,
    IncompatibleFile,
    MaintenanceState,
    PreviousVersion,
    SessionState,
)


@pytest.mark.parametrize("record", SIMPLE)
@given(data=st.data())
def test_record_survives_the_bridge(record: type[Message], data: st.DataObject) -> None:
    body = data.draw(values_of(record.__name__))
    read = record.from_json(json.loads(json.dumps(body)))
    assert record.from_json(json.loads(read.json())) == read


def test_plan_survives_the_jvm() -> None:
    plan = CommitPlan(
        Definition(Protocol(3, 7, frozenset({"a"}), frozenset({"a", "b"})), Metadata("id", "{}")),
        PreviousVersion(4, 5_000, 99),
        changes_metadata=True,
        domains=(DomainMetadata("app", "{}"),),
    )
    body = json.loads(plan.json())
    assert body["definition"]["metaData"]["id"] == "id" and body["changesMetaData"] is True
    assert CommitPlan.from_json(body) == plan


def test_missing_field_without_a_default_is_an_error() -> None:
    with pytest.raises(KeyError, match="version"):
        LikeTable.from_json({"table": "t"})
    assert FileCounts.from_json({"numAdded": None}) == FileCounts()


def test_rows_cross_without_their_schema() -> None:
    assert RowSet("id LONG", [{"id": 1}]).to_json() == {"rows": [{"id": 1}]}
