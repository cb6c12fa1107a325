"""What a commit needs from outside: the JVM in production, a log in memory in tests.

The values that cross are small whatever the size of the commit: file actions stay on the other
side, which answers questions about them.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol

from deltaic.commit.isolation import Isolation
from deltaic.commit.operations import Operation
from deltaic.commit.plan import CommitPlan, Predecessor
from deltaic.protocol import actions, row_tracking


@dataclass(frozen=True, slots=True)
class FileCounts:
    """The files of a commit, counted.

    A file that is removed and added under the same path only changes its deletion vector; it is
    counted with the deletion vectors and not with the files.

    Attributes
    ----------
    num_change_files
        The change data files. They tell all that the commit changes, if there are any.
    fresh_rows
        The rows, deleted ones included, of the files that have no row ids yet.
    """

    num_added: int = 0
    added_bytes: int = 0
    added_rows: int = 0
    num_removed: int = 0
    removed_bytes: int = 0
    num_deletion_vectors_added: int = 0
    num_deletion_vectors_removed: int = 0
    num_deletion_vectors_updated: int = 0
    num_change_files: int = 0
    fresh_rows: int = 0
    data_change: bool = False

    @staticmethod
    def from_json(body: Mapping[str, Any]) -> FileCounts:
        """Read the part ``files`` of a summary."""
        return FileCounts(
            num_added=body.get("numAdded", 0),
            added_bytes=body.get("addedBytes", 0),
            added_rows=body.get("addedRows", 0),
            num_removed=body.get("numRemoved", 0),
            removed_bytes=body.get("removedBytes", 0),
            num_deletion_vectors_added=body.get("numDeletionVectorsAdded", 0),
            num_deletion_vectors_removed=body.get("numDeletionVectorsRemoved", 0),
            num_deletion_vectors_updated=body.get("numDeletionVectorsUpdated", 0),
            num_change_files=body.get("numChangeFiles", 0),
            fresh_rows=body.get("freshRows", 0),
            data_change=body.get("dataChange", False),
        )

    @property
    def removes_data(self) -> bool:
        """Whether rows may be gone from the table afterwards."""
        touches = self.num_removed + self.num_deletion_vectors_added
        return self.data_change and touches + self.num_deletion_vectors_removed > 0

    @property
    def is_empty(self) -> bool:
        """Whether the commit holds no file action at all."""
        return not (
            self.num_added
            or self.num_removed
            or self.num_deletion_vectors_added
            or self.num_deletion_vectors_removed
        )


@dataclass(frozen=True, slots=True)
class CommitSummary:
    """A prepared commit, as the JVM describes it.

    Attributes
    ----------
    read_version
        The version the operation is based on; -1 when there was no table.
    plan
        What was decided before the data was written.
    identity_marks
        How far the rows written take identity columns, by column.
    numbered
        Those of them whose values the table has given; users have stated the others.
    """

    table: str
    read_version: int
    operation: Operation
    operation_parameters: Mapping[str, str | None]
    plan: CommitPlan
    is_blind_append: bool
    reads_whole_table: bool
    options: Mapping[str, str] = field(default_factory=dict)
    engine_metrics: Mapping[str, int] = field(default_factory=dict)
    files: FileCounts = field(default_factory=FileCounts)
    identity_marks: Mapping[str, int] = field(default_factory=dict)
    numbered: frozenset[str] = frozenset()

    @staticmethod
    def from_json(body: Mapping[str, Any]) -> CommitSummary:
        """Read the JSON of ``PreparedCommit.summary()``."""
        return CommitSummary(
            table=body["table"],
            read_version=body["readVersion"],
            operation=Operation(body["operation"]),
            operation_parameters=body.get("operationParameters") or {},
            plan=CommitPlan.from_json(body["plan"]),
            is_blind_append=body.get("isBlindAppend", False),
            reads_whole_table=body.get("readsWholeTable", False),
            options=body.get("options") or {},
            engine_metrics=body.get("engineMetrics") or {},
            files=FileCounts.from_json(body.get("files") or {}),
            identity_marks=body.get("identityMarks") or {},
            numbered=frozenset(body.get("numbered") or ()),
        )


@dataclass(frozen=True, slots=True)
class SharedRows:
    """Rows of one file that two commits both end."""

    path: str
    count: int


@dataclass(frozen=True, slots=True)
class Winner:
    """A commit that got in between, and where it meets ours.

    Attributes
    ----------
    is_blind_append
        None when the commit does not say.
    add_matching_reads
        The first file it added, with new rows, that could hold rows which our reads select: by what
        the log says of it.
    removed_file_read
        The first file it took rows from that could matter to us although we leave them alone: by
        what the log says of it.
    removed_file_removed
        The first file it removed, changed or added anew that we remove or change, too, in a way
        that does not allow to say which rows of it were changed.
    moved_file
        The same of a file whose rows are all there still, but lie in other files.
    shared_rows
        The first rows that both commits end, in a file that both only end rows of.
    shares_files
        Whether both commits end rows in one file: ours then has to be followed up before it is
        tried.
    domains
        The metadata domains it set, with their configuration; None for those it removed.
    in_commit_timestamp_ms
        The time it states itself, if it does.
    """

    version: int
    operation: str | None = None
    timestamp_ms: int = -1
    in_commit_timestamp_ms: int | None = None
    is_blind_append: bool | None = None
    protocol: actions.Protocol | None = None
    metadata: actions.Metadata | None = None
    txns: Mapping[str, int] = field(default_factory=dict)
    domains: Mapping[str, str | None] = field(default_factory=dict)
    num_added: int = 0
    add_matching_reads: str | None = None
    removed_file_read: str | None = None
    removed_file_removed: str | None = None
    moved_file: str | None = None
    shared_rows: SharedRows | None = None
    shares_files: bool = False

    @staticmethod
    def from_json(body: Mapping[str, Any]) -> Winner:
        """Read the JSON of ``PreparedCommit.winner(version)``."""
        protocol, metadata = body.get("protocol"), body.get("metaData")
        shared = body.get("sharedRows")
        return Winner(
            version=body["version"],
            operation=body.get("operation"),
            timestamp_ms=body["timestampMs"],
            in_commit_timestamp_ms=body.get("inCommitTimestampMs"),
            is_blind_append=body.get("isBlindAppend"),
            protocol=actions.Protocol.from_json(protocol) if protocol else None,
            metadata=actions.Metadata.from_json(metadata) if metadata else None,
            txns=body.get("txns") or {},
            domains=body.get("domains") or {},
            num_added=body.get("numAdded", 0),
            add_matching_reads=body.get("addMatchingReads"),
            removed_file_read=body.get("removedFileRead"),
            removed_file_removed=body.get("removedFileRemoved"),
            moved_file=body.get("movedFile"),
            shared_rows=SharedRows(shared["path"], shared["rows"]) if shared else None,
            shares_files=body.get("sharesFiles", False),
        )


@dataclass(frozen=True, slots=True)
class TableHeader:
    """A version of a table without its files."""

    version: int
    timestamp_ms: int
    protocol: actions.Protocol
    metadata: actions.Metadata
    num_files: int = 0
    size_bytes: int = 0
    transactions: Mapping[str, int] = field(default_factory=dict)
    domains: Mapping[str, str] = field(default_factory=dict)

    @staticmethod
    def from_json(body: Mapping[str, Any]) -> TableHeader:
        """Read the JSON of ``PythonApi.header``."""
        return TableHeader(
            version=body["version"],
            timestamp_ms=body["timestampMs"],
            protocol=actions.Protocol.from_json(body["protocol"]),
            metadata=actions.Metadata.from_json(body["metaData"]),
            num_files=body.get("numFiles", 0),
            size_bytes=body.get("sizeBytes", 0),
            transactions=body.get("transactions") or {},
            domains=body.get("domains") or {},
        )

    def as_predecessor(self) -> Predecessor:
        """Return what the commit after this version must know of it."""
        return Predecessor(
            self.version,
            self.timestamp_ms,
            row_tracking.high_water_mark(self.metadata.id, self.domains),
        )


@dataclass(frozen=True, slots=True)
class CommitRecord:
    """One commit of the history; `info` is its commitInfo, if it holds one."""

    version: int
    timestamp_ms: int
    info: Mapping[str, Any] | None

    @staticmethod
    def from_json(body: Mapping[str, Any]) -> CommitRecord:
        """Read one entry of ``PythonApi.commitInfos``."""
        return CommitRecord(body["version"], body["timestampMs"], body.get("commitInfo"))


class PreparedCommit(Protocol):
    """The files of one commit, ready to be made a version of the table."""

    def summary(self) -> CommitSummary:
        """Describe the commit."""

    def try_commit(
        self, version: int, header_lines: Sequence[str], first_row_id: int | None = None
    ) -> bool:
        """Write the header lines and the file actions as `version`, unless it exists.

        Parameters
        ----------
        version
            The version to write.
        header_lines
            All actions but those on files.
        first_row_id
            The id of the first row of those files that have no row ids yet; None on a table that
            does not give any.

        Returns
        -------
        bool
            True if the version is now this commit; False if it was there before.

        Raises
        ------
        DeltaError
            If the version certainly was not written.
        Exception
            Anything else leaves open whether it was.
        """

    def winner(self, version: int) -> Winner | None:
        """Describe the commit of `version` as far as it matters here; None if there is none."""

    def has_matching_row(self, versions: Sequence[int]) -> bool:
        """Return whether any of these commits added a row that our reads select.

        Reads the files that could hold one by what the log says of them, those of all commits in
        one query. A row that cannot be looked at counts.
        """

    def has_deleted_row(self, versions: Sequence[int]) -> bool:
        """Return likewise whether any of them deleted a row whose loss matters to us."""

    def follow(self, version: int) -> FileCounts:
        """End the same rows in the files as the commits up to `version` have left them.

        Called when none of these commits is a reason not to be committed, and some of them have
        ended other rows in the same files.

        Returns
        -------
        FileCounts
            The files of the commit as it is now.
        """


@dataclass(frozen=True, slots=True)
class UnfitFile:
    """A data file that is not as a feature asks, and why: a word that the JVM has for it."""

    path: str
    reason: str


@dataclass(frozen=True, slots=True)
class UpkeepSettings:
    """What a session asks of the files that follow a commit.

    Attributes
    ----------
    part_size
        Above how many actions a checkpoint is split into several files; None for never.
    sidecar_size
        How many files a sidecar of a V2 checkpoint holds at most.
    compaction_interval
        After how many commits they are compacted into one file; 0 for never.
    wants_small_files_compacted
        Whether data files are to be compacted as well, which is not done.
    """

    writes_checksums: bool = True
    part_size: int | None = None
    sidecar_size: int = 50_000
    compaction_interval: int = 0
    wants_small_files_compacted: bool = False


class Upkeep(Protocol):
    """The files of a log that follow its commits."""

    def settings(self) -> UpkeepSettings:
        """Return what the session asks for."""

    def newest_checkpoint(self, not_below: int) -> int:
        """Return the newest checkpoint known, -1 if none is.

        The log is only asked when what is known is below `not_below`.
        """

    def failed(self) -> frozenset[str]:
        """Return the names of the tasks that failed when they were tried last."""

    def run(self, version: int, tasks: Sequence[Mapping[str, Any]]) -> None:
        """Do the tasks that a version calls for, now or soon; failures are logged, not raised."""


class Tables(Protocol):
    """The tables of this process."""

    def header(self, table: str, version: int | None = None) -> TableHeader | None:
        """Return a version's header, the newest by default; None if there is no table.

        Its files are not counted.
        """

    def summary(self, table: str) -> TableHeader | None:
        """Return the newest header, files counted, without transactions; None if no table."""

    def commits(self, table: str, limit: int | None) -> Sequence[CommitRecord]:
        """Return the newest commits first."""

    def prepare_header_commit(self, summary: CommitSummary) -> PreparedCommit:
        """Prepare a commit that holds no file."""

    def prepare_row_ids(self, summary: CommitSummary) -> PreparedCommit | None:
        """Prepare a commit that adds anew every file without row ids; None if all have some."""

    def first_violation(self, table: str, version: int, name: str, condition: str) -> str | None:
        """Return a row of the version that breaks the condition; None if all rows meet it.

        Raises
        ------
        InvalidArgumentError
            If it is no condition on single rows of the table; `name` is the constraint's.
        """

    def columns_in(
        self, schema_string: str, expressions: Sequence[str]
    ) -> Sequence[Sequence[Sequence[str]] | None]:
        """Return the paths of the columns that each SQL expression over a schema speaks of.

        Below arrays and maps they go through ``element``, ``key`` and ``value``. None stands for an
        expression that cannot be read: it may speak of any.
        """

    def furthest_value(self, table: str, version: int, column: str, *, largest: bool) -> int | None:
        """Return the largest or smallest value of a whole-number column; None without rows."""

    def unfit_for_iceberg(
        self, table: str, version: int, metadata: actions.Metadata, *, numbers_columns: bool
    ) -> UnfitFile | None:
        """Return a file that an Iceberg reader could not use under a definition, if there is one.

        Parameters
        ----------
        numbers_columns
            Whether a file has to have every column, and all within it, under its id.
        """

    def default_properties(self) -> Mapping[str, str]:
        """Return the table properties that the session sets for every new table."""

    def allows_unknown_properties(self) -> bool:
        """Return whether the session stores ``delta.`` properties that it does not know."""

    def allows_no_columns(self) -> bool:
        """Return whether the session creates tables that have no columns yet."""

    def isolation_level(self) -> Isolation | None:
        """Return the isolation level that the session sets for tables that set none."""

    def engine_info(self) -> str:
        """Return what commits name as their engine."""

    def upkeep(self, prepared: PreparedCommit) -> Upkeep:
        """Return the upkeep of the table that a commit belongs to."""
