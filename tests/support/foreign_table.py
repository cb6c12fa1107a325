"""Tables whose data files and log come from no Delta engine: plain Parquet and JSON by hand."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import quote

import pyarrow.parquet as pq

from tests.support import log

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    import pyarrow as pa

LEGACY = {"minReaderVersion": 1, "minWriterVersion": 2}
MAPPED = {"minReaderVersion": 2, "minWriterVersion": 5}


def with_features(*features: str) -> dict[str, Any]:
    """Return a protocol that lists features for readers and writers."""
    listed = sorted(features)
    return {
        "minReaderVersion": 3,
        "minWriterVersion": 7,
        "readerFeatures": listed,
        "writerFeatures": listed,
    }


def field(name: str, type_: Any, /, **metadata: Any) -> dict[str, Any]:
    """Return a column of a schema; of metadata keys, two underscores stand for a dot."""
    named = {key.replace("__", "."): value for key, value in metadata.items()}
    return {"name": name, "type": type_, "nullable": True, "metadata": named}


def mapped(name: str, type_: Any, number: int, physical: str | None = None) -> dict[str, Any]:
    """Return a column with an id and a physical name, by default ``col-NUMBER``."""
    return field(
        name,
        type_,
        delta__columnMapping__id=number,
        delta__columnMapping__physicalName=physical or f"col-{number}",
    )


def struct(*fields: dict[str, Any]) -> dict[str, Any]:
    return {"type": "struct", "fields": list(fields)}


def array(element: Any) -> dict[str, Any]:
    return {"type": "array", "elementType": element, "containsNull": True}


def map_of(key: Any, value: Any) -> dict[str, Any]:
    return {"type": "map", "keyType": key, "valueType": value, "valueContainsNull": True}


class ForeignTable:
    """A table at `path` with an empty version 0; each file that is added is a version."""

    def __init__(
        self,
        path: str,
        *fields: dict[str, Any],
        partition_by: Sequence[str] = (),
        protocol: Mapping[str, Any] | None = None,
        properties: Mapping[str, str] | None = None,
    ) -> None:
        self.path = path
        Path(path, "_delta_log").mkdir(parents=True)
        definition = {
            "id": "f0e1",
            "format": {"provider": "parquet", "options": {}},
            "schemaString": json.dumps(struct(*fields)),
            "partitionColumns": list(partition_by),
            "configuration": dict(properties or {}),
        }
        log.write_commit(path, 0, {"protocol": dict(protocol or LEGACY)}, {"metaData": definition})

    def add(
        self,
        rows: pa.Table,
        partition_values: Mapping[str, str | None] | None = None,
        *,
        name: str | None = None,
        logged_path: str | None = None,
        stats: Mapping[str, Any] | None = None,
        **parquet_options: Any,
    ) -> Path:
        """Write a data file and commit it; return its location.

        Parameters
        ----------
        name
            The file's path below the table as the file system has it; by default by version.
        logged_path
            The path in the log, by default `name`, URL-encoded.
        """
        version = log.newest(self.path) + 1
        name = name or f"file-{version}.parquet"
        file = Path(self.path, name)
        file.parent.mkdir(parents=True, exist_ok=True)
        pq.write_table(rows, file, **parquet_options)
        add = {
            "path": logged_path or quote(name),
            "partitionValues": dict(partition_values or {}),
            "size": file.stat().st_size,
            "modificationTime": 0,
            "dataChange": True,
            **({} if stats is None else {"stats": json.dumps(stats)}),
        }
        log.write_commit(self.path, version, {"add": add})
        return file
