"""Texts of limited length, which are strings in the log."""

from __future__ import annotations

import re

#: What Spark calls such a type.
LIMITED_TEXT = re.compile(r"(var)?char\((\d+)\)")

#: The metadata of a column that states its type where that has limits, at whatever depth.
LIMITED_TEXT_KEY = "__CHAR_VARCHAR_TYPE_STRING"


def is_longer(before: str | None, after: str) -> bool:
    """Whether one limited text takes all that another did, as ``ALTER COLUMN ... TYPE`` asks.

    Parameters
    ----------
    before
        The type that the column has; None if its texts are not limited.
    """
    older, newer = LIMITED_TEXT.fullmatch(before or ""), LIMITED_TEXT.fullmatch(after)
    if older is None or newer is None or before == after:
        return before == after
    return newer[1] is not None and int(older[2]) <= int(newer[2])
