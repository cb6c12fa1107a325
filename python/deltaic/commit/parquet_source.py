"""Parquet files that become the files of a table."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Protocol

from deltaic.commit.message import Message, json_name


@dataclass(frozen=True, slots=True)
class ParquetEntry(Message):
    """What the session catalog knows of Parquet files.

    Attributes
    ----------
    catalog_table
        The name of the table that has the files; None if they are given by their path.
    properties, description
        Those of the table.
    """

    catalog_table: str | None = None
    properties: Mapping[str, str] = field(default_factory=dict)
    description: str | None = None


@dataclass(frozen=True, slots=True)
class ParquetRequest(Message):
    """What is read of Parquet files in a folder.

    Attributes
    ----------
    catalog_table
        The table of the session catalog that has the files; None if only their folder is known.
    partition_schema
        The specified partition columns; None if they are those of the catalog or of the names of
        directories.
    properties
        The properties that the table will have, which select the columns with statistics.
    """

    catalog_table: str | None = None
    partition_schema: str | None = None
    collect_statistics: bool = True
    properties: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class ParquetSummary(Message):
    """What was read.

    Attributes
    ----------
    schema_string
        The columns. Those that some files have with a narrower type have type changes
        (Protocol § Type Change Metadata).
    is_partitioning_inferred
        Whether the partition columns and their types are those of the names of directories.
    """

    schema_string: str = field(metadata=json_name("schema"))
    partition_columns: Sequence[str]
    is_partitioning_inferred: bool
    num_files: int


class ParquetFiles(Protocol):
    """Parquet files that have been listed, and whose footers have been read."""

    def summary(self) -> ParquetSummary:
        """Describe the files."""
