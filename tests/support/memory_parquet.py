"""Parquet files beside a log in memory: as many as a test says."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from deltaic.commit.parquet_source import ParquetFiles, ParquetRequest, ParquetSummary
from deltaic.commit.ports import CommitSummary

if TYPE_CHECKING:
    from tests.support.memory_log import MemoryCommit


class MemoryParquetFiles:
    """Files that a test sets, and what was requested of them.

    Attributes
    ----------
    columns
        The JSON of the schema of the files.
    """

    def __init__(self) -> None:
        self.columns = ""
        self.partition_columns: tuple[str, ...] = ()
        self.is_inferred = False
        self.paths: tuple[str, ...] = ("a.parquet", "b.parquet")
        self.request: ParquetRequest | None = None

    def summary(self) -> ParquetSummary:
        """Describe the files."""
        return ParquetSummary(
            self.columns, self.partition_columns, self.is_inferred, len(self.paths)
        )


class MemoryParquet:
    """What CONVERT TO DELTA needs of a log in memory."""

    def __init__(self) -> None:
        super().__init__()
        self.parquet = MemoryParquetFiles()

    def prepare_metadata_commit(self, summary: CommitSummary) -> MemoryCommit:
        """Prepare a commit without files, to which these are added."""
        raise NotImplementedError

    def read_parquet(self, table: str, request: ParquetRequest) -> MemoryParquetFiles:
        """Return `parquet`, which records the request."""
        self.parquet.request = request
        return self.parquet

    def prepare_parquet_clone(
        self, summary: CommitSummary, files: ParquetFiles, *, is_shallow: bool
    ) -> MemoryCommit:
        """Prepare a commit that adds the files of `parquet`."""
        return self.prepare_conversion(summary, files)

    def prepare_conversion(self, summary: CommitSummary, files: ParquetFiles) -> MemoryCommit:
        """Prepare a commit that adds the files of `parquet`."""
        from dataclasses import replace

        from tests.support.memory_log import MemoryFile

        assert files is self.parquet
        added: Any = [MemoryFile(path) for path in self.parquet.paths]
        return replace(self.prepare_metadata_commit(summary), adds=added)
