"""The scenarios, in the order in which they run. A new scenario is a module and a line here."""

from __future__ import annotations

from bench.scenarios.appends import Appends
from bench.scenarios.auto_compaction import AutoCompaction
from bench.scenarios.changed_share import DeleteShare, UpdateShare
from bench.scenarios.checkpoint import Checkpoint
from bench.scenarios.cold_query import ColdQuery
from bench.scenarios.concurrent_writers import ConcurrentWriters
from bench.scenarios.large_commit import LargeCommit
from bench.scenarios.long_log import LongLog
from bench.scenarios.many_commits import ManyCommits
from bench.scenarios.merge import MergeUpsert
from bench.scenarios.new_table import NewTable
from bench.scenarios.one_row_changes import OneRowDeletes, OneRowUpdates
from bench.scenarios.open_files import OpenFiles
from bench.scenarios.optimize import DropVectors, Optimize
from bench.scenarios.refresh import Refresh
from bench.scenarios.restore import Restore
from bench.scenarios.scan import Scan
from bench.scenarios.scan_after_merges import ScanAfterMerges
from bench.scenarios.scenario import Scenario
from bench.scenarios.streams import SCENARIOS as STREAM_SCENARIOS
from bench.scenarios.table_copies import Convert, DeepClone, ShallowClone
from bench.scenarios.tpc_queries import SCENARIOS as TPC_SCENARIOS
from bench.scenarios.vacuum import VacuumFull, VacuumLite
from bench.scenarios.write_rows import WriteRows

ALL: tuple[type[Scenario], ...] = (
    ColdQuery,
    NewTable,
    OpenFiles,
    LongLog,
    Checkpoint,
    LargeCommit,
    Restore,
    Convert,
    ShallowClone,
    DeepClone,
    Optimize,
    DropVectors,
    VacuumFull,
    VacuumLite,
    Appends,
    ManyCommits,
    AutoCompaction,
    OneRowDeletes,
    OneRowUpdates,
    WriteRows,
    Scan,
    DeleteShare,
    UpdateShare,
    MergeUpsert,
    Refresh,
    ScanAfterMerges,
    ConcurrentWriters,
    *STREAM_SCENARIOS,
    *TPC_SCENARIOS,
)

BY_NAME = {scenario.name: scenario for scenario in ALL}

__all__ = ["ALL", "BY_NAME"]
