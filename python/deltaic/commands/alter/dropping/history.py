"""The history of a table that loses a feature: barriers that hide it, or the end of it."""

from __future__ import annotations

import logging
from datetime import datetime, timezone

from deltaic.commands.alter.dropping.target import Target
from deltaic.commit.downgrade import HistoricUse
from deltaic.commit.operations import Operation
from deltaic.commit.ports import TableSnapshot
from deltaic.exceptions import error
from deltaic.protocol.features import supports
from deltaic.protocol.numbers import whole_number
from deltaic.protocol.properties import (
    CHECKPOINT_PROTECTION,
    PROTECTED_VERSION_PROPERTY,
    interval_ms,
    property_value,
)

_logger = logging.getLogger(__name__)

#: As many as delta-spark writes: if one is damaged, readers use another.
BARRIERS = 3

_TRUNCATION_RETENTION = "delta.dropFeatureTruncateHistory.retentionDuration"
_LOG_RETENTION = "delta.logRetentionDuration"


def write_barriers(target: Target, count: int) -> None:
    """Commit versions with a checkpoint, from which readers need nothing of older versions.

    Raises
    ------
    TableStateError
        If a checkpoint cannot be written.
    """
    for _ in range(count):
        summary = target.summary(target.current(), Operation.EMPTY_COMMIT, {})
        version = target.commit_summary(summary).version
        try:
            target.files.write_checkpoint(version)
        except Exception as problem:
            raise error(
                "DELTAIC_CHECKPOINT_FAILED", table=target.table, version=version, reason=problem
            ) from problem


def write_last_checkpoint(target: Target, version: int) -> None:
    """Write the checkpoint of the version that has dropped a feature; a failure is only logged."""
    try:
        target.files.write_checkpoint(version)
    except Exception:
        _logger.warning(
            "Table %s: version %d is committed, but its checkpoint could not be written; a later "
            "commit writes one",
            target.table,
            version,
            exc_info=True,
        )


def protected_version(table: str, current: TableSnapshot) -> int:
    """Return the version before which the log is deleted completely or not at all; 0 for none.

    Raises
    ------
    ProtocolError
        If it cannot be parsed.
    """
    if not supports(current.protocol, CHECKPOINT_PROTECTION):
        return 0
    value = property_value(current.metadata.configuration, PROTECTED_VERSION_PROPERTY)
    version = whole_number(value)
    if version is None or version < 0:
        raise error(
            "DELTAIC_PROTOCOL_INVALID",
            table=table,
            version=current.version,
            reason=f"{PROTECTED_VERSION_PROPERTY} is {value}",
        )
    return version


def end_history(target: Target, feature: str, *, truncates: bool) -> None:
    """Delete the versions that use a feature from the log, if they are old enough.

    Parameters
    ----------
    truncates
        Whether the retention is that of TRUNCATE HISTORY, and not that of the log.

    Raises
    ------
    TableStateError
        If they are not old enough yet. The error says from when on they are.
    """
    current = target.current()
    protected = protected_version(target.table, current)

    def newest_use(last: int) -> HistoricUse | None:
        return target.files.newest_use(feature, last, protected)

    use = newest_use(current.version)
    if use is None:
        return
    if use.replaced_at_ms is None:
        write_barriers(target, 1)
    name = _TRUNCATION_RETENTION if truncates else _LOG_RETENTION
    retention = property_value(current.metadata.configuration, name)
    retention_ms = interval_ms(retention)
    if retention_ms is not None:
        target.files.truncate_log(retention_ms, protected)
    use = newest_use(current.version)
    if use is None:
        return
    replaced_at_ms = use.replaced_at_ms or target.clock_ms()
    raise error(
        "DELTAIC_FEATURE_IN_HISTORY",
        table=target.table,
        feature=feature,
        version=use.version,
        property=name,
        retention=retention,
        time="a later time" if retention_ms is None else _utc(replaced_at_ms + retention_ms),
    )


def _utc(timestamp_ms: int) -> str:
    """Return the next full second."""
    seconds = -(-timestamp_ms // 1000)
    return datetime.fromtimestamp(seconds, timezone.utc).strftime("%Y-%m-%d %H:%M:%S UTC")
