"""What OPTIMIZE can do with a table."""

from __future__ import annotations

from deltaic.commit.ports import TableSnapshot
from deltaic.exceptions import DeltaError, error
from deltaic.protocol.columns.clustering import clustering_columns
from deltaic.resources import load_json

#: Keys of ``unsupported-commands.json``.
_CLUSTERED = "OPTIMIZE of a clustered table"
Z_ORDER = "OPTIMIZE ... ZORDER BY"


def unsupported(command: str) -> DeltaError:
    """Return the error of a command that is not supported yet, with what works instead."""
    instead = load_json("unsupported-commands.json")[command]
    return error("DELTAIC_COMMAND_UNSUPPORTED", command=command, instead=instead)


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
        raise unsupported(_CLUSTERED)
    if full:
        raise error("DELTAIC_OPTIMIZE_FULL_NOT_CLUSTERED", table=table, version=current.version)
