"""Parquet files that the JVM has read, for CONVERT TO DELTA and CLONE."""

from __future__ import annotations

import json
from typing import Any

from deltaic.commit.parquet_source import ParquetSummary
from deltaic.spark.errors import jvm_errors


class JvmParquetFiles:
    """Files that become those of a table: ``io.deltaic.spark.convert.Conversion``.

    Parameters
    ----------
    conversion
        The object in the JVM.
    """

    def __init__(self, conversion: Any) -> None:
        self.conversion = conversion

    def summary(self) -> ParquetSummary:
        """Describe the files."""
        with jvm_errors():
            return ParquetSummary.from_json(json.loads(self.conversion.summary()))

    def prepare(self, summary: str) -> Any:
        """Return the JVM's commit that adds the files."""
        with jvm_errors():
            return self.conversion.prepare(summary)
