"""What is due once a version is committed, and keeps the log fast and short.

Python decides; the JVM does it, by default on a thread of its own. Nothing here can fail a commit:
a hook that fails is logged, and tried again by a later commit.
"""

from __future__ import annotations

import logging
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from deltaic.commit.notices import warn_once
from deltaic.commit.ports import CommitSummary, PreparedCommit, Tables, Upkeep, UpkeepSettings
from deltaic.protocol.actions import Metadata, Protocol
from deltaic.protocol.features import is_listed, supports
from deltaic.protocol.numbers import whole_number
from deltaic.protocol.properties import (
    PROTECTED_VERSION_PROPERTY,
    SYMLINK_MANIFEST_PROPERTY,
    interval_ms,
    is_true,
    left_undone,
    property_value,
    set_value,
    stored_number,
)

_logger = logging.getLogger(__name__)

#: The tasks of which the JVM remembers that they failed.
CHECKPOINT, COMPACTION, CLEANUP = "checkpoint", "compaction", "cleanup"

#: delta-spark's setting of a session, which stands in for a property of each table.
AUTO_COMPACT_SETTING = "spark.databricks.delta.autoCompact.enabled"
_NO_AUTO_COMPACT = "Deltaic compacts no files after a write yet, and writes without."

#: Every so many V2 checkpoints, older readers are shown the protocol under a name they know.
_CLASSIC_NAME_EVERY = 10


@dataclass(frozen=True, slots=True)
class Task:
    """One thing to do for the log, as ``io.deltaic.spark.bridge.UpkeepRequest`` reads it."""

    name: str
    arguments: Mapping[str, Any] = field(default_factory=dict)

    def to_json(self) -> dict[str, Any]:
        """Return the task as the JVM reads it."""
        return {"task": self.name, **self.arguments}


def run_hooks(
    summary: CommitSummary, version: int, prepared: PreparedCommit, tables: Tables
) -> None:
    """See to what is due after a commit; of what goes wrong it only tells the log.

    Parameters
    ----------
    summary
        The commit.
    version
        The version it became.
    prepared, tables
        How the JVM is reached.
    """
    try:
        upkeep = tables.upkeep(prepared)
        definition = summary.plan.effective
        _report_left_undone(summary.table, definition.metadata)
        if upkeep.settings().wants_small_files_compacted:
            warn_once("", AUTO_COMPACT_SETTING, f"{AUTO_COMPACT_SETTING}: {_NO_AUTO_COMPACT}")
        tasks = due_tasks(version, definition.protocol, definition.metadata, upkeep)
        if tasks:
            upkeep.run(version, [task.to_json() for task in tasks])
    except Exception:
        _logger.warning(
            "Table %s: version %d is committed, but what should follow it failed and is left to a "
            "later commit",
            summary.table,
            version,
            exc_info=True,
        )


def _report_left_undone(table: str, metadata: Metadata) -> None:
    """Log what another engine's property asks for in vain."""
    for known in left_undone(metadata.configuration):
        warn_once(
            table,
            known.name,
            f"Table {table} has the property {known.name}, which Deltaic does not do: it writes "
            f"without. {known.instead}",
        )


def due_tasks(
    version: int, protocol: Protocol, metadata: Metadata, upkeep: Upkeep
) -> Sequence[Task]:
    """Return what is due after the commit of a version, in the order in which it is to be done."""
    settings = upkeep.settings()
    failed = upkeep.failed()
    tasks = []
    if settings.writes_checksums:
        tasks.append(Task("checksum"))
    interval = settings.compaction_interval
    if interval > 1:
        last = version if (version + 1) % interval == 0 else _missed(version, interval, failed)
        if last is not None:
            tasks.append(Task("compaction", {"first": last + 1 - interval, "last": last}))
    if is_true(metadata.configuration, SYMLINK_MANIFEST_PROPERTY):
        tasks.append(Task("symlinkManifest"))
    is_checkpoint_due = _is_checkpoint_due(version, metadata, upkeep, failed)
    if is_checkpoint_due:
        tasks.append(_checkpoint(version, protocol, metadata, upkeep, settings))
    if is_checkpoint_due or CLEANUP in failed:
        cleanup = _cleanup(protocol, metadata)
        if cleanup is not None:
            tasks.append(cleanup)
    return tasks


