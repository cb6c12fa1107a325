"""Configures Spark sessions for Deltaic: the settings, the jar, and the committer."""

from __future__ import annotations

import os
import re
from collections.abc import Sequence
from pathlib import Path
from types import NoneType
from typing import TYPE_CHECKING

from deltaic.arguments import wrong_type
from deltaic.exceptions import DeltaError, error
from deltaic.resources import load_json

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

EXTENSION = "io.deltaic.spark.DeltaicExtension"
CATALOG = "io.deltaic.spark.DeltaicCatalog"

_DELTA_SPARK_EXTENSION = "io.delta.sql.DeltaSparkSessionExtension"
_DELTA_SPARK_CATALOG = "org.apache.spark.sql.delta.catalog.DeltaCatalog"

_EXTENSIONS_KEY = "spark.sql.extensions"
_CATALOG_KEY = "spark.sql.catalog.spark_catalog"
_JARS_KEY = "spark.jars"
_PACKAGES_KEY = "spark.jars.packages"

_JARS = Path(__file__).resolve().parent / "jars"


def configure_spark(builder: SparkSession.Builder) -> SparkSession.Builder:
    """Make the sessions of a builder read and write Delta tables.

    Values of ``spark.sql.extensions`` and ``spark.jars`` that the builder has are extended.

    Parameters
    ----------
    builder
        The builder of the session, such as ``SparkSession.builder.appName("my-app")``. It is
        changed in place.

    Returns
    -------
    SparkSession.Builder
        The same builder.

    Raises
    ------
    TableStateError
        If the jar is missing from the package, or the version of PySpark is not tested.
    InvalidArgumentError
        If the builder sets another catalog as ``spark_catalog``.

    Examples
    --------
    >>> from pyspark.sql import SparkSession
    >>> spark = configure_spark(SparkSession.builder).getOrCreate()  # doctest: +SKIP
    """
    from pyspark import __version__ as spark_version

    require_tested_spark(spark_version)
    # A builder has no public API for its options; pyspark's own helpers read `_options`, too.
    options = builder._options
    catalog = options.get(_CATALOG_KEY, CATALOG)
    if catalog != CATALOG:
        raise error(
            "DELTAIC_CATALOG_CONFLICT", setting=_CATALOG_KEY, catalog=catalog, required=CATALOG
        )
    builder.config(_EXTENSIONS_KEY, _with_item(options.get(_EXTENSIONS_KEY), EXTENSION))
    builder.config(_CATALOG_KEY, CATALOG)
    builder.config(_JARS_KEY, _with_item(options.get(_JARS_KEY), str(jar_path())))
    _register_on_creation(builder)
    return builder


def configure_spark_with_delta_pip(
    spark_session_builder: SparkSession.Builder, extra_packages: Sequence[str] | None = None
) -> SparkSession.Builder:
    """Do what `configure_spark` does, under the name that delta-spark has for it.

    The jar is in the package and is not downloaded. Where the builder names the extension and the
    catalog of delta-spark, it gets those of Deltaic.

    Parameters
    ----------
    spark_session_builder
        The builder of the session. It is changed in place.
    extra_packages
        Maven coordinates of other packages that Spark downloads, which are added to
        ``spark.jars.packages``.

    Returns
    -------
    SparkSession.Builder
        The same builder.

    Raises
    ------
    ArgumentTypeError
        If it is no builder of a SparkSession.
    TableStateError, InvalidArgumentError
        As for `configure_spark`.

    Examples
    --------
    >>> from pyspark.sql import SparkSession
    >>> packages = ["org.apache.spark:spark-sql-kafka-0-10_2.13:4.2.0"]
    >>> builder = configure_spark_with_delta_pip(
    ...     SparkSession.builder, extra_packages=packages
    ... )  # doctest: +SKIP
    """
    from pyspark.sql import SparkSession

    if not isinstance(spark_session_builder, SparkSession.Builder):
        raise wrong_type(
            "spark_session_builder",
            spark_session_builder,
            "it must be called with a SparkSession builder as the argument",
        )
    if not isinstance(extra_packages, list | tuple | NoneType):
        raise wrong_type("extra_packages", extra_packages, "it must be a list of strings")
    options = spark_session_builder._options
    for package in extra_packages or ():
        packages = _with_item(options.get(_PACKAGES_KEY), package)
        spark_session_builder.config(_PACKAGES_KEY, packages)
    if options.get(_CATALOG_KEY) == _DELTA_SPARK_CATALOG:
        spark_session_builder.config(_CATALOG_KEY, CATALOG)
    others = [
        item for item in _items(options.get(_EXTENSIONS_KEY)) if item != _DELTA_SPARK_EXTENSION
    ]
    spark_session_builder.config(_EXTENSIONS_KEY, ",".join(others))
    return configure_spark(spark_session_builder)


