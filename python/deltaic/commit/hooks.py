"""Post-commit hooks: the maintenance that keeps the log fast and short.

Python decides what is due; the JVM runs it, by default on a background thread. No hook can fail a
commit: a hook that fails is logged, and a later commit retries it.
"""

from __future__ import annotations

import logging
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from deltaic.commit.notices import warn_once
from deltaic.commit.ports import (
    CommitSummary,
    Maintenance,
    MaintenanceSettings,
    PreparedCommit,
    TableAccess,
)
from deltaic.exceptions import DeltaError
from deltaic.protocol.actions import Metadata, Protocol
from deltaic.protocol.features import is_listed, supports
from deltaic.protocol.numbers import whole_number
from deltaic.protocol.properties import (
    CHECKPOINT_PROTECTION,
    PROTECTED_VERSION_PROPERTY,
    SYMLINK_MANIFEST_PROPERTY,
    checked_number,
    explicit_value,
    interval_ms,
    is_true,
    property_value,
    unsupported_properties,
)

_logger = logging.getLogger(__name__)

#: The tasks whose failures the JVM records.
CHECKPOINT, COMPACTION, CLEANUP = "checkpoint", "compaction", "cleanup"

_AUTO_COMPACT_PROPERTY = "delta.autoOptimize.autoCompact"

#: After so many V2 checkpoints, one is also written under the classic name, so that older readers
#: find the protocol.
_CLASSIC_NAME_EVERY = 10


@dataclass(frozen=True, slots=True)
class Task:
    """One maintenance task, as ``io.deltaic.spark.commit.MaintenanceRequest`` reads it."""

    name: str
    arguments: Mapping[str, Any] = field(default_factory=dict)

    def to_json(self) -> dict[str, Any]:
        """Return the task as the JVM reads it."""
        return {"task": self.name, **self.arguments}


def run_hooks(
    summary: CommitSummary, version: int, prepared: PreparedCommit, tables: TableAccess
) -> None:
    """Run the tasks that are due after a commit; failures are only logged.

    Parameters
    ----------
    summary
        The commit.
    version
        The committed version.
    prepared, tables
        Access to the JVM.
    """
    try:
        maintenance = tables.maintenance(prepared)
        tasks = _tasks_after(summary, version, maintenance)
        if tasks:
            maintenance.run(version, [task.to_json() for task in tasks])
    except Exception:
        _logger.warning(
            "Table %s: version %d is committed, but its post-commit maintenance failed; a later "
            "commit retries it",
            summary.table,
            version,
            exc_info=True,
        )


def maintenance_request(
    summary: CommitSummary, version: int, tables: TableAccess
) -> Mapping[str, Any] | None:
    """Return the maintenance that is due after a commit that the JVM makes; None if none is.

    It is planned before the commit, which it cannot fail: an error is only logged.
    """
    try:
        maintenance = tables.maintenance(None)
        tasks = _tasks_after(summary, version, maintenance)
        return maintenance.request([task.to_json() for task in tasks]) if tasks else None
    except Exception:
        _logger.warning(
            "Table %s: the maintenance after version %d could not be planned; a later commit "
            "retries it",
            summary.table,
            version,
            exc_info=True,
        )
        return None


def _tasks_after(summary: CommitSummary, version: int, maintenance: Maintenance) -> Sequence[Task]:
    definition = summary.plan.definition
    _warn_of_unsupported_properties(summary.table, definition.metadata)
    tasks = due_tasks(version, definition.protocol, definition.metadata, maintenance)
    return [*tasks, Task("autoCompaction")] if _compacts_files(summary, maintenance) else tasks


def _compacts_files(summary: CommitSummary, maintenance: Maintenance) -> bool:
    """Whether small files are compacted after the commit.

    They are where it has added files with new rows. The session's setting takes precedence over the
    table's property.
    """
    if not (summary.files.data_change and summary.files.num_added):
        return False
    try:
        of_session = maintenance.compacts_files()
    except DeltaError as problem:
        warn_once("", str(problem), f"{problem} No file is compacted after a commit.")
        return False
    if of_session is not None:
        return of_session
    return is_true(summary.plan.definition.metadata.configuration, _AUTO_COMPACT_PROPERTY)


def _warn_of_unsupported_properties(table: str, metadata: Metadata) -> None:
    """Warn about properties of other engines that Deltaic does not support."""
    for known in unsupported_properties(metadata.configuration):
        warn_once(
            table,
            known.name,
            f"Table {table} has the property {known.name}, which Deltaic does not do: it writes "
            f"without. {known.instead}",
        )


