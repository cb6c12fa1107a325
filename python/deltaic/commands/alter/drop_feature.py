"""ALTER TABLE DROP FEATURE, for features that leave nothing in the log that depends on them.

Such a feature binds only writers, and only their new commits. Once the table does not use it,
nothing in the log depends on it, and earlier versions keep their protocol.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import partial

from deltaic.commands.alter.alteration import Alteration, alter, current_snapshot
from deltaic.commit.clock import Clock
from deltaic.commit.message import Message, json_name
from deltaic.commit.operations import Operation
from deltaic.commit.ports import TableAccess, TableSnapshot
from deltaic.commit.transaction import CommitResult, RetryPolicy
from deltaic.exceptions import DeltaError, error
from deltaic.protocol import domains, in_commit_timestamps
from deltaic.protocol.actions import Metadata
from deltaic.protocol.features import (
    Feature,
    features_in_use,
    find_feature,
    supports,
    writer_features,
)
from deltaic.protocol.properties import CONSTRAINT_PREFIX, ProtocolRequest

_CONSTRAINTS = "checkConstraints"
_DROPPABLE = (_CONSTRAINTS, domains.FEATURE, in_commit_timestamps.FEATURE)


@dataclass(frozen=True, slots=True)
class DropFeature(Message):
    """The arguments: the name of a feature, and whether versions that use it are deleted."""

    table: str
    feature: str
    truncates_history: bool = field(default=False, metadata=json_name("truncateHistory"))


def drop_feature(
    arguments: DropFeature, tables: TableAccess, policy: RetryPolicy, clock_ms: Clock
) -> CommitResult:
    """Drop a feature from a table's protocol.

    Raises
    ------
    InvalidArgumentError
        If the table does not support it, uses it, or it cannot be dropped.
    """
    table = arguments.table
    current = current_snapshot(table, tables)
    feature = find_feature(arguments.feature)
    if feature is None:
        raise error("DELTAIC_UNKNOWN_FEATURE", table=table, feature=arguments.feature)
    supported = partial(supports, current.protocol)
    if not supported(feature.name):
        raise error(
            "DELTAIC_FEATURE_NOT_PRESENT",
            table=table,
            version=current.version,
            feature=feature.name,
            features=", ".join(sorted(filter(supported, writer_features(current.protocol)))),
        )
    metadata = _without_traces(current.metadata, feature)
    for reason, advice in _obstacles(arguments, current, metadata, feature):
        raise _cannot_drop(table, feature.name, reason, advice)
    return alter(
        Alteration(
            table,
            current,
            metadata,
            Operation.DROP_FEATURE,
            {"featureName": feature.name, "truncateHistory": "false"},
            ProtocolRequest(),
            drops=feature.name,
        ),
        tables,
        policy,
        clock_ms,
    )


def _without_traces(metadata: Metadata, feature: Feature) -> Metadata:
    """Return the definition without the properties that only configure the feature."""
    if feature.name != in_commit_timestamps.FEATURE:
        return metadata
    return in_commit_timestamps.disabled(metadata)


def _obstacles(
    arguments: DropFeature, current: TableSnapshot, metadata: Metadata, feature: Feature
) -> Iterator[tuple[str, str]]:
    """Yield the reasons why the feature cannot be dropped, each with advice."""
    if feature.name not in _DROPPABLE:
        yield _undroppable_reason(feature)
        return
    if arguments.truncates_history:
        reason = "no version of the table depends on it, so none has to be deleted"
        yield reason, "Leave out TRUNCATE HISTORY."
    needing = sorted(
        name
        for name in writer_features(current.protocol)
        if (other := find_feature(name)) is not None and feature.name in other.requires
    )
    if needing:
        yield f"{', '.join(needing)} requires it", "It can be dropped only after them."
    if feature.name == _CONSTRAINTS and feature.name in features_in_use(metadata, arguments.table):
        names = [
            key[len(CONSTRAINT_PREFIX) :]
            for key in metadata.configuration
            if key.casefold().startswith(CONSTRAINT_PREFIX)
        ]
        yield (
            f"the table has the constraints {', '.join(sorted(names))}",
            "Drop them first with ALTER TABLE ... DROP CONSTRAINT.",
        )
    if feature.name == domains.FEATURE and current.domains:
        yield (
            f"the table has the metadata domains {', '.join(sorted(current.domains))}",
            "Remove them first with DeltaTable.removeDomainMetadata.",
        )


def _undroppable_reason(feature: Feature) -> tuple[str, str]:
    if feature.reads:
        return (
            "files, checkpoints or versions that depend on it would have to be rewritten or "
            "deleted, which is not supported yet",
            "Turn it off by its table property, and later writes do not use it; or write the rows "
            "to a new table.",
        )
    return (
        "dropping it is not supported",
        "What it requires of writers can be turned off where a property or a column uses it; or "
        "write the rows to a new table.",
    )


def _cannot_drop(table: str, feature: str, reason: str, advice: str) -> DeltaError:
    return error(
        "DELTAIC_CANNOT_DROP_FEATURE", table=table, feature=feature, reason=reason, advice=advice
    )