def require_tested_spark(version: str) -> str:
    """Refuse a version of PySpark that Deltaic is not tested with.

    Returns
    -------
    str
        The minor version, such as ``4.2``. Each has a jar of its own.

    Raises
    ------
    TableStateError
        If the version is not in ``resources/spark-versions.json``, which the JVM also reads, or
        the wheel has no jar for it.
    """
    number = re.match(r"[0-9.]*[0-9]", version)
    for line, versions in _supported_lines().items():
        if number is not None and number.group() in versions:
            return line
    tested = supported_versions()
    raise error(
        "DELTAIC_SPARK_VERSION_UNSUPPORTED",
        version=version,
        tested=", ".join(tested),
        suggested=tested[-1],
    )


def supported_versions() -> list[str]:
    """Return the versions of Spark that Deltaic is tested with, in order.

    A wheel has the jars of one minor version of Spark, and only its versions count.
    """
    return [version for versions in _supported_lines().values() for version in versions]


def _supported_lines() -> dict[str, list[str]]:
    """Return the tested versions of Spark by minor version: those that the package has a jar for.

    All, if it has none, or ``DELTAIC_JAR`` names another.
    """
    lines: dict[str, list[str]] = load_json("spark-versions.json")
    with_jar = {line for line in lines if any(_JARS.glob(f"deltaic-spark_{line}_*.jar"))}
    if not with_jar or os.environ.get("DELTAIC_JAR"):
        return lines
    return {line: versions for line, versions in lines.items() if line in with_jar}


def spark_settings() -> dict[str, str]:
    """Return the settings for a session that is not built by `configure_spark`."""
    return {_EXTENSIONS_KEY: EXTENSION, _CATALOG_KEY: CATALOG, _JARS_KEY: str(jar_path())}


def jar_path() -> Path:
    """Return the jar in the package for the PySpark that is installed, or that of ``DELTAIC_JAR``.

    Raises
    ------
    TableStateError
        If there is not exactly one, or the package has none for the version of PySpark.
    """
    named = os.environ.get("DELTAIC_JAR")
    if not named:
        return _package_jar("deltaic-spark")
    jar = Path(named)
    if not jar.is_file():
        raise _jar_missing(jar.name, jar.parent)
    return jar


def delta_api_jar_path() -> Path:
    """Return the jar with delta-spark's API for Scala and Java, which `jar_path` does without.

    Raises
    ------
    TableStateError
        As for `jar_path`.
    """
    return _package_jar("deltaic-delta-api")


def examples_path() -> Path:
    """Return the folder of the example programs, in the package or in a checkout."""
    package = Path(__file__).resolve().parent
    inside = package / "examples"
    return inside if inside.is_dir() else package.parents[1] / "examples"


def _package_jar(module: str) -> Path:
    from pyspark import __version__ as spark_version

    line = require_tested_spark(spark_version)
    pattern = f"{module}_{line}_*.jar"
    jars = list(_JARS.glob(pattern))
    if len(jars) != 1:
        raise _jar_missing(pattern, _JARS)
    return jars[0]


def _jar_missing(jar: str, folder: Path) -> DeltaError:
    found = ", ".join(sorted(each.name for each in folder.glob("*.jar"))) or "none"
    return error("DELTAIC_JAR_MISSING", jar=jar, folder=folder, found=found)


def _with_item(existing: object, item: str) -> str:
    """Append to a comma-separated list, once."""
    items = _items(existing)
    return ",".join(items if item in items else [*items, item])


def _items(existing: object) -> list[str]:
    """Return the items of a comma-separated list, which may be absent."""
    return [part.strip() for part in str(existing or "").split(",") if part.strip()]


def _register_on_creation(builder: SparkSession.Builder) -> None:
    """Make this builder register the committer with the JVM of its sessions.

    Spark has no hook for new sessions in Python, and registering the committer on first use of the
    API would be too late for ``df.write``. So `getOrCreate` is replaced on this instance; the class
    and other builders are not changed.
    """
    if "getOrCreate" in vars(builder):
        return
    create = builder.getOrCreate

    def get_or_create() -> SparkSession:
        session = create()
        from deltaic.spark.gateway import register_committer

        register_committer(session)
        return session

    builder.getOrCreate = get_or_create  # type: ignore[method-assign]
