"""The non-file actions of a commit. File actions never leave the JVM."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from deltaic.protocol.schema import StructType, parse_schema

#: From these versions on, features are listed by name (Protocol § Table Features).
READER_VERSION_WITH_FEATURES = 3
WRITER_VERSION_WITH_FEATURES = 7


@dataclass(frozen=True, slots=True)
class Protocol:
    """What readers and writers of the table must support (Protocol § Protocol Evolution)."""

    min_reader_version: int
    min_writer_version: int
    reader_features: frozenset[str] | None = None
    writer_features: frozenset[str] | None = None

    @staticmethod
    def from_json(body: Mapping[str, Any]) -> Protocol:
        """Read the action's body."""
        return Protocol(
            body["minReaderVersion"],
            body["minWriterVersion"],
            _names(body.get("readerFeatures")),
            _names(body.get("writerFeatures")),
        )

    def to_json(self) -> dict[str, Any]:
        """Return the action's body, with sorted feature lists."""
        body: dict[str, Any] = {
            "minReaderVersion": self.min_reader_version,
            "minWriterVersion": self.min_writer_version,
        }
        if self.reader_features is not None:
            body["readerFeatures"] = sorted(self.reader_features)
        if self.writer_features is not None:
            body["writerFeatures"] = sorted(self.writer_features)
        return body


@dataclass(frozen=True, slots=True)
class Metadata:
    """The table's definition (Protocol § Change Metadata)."""

    id: str
    schema_string: str
    partition_columns: tuple[str, ...] = ()
    configuration: Mapping[str, str] = field(default_factory=dict)
    name: str | None = None
    description: str | None = None
    created_time_ms: int | None = None
    format_provider: str = "parquet"
    format_options: Mapping[str, str] = field(default_factory=dict)

    @property
    def schema(self) -> StructType:
        """The table's columns, parsed from `schema_string`, which is cached.

        Raises
        ------
        ProtocolError
            If the string is not a schema; the message names the table by its id. `require_writable`
            names its location, so commands check a version before they use its schema.
        """
        return parse_schema(self.schema_string, self.id)

    @staticmethod
    def from_json(body: Mapping[str, Any]) -> Metadata:
        """Read the action's body."""
        file_format = body.get("format") or {}
        return Metadata(
            id=body["id"],
            schema_string=body["schemaString"],
            partition_columns=tuple(body.get("partitionColumns") or ()),
            configuration=dict(body.get("configuration") or {}),
            name=body.get("name"),
            description=body.get("description"),
            created_time_ms=body.get("createdTime"),
            format_provider=file_format.get("provider", "parquet"),
            format_options=dict(file_format.get("options") or {}),
        )

    def to_json(self) -> dict[str, Any]:
        """Return the action's body, without the optional fields that are not set."""
        body: dict[str, Any] = {"id": self.id}
        if self.name is not None:
            body["name"] = self.name
        if self.description is not None:
            body["description"] = self.description
        body |= {
            "format": {"provider": self.format_provider, "options": dict(self.format_options)},
            "schemaString": self.schema_string,
            "partitionColumns": list(self.partition_columns),
            "configuration": dict(self.configuration),
        }
        if self.created_time_ms is not None:
            body["createdTime"] = self.created_time_ms
        return body


@dataclass(frozen=True, slots=True)
class SetTransaction:
    """The version of an application's transaction (Protocol § Transaction Identifiers)."""

    app_id: str
    version: int
    last_updated_ms: int | None = None

    def to_json(self) -> dict[str, Any]:
        """Write the action's body."""
        body: dict[str, Any] = {"appId": self.app_id, "version": self.version}
        if self.last_updated_ms is not None:
            body["lastUpdated"] = self.last_updated_ms
        return body


@dataclass(frozen=True, slots=True)
class DomainMetadata:
    """The configuration of a metadata domain (Protocol § Domain Metadata)."""

    domain: str
    configuration: str
    removed: bool = False

    @staticmethod
    def from_json(body: Mapping[str, Any]) -> DomainMetadata:
        """Read the action's body."""
        return DomainMetadata(body["domain"], body["configuration"], body["removed"])

    def to_json(self) -> dict[str, Any]:
        """Write the action's body."""
        return {
            "domain": self.domain,
            "configuration": self.configuration,
            "removed": self.removed,
        }


def log_line(action: str, body: Mapping[str, Any]) -> str:
    """Return one line of a commit file."""
    return json.dumps({action: body}, ensure_ascii=False, separators=(",", ":"))


def _names(features: list[str] | None) -> frozenset[str] | None:
    return None if features is None else frozenset(features)
