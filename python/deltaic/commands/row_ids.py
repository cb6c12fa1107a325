"""Row ids for a table that has rows already (Protocol § Row Tracking)."""

from __future__ import annotations

import json
from dataclasses import replace

from deltaic.commands.alteration import Alteration, alter, altered_header
from deltaic.commit.clock import Clock
from deltaic.commit.operations import Operation
from deltaic.commit.plan import CommitPlan, Definition
from deltaic.commit.ports import CommitSummary, Tables
from deltaic.commit.transaction import RetryPolicy, commit
from deltaic.exceptions import ConcurrentModificationError, error
from deltaic.protocol import row_tracking
from deltaic.protocol.properties import ProtocolRequest

#: How often rows are numbered anew because another writer touched their files meanwhile.
_MAX_ROUNDS = 100


def give_row_ids(table: str, tables: Tables, policy: RetryPolicy, clock_ms: Clock) -> None:
    """Give every row of a table an id, and see to it that later writers do the same.

    Two kinds of commits: one that adds the feature to the protocol, from which on every writer has
    to number its new rows, then one that adds the older files anew with their first ids. If
    anything fails in between, the table is whole, supports the feature, and does not use it yet.

    Raises
    ------
    ConcurrentModificationError
        If other writers kept touching the older files.
    TableStateError
        If the log does not say how many rows a file has.
    """
    _require_of_writers(table, tables, policy, clock_ms)
    for batch in range(_MAX_ROUNDS):
        try:
            if not _numbered(table, batch, tables, policy, clock_ms):
                return
        except ConcurrentModificationError:
            if batch == _MAX_ROUNDS - 1:
                raise


def _require_of_writers(table: str, tables: Tables, policy: RetryPolicy, clock_ms: Clock) -> None:
    current = altered_header(table, tables)
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
    )


def _numbered(table: str, batch: int, tables: Tables, policy: RetryPolicy, clock_ms: Clock) -> bool:
    """Give ids to the rows that have none; return False if all have some."""
    current = tables.header(table)
    if current is None:
        raise error("DELTAIC_NOT_A_TABLE", table=table)
    summary = CommitSummary(
        table=table,
        read_version=current.version,
        operation=Operation.ROW_TRACKING_BACKFILL,
        operation_parameters={"batchId": str(batch)},
        plan=CommitPlan(Definition(current.protocol, current.metadata), current.as_predecessor()),
        is_blind_append=False,
        reads_whole_table=False,
    )
    prepared = tables.prepare_row_ids(summary)
    if prepared is None:
        return False
    commit(prepared, tables, policy, clock_ms)
    return True
