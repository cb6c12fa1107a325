"""The files that VACUUM has found, in the JVM."""

from __future__ import annotations

import json
from typing import Any

from deltaic.commit.unused_files import DeletedFileCounts, UnusedFileCounts
from deltaic.spark.errors import jvm_errors


class JvmUnusedFiles:
    """What VACUUM has found: ``io.deltaic.spark.vacuum.VacuumRun``.

    Parameters
    ----------
    run
        The object in the JVM.
    """

    def __init__(self, run: Any) -> None:
        self._run = run

    def counts(self) -> UnusedFileCounts:
        """Return the counts of the files."""
        with jvm_errors():
            return UnusedFileCounts.from_json(json.loads(self._run.summary()))

    def delete(self) -> DeletedFileCounts:
        """Delete the files."""
        with jvm_errors():
            return DeletedFileCounts.from_json(json.loads(self._run.delete()))

    def record(self) -> None:
        """Record the run for the next VACUUM LITE."""
        with jvm_errors():
            self._run.record()

    def close(self) -> None:
        """Delete the temporary file of the paths."""
        with jvm_errors():
            self._run.close()
