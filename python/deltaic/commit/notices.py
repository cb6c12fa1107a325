"""Warnings that are logged once, not for each commit."""

from __future__ import annotations

import logging

_logger = logging.getLogger("deltaic")
_reported: set[tuple[str, str]] = set()


def warn_once(table: str, subject: str, message: str) -> None:
    """Log a warning, unless this process has logged one about the same subject of the table.

    Parameters
    ----------
    subject
        What the warning is about, such as a table property.
    message
        The warning, which names the table and the subject.
    """
    if (table, subject) not in _reported:
        _reported.add((table, subject))
        _logger.warning("%s", message)
