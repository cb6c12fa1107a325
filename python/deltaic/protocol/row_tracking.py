"""Row ids: who gives them, and how the log keeps count (Protocol § Row Tracking)."""

from __future__ import annotations

import json
import uuid
from collections.abc import Mapping

from deltaic.exceptions import error
from deltaic.protocol import features
from deltaic.protocol.actions import DomainMetadata, Metadata, Protocol
from deltaic.protocol.domains import domain_body
from deltaic.protocol.properties import is_true

FEATURE = "rowTracking"
DOMAIN = "delta.rowTracking"
#: The tag of a commitInfo that says whether rows kept their ids.
PRESERVED_TAG = "delta.rowTracking.preserved"

#: The property without which ids are given, but not relied upon.
ENABLED = "delta.enableRowTracking"
#: The property with which a table that supports the feature gives no ids for now.
SUSPENDED = "delta.rowTrackingSuspended"

_ROW_ID_COLUMN = "delta.rowTracking.materializedRowIdColumnName"
_COMMIT_VERSION_COLUMN = "delta.rowTracking.materializedRowCommitVersionColumnName"

#: The protocol's text and the tables that writers have made spell the key differently.
_MARK = "rowIdHighWaterMark"
_MARK_IN_TEXT = "highWaterMark"


def is_enabled(protocol: Protocol, metadata: Metadata) -> bool:
    """Whether row ids can be relied upon, and are to be preserved."""
    return features.is_enabled(protocol, metadata, FEATURE)


def names_columns(metadata: Metadata) -> bool:
    """Whether it is said in which columns preserved ids and commit versions are."""
    return {_ROW_ID_COLUMN, _COMMIT_VERSION_COLUMN} <= metadata.configuration.keys()


def assigns_row_ids(protocol: Protocol, metadata: Metadata) -> bool:
    """Whether a writer gives every new row an id: where the feature is supported, used or not."""
    properties = metadata.configuration
    suspended = is_true(properties, SUSPENDED) and not is_true(properties, ENABLED)
    return features.supports(protocol, FEATURE) and not suspended


def high_water_mark(table: str, domains: Mapping[str, str]) -> int:
    """Return the highest row id that a table's metadata domains know of; -1 if there is none."""
    return -1 if DOMAIN not in domains else high_water_mark_in(table, domains[DOMAIN])


def high_water_mark_in(table: str, configuration: str) -> int:
    """Return the highest row id that the domain's configuration states.

    Raises
    ------
    ProtocolError
        If it states none: to count from anywhere could give an id twice.
    """
    body = domain_body(table, DOMAIN, configuration)
    mark = body.get(_MARK, body.get(_MARK_IN_TEXT))
    if not isinstance(mark, int) or isinstance(mark, bool) or not -1 <= mark < 2**63:
        raise error(
            "DELTAIC_DOMAIN_INVALID", table=table, domain=DOMAIN, reason=f"{_MARK} is {mark!r}"
        )
    return mark


def high_water_mark_action(mark: int) -> DomainMetadata:
    """Return the action that records the highest row id given so far."""
    return DomainMetadata(DOMAIN, json.dumps({_MARK: mark}, separators=(",", ":")))


def with_materialized_columns(
    configuration: Mapping[str, str], earlier: Mapping[str, str]
) -> dict[str, str]:
    """Return properties with the names of the columns in which preserved ids are kept.

    They are needed from the version on that enables row tracking, and stay the same for as long as
    there are files that may hold the columns.

    Parameters
    ----------
    configuration
        The properties that a definition is to have.
    earlier
        Those of the table before; empty for a new one.
    """
    named = dict(configuration)
    if is_true(configuration, ENABLED):
        for key, prefix in (
            (_ROW_ID_COLUMN, "_row-id-col-"),
            (_COMMIT_VERSION_COLUMN, "_row-commit-version-col-"),
        ):
            named[key] = earlier.get(key) or f"{prefix}{uuid.uuid4()}"
    return named