def _cleanup(protocol: Protocol, metadata: Metadata) -> Task | None:
    """Return the deletion of what has outlived its retention; None if nothing may be deleted.

    A retention that cannot be understood, or a protected version that cannot, keeps everything.
    """
    properties = metadata.configuration
    if not is_true(properties, "delta.enableExpiredLogCleanup"):
        return None
    kept = [interval_ms(property_value(properties, "delta.logRetentionDuration"))]
    checkpoints = set_value(properties, "delta.checkpointRetentionDuration")
    if checkpoints is not None:
        # Checkpoints are deleted with the commits of their age, so the longer retention applies.
        kept.append(interval_ms(checkpoints))
    protected = _protected_version(protocol, properties)
    retentions = [ms for ms in kept if ms is not None]
    if protected is None or len(retentions) < len(kept):
        return None
    arguments = {"retentionMs": max(retentions)}
    return Task(CLEANUP, {**arguments, "protectedVersion": protected} if protected else arguments)


def _protected_version(protocol: Protocol, properties: Mapping[str, str]) -> int | None:
    """Return the version before which the log is deleted at once or not at all.

    0 stands for none (Protocol § Checkpoint Protection); None means that it cannot be understood.
    """
    if not supports(protocol, "checkpointProtection"):
        return 0
    version = whole_number(property_value(properties, PROTECTED_VERSION_PROPERTY))
    return version if version is not None and version >= 0 else None


def _is_checkpoint_due(
    version: int, metadata: Metadata, upkeep: Upkeep, failed: frozenset[str]
) -> bool:
    """Whether this commit writes a checkpoint.

    It does at every multiple of the interval, as delta-spark does. Besides, it makes up for one
    that failed, here or in a process that did not live to write it; since a checkpoint may be in
    the making elsewhere, that is only concluded when another interval has passed.
    """
    interval = _checkpoint_interval(metadata)
    if version <= 0:
        return False
    if version % interval == 0 or CHECKPOINT in failed:
        return True
    oldest_allowed = version - 2 * interval
    return oldest_allowed >= 0 and upkeep.newest_checkpoint(oldest_allowed + 1) <= oldest_allowed


def _checkpoint(
    version: int,
    protocol: Protocol,
    metadata: Metadata,
    upkeep: Upkeep,
    settings: UpkeepSettings,
) -> Task:
    """Return the kind of checkpoint that the table asks for (Protocol § Checkpoint Specs)."""
    policy = property_value(metadata.configuration, "delta.checkpointPolicy")
    if supports(protocol, "v2Checkpoint") and policy.casefold() == "v2":
        number = version // _checkpoint_interval(metadata)
        also_classic = number % _CLASSIC_NAME_EVERY == 0 or upkeep.newest_checkpoint(0) < 0
        size = settings.part_size or settings.sidecar_size
        return Task("v2Checkpoint", {"sidecarSize": size, "alsoClassic": also_classic})
    # Multi-part checkpoints are forbidden where the feature is supported, whatever the policy.
    in_parts = settings.part_size is not None and not is_listed(protocol, "v2Checkpoint")
    return Task("classicCheckpoint", {"partSize": settings.part_size} if in_parts else {})


def _checkpoint_interval(metadata: Metadata) -> int:
    return max(1, stored_number(metadata.id, metadata.configuration, "delta.checkpointInterval"))


def _missed(version: int, interval: int, failed: frozenset[str]) -> int | None:
    """Return the last version of the compaction that failed, if one did."""
    last = (version + 1) // interval * interval - 1
    return last if COMPACTION in failed and last > 0 else None
