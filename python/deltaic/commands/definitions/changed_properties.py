"""What changes in a table's columns when its properties change."""

from __future__ import annotations

from collections.abc import Mapping

from deltaic.commit.ports import TableSnapshot
from deltaic.protocol.actions import Metadata
from deltaic.protocol.columns.column_mapping import upgraded, with_new_columns
from deltaic.protocol.columns.iceberg_compat import newly_active
from deltaic.protocol.properties_without_feature import require_not_activated


def with_changed_properties(
    table: str, current: TableSnapshot, metadata: Metadata, retained: Mapping[str, str]
) -> Metadata:
    """Return a table's metadata, whose properties have changed, with the columns they require.

    Parameters
    ----------
    retained
        The properties of the table that the change does not remove.

    Raises
    ------
    InvalidArgumentError
        If the column mapping mode cannot be changed.
    TableStateError
        If a property would be activated that had no effect before.
    """
    before = current.metadata
    # Checked first: the code below assumes that files were written with the retained properties.
    require_not_activated(table, current.version, current.protocol, before, metadata)
    after = upgraded(table, metadata, retained)
    if newly_active(after.configuration, before.configuration) is None:
        return after
    return with_new_columns(after)  # also assigns ids to elements, keys and values
