"""What users give as conditions and as values: SQL, or Columns."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from deltaic.exceptions import DeltaError, error

if TYPE_CHECKING:
    from pyspark.sql import Column

#: Columns, as SQL spells their names, and the values that they are to have.
Assignments = Sequence[tuple[str, "Column"]]


def wrong(argument: str, value: object, reason: str) -> DeltaError:
    """Return the error of an argument whose value is wrong.

    Parameters
    ----------
    argument
        The name of the argument.
    value
        What was given.
    reason
        What it has to be.
    """
    given = repr(value)
    return error("DELTAIC_INVALID_ARGUMENT", argument=argument, value=given, reason=reason)


def wrong_type(argument: str, value: object, reason: str) -> DeltaError:
    """Return the error of an argument of a wrong type, which is a `TypeError`, too.

    No value where one is needed is no matter of its type.
    """
    if value is None:
        return wrong(argument, value, reason)
    given = repr(value)
    return error("DELTAIC_INVALID_ARGUMENT_TYPE", argument=argument, value=given, reason=reason)


def column(argument: str, value: str | Column) -> Column:
    """Return a condition or value as a Column.

    Raises
    ------
    InvalidArgumentError
        If it is neither SQL nor a Column; a `TypeError`, too, unless it is None.
    """
    from pyspark.sql import Column
    from pyspark.sql.functions import expr

    if isinstance(value, Column):
        return value
    if isinstance(value, str):
        return expr(value)
    raise wrong_type(argument, value, "it is SQL or a Column")


def optional_column(argument: str, value: str | Column | None) -> Column | None:
    """As `column`, where None stands for no condition."""
    return None if value is None else column(argument, value)


def assignments(argument: str, values: Mapping[str, str | Column] | None) -> Assignments:
    """Return what columns are set to.

    Raises
    ------
    InvalidArgumentError
        If it is no mapping, empty, or a name is no text, or a value neither SQL nor a Column.
    """
    if not isinstance(values, Mapping):
        raise wrong_type(argument, values, "it is a dict of at least one column's name and value")
    if not values:
        raise wrong(argument, values, "it is a dict of at least one column's name and value")
    for name in values:
        if not isinstance(name, str):
            raise wrong_type(argument, name, "the names of columns are strings")
    return [(name, column(f"{argument}[{name!r}]", value)) for name, value in values.items()]


def require_text(argument: str, value: object) -> None:
    """Refuse what is not a text, or empty.

    Raises
    ------
    InvalidArgumentError
        Naming the argument.
    """
    if not isinstance(value, str):
        raise wrong_type(argument, value, "it is a string that is not empty")
    if not value:
        raise wrong(argument, value, "it is a string that is not empty")


def file_system_settings(argument: str, values: Mapping[str, str] | None) -> dict[str, str]:
    """Return settings of a file system, none where there are none.

    Raises
    ------
    InvalidArgumentError
        If it is no mapping of texts, or a name does not begin as such a setting's does.
    """
    settings = {} if values is None else values
    if isinstance(settings, Mapping):
        found = dict(settings)
        texts = all(isinstance(text, str) for pair in found.items() for text in pair)
        if texts and all(name.startswith(("fs.", "dfs.")) for name in found):
            return found
    # Values may be secrets.
    reason = "it is a dict of strings, whose names begin with fs. or dfs."
    if not isinstance(settings, Mapping):
        raise wrong_type(argument, settings, reason)
    raise wrong(argument, sorted(map(str, settings)), reason)
