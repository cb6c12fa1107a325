"""A Delta log in memory: an implementation of the commit ports that needs neither Spark nor files.

It holds real log lines and answers `winner` by parsing them, as the JVM does. What it simplifies is
data: a file holds rows of one partition value, and a read predicate is a set of such values. A
deletion vector's id says which rows it deletes: each of its characters is one.
"""

from __future__ import annotations

import itertools
import json
import re
import threading
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from deltaic.commit.isolation import Isolation
from deltaic.commit.operations import Operation
from deltaic.commit.plan import CommitPlan, Definition
from deltaic.commit.ports import (
    ClonedVersion,
    CommitRecord,
    CommitSummary,
    ConcurrentRowDeletion,
    FileCounts,
    IdentityValues,
    IncompatibleFile,
    OperationInfo,
    PreparedCommit,
    TableSnapshot,
    WinningCommit,
)
from deltaic.protocol.actions import Metadata, Protocol
from tests.support.memory_downgrade import MemoryDowngrade
from tests.support.memory_maintenance import MemoryMaintenance
from tests.support.memory_parquet import MemoryParquet
from tests.support.memory_vacuum import MemoryVacuum

#: A read predicate that selects every row.
EVERYTHING = None

#: How many rows each file has.
ROWS = 10


@dataclass(frozen=True)
class MemoryFile:
    """A data file: its path, the one value of its partition column, and its deletion vector."""

    path: str
    value: int = 0
    dv_id: str | None = None
    base_row_id: int | None = None

    def add(self, data_change: bool) -> dict[str, Any]:
        """Return the file's add action."""
        body: dict[str, Any] = {
            "path": self.path,
            "partitionValues": {"p": str(self.value)},
            "size": 100,
            "dataChange": data_change,
        }
        if self.dv_id is not None:
            body["deletionVector"] = {"storageType": "u", "pathOrInlineDv": self.dv_id}
        if self.base_row_id is not None:
            body["baseRowId"] = self.base_row_id
        return body

    @staticmethod
    def of(body: Mapping[str, Any]) -> MemoryFile:
        """Read an add action."""
        return MemoryFile(
            body["path"],
            int(body["partitionValues"]["p"]),
            dv_id_of(body),
            body.get("baseRowId"),
        )

    @property
    def deleted(self) -> frozenset[str]:
        """The rows that its deletion vector deletes."""
        return frozenset(self.dv_id or "")


def dv_id_of(body: Mapping[str, Any]) -> str | None:
    """Return the id of the deletion vector in a file action."""
    vector = body.get("deletionVector")
    return vector["pathOrInlineDv"] if vector else None


