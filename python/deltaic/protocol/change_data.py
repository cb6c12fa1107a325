"""What a commit to a table with a change data feed may hold (Protocol § Add CDC File).

A commit without ``cdc`` files says by its file actions which rows came and which went: those of
added files, those of removed files, and those that a new deletion vector adds to the old one. That
is the truth about appends, overwrites and deletes by vectors. It is not about changed rows, of
which the feed has both images, nor about rows that only moved to another file: a commit with such
rows has ``cdc`` files, and these tell all its changes.
"""

from __future__ import annotations

from collections.abc import Mapping

from deltaic.exceptions import error
from deltaic.protocol.actions import Metadata, Protocol
from deltaic.protocol.features import is_enabled
from deltaic.protocol.properties import is_true
from deltaic.protocol.schema import StructType

_PROPERTY = "delta.enableChangeDataFeed"
_RESERVED = frozenset({"_change_type", "_commit_version", "_commit_timestamp"})


def feeds_changes(protocol: Protocol, metadata: Metadata) -> bool:
    """Whether writers must keep the table's change data feed true."""
    return is_enabled(protocol, metadata, "changeDataFeed")


def check_feed_columns(table: str, schema: StructType, configuration: Mapping[str, str]) -> None:
    """Refuse columns under names that the feed has for its own.

    Raises
    ------
    InvalidArgumentError
        If there is one, and the feed is to be on.
    """
    if not is_true(configuration, _PROPERTY):
        return
    for column in schema.fields:
        if column.name.casefold() in _RESERVED:
            raise error("DELTAIC_RESERVED_COLUMN_NAME", table=table, column=column.name)


def require_told_changes(
    table: str,
    version: int,
    operation: str,
    metrics: Mapping[str, int],
    num_change_files: int,
) -> None:
    """Refuse a commit that does not tell its changes.

    Parameters
    ----------
    metrics
        The engine's counts: of rows updated, deleted, inserted, and copied to new files unchanged;
        and of the rows in the commit's change data files.
    num_change_files
        How many of these there are.

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
