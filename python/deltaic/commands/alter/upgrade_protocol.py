"""Explicit upgrade of a table's protocol (Protocol § Protocol Evolution)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from deltaic.commands.alter.alteration import Alteration, alter, current_snapshot
from deltaic.commands.definitions.column_parameters import compact
from deltaic.commit.clock import Clock
from deltaic.commit.message import Message
from deltaic.commit.operations import Operation
from deltaic.commit.ports import TableAccess
from deltaic.commit.transaction import CommitResult, RetryPolicy
from deltaic.exceptions import error
from deltaic.protocol.actions import (
    READER_VERSION_WITH_FEATURES,
    WRITER_VERSION_WITH_FEATURES,
    Protocol,
)
from deltaic.protocol.columns.clustering import FEATURE as CLUSTERING
from deltaic.protocol.columns.clustering import require_no_clustering
from deltaic.protocol.features import supports
from deltaic.protocol.negotiation import protocol_for_new_definition
from deltaic.protocol.properties import FEATURE_PREFIX, ProtocolRequest


@dataclass(frozen=True, slots=True)
class UpgradeProtocol(Message):
    """The arguments: the new protocol versions, or the features to add."""

    table: str
    reader_version: int | None = None
    writer_version: int | None = None
    features: Sequence[str] = ()


def upgrade_protocol(
    arguments: UpgradeProtocol, tables: TableAccess, policy: RetryPolicy, clock_ms: Clock
) -> CommitResult:
    """Upgrade the protocol of a table. A no-op if the table supports all that is requested.

    Versions are never lowered: the features that a lower one implies are added.

    Raises
    ------
    InvalidArgumentError
        If a version or a feature does not exist.
    ProtocolError
        If this build could no longer write to the table.
    """
    table = arguments.table
    current = current_snapshot(table, tables)
    _require_versions(arguments)
    if not supports(current.protocol, CLUSTERING):
        require_no_clustering(table, arguments.features)
    request = ProtocolRequest(
        arguments.reader_version, arguments.writer_version, tuple(arguments.features)
    )
    after = protocol_for_new_definition(table, current.protocol, current.metadata, request)
    return alter(
        Alteration(
            table,
            current,
            current.metadata,
            Operation.SET_TBLPROPERTIES if arguments.features else Operation.UPGRADE_PROTOCOL,
            _parameters(arguments, after),
            request,
        ),
        tables,
        policy,
        clock_ms,
    )


def _parameters(arguments: UpgradeProtocol, after: Protocol) -> dict[str, str]:
    """Return what the history shows: features are added as by ``SET TBLPROPERTIES``."""
    if arguments.features:
        added = {FEATURE_PREFIX + feature: "supported" for feature in arguments.features}
        return {"properties": compact(added)}
    return {"newProtocol": compact(_named(after))}


def _named(protocol: Protocol) -> dict[str, object]:
    """Return the protocol as delta-spark records it: missing lists are null."""
    body = protocol.to_json()
    return {**body, **{key: body.get(key) for key in ("readerFeatures", "writerFeatures")}}


def _require_versions(arguments: UpgradeProtocol) -> None:
    asked = (
        ("readerVersion", arguments.reader_version, READER_VERSION_WITH_FEATURES),
        ("writerVersion", arguments.writer_version, WRITER_VERSION_WITH_FEATURES),
    )
    for name, wanted, newest in asked:
        if wanted is not None and not 1 <= wanted <= newest:
            reason = f"there are versions 1 to {newest}"
            raise error("DELTAIC_INVALID_ARGUMENT", argument=name, value=wanted, reason=reason)