class MemoryLog(MemoryDowngrade, MemoryParquet, MemoryVacuum):
    """The commits of one table, and the `TableAccess` of a session that has only this table."""

    def __init__(self, table: str = "memory:/t") -> None:
        super().__init__()
        self.table = table
        self.commits_lines: list[list[str]] = []
        self.file_time_ms: Callable[[int], int] = lambda version: 1_000 + version
        self.defaults: dict[str, str] = {}
        self.any_properties = False
        self.columnless = True
        self.session_level: Isolation | None = None
        self.session_metadata: Mapping[str, str] = {}
        self.maintained = MemoryMaintenance()
        self.is_of_command = False
        self.violation: str | None = None
        self.protocol_downgrade = False
        self.generated: list[str] = []
        self.unfit: IncompatibleFile | None = None
        self.before_try: Callable[[int], None] = lambda version: None
        self._lock = threading.Lock()

    @property
    def version(self) -> int:
        """The newest version; -1 if there is none."""
        return len(self.commits_lines) - 1

    def actions(self, version: int, kind: str) -> list[dict[str, Any]]:
        """Return the bodies of the actions of one kind in one commit."""
        parsed = (json.loads(line) for line in self.commits_lines[version])
        return [action[kind] for action in parsed if kind in action]

    def write_if_absent(self, version: int, lines: Sequence[str]) -> bool:
        """Append a commit, unless the version exists; a gap is a bug."""
        self.before_try(version)
        with self._lock:
            assert version <= len(self.commits_lines), "a version was left out"
            if version < len(self.commits_lines):
                return False
            self.commits_lines.append(list(lines))
            return True

    def files(self, version: int | None = None) -> list[MemoryFile]:
        """Return the active files (Protocol § Action Reconciliation)."""
        active: dict[str, MemoryFile] = {}
        for v in range((self.version if version is None else version) + 1):
            for body in self.actions(v, "remove"):
                active.pop(body["path"], None)
            for body in self.actions(v, "add"):
                file = MemoryFile.of(body)
                active[file.path] = file
        return list(active.values())

    @property
    def jvm_makes_first_attempt(self) -> bool:
        """Whether a command returns its first attempt."""
        return self.is_of_command

    def snapshot(self, table: str, version: int | None = None) -> TableSnapshot | None:
        """Return a version's non-file actions."""
        assert table == self.table
        newest = self.version if version is None else version
        if newest < 0:
            return None
        protocol, metadata = None, None
        txns: dict[str, int] = {}
        domains: dict[str, str] = {}
        for v in range(newest + 1):
            for body in self.actions(v, "protocol"):
                protocol = Protocol.from_json(body)
            for body in self.actions(v, "metaData"):
                metadata = Metadata.from_json(body)
            txns |= {body["appId"]: body["version"] for body in self.actions(v, "txn")}
            for body in self.actions(v, "domainMetadata"):
                domains.pop(body["domain"], None)
                if not body["removed"]:
                    domains[body["domain"]] = body["configuration"]
        assert protocol is not None and metadata is not None
        return TableSnapshot(
            newest,
            self.time_ms(newest),
            protocol,
            metadata,
            transactions=txns,
            domains=domains,
        )

    def summary(self, table: str) -> TableSnapshot | None:
        """Return the newest non-file actions with the size of the table."""
        snapshot = self.snapshot(table)
        count = len(self.files())
        return snapshot and replace(snapshot, num_files=count, size_bytes=100 * count)

    def time_ms(self, version: int) -> int:
        """Return when a version was committed: what it says itself, else the time of its file."""
        info = next(iter(self.actions(version, "commitInfo")), {})
        return int(info.get("inCommitTimestamp", self.file_time_ms(version)))

    def commits(self, table: str, limit: int | None) -> Sequence[CommitRecord]:
        """Return the newest commits first."""
        versions = range(self.version, -1, -1)[: limit if limit is not None else None]
        return [
            CommitRecord(v, self.time_ms(v), next(iter(self.actions(v, "commitInfo")), None))
            for v in versions
        ]

    def prepare_metadata_commit(self, summary: CommitSummary) -> MemoryCommit:
        """Prepare a commit that holds no file."""
        return MemoryCommit(
            self,
            summary.operation.kind.value,
            read_version=summary.read_version,
            plan=summary.plan,
            options=summary.operation.options,
            parameters=summary.operation.parameters,
            metrics=summary.engine_metrics,
            is_blind_append=summary.is_blind_append,
            reads=EVERYTHING if summary.reads_whole_table else frozenset(),
        )

    def prepare_row_ids(self, summary: CommitSummary) -> MemoryCommit | None:
        """Prepare a commit that adds every file without row IDs again."""
        older = [f for f in self.files(summary.read_version) if f.base_row_id is None]
        if not older:
            return None
        return replace(self.prepare_metadata_commit(summary), adds=older, data_change=False)

    def prepare_restore(self, summary: CommitSummary, version: int) -> MemoryCommit:
        """Prepare a commit after which the table has the files of an older version."""
        now, older = self.files(summary.read_version), self.files(version)
        gone, added = [f for f in now if f not in older], [f for f in older if f not in now]
        return replace(
            self.prepare_metadata_commit(summary),
            removes=[file.path for file in gone],
            adds=added,
            metrics={"numRemovedFiles": len(gone), "numRestoredFiles": len(added)},
        )

    def prepare_clone(self, summary: CommitSummary, source: ClonedVersion) -> MemoryCommit:
        """Prepare a commit after which the table is a clone of a version of itself."""
        return self.prepare_restore(summary, source.version)

    def version_at(self, table: str, timestamp: str) -> int:
        """Return the newest version that was committed at or before a time in milliseconds."""
        return max(v for v in range(self.version + 1) if self.time_ms(v) <= int(timestamp))

    def generate_manifests(self, table: str) -> None:
        """Record that the manifests are generated."""
        self.generated.append(table)

    def allows_protocol_downgrade(self) -> bool:
        """Return what `protocol_downgrade` says."""
        return self.protocol_downgrade

    def first_violation(self, table: str, version: int, name: str, condition: str) -> str | None:
        """Return what `violation` says: a log in memory has no rows to look at."""
        return self.violation

    def columns_in(
        self, schema_string: str, expressions: Sequence[str]
    ) -> Sequence[Sequence[Sequence[str]] | None]:
        """Return all names in each expression; one with a question mark cannot be read."""
        return [
            None if "?" in sql else [name.split(".") for name in re.findall(r"[A-Za-z_.]+", sql)]
            for sql in expressions
        ]

    def iceberg_incompatible_file(
        self, table: str, version: int, metadata: Metadata, compat_version: int
    ) -> IncompatibleFile | None:
        """Return what `unfit` says: a log in memory has no files to look at."""
        return self.unfit

    def default_properties(self) -> Mapping[str, str]:
        """Return the session's defaults."""
        return self.defaults

    def maintenance(self, prepared: PreparedCommit | None) -> MemoryMaintenance:
        """Return the maintenance, which the log shares among its commits."""
        return self.maintained

    def allows_unknown_properties(self) -> bool:
        """Return what `any_properties` says."""
        return self.any_properties

    def allows_no_columns(self) -> bool:
        """Return what `columnless` says."""
        return self.columnless

    def isolation_level(self) -> Isolation | None:
        """Return what `session_level` says."""
        return self.session_level

    def user_metadata(self) -> Mapping[str, str]:
        """Return the user metadata of the session."""
        return self.session_metadata

    def engine_info(self) -> str:
        """Return the engine's name."""
        return "Deltaic/test"


