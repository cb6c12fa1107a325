"""The port for DROP FEATURE, implemented by ``io.deltaic.spark.PythonApi``."""

from __future__ import annotations

import json
from typing import Any

from deltaic.commit.downgrade import HistoricUse
from deltaic.spark.errors import jvm_errors


class JvmDowngrade:
    """Implements `deltaic.commit.downgrade.Downgrade`.

    Parameters
    ----------
    api
        ``io.deltaic.spark.PythonApi``.
    session
        The JVM's session.
    table
        The path of the table.
    """

    def __init__(self, api: Any, session: Any, table: str) -> None:
        self._api = api
        self._session = session
        self._table = table

    def rewrite_files(self, feature: str) -> int:
        """Rewrite the files of the newest version that use a feature, and commit them."""
        with jvm_errors():
            return int(self._api.rewriteFilesWithout(self._session, self._table, feature))

    def files_use(self, version: int, feature: str) -> bool:
        """Return whether files of a version use a feature."""
        with jvm_errors():
            return bool(self._api.filesUse(self._session, self._table, version, feature))

    def write_checkpoint(self, version: int) -> None:
        """Write a classic checkpoint of a version, or fail."""
        with jvm_errors():
            self._api.writeCheckpoint(self._session, self._table, version)

    def truncate_log(self, retention_ms: int, protected_version: int) -> None:
        """Delete the log before the newest checkpoint that is older than the retention."""
        with jvm_errors():
            self._api.truncateLog(self._session, self._table, retention_ms, protected_version)

    def newest_use(self, feature: str, last: int, protected_version: int) -> HistoricUse | None:
        """Return the newest version up to `last` that uses a feature; None if none does."""
        with jvm_errors():
            response = self._api.newestUse(
                self._session, self._table, feature, last, protected_version
            )
        found = json.loads(response)
        return None if found is None else HistoricUse.from_json(found)
