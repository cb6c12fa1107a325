"""Row tracking backfill: row IDs for existing rows (Protocol § Row Tracking)."""

from __future__ import annotations

import json
from dataclasses import replace

from deltaic.commands.alter.alteration import Alteration, alter, current_snapshot
from deltaic.commit.clock import Clock
from deltaic.commit.operations import Operation
from deltaic.commit.plan import CommitPlan, Definition
from deltaic.commit.ports import CommitSummary, OperationInfo, TableAccess
from deltaic.commit.transaction import RetryPolicy, commit, with_user_metadata
from deltaic.exceptions import ConcurrentModificationError, error
from deltaic.protocol import row_tracking
from deltaic.protocol.properties import ProtocolRequest

#: The maximum number of attempts if other writers concurrently change the files to backfill.
_MAX_ROUNDS = 100


def backfill_row_ids(table: str, tables: TableAccess, policy: RetryPolicy, clock_ms: Clock) -> None:
    """Assign an id to every row of a table, and require the same of later writers.

    There are two commits. The first adds the feature to the protocol: from then on, every writer
    assigns ids to its new rows. The second adds the older files again with their base row IDs. If
    anything fails in between, the table is valid: it supports the feature but does not use it yet.

    Raises
    ------
    ConcurrentModificationError
        If other writers repeatedly changed the older files.
    TableStateError
        If the statistics of a file do not have its number of rows.
    """
    _add_feature(table, tables, policy, clock_ms)
    for batch in range(_MAX_ROUNDS):
        try:
            if not _assign_row_ids(table, batch, tables, policy, clock_ms):
                return
        except ConcurrentModificationError:
            if batch == _MAX_ROUNDS - 1:
                raise


def _add_feature(table: str, tables: TableAccess, policy: RetryPolicy, clock_ms: Clock) -> None:
    current = current_snapshot(table, tables)
    if row_tracking.assigns_row_ids(current.protocol, current.metadata):
        return
    resumed = {
        name: value
        for name, value in current.metadata.configuration.items()
        if name != row_tracking.SUSPENDED
    }
    alter(
        Alteration(
            table,
            current,
            replace(current.metadata, configuration=resumed),
            Operation.UPGRADE_PROTOCOL,
            {"newFeatures": json.dumps([row_tracking.FEATURE])},
            ProtocolRequest(features=(row_tracking.FEATURE,)),
        ),
        tables,
        policy,
        clock_ms,
        more_follows=True,
    )


def _assign_row_ids(
    table: str, batch: int, tables: TableAccess, policy: RetryPolicy, clock_ms: Clock
) -> bool:
    """Assign ids to the rows that have none; return False if all rows have ids."""
    current = tables.snapshot(table)
    if current is None:
        raise error("DELTAIC_NOT_A_TABLE", table=table)
    summary = CommitSummary(
        table=table,
        read_version=current.version,
        operation=OperationInfo(Operation.ROW_TRACKING_BACKFILL, {"batchId": str(batch)}),
        plan=CommitPlan(
            Definition(current.protocol, current.metadata), current.as_previous_version()
        ),
        is_blind_append=False,
        reads_whole_table=False,
    )
    prepared = tables.prepare_row_ids(with_user_metadata(summary, tables))
    if prepared is None:
        return False
    commit(prepared, tables, policy, clock_ms)
    return True
