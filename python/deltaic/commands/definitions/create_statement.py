"""What a statement or a write specifies of a table to create or replace."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from deltaic.commit.message import Message, json_name, not_in_json


@dataclass(frozen=True, slots=True)
class RequestedDefinition(Message):
    """The specified definition of a table.

    Attributes
    ----------
    schema_string
        The columns; None if none are specified.
    constraints
        The conditions of CHECK constraints, by name.
    cluster_by
        The paths of the clustering columns; None if they are not specified.
    """

    schema_string: str | None = field(default=None, metadata=json_name("schema"))
    partition_by: Sequence[str] = ()
    properties: Mapping[str, str] = field(default_factory=dict)
    constraints: Mapping[str, str] = field(default_factory=dict)
    cluster_by: Sequence[Sequence[str]] | None = None
    description: str | None = None


@dataclass(frozen=True, slots=True)
class LikeTable(Message):
    """The table and version whose definition CREATE TABLE LIKE copies."""

    table: str
    version: int


@dataclass(frozen=True, slots=True)
class CreateTable(Message):
    """The arguments of CREATE TABLE and CREATE TABLE LIKE.

    Attributes
    ----------
    like
        The table and version whose definition is copied.
    copied_properties
        The copied properties; those that the statement specifies take precedence.
    """

    table: str
    definition: RequestedDefinition
    is_managed: bool
    like: LikeTable | None = None
    copied_properties: Mapping[str, str] = field(default_factory=dict, metadata=not_in_json())