@dataclass
class MemoryCommit:
    """A prepared commit: `deltaic.commit.ports.PreparedCommit` over a `MemoryLog`.

    Attributes
    ----------
    reads
        The partition values its predicate selects, or `EVERYTHING`; none for a blind append.
    stated_columns
        Identity columns whose values were given with the rows.
    row_by_row
        Whether it only deletes rows, by deletion vectors, each independently of the others.
    """

    log: MemoryLog
    operation: str
    read_version: int = -2
    adds: Sequence[MemoryFile] = ()
    removes: Sequence[str] = ()
    reads: frozenset[int] | None = frozenset()
    data_change: bool = True
    plan: CommitPlan | None = None
    options: Mapping[str, str] = field(default_factory=dict)
    parameters: Mapping[str, str | None] = field(default_factory=dict)
    is_blind_append: bool = False
    metrics: Mapping[str, int] = field(default_factory=dict)
    identity_high_water_marks: Mapping[str, int] = field(default_factory=dict)
    stated_columns: frozenset[str] = frozenset()
    row_by_row: bool = False

    def __post_init__(self) -> None:
        if self.read_version == -2:
            self.read_version = self.log.version
        base = self.log.files(self.read_version)
        self.replaced = {f.path: f for f in base if f.path in self.removes}
        self._theirs: dict[int, dict[str, MemoryFile]] = {}
        self.read_paths = frozenset(f.path for f in base if self._selects(f.value))
        if self.plan is None:
            self.plan = keep_definition(self.log, self.read_version)

    def _selects(self, value: int) -> bool:
        return self.reads is EVERYTHING or value in self.reads

    def summary(self) -> CommitSummary:
        """Describe the commit."""
        assert self.plan is not None
        return CommitSummary(
            table=self.log.table,
            read_version=self.read_version,
            operation=OperationInfo(Operation(self.operation), self.parameters, self.options),
            plan=self.plan,
            is_blind_append=self.is_blind_append,
            reads_whole_table=self.reads is EVERYTHING,
            engine_metrics=self.metrics,
            identity=IdentityValues(
                self.identity_high_water_marks,
                frozenset(self.identity_high_water_marks) - self.stated_columns,
            ),
            files=self._counts(),
        )

    def _counts(self) -> FileCounts:
        removed = set(self.removes)
        kept = [f for f in self.adds if f.path in removed]
        new = len(self.adds) - len(kept)
        return FileCounts(
            num_added=new,
            added_bytes=100 * new,
            added_rows=ROWS * new,
            num_removed=len(removed) - len(kept),
            removed_bytes=100 * (len(removed) - len(kept)),
            num_deletion_vectors_added=sum(f.dv_id is not None for f in self.adds),
            num_deletion_vectors_removed=sum(f.dv_id is not None for f in self.replaced.values()),
            rows_without_row_ids=ROWS * sum(f.base_row_id is None for f in self.adds),
            data_change=self.data_change and bool(self.adds or self.removes),
        )

    def try_commit(
        self, version: int, action_lines: Sequence[str], first_row_id: int | None = None
    ) -> bool:
        """Write the commit as `version`, unless that exists."""
        adds = list(self.adds)
        if first_row_id is not None:
            fresh = itertools.count(first_row_id, ROWS)
            adds = [
                replace(f, base_row_id=next(fresh)) if f.base_row_id is None else f for f in adds
            ]
        removes: list[dict[str, Any]] = []
        for path in self.removes:
            body = {"path": path, "dataChange": self.data_change}
            known = self.replaced.get(path)
            if known is not None and known.dv_id is not None:
                body["deletionVector"] = {"storageType": "u", "pathOrInlineDv": known.dv_id}
            removes.append(body)
        lines = [
            *action_lines,
            *(json.dumps({"remove": body}) for body in removes),
            *(json.dumps({"add": file.add(self.data_change)}) for file in adds),
        ]
        return self.log.write_if_absent(version, lines)

    def winning_commit(self, version: int) -> WinningCommit | None:
        """Describe the commit of `version`, from its log lines."""
        if version > self.log.version:
            return None
        adds, removes = self.log.actions(version, "add"), self.log.actions(version, "remove")
        vectors = {b["path"]: frozenset(dv_id_of(b) or "") for b in removes}
        # A file whose deletion vector only grew holds no new rows.
        fresh = [
            b
            for b in adds
            if b["dataChange"] and not vectors.get(b["path"], {""}) <= MemoryFile.of(b).deleted
        ]
        gone = [b["path"] for b in removes if b["dataChange"]]
        matching = [b["path"] for b in fresh if self._selects(MemoryFile.of(b).value)]
        info = next(iter(self.log.actions(version, "commitInfo")), {})
        protocol = self.log.actions(version, "protocol")
        metadata = self.log.actions(version, "metaData")
        meeting = self._meeting(version, adds, removes)
        read = () if self.row_by_row else self.read_paths
        return WinningCommit(
            version=version,
            operation=info.get("operation"),
            timestamp_ms=self.log.file_time_ms(version),
            in_commit_timestamp_ms=info.get("inCommitTimestamp"),
            is_blind_append=info.get("isBlindAppend"),
            protocol=Protocol.from_json(protocol[0]) if protocol else None,
            metadata=Metadata.from_json(metadata[0]) if metadata else None,
            txns={b["appId"]: b["version"] for b in self.log.actions(version, "txn")},
            domains={
                b["domain"]: None if b["removed"] else b["configuration"]
                for b in self.log.actions(version, "domainMetadata")
            },
            num_added=len(adds),
            added_file_we_would_read=next(iter(matching), None),
            removed_file_we_read=next((p for p in gone if p in read), None),
            **meeting,
        )

    def has_matching_row(self, versions: Sequence[int]) -> bool:
        """Take the log's word for it."""
        return bool(versions)

    def has_deleted_row(self, versions: Sequence[int]) -> bool:
        """Take the log's word for it."""
        return bool(versions)

    def _meeting(
        self, version: int, adds: Sequence[Mapping[str, Any]], removes: Sequence[Mapping[str, Any]]
    ) -> dict[str, Any]:
        """Return the conflict about the files that both commits touch, if there is one."""
        theirs = {b["path"]: MemoryFile.of(b) for b in adds}
        moved = {b["path"] for b in removes if not b["dataChange"]}
        mine = {f.path: f for f in self.adds}
        followed: dict[str, MemoryFile] = {}
        for path in [*(b["path"] for b in removes), *theirs]:
            if path not in self.removes and path not in mine:
                continue
            if path not in theirs and path in moved:
                return {"compacted_file_we_change": path}
            if not self.row_by_row or path not in theirs or path not in self.replaced:
                return {"removed_file_we_change": path}
            before, now = self.replaced[path].deleted, theirs[path].deleted
            if not before <= now:
                return {"removed_file_we_change": path}
            both = now - before
            if path in mine:
                both &= mine[path].deleted
            if both:
                return {"concurrently_deleted_rows": ConcurrentRowDeletion(path, len(both))}
            followed[path] = theirs[path]
        self._theirs[version] = followed
        return {"needs_deletion_vector_rebase": bool(followed)}

    def rebase_deletion_vectors(self, version: int) -> FileCounts:
        """Delete the same rows in the files as the winners up to `version` have left them."""
        for _, followed in sorted((v, f) for v, f in self._theirs.items() if v <= version):
            for path, theirs in followed.items():
                gone = frozenset[str]()
                for mine in self.adds:
                    if mine.path == path:
                        gone = mine.deleted - self.replaced[path].deleted
                merged = replace(theirs, dv_id="".join(sorted(theirs.deleted | gone)))
                self.adds = [merged if f.path == path else f for f in self.adds]
                self.replaced[path] = theirs
        self._theirs.clear()
        return self._counts()


def keep_definition(log: MemoryLog, version: int) -> CommitPlan:
    """Return the plan of a write that leaves protocol and metadata alone."""
    snapshot = log.snapshot(log.table, version)
    assert snapshot is not None
    return CommitPlan(
        Definition(snapshot.protocol, snapshot.metadata), snapshot.as_previous_version()
    )


def set_property(log: MemoryLog) -> MemoryCommit:
    """Return a commit that changes the table's metadata."""
    kept = keep_definition(log, log.version)
    configuration = {**kept.definition.metadata.configuration, "owner": "me"}
    metadata: Metadata = replace(kept.definition.metadata, configuration=configuration)
    definition = Definition(kept.definition.protocol, metadata)
    changed = replace(kept, definition=definition, changes_metadata=True)
    return MemoryCommit(log, "SET TBLPROPERTIES", plan=changed)
