"""DESCRIBE DETAIL: one row that describes a table."""

from __future__ import annotations

from dataclasses import dataclass

from deltaic.commands.rows import RowSet, result_schema, timestamp_text
from deltaic.commit.message import Message
from deltaic.commit.ports import TableAccess, TableSnapshot
from deltaic.exceptions import error
from deltaic.protocol.columns.clustering import clustering_columns
from deltaic.protocol.columns.schema_edits import quoted_path
from deltaic.protocol.features import supported_features

DETAIL_SCHEMA = result_schema("describeDetail")


@dataclass(frozen=True, slots=True)
class DescribeDetail(Message):
    """The arguments; `name` is the table's name in the catalog, if it was resolved by name."""

    table: str
    name: str | None = None


def detail(table: str, tables: TableAccess, name: str | None = None) -> RowSet:
    """Return the table's one row.

    Parameters
    ----------
    table
        The table's location.
    tables
        Provides the table's newest version.
    name
        Its name in the catalog, if it was resolved by name.

    Raises
    ------
    TableStateError
        If there is no table.
    """
    snapshot = tables.summary(table)
    if snapshot is None:
        raise error("DELTAIC_NOT_A_TABLE", table=table)
    metadata, protocol = snapshot.metadata, snapshot.protocol
    created_ms = metadata.created_time_ms
    return RowSet(
        DETAIL_SCHEMA,
        [
            {
                "format": "delta",
                "id": metadata.id,
                "name": name if name is not None else metadata.name,
                "description": metadata.description,
                "location": table,
                "createdAt": None if created_ms is None else timestamp_text(created_ms),
                "lastModified": timestamp_text(snapshot.timestamp_ms),
                "partitionColumns": list(metadata.partition_columns),
                "clusteringColumns": _clustering_columns(table, snapshot),
                "numFiles": snapshot.num_files,
                "sizeInBytes": snapshot.size_bytes,
                "properties": dict(metadata.configuration),
                "minReaderVersion": protocol.min_reader_version,
                "minWriterVersion": protocol.min_writer_version,
                "tableFeatures": sorted(supported_features(protocol)),
            }
        ],
    )


def _clustering_columns(table: str, snapshot: TableSnapshot) -> list[str]:
    columns = clustering_columns(table, snapshot.protocol, snapshot.metadata, snapshot.domains)
    return [quoted_path(path) for path in columns]
