"""RESTORE: an older version of a table becomes its newest version."""

from __future__ import annotations

from dataclasses import dataclass, replace

from deltaic.commands.alter.alteration import current_snapshot
from deltaic.commands.definitions.copied_clustering import copied_clustering
from deltaic.commands.definitions.definition import plan_metadata_update
from deltaic.commands.definitions.restored_definition import restored_definition
from deltaic.commands.rows import RowSet, result_schema
from deltaic.commit.clock import Clock
from deltaic.commit.message import Message
from deltaic.commit.operations import Operation
from deltaic.commit.plan import CommitPlan, Definition
from deltaic.commit.ports import CommitSummary, OperationInfo, TableAccess, TableSnapshot
from deltaic.commit.transaction import RetryPolicy, commit, with_user_metadata
from deltaic.exceptions import error
from deltaic.protocol import row_tracking
from deltaic.protocol.actions import DomainMetadata
from deltaic.protocol.features import is_append_only, require_writable
from deltaic.protocol.numbers import whole_number

RESTORE_SCHEMA = result_schema("restore")

#: The columns of the result, and the operation metrics that they show.
_COLUMNS = {
    "table_size_after_restore": "tableSizeAfterRestore",
    "num_of_files_after_restore": "numOfFilesAfterRestore",
    "num_removed_files": "numRemovedFiles",
    "num_restored_files": "numRestoredFiles",
    "removed_files_size": "removedFilesSize",
    "restored_files_size": "restoredFilesSize",
}


@dataclass(frozen=True, slots=True)
class Restore(Message):
    """The arguments: either the version to restore, or a timestamp in the session's time zone."""

    table: str
    version: str | None = None
    timestamp: str | None = None


def restore(
    arguments: Restore, tables: TableAccess, policy: RetryPolicy, clock_ms: Clock
) -> RowSet:
    """Restore the rows and the definition of an older version.

    If the table does not differ from that version, nothing is committed, and the result shows that
    no file was removed or restored.

    Raises
    ------
    TableStateError
        If the version cannot be read, a file of it no longer exists, or the table is append-only.
    ConcurrentModificationError
        If another commit changed the table concurrently.
    """
    table = arguments.table
    current = current_snapshot(table, tables)
    version = _version(arguments, tables)
    older = tables.snapshot(table, version)
    if older is None:
        raise error("DELTAIC_NOT_A_TABLE", table=table)
    definition = restored_definition(
        table, older, current, allows_downgrade=tables.allows_protocol_downgrade()
    )
    require_writable(table, current.version, definition.protocol, definition.metadata)
    summary = CommitSummary(
        table=table,
        read_version=current.version,
        operation=OperationInfo(
            Operation.RESTORE,
            {
                "version": str(version) if arguments.timestamp is None else None,
                "timestamp": arguments.timestamp,
            },
        ),
        plan=_plan(table, definition, older, current),
        is_blind_append=False,
        reads_whole_table=True,
    )
    prepared = tables.prepare_restore(with_user_metadata(summary, tables), version)
    counts = prepared.summary().engine_metrics
    commit(prepared, tables, policy, clock_ms)
    row = {column: counts.get(metric, 0) for column, metric in _COLUMNS.items()}
    return RowSet(RESTORE_SCHEMA, [row])


def _version(arguments: Restore, tables: TableAccess) -> int:
    if arguments.timestamp is not None:
        return tables.version_at(arguments.table, arguments.timestamp)
    version = whole_number((arguments.version or "").strip())
    if version is None or version < 0:
        raise error(
            "DELTAIC_INVALID_TIME_TRAVEL",
            table=arguments.table,
            value=arguments.version,
            reason="a version is a whole number from 0 on",
        )
    return version


def _plan(
    table: str, definition: Definition, older: TableSnapshot, current: TableSnapshot
) -> CommitPlan:
    base = current.as_previous_version()
    mark = max(base.row_id_high_water_mark, row_tracking.high_water_mark(table, older.domains))
    return replace(
        plan_metadata_update(definition, current),
        base=replace(base, row_id_high_water_mark=mark),
        domains=(
            *copied_clustering(definition, older.domains, current.domains),
            *_high_water_mark(definition, mark, base.row_id_high_water_mark),
        ),
        was_append_only=is_append_only(current.protocol, current.metadata),
    )


def _high_water_mark(definition: Definition, mark: int, current: int) -> tuple[DomainMetadata, ...]:
    """Return the action that raises the row ID high-water mark, which is never lowered.

    The table has a lower one only if the feature was dropped in between.
    """
    if mark == current or not row_tracking.assigns_row_ids(
        definition.protocol, definition.metadata
    ):
        return ()
    return (row_tracking.high_water_mark_action(mark),)
