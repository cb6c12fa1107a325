"""What a commit holds besides files, planned before any data is written.

The JVM stores the plan while the data is written and returns it unchanged. It uses only the
definition under which the data is written.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from deltaic.commit.message import Message, json_name
from deltaic.protocol.actions import DomainMetadata, Metadata, Protocol
from deltaic.protocol.change_data import writes_change_data_feed
from deltaic.protocol.features import is_append_only


@dataclass(frozen=True, slots=True)
class Definition(Message):
    """Protocol and metadata of a table version."""

    protocol: Protocol
    metadata: Metadata = field(metadata=json_name("metaData"))


@dataclass(frozen=True, slots=True)
class PreviousVersion(Message):
    """What the next commit needs from the version before it.

    Attributes
    ----------
    version
        -1 if there is no version yet.
    timestamp_ms
        When it was committed: its in-commit timestamp, if it has one.
    row_id_high_water_mark
        The highest assigned row ID; -1 if there is none.
    """

    version: int = -1
    timestamp_ms: int = -1
    row_id_high_water_mark: int = -1


@dataclass(frozen=True, slots=True)
class CommitPlan(Message):
    """The plan of a write.

    Attributes
    ----------
    definition
        The protocol and metadata under which the data is written.
    base
        The version that the operation is based on.
    is_blind_append
        Whether the operation itself reads nothing; its query may.
    changes_protocol, changes_metadata
        Whether the commit holds a protocol or metaData action.
    changes_columns
        Whether schema or partition columns of an existing table change.
    enables_in_commit_timestamps
        Whether this commit enables in-commit timestamps on an existing table.
    appends_if_created_concurrently
        Whether a commit that creates the table may instead append to a table with the same columns
        that another writer created concurrently.
    domains
        The metadata domains that the commit sets or removes.
    changes_data
        Whether the rows change; if not, they are only rewritten to other files.
    was_append_only
        Whether the table was append-only before the commit changes its definition.
    already_committed
        Whether an earlier write with the same ``txnAppId`` and ``txnVersion`` has been committed.
    """

    definition: Definition
    base: PreviousVersion = PreviousVersion()
    is_blind_append: bool = False
    changes_protocol: bool = False
    changes_metadata: bool = field(default=False, metadata=json_name("changesMetaData"))
    changes_columns: bool = False
    enables_in_commit_timestamps: bool = False
    appends_if_created_concurrently: bool = False
    domains: tuple[DomainMetadata, ...] = ()
    changes_data: bool = True
    was_append_only: bool = False
    already_committed: bool = False

    @property
    def forbids_removal(self) -> bool:
        """Whether no row may be removed, by the definition of the table before the commit."""
        if self.changes_protocol or self.changes_metadata:
            return self.was_append_only
        return is_append_only(self.definition.protocol, self.definition.metadata)

    @property
    def protocol(self) -> Protocol | None:
        """The protocol action that the commit holds, if it holds one."""
        return self.definition.protocol if self.changes_protocol else None

    @property
    def metadata(self) -> Metadata | None:
        """The metaData action that the commit holds, if it holds one."""
        return self.definition.metadata if self.changes_metadata else None

    def to_json(self) -> dict[str, Any]:
        """Return the response of ``Committer.plan``."""
        feeds = writes_change_data_feed(self.definition.protocol, self.definition.metadata)
        return {**Message.to_json(self), "writesChangeDataFeed": feeds}
