"""The compared engines, and how a Spark session with each is started."""

from __future__ import annotations

import hashlib
from collections.abc import Callable
from dataclasses import dataclass
from importlib import metadata

from pyspark.sql import SparkSession

from bench.settings import REPOSITORY, Settings

_PEER_JARS = REPOSITORY / ".tools" / "peers"


@dataclass(frozen=True, slots=True)
class Engine:
    """One table format implementation in Spark.

    Attributes
    ----------
    source
        The data source's name in ``read.format`` and ``write.format``.
    tables
        Folder of the tables it only reads. Engines with the same folder share them.
    configure
        Adds the engine to the builder of a session.
    version
        Returns the version of the measured build. Prepared tables are recreated when it changes.
    """

    name: str
    summary: str
    source: str
    tables: str
    configure: Callable[[SparkSession.Builder], SparkSession.Builder]
    version: Callable[[], str]

    @property
    def is_delta(self) -> bool:
        """Whether its tables have a log, hence SQL DELETE and table properties."""
        return self.source == "delta"


def start_session(engine: Engine, settings: Settings) -> SparkSession:
    """Start the one Spark session of this process."""
    builder = SparkSession.builder.appName(f"bench {engine.name}").master(settings.master)
    for key, value in settings.spark_confs().items():
        builder = builder.config(key, value)
    return engine.configure(builder).getOrCreate()


def _with_deltaic(builder: SparkSession.Builder) -> SparkSession.Builder:
    from deltaic import configure_spark

    return configure_spark(builder)


def _deltaic_version() -> str:
    from deltaic import __version__
    from deltaic.session import jar_path

    digest = hashlib.sha256(jar_path().read_bytes()).hexdigest()
    return f"{__version__} (jar {digest[:12]})"


def _with_delta_spark(builder: SparkSession.Builder) -> SparkSession.Builder:
    jars = sorted(str(jar) for jar in _PEER_JARS.glob("*.jar"))
    if not jars:
        raise FileNotFoundError(
            f"No jars of delta-spark in {_PEER_JARS}; `make bench` or `make peers` fetches them."
        )
    return (
        builder.config("spark.jars", ",".join(jars))
        .config("spark.sql.extensions", "io.delta.sql.DeltaSparkSessionExtension")
        .config(
            "spark.sql.catalog.spark_catalog", "org.apache.spark.sql.delta.catalog.DeltaCatalog"
        )
    )


def _with_tuned_delta_spark(builder: SparkSession.Builder) -> SparkSession.Builder:
    return _with_delta_spark(builder).config("spark.databricks.delta.snapshotPartitions", "2")


def _delta_spark_version() -> str:
    return metadata.version("delta-spark")


def _plain(builder: SparkSession.Builder) -> SparkSession.Builder:
    return builder


def _spark_version() -> str:
    return metadata.version("pyspark")


def _without_loaded_classes(builder: SparkSession.Builder) -> SparkSession.Builder:
    return _with_deltaic(builder).config("spark.deltaic.firstQuery.loadClasses", "false")


SUBJECT = "deltaic"
FLOOR = "parquet"

#: Runs only if it is selected by name: it measures the effect of one part of the subject.
VARIANT = "deltaic-unloaded"

ENGINES = {
    engine.name: engine
    for engine in (
        Engine(SUBJECT, "Deltaic", "delta", "deltaic", _with_deltaic, _deltaic_version),
        Engine(
            VARIANT,
            "Deltaic whose thread does not load the classes of a first query",
            "delta",
            "deltaic",
            _without_loaded_classes,
            _deltaic_version,
        ),
        Engine(
            "delta",
            "delta-spark at its defaults",
            "delta",
            "delta",
            _with_delta_spark,
            _delta_spark_version,
        ),
        Engine(
            "delta-tuned",
            "delta-spark with spark.databricks.delta.snapshotPartitions=2",
            "delta",
            "delta",
            _with_tuned_delta_spark,
            _delta_spark_version,
        ),
        Engine(
            FLOOR,
            "plain Parquet in Spark, its schema given: the floor",
            "parquet",
            "parquet",
            _plain,
            _spark_version,
        ),
    )
}
