"""What `python -m deltaic inspect` finds out about a table; the names are those of its JSON."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any


@dataclass(frozen=True, slots=True)
class FeatureSupport:
    """One table feature.

    Attributes
    ----------
    is_reader_feature
        Whether readers must support it, too.
    is_in_use
        Whether the table uses it; None if its definition does not show that.
    is_readable, is_writable
        Whether Deltaic can read, and write, this table as far as the feature is concerned.
    """

    name: str
    is_reader_feature: bool
    is_in_use: bool | None
    is_readable: bool
    is_writable: bool


@dataclass(frozen=True, slots=True)
class ProtocolFacts:
    """The protocol of the table, and whether Deltaic supports it.

    Attributes
    ----------
    not_readable_because, not_writable_because
        What Deltaic does not support: features, versions and properties; empty if it is readable
        or writable.
    """

    min_reader_version: int
    min_writer_version: int
    features: tuple[FeatureSupport, ...]
    is_readable: bool
    not_readable_because: tuple[str, ...]
    is_writable: bool
    not_writable_because: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class SizeBucket:
    """The files of at least `min_bytes` and less than `max_bytes`; None for no limit."""

    min_bytes: int
    max_bytes: int | None
    num_files: int
    size_bytes: int


@dataclass(frozen=True, slots=True)
class FileFacts:
    """The data files of the newest version.

    Attributes
    ----------
    small_file_bytes
        Files of fewer bytes are small.
    num_partitions_with_small_files
        The partitions that have at least two small files.
    num_files_to_compact
        The small files in these partitions.
    num_files_to_compact_without_statistics
        The files without statistics that OPTIMIZE can join with others of their partition.
    num_missing_files
        The files that the table needs and that do not exist; None if the directory has none.
    """

    num_files: int
    size_bytes: int
    num_partitions: int
    smallest_bytes: int | None
    median_bytes: int | None
    largest_bytes: int | None
    histogram: tuple[SizeBucket, ...]
    small_file_bytes: int
    num_small_files: int
    small_files_size_bytes: int
    num_partitions_with_small_files: int
    num_files_to_compact: int
    num_files_without_statistics: int
    num_files_to_compact_without_statistics: int
    num_missing_files: int | None


@dataclass(frozen=True, slots=True)
class RowFacts:
    """The rows of the newest version.

    Attributes
    ----------
    num_rows
        Deleted rows are not included; None if a file has no statistics.
    num_rows_in_files
        The rows of the files that have statistics, deleted ones included.
    num_deleted_rows
        The rows that deletion vectors mark as deleted.
    deleted_rows_ratio
        Their share of the rows of the files; None if a file has no statistics.
    deletion_vector_bytes
        The size of all deletion vectors, also of those that are stored in the log.
    deletion_vector_bytes_ratio
        Its share of the size of data files and deletion vectors.
    num_files_over_deleted_rows_ratio
        The files of which OPTIMIZE rewrites each because of its deleted rows.
    """

    num_rows: int | None
    num_rows_in_files: int
    num_deleted_rows: int
    deleted_rows_ratio: float | None
    num_files_with_deletion_vectors: int
    deletion_vector_bytes: int
    deletion_vector_bytes_ratio: float
    num_files_over_deleted_rows_ratio: int


@dataclass(frozen=True, slots=True)
class CheckpointFacts:
    """The newest checkpoint that can be read.

    Attributes
    ----------
    kind
        ``classic``, ``multi-part`` or ``v2``.
    """

    version: int
    kind: str
    num_parts: int
    num_sidecars: int
    size_bytes: int
    timestamp_ms: int
    age_ms: int


@dataclass(frozen=True, slots=True)
class LogFacts:
    """The log.

    Attributes
    ----------
    num_commits
        The commit files in the directory, from `oldest_commit_version` on.
    num_commits_since_checkpoint
        The commits that a reader has to read after the newest checkpoint.
    log_retention_ms, deleted_file_retention_ms
        None if the property of the table is not valid.
    has_checksum
        Whether the newest version has a checksum file.
    num_tombstones, num_expired_tombstones
        The removed files that the log still names, and those whose retention is over.
    num_unused_files, unused_files_size_bytes
        The files that VACUUM would delete; None if the directory has no file of the table.
    """

    size_bytes: int
    num_commits: int
    oldest_commit_version: int | None
    num_commits_since_checkpoint: int
    checkpoint: CheckpointFacts | None
    checkpoint_interval: int | None
    num_compactions: int
    has_checksum: bool
    log_retention_ms: int | None
    deleted_file_retention_ms: int | None
    num_transactions: int
    num_tombstones: int
    num_expired_tombstones: int
    num_unused_files: int | None
    unused_files_size_bytes: int | None


@dataclass(frozen=True, slots=True)
class Recommendation:
    """A statement to run, and why."""

    statement: str
    reason: str


@dataclass(frozen=True, slots=True)
class Inspection:
    """All facts about a table.

    Attributes
    ----------
    path
        The absolute path of its directory.
    timestamp_ms
        The time of the newest version.
    operation, engine
        The operation that made the newest version, and its engine, if the commit says so.
    clustering_columns
        As SQL spells them.
    warnings
        What is wrong with the table or with parts of the log; what else was found is still valid.
    """

    path: str
    id: str
    name: str | None
    description: str | None
    format: str
    created_ms: int | None
    version: int
    timestamp_ms: int
    operation: str | None
    engine: str | None
    num_columns: int | None
    partition_columns: tuple[str, ...]
    clustering_columns: tuple[str, ...]
    properties: Mapping[str, str]
    protocol: ProtocolFacts
    files: FileFacts
    rows: RowFacts
    log: LogFacts
    warnings: tuple[str, ...]
    recommendations: tuple[Recommendation, ...]

    def to_json(self) -> dict[str, Any]:
        """Return all facts as an object of JSON; the names of the fields are those of its keys."""
        return {name: _json(value) for name, value in asdict(self).items()}


def _json(value: Any) -> Any:
    if isinstance(value, tuple):
        return [_json(item) for item in value]
    if isinstance(value, dict):
        return {name: _json(item) for name, item in value.items()}
    return value
