"""CHAR and VARCHAR types, which are strings in the log."""

from __future__ import annotations

import re

#: Spark's name of such a type.
CHAR_VARCHAR_TYPE = re.compile(r"(var)?char\((\d+)\)")

#: The key of a column's metadata for its declared type, if that contains CHAR or VARCHAR.
CHAR_VARCHAR_TYPE_KEY = "__CHAR_VARCHAR_TYPE_STRING"


def is_longer(before: str | None, after: str) -> bool:
    """Whether a new type can hold all values of the old one, as ``ALTER COLUMN ... TYPE`` requires.

    Parameters
    ----------
    before
        The type of the column; None if it is neither CHAR nor VARCHAR.
    """
    older, newer = CHAR_VARCHAR_TYPE.fullmatch(before or ""), CHAR_VARCHAR_TYPE.fullmatch(after)
    if older is None or newer is None or before == after:
        return before == after
    return newer[1] is not None and int(older[2]) <= int(newer[2])
