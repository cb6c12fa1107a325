"""The definition of a table after RESTORE."""

from __future__ import annotations

from dataclasses import replace

from deltaic.commands.definitions.copied_clustering import without_excluded_clustering
from deltaic.commit.plan import Definition
from deltaic.commit.ports import TableSnapshot
from deltaic.protocol import in_commit_timestamps
from deltaic.protocol.actions import Metadata
from deltaic.protocol.columns.column_mapping import MAX_COLUMN_ID
from deltaic.protocol.columns.iceberg_compat import require_compatible
from deltaic.protocol.columns.identity import with_merged_high_water_marks
from deltaic.protocol.negotiation import merged_protocol
from deltaic.protocol.numbers import whole_number
from deltaic.protocol.properties import PROTECTED_VERSION_PROPERTY

#: Properties whose values only grow, because files and versions depend on each earlier value.
_GROWING = (MAX_COLUMN_ID, PROTECTED_VERSION_PROPERTY)


def restored_definition(
    table: str, older: TableSnapshot, current: TableSnapshot, *, allows_downgrade: bool
) -> Definition:
    """Return the definition of the older version, as far as a table can return to it.

    Values that were generated since then are not generated again: identity high-water marks and
    column ids are those of the current version, if these are further. The protocol supports the
    features of both versions, because versions in between depend on them; of a table with partition
    columns, it cannot support clustering.

    Parameters
    ----------
    allows_downgrade
        Whether the protocol is that of the older version instead.

    Raises
    ------
    InvalidArgumentError
        If the older version is compatible with Iceberg, and a feature that the table has got since
        then excludes that.
    """
    protocol = older.protocol
    if not allows_downgrade:
        protocol = merged_protocol(current.protocol, older.protocol)
    protocol = without_excluded_clustering(protocol, older.metadata)
    metadata = with_merged_high_water_marks(older.metadata, current.metadata)
    metadata = _with_growing_properties(metadata, current.metadata)
    if in_commit_timestamps.is_active(protocol, metadata):
        metadata = in_commit_timestamps.with_enablement_of(metadata, current.metadata)
    if protocol != older.protocol:
        require_compatible(table, protocol, metadata)
    return Definition(protocol, metadata)


def _with_growing_properties(metadata: Metadata, current: Metadata) -> Metadata:
    configuration = dict(metadata.configuration)
    for name in _GROWING:
        now = whole_number(current.configuration.get(name, ""))
        before = whole_number(configuration.get(name, ""))
        if now is not None and (before is None or now > before):
            configuration[name] = str(now)
    if configuration == metadata.configuration:
        return metadata
    return replace(metadata, configuration=configuration)
