"""The table, in memory, on which each pair of operations runs."""

from __future__ import annotations

import dataclasses

from deltaic.commit.transaction import commit
from deltaic.protocol.actions import log_line
from tests.support.definitions import column, plan, schema
from tests.support.memory_log import MemoryCommit, MemoryFile, MemoryLog

NUMBERED = column(
    "id",
    metadata={
        "delta.identity.start": 1,
        "delta.identity.step": 1,
        "delta.identity.allowExplicitInsert": True,
    },
)
COLUMNS = schema(NUMBERED, "p", "x")
ONE, TWO, OLD = MemoryFile("one", 1), MemoryFile("two", 2), MemoryFile("old", 2)


def base(level: str, columns: str = COLUMNS) -> MemoryLog:
    """A clustered table with row tracking whose two files have no row IDs yet.

    Version 0 has the file `old` instead of `two`.
    """
    log = MemoryLog()
    properties = {
        "delta.columnMapping.mode": "name",
        "delta.isolationLevel": level,
        "delta.feature.checkConstraints": "supported",
        "delta.feature.clustering": "supported",
        "delta.feature.inCommitTimestamp": "supported",
        "spare": "yes",
    }
    planned = plan(
        log,
        schema_string=columns,
        properties=properties,
        constraints={"old": "p > -1"},
        cluster_by=[("p",)],
    )
    commit(MemoryCommit(log, "WRITE", adds=[ONE, OLD], plan=planned), log)
    before = planned.definition.protocol
    assert before.writer_features is not None
    features = before.writer_features | {"rowTracking"}
    after = dataclasses.replace(before, writer_features=features)
    changed = [
        log_line("protocol", after.to_json()),
        log_line("remove", {"path": "old", "dataChange": True}),
        log_line("add", TWO.add(data_change=True)),
    ]
    log.write_if_absent(1, changed)
    return log
