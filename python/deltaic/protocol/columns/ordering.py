"""The columns by whose values the rows of a table can be ordered so that queries skip files."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from deltaic.protocol.actions import Metadata
from deltaic.protocol.columns.column_lists import has_statistics
from deltaic.protocol.columns.schema_edits import find_field, path_text, spelled
from deltaic.protocol.schema import has_bounds, type_text


def checked_ordering(
    table: str,
    metadata: Metadata,
    requested: Sequence[Sequence[str]],
    refused: Callable[[str], Exception],
    *,
    needs_statistics: bool = True,
) -> tuple[tuple[str, ...], ...]:
    """Return the columns in the schema's spelling.

    Parameters
    ----------
    table
        The location of the table, for errors.
    requested
        The columns by their name parts, outermost first.
    refused
        Makes an error of a reason.
    needs_statistics
        Whether a column is refused for which no statistics are collected.
    """
    schema = metadata.schema
    columns = tuple(spelled(schema, path) for path in requested)
    if len(set(columns)) < len(columns):
        raise refused("a column is named twice")
    for path in columns:
        name, column = path_text(path), find_field(schema, path)
        if column is None:
            names = ", ".join(field.name for field in schema.fields)
            raise refused(f"there is no column {name} among {names}")
        if not has_bounds(column.type):
            kind = type_text(column.type)
            raise refused(f"{name} is of type {kind}, which has no min/max statistics")
        if needs_statistics and not has_statistics(table, schema, path, metadata.configuration):
            raise refused(
                f"no statistics are collected for {name}; name it in "
                "delta.dataSkippingStatsColumns, raise delta.dataSkippingNumIndexedCols, or move "
                "it to the front with ALTER TABLE ... ALTER COLUMN ... FIRST"
            )
    return columns
