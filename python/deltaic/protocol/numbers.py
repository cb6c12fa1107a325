"""Numbers in the format that every reader of a log parses."""

from __future__ import annotations

import re

_WHOLE_NUMBER = re.compile(r"[+-]?[0-9]+")


def whole_number(text: str) -> int | None:
    """Parse a whole number; None if Scala and Java would not parse the string.

    Only Python accepts spaces, underscores and the digits of other scripts.
    """
    return int(text) if _WHOLE_NUMBER.fullmatch(text) else None
