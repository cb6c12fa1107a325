"""The columns that the DataFrames of one `DeltaTable` have in common."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

    from deltaic.spark.session_api import SessionApi


class FrameColumns:
    """Gives all frames of a table the columns of the first, as long as its definition is the same.

    Spark numbers columns anew for each frame. With the same numbers, ``df["id"]`` of one frame is a
    column of another, too: of the frame that a change begins with.
    """

    def __init__(self) -> None:
        self._first: DataFrame | None = None

    def of(self, frame: DataFrame, api: SessionApi) -> DataFrame:
        """Return the same rows with the columns of the first frame, or with their own."""
        if self._first is not None:
            renewed = api.with_columns_of(self._first, frame)
            if renewed is not None:
                return renewed
        self._first = frame
        return frame
