"""Arguments of users: conditions and values as SQL strings or Columns."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from deltaic.exceptions import DeltaError, error

if TYPE_CHECKING:
    from pyspark.sql import Column

#: Names of columns as SQL spells them, with the values to assign.
Assignments = Sequence[tuple[str, "Column"]]

_COLUMN = "it must be a Spark SQL Column or a string (expression in SQL syntax)"


def wrong(argument: str, value: object, reason: str) -> DeltaError:
    """Return the error of an argument whose value is wrong.

    Parameters
    ----------
    argument
        The name of the argument.
    value
        The given value.
    reason
        What the value must be.
    """
    given = repr(value)
    return error("DELTAIC_INVALID_ARGUMENT", argument=argument, value=given, reason=reason)


def wrong_type(argument: str, value: object, reason: str) -> DeltaError:
    """Return the error of an argument of a wrong type, which is also a `TypeError`.

    A missing value (None) is not an error of the type.
    """
    if value is None:
        return wrong(argument, value, reason)
    given = repr(value)
    return error("DELTAIC_INVALID_ARGUMENT_TYPE", argument=argument, value=given, reason=reason)


def column(argument: str, value: str | Column, reason: str = _COLUMN) -> Column:
    """Return a condition or value as a Column.

    Parameters
    ----------
    reason
        What it must be, for the error.

    Raises
    ------
    InvalidArgumentError
        If it is neither SQL nor a Column; also a `TypeError`, unless it is None.
    """
    from pyspark.sql import Column
    from pyspark.sql.functions import expr

    if isinstance(value, Column):
        return value
    if isinstance(value, str):
        return expr(value)
    raise wrong_type(argument, value, reason)


def optional_column(argument: str, value: str | Column | None) -> Column | None:
    """Like `column`, but None means no condition."""
    return None if value is None else column(argument, value)


def assignments(argument: str, values: Mapping[str, str | Column] | None) -> Assignments:
    """Return the assignments of a mapping.

    Raises
    ------
    InvalidArgumentError
        If it is not a mapping or is empty, a name is not a string, or a value is neither SQL nor a
        Column.
    """
    reason = "it must be a dict of at least one column's name and value"
    if not isinstance(values, Mapping):
        raise wrong_type(argument, values, reason)
    if not values:
        raise wrong(argument, values, reason)
    of_dict = f"of dict in '{argument}' must contain only"
    for name in values:
        if not isinstance(name, str):
            raise wrong_type(argument, name, f"keys {of_dict} strings with column names")
    reason = f"values {of_dict} Spark SQL Columns or strings (expressions in SQL syntax)"
    return [
        (name, column(f"{argument}[{name!r}]", value, reason)) for name, value in values.items()
    ]


def require_string(argument: str, value: object) -> None:
    """Refuse a value that is not a string, or is empty.

    Raises
    ------
    InvalidArgumentError
        Naming the argument.
    """
    reason = "it needs to be a string that is not empty"
    if not isinstance(value, str):
        raise wrong_type(argument, value, reason)
    if not value:
        raise wrong(argument, value, reason)


def require_boolean(argument: str, value: object) -> None:
    """Refuse a value that is no Boolean.

    Raises
    ------
    ArgumentTypeError
        Naming the argument.
    """
    if not isinstance(value, bool):
        raise wrong_type(argument, value, "it needs to be a boolean: True or False")


def require_whole_number(argument: str, value: object, reason: str, *, minimum: int) -> None:
    """Refuse a value that is not a whole number, or a smaller one.

    Raises
    ------
    InvalidArgumentError
        If it is not such a number; also a `TypeError` for a value of another type.
    """
    if not isinstance(value, int) or isinstance(value, bool):
        raise wrong_type(argument, value, reason)
    if value < minimum:
        raise wrong(argument, value, reason)


def string_values(argument: str, values: Mapping[str, str]) -> dict[str, str]:
    """Return a mapping of strings to strings.

    Raises
    ------
    InvalidArgumentError
        If it is something else; also a `TypeError`.
    """
    found = _strings(values)
    if found is None:
        raise wrong_type(argument, values, "it needs to be a dict of strings")
    return found


def file_system_settings(argument: str, values: Mapping[str, str] | None) -> dict[str, str]:
    """Return settings of a file system; empty if `values` is None.

    Raises
    ------
    InvalidArgumentError
        If it is not a mapping of strings, or a name does not begin with ``fs.`` or ``dfs.``.
    """
    settings = {} if values is None else values
    found = _strings(settings)
    if found is not None and all(name.startswith(("fs.", "dfs.")) for name in found):
        return found
    # The error names no values, which may be secrets.
    reason = "it needs to be a dict of strings, whose names begin with fs. or dfs."
    if not isinstance(settings, Mapping):
        raise wrong_type(argument, settings, reason)
    raise wrong(argument, sorted(map(str, settings)), reason)


def _strings(values: object) -> dict[str, str] | None:
    if not isinstance(values, Mapping):
        return None
    found = dict(values)
    return found if all(isinstance(part, str) for pair in found.items() for part in pair) else None
