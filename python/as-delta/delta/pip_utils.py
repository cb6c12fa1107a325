"""`configure_spark_with_delta_pip`."""

from __future__ import annotations

from deltaic.session import configure_spark_with_delta_pip

__all__ = ["configure_spark_with_delta_pip"]
