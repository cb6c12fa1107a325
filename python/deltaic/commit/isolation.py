"""How much a transaction must see of what others commit meanwhile."""

from __future__ import annotations

from collections.abc import Mapping
from enum import Enum

from deltaic.protocol.properties import stored_value


class Isolation(Enum):
    """The levels, by the names that commitInfo uses."""

    #: There is an order of all commits in which each read everything that came before it, and that
    #: order is the table's history.
    SERIALIZABLE = "Serializable"
    #: There is such an order, but blind appends may stand elsewhere in it than in the history.
    WRITE_SERIALIZABLE = "WriteSerializable"
    #: Added rows do not matter: the transaction does not change the table's rows.
    SNAPSHOT = "SnapshotIsolation"


def isolation_of(
    table: str, configuration: Mapping[str, str], *, changes_data: bool, changes_metadata: bool
) -> Isolation:
    """Return the level at which a transaction runs.

    A transaction that only rearranges rows, such as a compaction, reads the same rows whatever is
    added beside them. One that changes the table's definition must not be reordered with any other:
    rows appended before it must fit what it defines.

    Raises
    ------
    TableStateError
        If the table asks for a level that there is not.
    """
    if not changes_data and not changes_metadata:
        return Isolation.SNAPSHOT
    if changes_metadata:
        return Isolation.SERIALIZABLE
    level = stored_value(table, configuration, "delta.isolationLevel").casefold()
    return next(i for i in Isolation if i.value.casefold() == level)
