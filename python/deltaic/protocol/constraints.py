"""CHECK constraints in a table's properties (Protocol § CHECK Constraints)."""

from __future__ import annotations

from collections.abc import Mapping

from deltaic.exceptions import error
from deltaic.protocol.properties import CONSTRAINT_PREFIX

#: delta-spark names its own check of lengths so, and writers could not tell the two apart.
_RESERVED_NAME = "__char_varchar_string_length_check__"


def require_free_name(table: str, name: str) -> None:
    """Refuse a name that constraints of users cannot have.

    Raises
    ------
    InvalidArgumentError
        If the name is reserved.
    """
    if name.casefold() == _RESERVED_NAME:
        raise error("DELTAIC_RESERVED_CONSTRAINT_NAME", table=table, constraint=name)


def constraint_key(name: str) -> str:
    """Return the property that holds a constraint; case does not count in names of constraints."""
    return CONSTRAINT_PREFIX + name.casefold()


def find_constraint(configuration: Mapping[str, str], name: str) -> str | None:
    """Return the property under which a constraint of this name is there, in its own spelling."""
    wanted = constraint_key(name)
    return next((key for key in configuration if key.casefold() == wanted), None)


def constraint_properties(given: Mapping[str, str]) -> dict[str, str]:
    """Return the properties that state constraints, under the names that tables have for them."""
    return {
        constraint_key(name[len(CONSTRAINT_PREFIX) :]): sql
        for name, sql in given.items()
        if _states_constraint(name)
    }


def without_constraints(given: Mapping[str, str]) -> dict[str, str]:
    """Return the properties that state no constraint."""
    return {name: value for name, value in given.items() if not _states_constraint(name)}


def conditions(configuration: Mapping[str, str]) -> tuple[str, ...]:
    """Return the conditions that every row of a table has to meet."""
    return tuple(sql for key, sql in configuration.items() if _states_constraint(key))


def _states_constraint(name: str) -> bool:
    return name.casefold().startswith(CONSTRAINT_PREFIX)
