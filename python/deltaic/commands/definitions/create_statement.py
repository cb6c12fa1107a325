"""The arguments of CREATE TABLE and CREATE TABLE LIKE."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any


@dataclass(frozen=True, slots=True)
class CreateTable:
    """The arguments of the command.

    Attributes
    ----------
    like
        The table and version whose definition is copied.
    copied_properties
        The copied properties; those that the statement specifies take precedence.
    """

    table: str
    schema_string: str | None
    partition_by: Sequence[str]
    properties: Mapping[str, str]
    description: str | None
    is_managed: bool
    constraints: Mapping[str, str] = field(default_factory=dict)
    like: tuple[str, int] | None = None
    cluster_by: Sequence[Sequence[str]] | None = None
    copied_properties: Mapping[str, str] = field(default_factory=dict)

    @staticmethod
    def from_json(body: Mapping[str, Any]) -> CreateTable:
        """Read the JSON of ``Committer.run``."""
        return CreateTable(
            table=body["table"],
            schema_string=body.get("schema"),
            partition_by=tuple(body.get("partitionBy") or ()),
            properties=body.get("properties") or {},
            description=body.get("description"),
            is_managed=body.get("isManaged", False),
            constraints=body.get("constraints") or {},
            like=(like["table"], like["version"]) if (like := body.get("like")) else None,
            cluster_by=body.get("clusterBy"),
        )
