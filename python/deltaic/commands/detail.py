"""DESCRIBE DETAIL: what a table is, in one row."""

from __future__ import annotations

from deltaic.commands.rows import RowSet, result_schema, timestamp_text
from deltaic.commit.ports import TableHeader, Tables
from deltaic.exceptions import error
from deltaic.protocol.clustering import clustering_columns
from deltaic.protocol.features import supported_features
from deltaic.protocol.schema import parse_schema
from deltaic.protocol.schema_edits import quoted_path

DETAIL_SCHEMA = result_schema("describeDetail")


def detail(table: str, tables: Tables, name: str | None = None) -> RowSet:
    """Return the table's one row.

    Parameters
    ----------
    table
        The table's location.
    tables
        Where it is described.
    name
        Its name in the catalog, if it was found by it.

    Raises
    ------
    TableStateError
        If there is no table.
    """
    header = tables.summary(table)
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
                "clusteringColumns": _clustering_columns(table, header),
                "numFiles": header.num_files,
                "sizeInBytes": header.size_bytes,
                "properties": dict(metadata.configuration),
                "minReaderVersion": protocol.min_reader_version,
                "minWriterVersion": protocol.min_writer_version,
                "tableFeatures": sorted(supported_features(protocol)),
            }
        ],
    )


def _clustering_columns(table: str, header: TableHeader) -> list[str]:
    schema = parse_schema(header.metadata.schema_string, table)
    return [quoted_path(path) for path in clustering_columns(table, schema, header.domains)]
