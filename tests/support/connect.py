"""A server of Spark Connect with the plugins, and what both kinds of sessions run."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from types import MappingProxyType

from tests.support.paths import ROOT
from tests.support.spark_scripts import free_port, spark_server, submit_options

SERVER = "org.apache.spark.sql.connect.service.SparkConnectServer"

#: The names of the plugins, and those of delta-spark that Deltaic provides, too.
PLUGINS = "io.deltaic.spark.connect.Deltaic"
PLUGINS_OF_DELTA_SPARK = "org.apache.spark.sql.connect.delta.Delta"

EMPTY: Mapping[str, str] = MappingProxyType({})


@contextmanager
def connect_server(
    folder: Path, python: str, plugins: str | None = PLUGINS, settings: Mapping[str, str] = EMPTY
) -> Iterator[str]:
    """Run a server as long as the context lasts, and yield its address.

    Parameters
    ----------
    python
        The Python that runs the functions of clients, which needs what a client needs.
    plugins
        What the names of the plugins begin with; by None, none are set.
    settings
        Others of the server.
    """
    port = free_port()
    all_settings = {
        "spark.connect.grpc.binding.port": str(port),
        "spark.connect.grpc.binding.address": "127.0.0.1",
        "spark.sql.warehouse.dir": str(folder / "warehouse"),
        **settings,
    }
    if plugins is not None:
        for kind in ("Relation", "Command"):
            setting = f"spark.connect.extensions.{kind.lower()}.classes"
            all_settings[setting] = f"{plugins}{kind}Plugin"
    # Functions of clients may import the package.
    variables = {"PYSPARK_PYTHON": python, "PYTHONPATH": str(ROOT / "python")}
    with spark_server(SERVER, submit_options(all_settings), [], folder, port, variables):
        yield f"sc://127.0.0.1:{port}"
