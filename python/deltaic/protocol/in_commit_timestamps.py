"""In-commit timestamps (Protocol § In-Commit Timestamps)."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from deltaic.protocol.actions import Metadata, Protocol
from deltaic.protocol.features import is_enabled
from deltaic.protocol.properties import is_true

FEATURE = "inCommitTimestamp"
#: The field of commitInfo, which must be the first.
FIELD = "inCommitTimestamp"

_ENABLED = "delta.enableInCommitTimestamps"
_SINCE_VERSION = "delta.inCommitTimestampEnablementVersion"
_SINCE_TIMESTAMP = "delta.inCommitTimestampEnablementTimestamp"


def is_active(protocol: Protocol, metadata: Metadata) -> bool:
    """Whether each commit has a timestamp: the feature is supported, and the property is set."""
    return is_enabled(protocol, metadata, FEATURE)


def next_timestamp_ms(clock_ms: int, previous_ms: int) -> int:
    """Return the timestamp of a commit: that of the clock, but later than the previous version."""
    return max(clock_ms, previous_ms + 1)


def enabled_since(metadata: Metadata, version: int, timestamp_ms: int) -> Metadata:
    """Return metadata with the version and timestamp of the enablement."""
    since = {_SINCE_VERSION: str(version), _SINCE_TIMESTAMP: str(timestamp_ms)}
    return replace(metadata, configuration={**metadata.configuration, **since})


def disabled(metadata: Metadata) -> Metadata:
    """Return metadata without in-commit timestamps: file modification times apply again."""
    retained = {
        name: value
        for name, value in metadata.configuration.items()
        if name not in (_ENABLED, _SINCE_VERSION, _SINCE_TIMESTAMP)
    }
    return replace(metadata, configuration=retained)


def with_enablement_of(metadata: Metadata, current: Metadata) -> Metadata:
    """Return older metadata, in which timestamps are enabled, for a new version of the table.

    The current version knows since when each commit has had a timestamp.
    """
    unknown = {
        name: value
        for name, value in metadata.configuration.items()
        if name not in (_SINCE_VERSION, _SINCE_TIMESTAMP)
    }
    configuration = with_retained_enablement(unknown, current.configuration)
    return replace(metadata, configuration=configuration)


def with_retained_enablement(
    configuration: Mapping[str, str], earlier: Mapping[str, str]
) -> dict[str, str]:
    """Return properties with the enablement version and timestamp of an earlier version.

    They are retained when the table is replaced, as long as timestamps stay enabled.
    """
    properties = dict(configuration)
    if is_true(configuration, _ENABLED) and is_true(earlier, _ENABLED):
        properties |= {k: earlier[k] for k in (_SINCE_VERSION, _SINCE_TIMESTAMP) if k in earlier}
    return properties
