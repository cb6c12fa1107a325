"""Numbers as every reader of a log understands them."""

from __future__ import annotations

import re

_WHOLE_NUMBER = re.compile(r"[+-]?[0-9]+")


def whole_number(text: str) -> int | None:
    """Return the number that a text is; None if it is not one for Scala and Java too.

    Python alone takes spaces, underscores and the digits of other scripts.
    """
    return int(text) if _WHOLE_NUMBER.fullmatch(text) else None
