"""Retention of deleted files and of the log."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from deltaic.exceptions import error
from deltaic.protocol.properties import checked_value, interval_ms

_LOG = "delta.logRetentionDuration"
_DELETED_FILES = "delta.deletedFileRetentionDuration"


def check_retention(table: str, configuration: Mapping[str, str], changed: Iterable[str]) -> None:
    """Refuse a retention of deleted files that is longer than that of the log.

    Parameters
    ----------
    configuration
        The new properties of the table.
    changed
        The names of those that the statement sets or unsets. Values that other writers or the
        session defaults set are not checked.

    Raises
    ------
    InvalidArgumentError
        If the statement changes either duration, and that of deleted files is longer.
    """
    names = {name.casefold() for name in changed}
    if names.isdisjoint({_LOG.casefold(), _DELETED_FILES.casefold()}):
        return
    log = checked_value(table, configuration, _LOG)
    files = checked_value(table, configuration, _DELETED_FILES)
    if (interval_ms(files) or 0) > (interval_ms(log) or 0):
        raise error(
            "DELTAIC_DELETED_FILE_RETENTION_TOO_LONG",
            table=table,
            deletedFileRetention=files,
            logRetention=log,
        )
