"""The records of the bridge are those that ``bridge-messages.json`` declares for both languages."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from deltaic.commands.definitions.create_statement import (
    CreateTable,
    LikeTable,
    RequestedDefinition,
)
from deltaic.commands.plan_write import WriteRequest
from deltaic.commit.message import Message, codecs
from deltaic.commit.plan import CommitPlan, Definition, PreviousVersion
from deltaic.commit.ports import (
    CommitRecord,
    CommitSummary,
    ConcurrentRowDeletion,
    FileCounts,
    IdentityValues,
    OperationInfo,
    TableSnapshot,
    WinningCommit,
)
from deltaic.commit.transaction import CommitResult, FirstAttempt
from deltaic.protocol.actions import DomainMetadata, Metadata, Protocol
from deltaic.resources import load_json
from deltaic.spark.prefetched_state import MaintenanceState, PrefetchedState, SessionState

RECORDS: tuple[type[Message], ...] = (
    CommitPlan,
    CommitRecord,
    CommitResult,
    CommitSummary,
    ConcurrentRowDeletion,
    CreateTable,
    Definition,
    FileCounts,
    FirstAttempt,
    IdentityValues,
    LikeTable,
    MaintenanceState,
    OperationInfo,
    PrefetchedState,
    PreviousVersion,
    RequestedDefinition,
    SessionState,
    TableSnapshot,
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
    assert {**attributes, **others} == load_json("bridge-messages.json")[record.__name__]


def test_every_declared_record_has_a_class() -> None:
    assert {record.__name__ for record in RECORDS} == set(load_json("bridge-messages.json"))


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
    }
    return scalars[hint]


FLAT = (FileCounts, IdentityValues, LikeTable, MaintenanceState, PreviousVersion, SessionState)


@pytest.mark.parametrize("record", FLAT)
@given(data=st.data())
def test_record_survives_the_bridge(record: type[Message], data: st.DataObject) -> None:
    fields: Mapping[str, str] = load_json("bridge-messages.json")[record.__name__]
    body = {key: data.draw(values_of(hint)) for key, hint in fields.items()}
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
