"""How long deleted files and the log are kept."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from deltaic.exceptions import error
from deltaic.protocol.properties import interval_ms, stored_value

_LOG = "delta.logRetentionDuration"
_DELETED_FILES = "delta.deletedFileRetentionDuration"


def check_retention(table: str, configuration: Mapping[str, str], changed: Iterable[str]) -> None:
    """Refuse to keep deleted files for longer than the versions that refer to them.

    Parameters
    ----------
    configuration
        The properties that the table is to have.
    changed
        The names of those that the statement sets or unsets. What other writers, or the defaults of
        the session, say of retention is not the statement's to answer for.

    Raises
    ------
    InvalidArgumentError
        If the statement changes either duration, and deleted files would be kept for longer.
    """
    names = {name.casefold() for name in changed}
    if names.isdisjoint({_LOG.casefold(), _DELETED_FILES.casefold()}):
        return
    log = stored_value(table, configuration, _LOG)
    files = stored_value(table, configuration, _DELETED_FILES)
    if (interval_ms(files) or 0) > (interval_ms(log) or 0):
        raise error(
            "DELTAIC_DELETED_FILE_RETENTION_TOO_LONG",
            table=table,
            deletedFileRetention=files,
            logRetention=log,
        )
