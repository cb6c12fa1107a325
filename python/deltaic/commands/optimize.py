"""What OPTIMIZE can do with a table."""

from __future__ import annotations

from deltaic.commit.ports import TableSnapshot
from deltaic.exceptions import error, unsupported_command
from deltaic.protocol.columns.clustering import clustering_columns

#: Keys of ``unsupported-commands.json``.
_CLUSTERED = "OPTIMIZE of a clustered table"
Z_ORDER = "OPTIMIZE ... ZORDER BY"


def require_optimizable(table: str, current: TableSnapshot, *, full: bool) -> None:
    """Refuse to compact a table whose rows have to be clustered.

    Parameters
    ----------
    full
        Whether the statement has FULL.

    Raises
    ------
    InvalidArgumentError
        If the table is clustered, which is not supported yet; or if it is not, and the statement
        has FULL.
    """
    columns = clustering_columns(table, current.protocol, current.metadata, current.domains)
    if columns:
        raise unsupported_command(_CLUSTERED)
    if full:
        raise error("DELTAIC_OPTIMIZE_FULL_NOT_CLUSTERED", table=table, version=current.version)
