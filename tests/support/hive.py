"""Sessions with Hive support, whose metastore is a Derby database in a folder of the test."""

from __future__ import annotations

from pathlib import Path


def hive_settings(folder: Path) -> dict[str, str]:
    """Return the settings of a session with Hive support that leaves its metastore in a folder."""
    return {
        "spark.sql.catalogImplementation": "hive",
        "spark.hadoop.javax.jdo.option.ConnectionURL": (
            f"jdbc:derby:;databaseName={folder / 'metastore'};create=true"
        ),
        "spark.hadoop.hive.exec.scratchdir": str(folder / "scratch"),
        "spark.hadoop.hive.exec.local.scratchdir": str(folder / "local-scratch"),
    }
