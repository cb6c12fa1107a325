"""The columns that the DataFrames of one `DeltaTable` share."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

    from deltaic.spark.session_api import SessionApi


class DataFrameColumns:
    """Gives all DataFrames of a table the columns of the first, while its definition is the same.

    Spark assigns new expression ids to the columns of each DataFrame. With the same ids,
    ``df["id"]`` of one DataFrame also resolves in another, such as the target of a DELETE.
    """

    def __init__(self) -> None:
        self._first: DataFrame | None = None

    def of(self, df: DataFrame, api: SessionApi) -> DataFrame:
        """Return the DataFrame with the columns of the first one, or unchanged if they differ."""
        if self._first is not None:
            aligned = api.with_columns_of(self._first, df)
            if aligned is not None:
                return aligned
        self._first = df
        return df
