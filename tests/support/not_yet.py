"""What the corpus of foreign tables asks for and Deltaic does not answer yet.

The list only shrinks: an item that is on it and passes fails its test until it is taken off, and
whatever fails and is not on it is a bug.
"""

from __future__ import annotations

#: Tables that are refused by the name of a reader feature.
REFUSED_TABLES: dict[str, str] = {
    "golden__collations-preview-table": "collations-preview",
    "golden__collations-table": "collations",
}

#: Kinds of items that fail for every table, with a part of the error they fail with.
MISSING_KINDS: dict[str, str] = {
    "cdf": "option readChangeFeed",
    "detail": "The table or view `DETAIL` cannot be found",
    "history": "The table or view `HISTORY` cannot be found",
    "stream": "does not support streamed reading",
}

#: (table, item): time travel should be refused where VACUUM may have deleted the version's files.
DELETED_FILE_RETENTION: set[tuple[str, str]] = {
    (table, "versionAsOf 0 beyond the deleted file retention, policy on")
    for table in (
        "golden__basic-with-inserts-updates",
        "golden__time-travel-start-start20-start40",
    )
}
