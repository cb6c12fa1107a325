"""Converts the rows of a command to a DataFrame."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

    from deltaic.commands.rows import RowSet


def to_dataframe(spark: SparkSession, rows: RowSet) -> DataFrame:
    """Return the rows as a DataFrame.

    They are one JSON literal in the plan, which the JVM parses: ``createDataFrame`` would start
    Python workers to transfer them.
    """
    return spark.sql(
        f"SELECT inline(from_json(:rows, 'ARRAY<STRUCT<{rows.schema}>>'))",
        args={"rows": json.dumps(list(rows.rows), ensure_ascii=False)},
    )
