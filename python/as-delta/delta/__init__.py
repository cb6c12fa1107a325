"""The package ``delta``, with the names of delta-spark: Deltaic for programs that import it.

Raises
------
ImportError
    If delta-spark is installed, too: it provides a package of the same name.
"""

from __future__ import annotations

from importlib.metadata import PackageNotFoundError, version

from deltaic import DeltaTable, __version__, configure_spark_with_delta_pip

__all__ = ["DeltaTable", "__version__", "configure_spark_with_delta_pip"]

#: By which `deltaic.install_as_delta` knows that there is nothing to do.
_is_deltaic = True


def _require_alone() -> None:
    try:
        other = version("delta-spark")
    except PackageNotFoundError:
        return
    raise ImportError(
        f"deltaic-as-delta and delta-spark {other} both provide the package delta. Run"
        " pip uninstall delta-spark deltaic-as-delta, and install again the one that you want."
    )


_require_alone()
