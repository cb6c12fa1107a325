"""Isolation levels: which concurrent commits a transaction must take into account."""

from __future__ import annotations

from collections.abc import Mapping
from enum import Enum

from deltaic.exceptions import error
from deltaic.protocol.properties import checked_value, explicit_value

_PROPERTY = "delta.isolationLevel"


class Isolation(Enum):
    """The levels, by the names that commitInfo uses."""

    #: The commits have a serial order, which is the order of the table's history: each commit has
    #: read all that was committed before it.
    SERIALIZABLE = "Serializable"
    #: The commits have a serial order, in which blind appends may be elsewhere than in the history.
    WRITE_SERIALIZABLE = "WriteSerializable"
    #: Added rows cause no conflict: the transaction does not change the table's rows.
    SNAPSHOT = "SnapshotIsolation"


def session_isolation(setting: str, value: str) -> Isolation:
    """Return the level that a session setting names.

    Raises
    ------
    InvalidArgumentError
        If a table cannot have that level.
    """
    levels = (Isolation.SERIALIZABLE, Isolation.WRITE_SERIALIZABLE)
    named = next((i for i in levels if i.value.casefold() == value.strip().casefold()), None)
    if named is None:
        raise error(
            "DELTAIC_INVALID_SESSION_SETTING",
            setting=setting,
            value=value,
            reason=f"it is one of {', '.join(level.value for level in levels)}",
        )
    return named


def isolation_of(
    table: str,
    configuration: Mapping[str, str],
    *,
    changes_data: bool,
    changes_metadata: bool,
    session_level: Isolation | None = None,
) -> Isolation:
    """Return the level at which a transaction runs.

    Rows added concurrently do not affect a transaction that only rearranges rows, such as a
    compaction. A transaction that changes the table's definition must not be reordered with any
    other: rows appended before it must fit the new definition. Other transactions run at the level
    of the table property; if it is not set, at the session's; if that is not set, at the property's
    default.

    Raises
    ------
    TableStateError
        If the table property has an unknown level.
    """
    if not changes_data and not changes_metadata:
        return Isolation.SNAPSHOT
    if changes_metadata:
        return Isolation.SERIALIZABLE
    if session_level is not None and explicit_value(configuration, _PROPERTY) is None:
        return session_level
    level = checked_value(table, configuration, _PROPERTY).casefold()
    return next(i for i in Isolation if i.value.casefold() == level)
