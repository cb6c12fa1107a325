"""What OPTIMIZE can do with a table."""

from __future__ import annotations

import json
from collections.abc import Mapping

from deltaic.commit.ports import TableSnapshot
from deltaic.exceptions import error
from deltaic.protocol.columns.clustering import clustering_columns
from deltaic.protocol.columns.column_lists import name_parts
from deltaic.protocol.columns.ordering import checked_ordering
from deltaic.protocol.columns.schema_checks import same_names
from deltaic.protocol.columns.schema_edits import path_text

#: The position on the curve has 63 bits.
_MAX_COLUMNS = 63


def require_optimizable(
    table: str,
    current: TableSnapshot,
    parameters: Mapping[str, str | None],
    *,
    needs_statistics: bool,
) -> None:
    """Refuse to compact or order a table in a way for which it is not made.

    Parameters
    ----------
    parameters
        Those of the operation: ``isFull``, and JSON arrays of the columns ``zOrderBy`` and the
        conditions ``predicate``.
    needs_statistics
        Whether columns have to have statistics to order rows by them.

    Raises
    ------
    InvalidArgumentError
        If the table is clustered, and the statement has ZORDER BY or WHERE; if it is not, and the
        statement has FULL; or if rows cannot be ordered by one of the columns.
    """
    columns = [name_parts(name) for name in json.loads(parameters.get("zOrderBy") or "[]")]
    clustered_by = clustering_columns(table, current.protocol, current.metadata, current.domains)
    if clustered_by:
        clause = "ZORDER BY" if columns else "WHERE"
        if columns or json.loads(parameters.get("predicate") or "[]"):
            names = ", ".join(map(path_text, clustered_by))
            raise error("DELTAIC_OPTIMIZE_CLUSTERED", table=table, columns=names, clause=clause)
    elif parameters.get("isFull") == "true":
        raise error("DELTAIC_OPTIMIZE_FULL_NOT_CLUSTERED", table=table, version=current.version)
    if columns:
        _require_orderable(table, current, columns, needs_statistics=needs_statistics)


def _require_orderable(
    table: str,
    current: TableSnapshot,
    columns: list[tuple[str, ...]],
    *,
    needs_statistics: bool,
) -> None:
    def refused(reason: str) -> Exception:
        names = ", ".join(map(path_text, columns))
        return error("DELTAIC_Z_ORDER_INVALID", table=table, columns=names, reason=reason)

    partitioned_by = current.metadata.partition_columns
    for path in columns:
        if any(same_names(path, (name,)) for name in partitioned_by):
            raise refused(f"it is partitioned by {path_text(path)}, which has one value in a file")
    if len(columns) > _MAX_COLUMNS:
        raise refused(f"there are more than {_MAX_COLUMNS} columns")
    checked_ordering(table, current.metadata, columns, refused, needs_statistics=needs_statistics)
