"""What a commit holds besides files, decided before any data is written.

The JVM keeps a plan while the data is written and hands it back unread, except for the definition
under which the data is written.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from deltaic.protocol.actions import DomainMetadata, Metadata, Protocol
from deltaic.protocol.change_data import feeds_changes
from deltaic.protocol.features import is_append_only


@dataclass(frozen=True, slots=True)
class Definition:
    """Protocol and metadata of a table version."""

    protocol: Protocol
    metadata: Metadata


@dataclass(frozen=True, slots=True)
class Predecessor:
    """What the next commit must know of the version before it.

    Attributes
    ----------
    version
        -1 if there is no version yet.
    timestamp_ms
        When it was committed, by its own word if it keeps in-commit timestamps.
    row_id_high_water_mark
        The highest row id given so far; -1 if none was.
    """

    version: int = -1
    timestamp_ms: int = -1
    row_id_high_water_mark: int = -1


@dataclass(frozen=True, slots=True)
class CommitPlan:
    """The answer to what a write may do.

    Attributes
    ----------
    effective
        The protocol and metadata under which the data is written.
    base
        The version that the operation is based on.
    is_blind_append
        Whether the operation itself reads nothing; its query may.
    changes_protocol, changes_metadata
        Whether the commit holds them.
    changes_columns
        Whether schema or partition columns of an existing table change.
    enables_in_commit_timestamps
        Whether it is this commit from which on an existing table keeps its own timestamps.
    joins_if_created
        Whether a commit that creates the table may instead append to one that another writer has
        created meanwhile, if it has the same columns.
    domains
        The metadata domains that the commit sets or removes.
    changes_data
        Whether the rows are others afterwards; if not, they only lie in other files.
    replaces_append_only
        Whether the table forbids to remove rows, where the commit states its definition anew.
    skipped
        Whether an earlier write with the same ``txnAppId`` and ``txnVersion`` has done it already.
    """

    effective: Definition
    base: Predecessor = Predecessor()
    is_blind_append: bool = False
    changes_protocol: bool = False
    changes_metadata: bool = False
    changes_columns: bool = False
    enables_in_commit_timestamps: bool = False
    joins_if_created: bool = False
    domains: tuple[DomainMetadata, ...] = ()
    changes_data: bool = True
    replaces_append_only: bool = False
    skipped: bool = False

    @property
    def forbids_removal(self) -> bool:
        """Whether no row may be removed: by the word of the table as it was before the commit."""
        if self.changes_protocol or self.changes_metadata:
            return self.replaces_append_only
        return is_append_only(self.effective.protocol, self.effective.metadata)

    @property
    def protocol(self) -> Protocol | None:
        """The protocol action that the commit holds, if it holds one."""
        return self.effective.protocol if self.changes_protocol else None

    @property
    def metadata(self) -> Metadata | None:
        """The metaData action that the commit holds, if it holds one."""
        return self.effective.metadata if self.changes_metadata else None

    def to_json(self) -> dict[str, Any]:
        """Write the reply of ``Committer.plan``."""
        return {
            "effectiveProtocol": self.effective.protocol.to_json(),
            "effectiveMetaData": self.effective.metadata.to_json(),
            "baseVersion": self.base.version,
            "baseTimestampMs": self.base.timestamp_ms,
            "baseRowIdHighWaterMark": self.base.row_id_high_water_mark,
            "isBlindAppend": self.is_blind_append,
            "changesProtocol": self.changes_protocol,
            "changesMetaData": self.changes_metadata,
            "changesColumns": self.changes_columns,
            "enablesInCommitTimestamps": self.enables_in_commit_timestamps,
            "joinsIfCreated": self.joins_if_created,
            "domains": [domain.to_json() for domain in self.domains],
            "changesData": self.changes_data,
            "replacesAppendOnly": self.replaces_append_only,
            "skipped": self.skipped,
            "feedsChanges": feeds_changes(self.effective.protocol, self.effective.metadata),
        }

    @staticmethod
    def from_json(body: Mapping[str, Any]) -> CommitPlan:
        """Read what `to_json` wrote."""
        return CommitPlan(
            effective=Definition(
                Protocol.from_json(body["effectiveProtocol"]),
                Metadata.from_json(body["effectiveMetaData"]),
            ),
            base=Predecessor(
                body["baseVersion"], body["baseTimestampMs"], body["baseRowIdHighWaterMark"]
            ),
            is_blind_append=body["isBlindAppend"],
            changes_protocol=body["changesProtocol"],
            changes_metadata=body["changesMetaData"],
            changes_columns=body["changesColumns"],
            enables_in_commit_timestamps=body["enablesInCommitTimestamps"],
            joins_if_created=body["joinsIfCreated"],
            domains=tuple(DomainMetadata.from_json(d) for d in body["domains"]),
            changes_data=body["changesData"],
            replaces_append_only=body["replacesAppendOnly"],
            skipped=body["skipped"],
        )
