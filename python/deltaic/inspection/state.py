"""The state of a table: what its actions add up to (Protocol § Action Reconciliation)."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import unquote

from deltaic.protocol.actions import Metadata, Protocol

#: ``file:/a``, ``file:///a`` and ``file://localhost/a`` name the same file.
_LOCAL_URI = re.compile(r"file:(?://(?:localhost)?)?(?=/)", re.IGNORECASE)

#: Statistics as most writers begin them. The rest need not be parsed, which takes longest.
_FIRST_KEY = re.compile(r'\s*\{\s*"numRecords"\s*:\s*([0-9]{1,18})\s*[,}]')

#: The schema of a definition without one, which other engines read as well.
_NO_COLUMNS = '{"type":"struct","fields":[]}'

#: A logical file: its path, decoded, and the id of its deletion vector, if it has one.
FileKey = tuple[str, str | None]


@dataclass(frozen=True, slots=True)
class DeletionVector:
    """A descriptor of a deletion vector (Protocol § Deletion Vector Descriptor Schema)."""

    storage_type: str
    path_or_inline_dv: str
    offset: int | None
    size_bytes: int
    cardinality: int

    @property
    def unique_id(self) -> str:
        """The id by which logical files differ (Protocol § Derived Fields)."""
        offset = "" if self.offset is None else f"@{self.offset}"
        return f"{self.storage_type}{self.path_or_inline_dv}{offset}"


@dataclass(frozen=True, slots=True)
class DataFile:
    """One file of the table.

    Attributes
    ----------
    path
        As `decoded_path` returns it.
    num_records
        The rows of the file, deleted ones included; None if there are no statistics.
    """

    path: str
    partition: tuple[tuple[str, str | None], ...]
    size_bytes: int
    num_records: int | None
    deletion_vector: DeletionVector | None


@dataclass(frozen=True, slots=True)
class Tombstone:
    """A file that was removed."""

    path: str
    deletion_timestamp_ms: int
    deletion_vector: DeletionVector | None


@dataclass(slots=True)
class TableState:
    """What the actions so far add up to.

    Attributes
    ----------
    domains
        The configurations of the metadata domains that were not removed.
    commit_info
        That of the last commit; empty if it has none.
    """

    protocol: Protocol | None = None
    metadata: Metadata | None = None
    files: dict[FileKey, DataFile] = field(default_factory=dict)
    tombstones: dict[FileKey, Tombstone] = field(default_factory=dict)
    domains: dict[str, str] = field(default_factory=dict)
    transactions: set[str] = field(default_factory=set)
    commit_info: Mapping[str, Any] = field(default_factory=dict)

    def apply(self, kind: str, body: Mapping[str, Any] | None) -> None:
        """Apply one action; those of a commit that remove files come first.

        A body that is null is no action: some writers name every kind of action in each line.

        Raises
        ------
        ValueError
            If the action lacks a field, or if one is of another type.
        """
        try:
            if body is not None:
                self._apply(kind, body)
        except (KeyError, TypeError, AttributeError) as problem:
            detail = f"no {problem}" if isinstance(problem, KeyError) else str(problem)
            raise ValueError(f"the action {kind} is malformed: {detail}") from problem

    def _apply(self, kind: str, body: Mapping[str, Any]) -> None:
        match kind:
            case "add":
                file = _data_file(body)
                key = _key(file)
                self.files[key] = file
                self.tombstones.pop(key, None)
            case "remove":
                tombstone = _tombstone(body)
                key = _key(tombstone)
                self.files.pop(key, None)
                self.tombstones[key] = tombstone
            case "protocol":
                protocol = Protocol.from_json(body)
                _number(protocol.min_reader_version)
                _number(protocol.min_writer_version)
                self.protocol = protocol
            case "metaData":
                self.metadata = _metadata(body)
            case "domainMetadata":
                if body.get("removed"):
                    self.domains.pop(body["domain"], None)
                else:
                    self.domains[body["domain"]] = _string(body["configuration"])
            case "txn":
                self.transactions.add(body["appId"])
            case "commitInfo":
                self.commit_info = dict(body)


def decoded_path(path: str) -> str:
    """Return a path of the log, which is URL-encoded, as the file system has it."""
    return _LOCAL_URI.sub("", unquote(path), count=1)


def _metadata(body: Mapping[str, Any]) -> Metadata:
    schema = body.get("schemaString")
    configuration = body.get("configuration") or {}
    metadata = Metadata.from_json(
        {
            **body,
            "schemaString": _NO_COLUMNS if schema is None else schema,
            "configuration": {k: _text(v) for k, v in configuration.items() if v is not None},
        }
    )
    for text in (
        metadata.id,
        metadata.schema_string,
        metadata.name or "",
        *metadata.partition_columns,
    ):
        _string(text)
    _string(metadata.description or "")
    _string(metadata.format_provider)
    _number(metadata.created_time_ms or 0)
    return metadata


def _text(value: Any) -> str:
    """Return a value of a map of strings, in which some writers have numbers and Booleans."""
    return value if isinstance(value, str) else json.dumps(value)


def _key(file: DataFile | Tombstone) -> FileKey:
    vector = file.deletion_vector
    return file.path, None if vector is None else vector.unique_id


def _data_file(body: Mapping[str, Any]) -> DataFile:
    values = body.get("partitionValues") or {}
    return DataFile(
        path=decoded_path(_string(body["path"])),
        partition=tuple(sorted((k, None if v is None else _text(v)) for k, v in values.items())),
        size_bytes=_number(body["size"]),
        num_records=_num_records(body),
        deletion_vector=_deletion_vector(body.get("deletionVector")),
    )


def _tombstone(body: Mapping[str, Any]) -> Tombstone:
    return Tombstone(
        path=decoded_path(_string(body["path"])),
        deletion_timestamp_ms=_number(body.get("deletionTimestamp") or 0),
        deletion_vector=_deletion_vector(body.get("deletionVector")),
    )


def _deletion_vector(body: Mapping[str, Any] | None) -> DeletionVector | None:
    if body is None:
        return None
    offset = body.get("offset")
    return DeletionVector(
        storage_type=_string(body["storageType"]),
        path_or_inline_dv=_string(body["pathOrInlineDv"]),
        offset=None if offset is None else _number(offset),
        size_bytes=_number(body["sizeInBytes"]),
        cardinality=_number(body["cardinality"]),
    )


def _num_records(body: Mapping[str, Any]) -> int | None:
    parsed = body.get("stats_parsed")
    count = parsed.get("numRecords") if parsed else None
    if count is None and body.get("stats"):
        first = _FIRST_KEY.match(body["stats"])
        if first is not None:
            return int(first[1])
        try:
            stats = json.loads(body["stats"])
        except (ValueError, RecursionError):
            return None
        count = stats.get("numRecords") if isinstance(stats, dict) else None
    return count if isinstance(count, int) and not isinstance(count, bool) and count >= 0 else None


def _string(value: Any) -> str:
    if not isinstance(value, str):
        raise TypeError(f"{value!r} is not a string")
    return value


def _number(value: Any) -> int:
    if not isinstance(value, int) or isinstance(value, bool):
        raise TypeError(f"{value!r} is not a whole number")
    return value
