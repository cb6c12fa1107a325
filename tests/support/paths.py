"""Where the things are that tests read."""

from __future__ import annotations

import os
from pathlib import Path

from pyspark import __version__ as spark_version

from deltaic._version import __version__
from deltaic.session import require_tested_spark

#: The checkout.
ROOT = Path(__file__).resolve().parents[2]

#: The minor version of the PySpark that runs the tests, such as ``4.2``.
SPARK_LINE = require_tested_spark(spark_version)

#: The jar that `make build` placed in the package.
JAR = ROOT / f"python/deltaic/jars/deltaic-spark_{SPARK_LINE}_2.13-{__version__}.jar"

#: Classes of Spark as JVMs share them, which `make test` makes first; see `class_archive`.
CLASS_ARCHIVE = ROOT / "build" / "spark-classes.jsa"

#: What `make peers` fetched: delta-spark and what it needs besides Spark.
PEER_JARS = ROOT / ".tools" / "peers"


def shared_folder() -> Path | None:
    """Return the folder of tables that other engines wrote, or None where there is none.

    It lies beside the checkout; ``DELTAIC_SHARED`` names another place.
    """
    folder = Path(os.environ.get("DELTAIC_SHARED", ROOT.parent / "shared"))
    return folder if folder.is_dir() else None


def peer_jars() -> str:
    """Return the jars of delta-spark as a value of ``spark.jars``."""
    jars = sorted(PEER_JARS.glob("*.jar"))
    if not jars:
        raise FileNotFoundError(f"no jars in {PEER_JARS}: run `make peers` first")
    return ",".join(map(str, jars))
