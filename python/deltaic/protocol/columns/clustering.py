"""The columns that a table is clustered by (Protocol § Clustered Table)."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any

from deltaic.exceptions import error
from deltaic.protocol.actions import DomainMetadata, Metadata, Protocol
from deltaic.protocol.columns.column_mapping import PHYSICAL_NAME, has_physical_names, is_mapped
from deltaic.protocol.columns.ordering import checked_ordering
from deltaic.protocol.columns.schema_edits import find_field, path_text
from deltaic.protocol.domains import domain_body
from deltaic.protocol.features import find_feature, supports
from deltaic.protocol.schema import DataType, Field, StructType

FEATURE = "clustering"
DOMAIN = "delta.clustering"

#: The limit of delta-spark, which refuses statements on tables with more.
MAX_COLUMNS = 4


def clustering_columns(
    table: str, protocol: Protocol, metadata: Metadata, domains: Mapping[str, str | None]
) -> tuple[tuple[str, ...], ...]:
    """Return the columns by their logical names, outermost first; none without the feature.

    A column that the schema no longer has is returned by its physical name.
    """
    configuration = domains.get(DOMAIN)
    if configuration is None or not supports(protocol, FEATURE):
        return ()
    columns = _Columns(protocol, metadata)
    return tuple(columns.logical(path) for path in physical_paths(table, configuration))


def physical_paths(table: str, configuration: str) -> list[list[str]]:
    """Return the columns that a domain lists, by their physical names.

    The protocol's example lists names; delta-spark lists a path of names for each column.

    Raises
    ------
    ProtocolError
        If it lists something else.
    """
    listed = domain_body(table, DOMAIN, configuration).get("clusteringColumns") or []
    paths: list[Any] = [None]
    if isinstance(listed, list):
        paths = [[column] if isinstance(column, str) else column for column in listed]
    if not all(map(_is_path, paths)):
        raise error(
            "DELTAIC_DOMAIN_INVALID",
            table=table,
            domain=DOMAIN,
            reason=f"clusteringColumns is {listed!r}",
        )
    return [list(path) for path in paths]


def _is_path(value: Any) -> bool:
    names = isinstance(value, list) and value
    return bool(names) and all(isinstance(name, str) for name in value)


def clustering_domain(metadata: Metadata, columns: Sequence[Sequence[str]]) -> DomainMetadata:
    """Return the action that sets the clustering columns of a table, maybe to none.

    Parameters
    ----------
    metadata
        The table's definition.
    columns
        Paths of its columns.
    """
    schema = metadata.schema
    mapped = is_mapped(metadata.configuration)
    physical = [_physical(metadata.id, schema, path) if mapped else list(path) for path in columns]
    configuration = json.dumps(
        {"clusteringColumns": physical}, ensure_ascii=False, separators=(",", ":")
    )
    return DomainMetadata(DOMAIN, configuration)


def lost_columns(
    table: str, protocol: Protocol, metadata: Metadata, configuration: str
) -> list[str]:
    """Return the columns of a domain that a definition cannot cluster by, by physical names.

    These are columns that the definition does not have, and all if it has partition columns.
    """
    columns = _Columns(protocol, metadata)
    return [
        path_text(path)
        for path in physical_paths(table, configuration)
        if metadata.partition_columns or None in columns.along(path)
    ]


def checked_columns(
    table: str, metadata: Metadata, requested: Sequence[Sequence[str]]
) -> tuple[tuple[str, ...], ...]:
    """Return the columns in the schema's spelling.

    Raises
    ------
    InvalidArgumentError
        If the table cannot be clustered by them.
    """

    def refused(reason: str) -> Exception:
        columns = ", ".join(path_text(path) for path in requested)
        return error("DELTAIC_CLUSTERING_INVALID", table=table, columns=columns, reason=reason)

    if not requested:
        return ()
    if metadata.partition_columns:
        raise refused(f"it is partitioned by {', '.join(metadata.partition_columns)}")
    if len(requested) > MAX_COLUMNS:
        raise refused(f"there are more than {MAX_COLUMNS}")
    return checked_ordering(table, metadata, requested, refused)


def require_no_clustering(table: str, features: Sequence[str]) -> None:
    """Refuse to add the feature clustering by name, without clustering columns.

    Raises
    ------
    InvalidArgumentError
        If it is among the features.
    """
    if any(f is not None and f.name == FEATURE for f in map(find_feature, features)):
        raise error("DELTAIC_CLUSTERING_BY_FEATURE", table=table)


def _physical(table: str, schema: StructType, path: Sequence[str]) -> list[str]:
    names = []
    for end in range(1, len(path) + 1):
        field = find_field(schema, path[:end])
        assert field is not None, "the columns have been checked"
        name = field.metadata.get(PHYSICAL_NAME)
        if name is None:
            reason = f"column {field.name} has no {PHYSICAL_NAME}, but the table maps its columns"
            raise error("DELTAIC_INVALID_SCHEMA", table=table, reason=reason)
        names.append(str(name))
    return names


class _Columns:
    """The columns of a table by their physical names, which are the logical names if not mapped."""

    def __init__(self, protocol: Protocol, metadata: Metadata) -> None:
        self._schema = metadata.schema
        self._is_mapped = has_physical_names(protocol, metadata)

    def logical(self, path: Sequence[str]) -> tuple[str, ...]:
        """Return the logical names of a path; a name without a column stays as it is."""
        pairs = zip(path, self.along(path), strict=True)
        return tuple(name if column is None else column.name for name, column in pairs)

    def along(self, path: Sequence[str]) -> list[Field | None]:
        """Return the column and the fields that a path names, each None if there is none."""
        found: list[Field | None] = []
        struct: DataType | None = self._schema
        for name in path:
            fields = struct.fields if isinstance(struct, StructType) else ()
            column = next((field for field in fields if self._physical(field) == name), None)
            found.append(column)
            struct = None if column is None else column.type
        return found

    def _physical(self, field: Field) -> str:
        return field.metadata.get(PHYSICAL_NAME, field.name) if self._is_mapped else field.name
