"""ALTER TABLE DROP FEATURE (docs/decisions/0056).

1. Remove the traces of the feature from the newest version.
2. If earlier versions can only be read with the feature, hide them behind checkpoints and protect
   them, or delete them (TRUNCATE HISTORY).
3. Remove the feature from the protocol.

Every step is a commit of its own. If one fails, the statement goes on there when it is run again.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from functools import partial

from deltaic.commands.alter.alteration import Alteration, alter
from deltaic.commands.alter.dropping.history import (
    BARRIERS,
    end_history,
    write_barriers,
    write_last_checkpoint,
)
from deltaic.commands.alter.dropping.target import Target
from deltaic.commands.alter.dropping.traces import (
    CONSTRAINTS,
    REMOVALS,
    Removal,
    is_used,
    without_properties,
)
from deltaic.commit.clock import Clock
from deltaic.commit.message import Message, json_name
from deltaic.commit.operations import Operation
from deltaic.commit.ports import TableAccess, TableSnapshot
from deltaic.commit.transaction import CommitResult, RetryPolicy
from deltaic.exceptions import ConcurrentModificationError, DeltaError, error
from deltaic.protocol.features import (
    Feature,
    features_in_use,
    find_feature,
    supports,
    writer_features,
)
from deltaic.protocol.properties import (
    CHECKPOINT_PROTECTION,
    CONSTRAINT_PREFIX,
    PROTECTED_VERSION_PROPERTY,
    ProtocolRequest,
)

#: The maximum number of attempts if other writers commit in between.
_MAX_ROUNDS = 100


@dataclass(frozen=True, slots=True)
class DropFeature(Message):
    """The arguments: the name of a feature, and whether versions that use it are deleted."""

    table: str
    feature: str
    truncates_history: bool = field(default=False, metadata=json_name("truncateHistory"))


def drop_feature(
    arguments: DropFeature, tables: TableAccess, policy: RetryPolicy, clock_ms: Clock
) -> CommitResult:
    """Remove a feature and its traces from a table.

    Raises
    ------
    InvalidArgumentError
        If the table does not support it, or it cannot be dropped.
    TableStateError
        If versions that use it are to be deleted, and are not old enough yet.
    ConcurrentModificationError
        If other writers repeatedly changed the table.
    """
    target = Target(arguments.table, tables, policy, clock_ms)
    current = target.current()
    feature = _supported(arguments, current)
    removal = REMOVALS.get(feature.name)
    if removal is None:
        reason = "it is not among those that can be dropped"
        advice = f"These are {', '.join(sorted(REMOVALS))}."
        raise _cannot_drop(arguments.table, feature.name, reason, advice)
    for reason, advice in _obstacles(arguments, current, feature, removal):
        raise _cannot_drop(arguments.table, feature.name, reason, advice)
    if not (removal.binds_history or removal.in_files):
        # Without domains, the version that is known already is not read again.
        if current.domains and removal.traces(target):
            current = target.current()
        return _without_feature(target, arguments, current, feature)
    return _drop_in_rounds(target, arguments, feature, removal)


def _drop_in_rounds(
    target: Target, arguments: DropFeature, feature: Feature, removal: Removal
) -> CommitResult:
    """Drop a feature from the version after one that is known not to use it."""
    ends_history = removal.binds_history and (
        arguments.truncates_history or not target.tables.drops_features_at_once()
    )
    protects = removal.binds_history and not ends_history
    has_barriers = False
    lost: DeltaError | None = None
    for _ in range(_MAX_ROUNDS):
        is_free = False
        try:
            changed = removal.traces(target)
            if ends_history:
                end_history(target, feature.name, truncates=arguments.truncates_history)
            elif protects and (changed or not has_barriers):
                write_barriers(target, BARRIERS)
                has_barriers = True
            current = target.current()
            if is_used(target, current, feature.name):
                continue
            is_free = True
            result = _without_feature(
                target, arguments, current, feature, protects=protects, is_next=True
            )
        except ConcurrentModificationError as problem:
            lost = problem
            # Traces may have been removed after the barriers.
            has_barriers = has_barriers and is_free
            continue
        if removal.binds_history:
            write_last_checkpoint(target, result.version)
        return result
    raise error(
        "DELTAIC_FEATURE_USED_AGAIN", table=target.table, feature=feature.name, attempts=_MAX_ROUNDS
    ) from lost


def _without_feature(
    target: Target,
    arguments: DropFeature,
    current: TableSnapshot,
    feature: Feature,
    *,
    protects: bool = False,
    is_next: bool = False,
) -> CommitResult:
    """Commit the protocol without the feature.

    Parameters
    ----------
    protects
        Whether the versions before may only be deleted all at once.
    is_next
        Whether it has to be the version right after the current one, which was checked.
    """
    metadata = without_properties(feature.name, current.metadata)
    if protects:
        protected = {PROTECTED_VERSION_PROPERTY: str(current.version + 1)}
        metadata = replace(metadata, configuration={**metadata.configuration, **protected})
    truncates = "true" if arguments.truncates_history else "false"
    return alter(
        Alteration(
            target.table,
            current,
            metadata,
            Operation.DROP_FEATURE,
            {"featureName": feature.name, "truncateHistory": truncates},
            ProtocolRequest(features=(CHECKPOINT_PROTECTION,) if protects else ()),
            drops=feature.name,
        ),
        target.tables,
        replace(target.policy, max_attempts=1) if is_next else target.policy,
        target.clock_ms,
        more_follows=is_next,
    )


def _supported(arguments: DropFeature, current: TableSnapshot) -> Feature:
    feature = find_feature(arguments.feature)
    if feature is None:
        raise error("DELTAIC_UNKNOWN_FEATURE", table=arguments.table, feature=arguments.feature)
    supported = partial(supports, current.protocol)
    if not supported(feature.name):
        raise error(
            "DELTAIC_FEATURE_NOT_PRESENT",
            table=arguments.table,
            version=current.version,
            feature=feature.name,
            features=", ".join(sorted(filter(supported, writer_features(current.protocol)))),
        )
    return feature


def _obstacles(
    arguments: DropFeature, current: TableSnapshot, feature: Feature, removal: Removal
) -> Iterator[tuple[str, str]]:
    """Yield the reasons why the feature cannot be dropped, each with advice."""
    if arguments.truncates_history and not removal.binds_history:
        reason = "no version of the table depends on it, so none has to be deleted"
        yield reason, "Leave out TRUNCATE HISTORY."
    if feature.name == CHECKPOINT_PROTECTION and not arguments.truncates_history:
        reason = "it protects versions of the table, which have to be deleted"
        yield reason, "Use ALTER TABLE ... DROP FEATURE checkpointProtection TRUNCATE HISTORY."
    needing = sorted(
        name
        for name in writer_features(current.protocol)
        if (other := find_feature(name)) is not None and feature.name in other.requires
    )
    if needing:
        yield f"{', '.join(needing)} requires it", "It can be dropped only after them."
    used = features_in_use(current.metadata, arguments.table)
    if feature.name == CONSTRAINTS and feature.name in used:
        names = [
            key[len(CONSTRAINT_PREFIX) :]
            for key in current.metadata.configuration
            if key.casefold().startswith(CONSTRAINT_PREFIX)
        ]
        yield (
            f"the table has the constraints {', '.join(sorted(names))}",
            "Drop them first with ALTER TABLE ... DROP CONSTRAINT.",
        )


def _cannot_drop(table: str, feature: str, reason: str, advice: str) -> DeltaError:
    return error(
        "DELTAIC_CANNOT_DROP_FEATURE", table=table, feature=feature, reason=reason, advice=advice
    )
