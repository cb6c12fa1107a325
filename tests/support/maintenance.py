"""What follows a commit, as tests ask for it and wait for it."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

_SOON_MS = 60_000


def await_maintenance(spark: SparkSession) -> None:
    """Wait until the log files that follow all commits so far are written."""
    assert _api(spark).awaitMaintenance(_SOON_MS), "maintenance of a table takes more than a minute"


def do_maintenance(spark: SparkSession, table: str, version: int, *tasks: dict[str, Any]) -> None:
    """Do maintenance that no commit of ours called for, such as for a table of another engine."""
    request = {"background": False, "tasks": list(tasks)}
    session = spark._jsparkSession
    _api(spark).maintenanceOfTable(session, table, version, json.dumps(request))


def log_files(table: str | Path, pattern: str) -> list[Path]:
    """Return files of the log that match, by name."""
    return sorted(Path(table, "_delta_log").glob(pattern))


def _api(spark: SparkSession) -> Any:
    return spark._jvm.io.deltaic.spark.PythonApi  # type: ignore[union-attr]
