"""Row IDs, and their high-water mark in the log (Protocol § Row Tracking)."""

from __future__ import annotations

import json
import uuid
from collections.abc import Mapping

from deltaic.exceptions import error
from deltaic.protocol import features
from deltaic.protocol.actions import DomainMetadata, Metadata, Protocol
from deltaic.protocol.domains import domain_body
from deltaic.protocol.properties import is_true
from deltaic.protocol.schema import StructType, folded_name

FEATURE = "rowTracking"
DOMAIN = "delta.rowTracking"
#: The tag of commitInfo that records whether rows kept their ids.
PRESERVED_TAG = "delta.rowTracking.preserved"

#: The property without which ids are assigned, but readers must not rely on them.
ENABLED = "delta.enableRowTracking"
#: The property that suspends the assignment of ids in a table that supports the feature.
SUSPENDED = "delta.rowTrackingSuspended"

_ROW_ID_COLUMN = "delta.rowTracking.materializedRowIdColumnName"
_COMMIT_VERSION_COLUMN = "delta.rowTracking.materializedRowCommitVersionColumnName"

#: Writers use another spelling of the key than the text of the protocol.
_HIGH_WATER_MARK = "rowIdHighWaterMark"
_HIGH_WATER_MARK_IN_PROTOCOL = "highWaterMark"


def is_enabled(protocol: Protocol, metadata: Metadata) -> bool:
    """Whether readers can rely on row IDs, and writers must preserve them."""
    return features.is_enabled(protocol, metadata, FEATURE)


def has_materialized_column_names(metadata: Metadata) -> bool:
    """Whether the columns of materialized row IDs and commit versions have names."""
    return {_ROW_ID_COLUMN, _COMMIT_VERSION_COLUMN} <= metadata.configuration.keys()


def assigns_row_ids(protocol: Protocol, metadata: Metadata) -> bool:
    """Whether writers assign an id to every new row: if the feature is supported, active or not."""
    properties = metadata.configuration
    suspended = is_true(properties, SUSPENDED) and not is_true(properties, ENABLED)
    return features.supports(protocol, FEATURE) and not suspended


def high_water_mark(table: str, domains: Mapping[str, str]) -> int:
    """Return the highest row ID by a table's metadata domains; -1 if there is none."""
    return -1 if DOMAIN not in domains else high_water_mark_in(table, domains[DOMAIN])


def high_water_mark_in(table: str, configuration: str) -> int:
    """Return the highest row ID in the domain's configuration.

    Raises
    ------
    ProtocolError
        If it has none: a guess could assign an id twice.
    """
    body = domain_body(table, DOMAIN, configuration)
    mark = body.get(_HIGH_WATER_MARK, body.get(_HIGH_WATER_MARK_IN_PROTOCOL))
    if not isinstance(mark, int) or isinstance(mark, bool) or not -1 <= mark < 2**63:
        raise error(
            "DELTAIC_DOMAIN_INVALID",
            table=table,
            domain=DOMAIN,
            reason=f"{_HIGH_WATER_MARK} is {mark!r}",
        )
    return mark


def high_water_mark_action(mark: int) -> DomainMetadata:
    """Return the action that records the highest assigned row ID."""
    return DomainMetadata(DOMAIN, json.dumps({_HIGH_WATER_MARK: mark}, separators=(",", ":")))


def check_columns(table: str, schema: StructType, configuration: Mapping[str, str]) -> None:
    """Refuse columns with the names of the materialized row IDs and commit versions.

    Raises
    ------
    InvalidArgumentError
        If there is one: files would have two columns of the name (Protocol § Row Tracking).
    """
    reserved = {
        folded_name(configuration[key])
        for key in (_ROW_ID_COLUMN, _COMMIT_VERSION_COLUMN)
        if key in configuration
    }
    for column in schema.fields:
        if folded_name(column.name) in reserved:
            raise error("DELTAIC_RESERVED_COLUMN_NAME", table=table, column=column.name)


def with_materialized_columns(
    configuration: Mapping[str, str], earlier: Mapping[str, str]
) -> dict[str, str]:
    """Return properties with the names of the columns for materialized row IDs.

    They are required from the version that enables row tracking, and do not change as long as files
    may hold the columns.

    Parameters
    ----------
    configuration
        The new properties.
    earlier
        The properties before; empty for a new table.
    """
    named = dict(configuration)
    if is_true(configuration, ENABLED):
        for key, prefix in (
            (_ROW_ID_COLUMN, "_row-id-col-"),
            (_COMMIT_VERSION_COLUMN, "_row-commit-version-col-"),
        ):
            named[key] = earlier.get(key) or f"{prefix}{uuid.uuid4()}"
    return named


def suspended(configuration: Mapping[str, str]) -> dict[str, str]:
    """Return properties with which writers assign no row IDs, and readers expect none."""
    names = (ENABLED, _ROW_ID_COLUMN, _COMMIT_VERSION_COLUMN)
    retained = {name: value for name, value in configuration.items() if name not in names}
    return {**retained, SUSPENDED: "true"}