def due_tasks(
    version: int, protocol: Protocol, metadata: Metadata, maintenance: Maintenance
) -> Sequence[Task]:
    """Return the tasks that are due after the commit of a version, in the order to run them."""
    settings = maintenance.settings()
    failed = maintenance.failed()
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
    is_checkpoint_due = _is_checkpoint_due(version, metadata, maintenance, failed)
    if is_checkpoint_due:
        tasks.append(_checkpoint(version, protocol, metadata, maintenance, settings))
    if is_checkpoint_due or CLEANUP in failed:
        cleanup = _cleanup(protocol, metadata)
        if cleanup is not None:
            tasks.append(cleanup)
    return tasks


def _cleanup(protocol: Protocol, metadata: Metadata) -> Task | None:
    """Return the task that deletes expired log files; None if nothing may be deleted.

    If a retention or the protected version cannot be parsed, nothing is deleted.
    """
    properties = metadata.configuration
    if not is_true(properties, "delta.enableExpiredLogCleanup"):
        return None
    parsed = [interval_ms(property_value(properties, "delta.logRetentionDuration"))]
    checkpoints = explicit_value(properties, "delta.checkpointRetentionDuration")
    if checkpoints is not None:
        # Checkpoints are deleted with the commits of their age, so the longer retention applies.
        parsed.append(interval_ms(checkpoints))
    protected = _protected_version(protocol, properties)
    retentions = [ms for ms in parsed if ms is not None]
    if protected is None or len(retentions) < len(parsed):
        return None
    arguments = {"retentionMs": max(retentions)}
    return Task(CLEANUP, {**arguments, "protectedVersion": protected} if protected else arguments)


def _protected_version(protocol: Protocol, properties: Mapping[str, str]) -> int | None:
    """Return the version before which the log is deleted completely or not at all.

    0 means none (Protocol § Checkpoint Protection); None means that the value cannot be parsed.
    """
    if not supports(protocol, CHECKPOINT_PROTECTION):
        return 0
    version = whole_number(property_value(properties, PROTECTED_VERSION_PROPERTY))
    return version if version is not None and version >= 0 else None


def _is_checkpoint_due(
    version: int, metadata: Metadata, maintenance: Maintenance, failed: frozenset[str]
) -> bool:
    """Whether this commit writes a checkpoint.

    It does at every multiple of the interval, as delta-spark does. It also retries a checkpoint
    that failed in this process, or that another process did not complete. Another process may still
    be writing its checkpoint, so the latter is assumed only after one more interval.
    """
    interval = _checkpoint_interval(metadata)
    if version <= 0:
        return False
    if version % interval == 0 or CHECKPOINT in failed:
        return True
    oldest_allowed = version - 2 * interval
    if oldest_allowed < 0:
        return False
    return maintenance.newest_checkpoint(oldest_allowed + 1) <= oldest_allowed


def _checkpoint(
    version: int,
    protocol: Protocol,
    metadata: Metadata,
    maintenance: Maintenance,
    settings: MaintenanceSettings,
) -> Task:
    """Return the kind of checkpoint that the table requires (Protocol § Checkpoint Specs)."""
    policy = property_value(metadata.configuration, "delta.checkpointPolicy")
    if supports(protocol, "v2Checkpoint") and policy.casefold() == "v2":
        number = version // _checkpoint_interval(metadata)
        also_classic = number % _CLASSIC_NAME_EVERY == 0 or maintenance.newest_checkpoint(0) < 0
        size = settings.part_size or settings.sidecar_size
        return Task("v2Checkpoint", {"sidecarSize": size, "alsoClassic": also_classic})
    # Multi-part checkpoints are forbidden where the feature is supported, whatever the policy.
    in_parts = settings.part_size is not None and not is_listed(protocol, "v2Checkpoint")
    return Task("classicCheckpoint", {"partSize": settings.part_size} if in_parts else {})


def _checkpoint_interval(metadata: Metadata) -> int:
    return max(1, checked_number(metadata.id, metadata.configuration, "delta.checkpointInterval"))


def _missed(version: int, interval: int, failed: frozenset[str]) -> int | None:
    """Return the last version of the log compaction that failed, if one did."""
    last = (version + 1) // interval * interval - 1
    return last if COMPACTION in failed and last > 0 else None
