"""VACUUM: delete the files that no version within the retention needs.

The JVM finds and deletes the files. Two commits record the run in the history.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from decimal import Decimal, InvalidOperation

from deltaic.commands.alter.alteration import current_snapshot
from deltaic.commands.definitions.definition import plan_metadata_update
from deltaic.commit.clock import Clock
from deltaic.commit.message import Message
from deltaic.commit.operations import Operation
from deltaic.commit.plan import Definition
from deltaic.commit.ports import (
    CommitSummary,
    OperationInfo,
    TableAccess,
)
from deltaic.commit.transaction import RetryPolicy, commit_metadata
from deltaic.commit.unused_files import (
    DeletedFileCounts,
    UnusedFileCounts,
    UnusedFiles,
    VacuumRequest,
)
from deltaic.exceptions import ConcurrentModificationError, error
from deltaic.protocol.properties import checked_value, interval_ms

_PROPERTY = "delta.deletedFileRetentionDuration"
_CHECK_SETTING = "spark.deltaic.retentionDurationCheck.enabled"
_HOUR_MS = 3_600_000
#: The retention of a table whose property overflows: nothing expires.
_FOREVER_MS = 2**61
#: How often a commit is tried again after a concurrent change of the table's definition.
_ATTEMPTS = 20


@dataclass(frozen=True, slots=True)
class Vacuum(Message):
    """The arguments.

    Attributes
    ----------
    retention_hours
        How long files are retained, a number; None for the table's retention.
    """

    table: str
    retention_hours: str | None = None
    is_lite: bool = False
    inventory: str | None = None
    dry_run: bool = False


@dataclass(frozen=True, slots=True)
class VacuumResult(Message):
    """What the JVM does with the result.

    Attributes
    ----------
    shown_files
        Set if the files are only shown, which the JVM then finds: they may be too many to send.
    """

    shown_files: VacuumRequest | None = None


@dataclass(frozen=True, slots=True)
class _Retention:
    """How long files are retained.

    Attributes
    ----------
    specified_ms
        What the statement specifies, if anything.
    """

    default_ms: int
    specified_ms: int | None
    is_checked: bool

    @property
    def effective_ms(self) -> int:
        return self.default_ms if self.specified_ms is None else self.specified_ms

    def parameters(self) -> dict[str, str | None]:
        """Return the parameters of VACUUM START."""
        specified = None if self.specified_ms is None else str(self.specified_ms)
        return {
            "retentionCheckEnabled": "true" if self.is_checked else "false",
            "defaultRetentionMillis": str(self.default_ms),
            "specifiedRetentionMillis": specified,
        }


def vacuum(
    arguments: Vacuum, tables: TableAccess, policy: RetryPolicy, clock_ms: Clock
) -> VacuumResult:
    """Delete the files that no version within the retention needs.

    Raises
    ------
    InvalidArgumentError
        If the retention is negative, or shorter than the table's.
    ProtocolError
        If this build cannot read or write the table: a feature that it does not know may define
        which files the table needs.
    TableStateError
        If files could not be deleted.
    """
    now_ms = clock_ms()
    retention = _retention(arguments, tables)
    request = VacuumRequest(now_ms - retention.effective_ms, arguments.is_lite, arguments.inventory)
    if arguments.dry_run:
        return VacuumResult(request)
    unused = tables.find_unused_files(arguments.table, request)
    try:
        _delete(_Run(arguments.table, tables, policy, clock_ms), unused, retention)
        if arguments.inventory is None:
            unused.record()
    finally:
        unused.close()
    return VacuumResult()


@dataclass(frozen=True, slots=True)
class _Run:
    """One run, whose start and end are committed."""

    table: str
    tables: TableAccess
    policy: RetryPolicy
    clock_ms: Clock

    def log(
        self,
        operation: Operation,
        parameters: Mapping[str, str | None],
        metrics: Mapping[str, int],
    ) -> None:
        """Commit an entry of the history, which has no other action.

        A concurrent change of the table's definition conflicts with the commit, not with the run.
        """
        for attempt in range(1, _ATTEMPTS + 1):
            try:
                self._commit(OperationInfo(operation, parameters), metrics)
                return
            except ConcurrentModificationError:
                if attempt == _ATTEMPTS:
                    raise

    def _commit(self, operation: OperationInfo, metrics: Mapping[str, int]) -> None:
        current = current_snapshot(self.table, self.tables)
        definition = Definition(current.protocol, current.metadata)
        summary = CommitSummary(
            table=self.table,
            read_version=current.version,
            operation=operation,
            plan=plan_metadata_update(definition, current),
            is_blind_append=True,
            reads_whole_table=False,
            engine_metrics=metrics,
        )
        commit_metadata(summary, self.tables, self.policy, self.clock_ms, more_follows=True)


def _delete(run: _Run, unused: UnusedFiles, retention: _Retention) -> None:
    found = unused.counts()
    writes_log = run.tables.vacuum_settings().writes_log
    if writes_log:
        metrics = {"numFilesToDelete": found.num_files, "sizeOfDataToDelete": found.size_bytes}
        run.log(Operation.VACUUM_START, retention.parameters(), metrics)
    try:
        deleted = unused.delete()
    except Exception:
        if writes_log:
            run.log(Operation.VACUUM_END, {"status": "FAILED"}, {})
        raise
    if writes_log:
        status = "FAILED" if deleted.num_failed else "COMPLETED"
        run.log(Operation.VACUUM_END, {"status": status}, _end_metrics(found, deleted))
    if deleted.num_failed:
        raise error(
            "DELTAIC_VACUUM_INCOMPLETE",
            table=run.table,
            failed=deleted.num_failed,
            total=found.num_files,
            file=deleted.failure,
        )


def _end_metrics(found: UnusedFileCounts, deleted: DeletedFileCounts) -> dict[str, int]:
    return {
        "numDeletedFiles": deleted.num_deleted,
        "numVacuumedDirectories": found.num_directories,
    }


def _retention(arguments: Vacuum, tables: TableAccess) -> _Retention:
    """Return the retention of a run.

    Raises
    ------
    InvalidArgumentError
        If the specified retention is negative, or shorter than the table's while that is checked.
    """
    current = current_snapshot(arguments.table, tables)
    configuration = current.metadata.configuration
    default_ms = interval_ms(checked_value(arguments.table, configuration, _PROPERTY))
    checked = tables.vacuum_settings().checks_retention
    given = arguments.retention_hours
    hours = None if given is None else _hours(given)
    specified_ms = None if hours is None else math.ceil(hours * _HOUR_MS)
    retention = _Retention(_FOREVER_MS if default_ms is None else default_ms, specified_ms, checked)
    if checked and retention.effective_ms < retention.default_ms:
        raise error(
            "DELTAIC_VACUUM_RETENTION_TOO_SHORT",
            table=arguments.table,
            retentionHours=hours,
            tableRetentionHours=math.ceil(retention.default_ms / _HOUR_MS),
            setting=_CHECK_SETTING,
        )
    return retention


def _hours(given: str) -> Decimal:
    """Read a number of hours.

    Raises
    ------
    InvalidArgumentError
        If it is not a number from 0 on.
    """
    try:
        hours = Decimal(given.replace(" ", ""))
    except InvalidOperation:
        hours = Decimal("NaN")
    if not hours.is_finite() or hours < 0:
        raise error(
            "DELTAIC_VACUUM_OPTION_INVALID",
            option=f"RETAIN {given} HOURS",
            reason="the retention is a number of hours, and not negative",
        )
    return hours
