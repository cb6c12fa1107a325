"""Tables that lack data files: a query that reads one of these fails."""

from __future__ import annotations

from collections.abc import Container

from tests.support import log


def lose_files(table: str, *, but: Container[int] = ()) -> int:
    """Delete data files but those whose least id is one of these; return how many."""
    lost = 0
    for add in log.active_files(table):
        if log.statistics(add)["minValues"]["id"] not in but:
            log.data_path(table, add).unlink()
            lost += 1
    return lost
