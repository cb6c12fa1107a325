"""CHECK constraints in a table's properties (Protocol § CHECK Constraints)."""

from __future__ import annotations

from collections.abc import Mapping

from deltaic.exceptions import error
from deltaic.protocol.properties import CONSTRAINT_PREFIX

#: The name of delta-spark's own check of CHAR and VARCHAR lengths.
_RESERVED_NAME = "__char_varchar_string_length_check__"


def require_free_name(table: str, name: str) -> None:
    """Refuse a reserved name of a constraint.

    Raises
    ------
    InvalidArgumentError
        If the name is reserved.
    """
    if name.lower() == _RESERVED_NAME:
        raise error("DELTAIC_RESERVED_CONSTRAINT_NAME", table=table, constraint=name)


def constraint_key(name: str) -> str:
    """Return the property that holds a constraint, whose name is case-insensitive."""
    return CONSTRAINT_PREFIX + name.lower()


def find_constraint(configuration: Mapping[str, str], name: str) -> str | None:
    """Return the property of an existing constraint of this name, in its stored spelling."""
    wanted = constraint_key(name)
    return next((key for key in configuration if key.lower() == wanted), None)


def constraint_properties(given: Mapping[str, str]) -> dict[str, str]:
    """Return the properties that define constraints, under the names that tables store."""
    return {
        constraint_key(name[len(CONSTRAINT_PREFIX) :]): sql
        for name, sql in given.items()
        if _is_constraint(name)
    }


def without_constraints(given: Mapping[str, str]) -> dict[str, str]:
    """Return the properties that do not define constraints."""
    return {name: value for name, value in given.items() if not _is_constraint(name)}


def conditions(configuration: Mapping[str, str]) -> tuple[str, ...]:
    """Return the conditions that every row of a table must satisfy."""
    return tuple(sql for key, sql in configuration.items() if _is_constraint(key))


def _is_constraint(name: str) -> bool:
    return name.lower().startswith(CONSTRAINT_PREFIX)
