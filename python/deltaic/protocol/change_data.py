"""What a commit to a table with a change data feed may hold (Protocol § Add CDC File).

The changes of a commit without ``cdc`` files follow from its file actions: the rows of added files
were inserted, those of removed files and those of new deletion vector entries were deleted. That is
correct for appends, overwrites and deletes by deletion vectors. It is not for updated rows, of
which the feed has both images, or for rows that were copied to another file: a commit with such
rows must have ``cdc`` files, and these hold all its changes.
"""

from __future__ import annotations

from collections.abc import Mapping

from deltaic.exceptions import error
from deltaic.protocol.actions import Metadata, Protocol
from deltaic.protocol.features import is_enabled
from deltaic.protocol.properties import is_true
from deltaic.protocol.schema import StructType, folded_name

_PROPERTY = "delta.enableChangeDataFeed"
_RESERVED = frozenset({"_change_type", "_commit_version", "_commit_timestamp"})


def writes_change_data_feed(protocol: Protocol, metadata: Metadata) -> bool:
    """Whether writers must maintain the table's change data feed."""
    return is_enabled(protocol, metadata, "changeDataFeed")


def check_feed_columns(table: str, schema: StructType, configuration: Mapping[str, str]) -> None:
    """Refuse columns with names that the feed reserves.

    Raises
    ------
    InvalidArgumentError
        If there is one, and the feed is enabled.
    """
    if not is_true(configuration, _PROPERTY):
        return
    for column in schema.fields:
        if folded_name(column.name) in _RESERVED:
            raise error("DELTAIC_RESERVED_COLUMN_NAME", table=table, column=column.name)


def require_recorded_changes(
    table: str,
    version: int,
    operation: str,
    metrics: Mapping[str, int],
    num_change_files: int,
) -> None:
    """Refuse a commit that does not record its changes.

    Parameters
    ----------
    metrics
        The engine's counts of rows updated, deleted, inserted, and copied unchanged to new files;
        and of the rows in the commit's change data files.
    num_change_files
        The number of change data files.

    Raises
    ------
    TableStateError
        If rows were updated or copied, and there is no change data file.
    DeltaError
        If the files do not hold as many rows as were changed, which is a bug.
    """
    updated, copied = metrics.get("numUpdatedRows", 0), metrics.get("numCopiedRows", 0)
    if not num_change_files:
        if updated or copied:
            what = f"{updated} updated rows" if updated else f"{copied} rows that were only copied"
            raise error(
                "DELTAIC_CHANGE_DATA_FILES_NEEDED",
                table=table,
                version=version,
                operation=operation,
                what=what,
            )
        return
    changed = (metrics.get(name, 0) for name in ("numDeletedRows", "numInsertedRows"))
    expected, found = sum(changed) + 2 * updated, metrics.get("numRecordedChanges", 0)
    if expected != found:
        raise error(
            "DELTAIC_CHANGE_DATA_INCOMPLETE",
            table=table,
            version=version,
            operation=operation,
            expected=expected,
            found=found,
            files=num_change_files,
        )
