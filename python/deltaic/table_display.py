"""How a `DeltaTable` is shown in a shell and in a notebook.

In the examples, `path` is a table of one file with the ids 0 to 9.
"""

from __future__ import annotations

from html import escape
from typing import TYPE_CHECKING, Any

from deltaic.table_definition import TableDefinition

if TYPE_CHECKING:
    from pyspark.sql import Row

_UNITS = ("bytes", "KiB", "MiB", "GiB", "TiB", "PiB")


class TableDisplay(TableDefinition):
    """`repr` and the HTML of notebooks; base class of `DeltaTable`."""

    _alias: str | None

    def __repr__(self) -> str:
        """Return how the table was found.

        Examples
        --------
        >>> DeltaTable.forName(spark, "sales.orders").alias("o")
        DeltaTable.forName(spark, 'spark_catalog.sales.orders').alias('o')
        """
        if self._name is None:
            found = f"DeltaTable.forPath(spark, {self._path!r})"
        else:
            found = f"DeltaTable.forName(spark, {self._name!r})"
        return found if self._alias is None else f"{found}.alias({self._alias!r})"

    def _repr_html_(self) -> str:
        """Return what `detail` says of the table, as an HTML table; `repr` if it cannot be read."""
        try:
            (detail,) = self.detail().collect()
        except Exception:  # A notebook shows the object, and no error of it.
            return f"<code>{escape(repr(self))}</code>"
        rows = "".join(
            f"<tr><th style='text-align:left'>{name}</th>"
            f"<td style='text-align:left'>{escape(text)}</td></tr>"
            for name, text in _shown(detail)
            if text
        )
        return f"<table><caption><code>{escape(repr(self))}</code></caption>{rows}</table>"


def _shown(detail: Row) -> list[tuple[str, str]]:
    return [
        ("Location", detail.location),
        ("Description", detail.description or ""),
        ("Created", _time(detail.createdAt)),
        ("Last modified", _time(detail.lastModified)),
        ("Partitioned by", ", ".join(detail.partitionColumns)),
        ("Clustered by", ", ".join(detail.clusteringColumns or ())),
        ("Files", _size(detail.numFiles, detail.sizeInBytes)),
        ("Table features", ", ".join(sorted(detail.tableFeatures or ()))),
        ("Protocol", f"reader {detail.minReaderVersion}, writer {detail.minWriterVersion}"),
        ("Properties", ", ".join(f"{k} = {v}" for k, v in sorted(detail.properties.items()))),
    ]


def _time(value: Any) -> str:
    return "" if value is None else value.isoformat(sep=" ", timespec="seconds")


def _size(files: int | None, size: int | None) -> str:
    if files is None or size is None:
        return ""
    amount, unit = float(size), 0
    while amount >= 1024 and unit + 1 < len(_UNITS):
        amount /= 1024
        unit += 1
    number = f"{amount:.1f}" if unit else str(size)
    return f"{files:,} ({number} {_UNITS[unit]})"
