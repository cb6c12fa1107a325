"""DESCRIBE DETAIL: what a table is, in one row."""

from __future__ import annotations

from deltaic.commands.rows import RowSet, timestamp_text
from deltaic.commit.ports import Tables
from deltaic.exceptions import error
from deltaic.protocol.features import reader_features, writer_features

DETAIL_SCHEMA = (
    "format STRING, id STRING, name STRING, description STRING, location STRING, "
    "createdAt TIMESTAMP, lastModified TIMESTAMP, partitionColumns ARRAY<STRING>, "
    "clusteringColumns ARRAY<STRING>, numFiles BIGINT, sizeInBytes BIGINT, "
    "properties MAP<STRING, STRING>, minReaderVersion INT, minWriterVersion INT, "
    "tableFeatures ARRAY<STRING>"
)


def detail(table: str, tables: Tables, name: str | None = None) -> RowSet:
    """Return the table's one row.

    Parameters
    ----------
    table
        The table's location.
    tables
        Where its header is read.
    name
        Its name in the catalog, if it was found by it.

    Raises
    ------
    TableStateError
        If there is no table.
    """
    header = tables.header(table)
    if header is None:
        raise error("DELTAIC_NOT_A_TABLE", table=table)
    metadata, protocol = header.metadata, header.protocol
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
                "lastModified": timestamp_text(header.timestamp_ms),
                "partitionColumns": list(metadata.partition_columns),
                "clusteringColumns": [],
                "numFiles": header.num_files,
                "sizeInBytes": header.size_bytes,
                "properties": dict(metadata.configuration),
                "minReaderVersion": protocol.min_reader_version,
                "minWriterVersion": protocol.min_writer_version,
                "tableFeatures": sorted(reader_features(protocol) | writer_features(protocol)),
            }
        ],
    )
