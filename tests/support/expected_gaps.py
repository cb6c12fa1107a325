"""What the corpus of foreign tables requires and a later issue adds.

The list only shrinks: an item that is on it and passes fails its test until it is taken off, and
whatever fails and is not on it is a bug. Each entry names the open issue that adds it.
"""

from __future__ import annotations

#: Tables that are refused by the name of a reader feature.
REFUSED_TABLES: dict[str, str] = {}

#: Kinds of items that fail for every table, with a part of the error they fail with.
MISSING_KINDS: dict[str, str] = {}
