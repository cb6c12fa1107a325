"""Commits that keep their own time (Protocol § In-Commit Timestamps)."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from deltaic.protocol.actions import Metadata, Protocol
from deltaic.protocol.features import is_enabled
from deltaic.protocol.properties import is_true

FEATURE = "inCommitTimestamp"
#: The field of commitInfo, which is its first.
FIELD = "inCommitTimestamp"

_ENABLED = "delta.enableInCommitTimestamps"
_SINCE_VERSION = "delta.inCommitTimestampEnablementVersion"
_SINCE_TIMESTAMP = "delta.inCommitTimestampEnablementTimestamp"


def is_active(protocol: Protocol, metadata: Metadata) -> bool:
    """Whether each commit states its time: the feature is supported, and the property is set."""
    return is_enabled(protocol, metadata, FEATURE)


def next_timestamp_ms(clock_ms: int, previous_ms: int) -> int:
    """Return the time of a commit: that of the clock, but later than the version before it."""
    return max(clock_ms, previous_ms + 1)


def enabled_since(metadata: Metadata, version: int, timestamp_ms: int) -> Metadata:
    """Return metadata that says from which version on the times in commits count."""
    since = {_SINCE_VERSION: str(version), _SINCE_TIMESTAMP: str(timestamp_ms)}
    return replace(metadata, configuration={**metadata.configuration, **since})


def disabled(metadata: Metadata) -> Metadata:
    """Return metadata by which the times of files count, and that say nothing of others."""
    stays = {
        name: value
        for name, value in metadata.configuration.items()
        if name not in (_ENABLED, _SINCE_VERSION, _SINCE_TIMESTAMP)
    }
    return replace(metadata, configuration=stays)


def kept_provenance(configuration: Mapping[str, str], earlier: Mapping[str, str]) -> dict[str, str]:
    """Return properties with what an earlier version said about when timestamps began.

    It stays true while they stay enabled, however the table is defined anew.
    """
    kept = dict(configuration)
    if is_true(configuration, _ENABLED) and is_true(earlier, _ENABLED):
        kept |= {k: earlier[k] for k in (_SINCE_VERSION, _SINCE_TIMESTAMP) if k in earlier}
    return kept
