"""The expressions of a table that depend on a column."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence

from deltaic.commit.ports import TableAccess
from deltaic.exceptions import error
from deltaic.protocol.actions import Metadata
from deltaic.protocol.columns.column_expressions import GENERATED, INVARIANT
from deltaic.protocol.columns.schema_edits import path_text
from deltaic.protocol.properties import CONSTRAINT_PREFIX
from deltaic.protocol.schema import folded_name, walk


def require_independent(
    table: str, change: str, paths: Sequence[Sequence[str]], metadata: Metadata, tables: TableAccess
) -> None:
    """Refuse to change columns that constraints, invariants or generated columns reference.

    Parameters
    ----------
    change
        The change of the columns, such as ``renamed``.
    paths
        The columns.
    metadata
        The definition whose expressions are checked.

    Raises
    ------
    InvalidArgumentError
        Naming the column, and the first expression that depends on it.
    """
    expressions = list(_expressions(metadata))
    if not expressions or not paths:
        return
    referred = tables.columns_in(metadata.schema_string, [sql for _, sql in expressions])
    for (owner, sql), names in zip(expressions, referred, strict=True):
        for path in paths:
            if names is None or any(_overlap(path, name) for name in names):
                raise error(
                    "DELTAIC_COLUMN_DEPENDED_ON",
                    table=table,
                    column=path_text(path),
                    change=change,
                    dependent=owner,
                    expression=sql,
                )


def require_retypable(
    table: str, path: Sequence[str], metadata: Metadata, tables: TableAccess
) -> None:
    """Refuse to change the type of a generated column, or of one that expressions reference.

    A generated column must have the type of its expression: otherwise, delta-spark refuses any
    change of the table's definition.

    Raises
    ------
    InvalidArgumentError
        Naming the column, and the expression that computes it or depends on it.
    """
    column = metadata.schema.find(path[0])
    if column is not None and GENERATED in column.metadata:
        raise error(
            "DELTAIC_UNSUPPORTED_COLUMN_CHANGE",
            table=table,
            column=path_text(path),
            reason=f"it has the type of its generation expression: {column.metadata[GENERATED]}",
        )
    require_independent(table, "given another type", [path], metadata, tables)


def _expressions(metadata: Metadata) -> Iterator[tuple[str, str]]:
    for key, sql in metadata.configuration.items():
        if key.casefold().startswith(CONSTRAINT_PREFIX):
            yield f"the CHECK constraint {key[len(CONSTRAINT_PREFIX) :]}", sql
    for path, column in walk(metadata.schema):
        if GENERATED in column.metadata:
            yield f"the generated column {path}", str(column.metadata[GENERATED])
        if INVARIANT in column.metadata:
            yield f"an invariant of the column {path}", _invariant(column.metadata[INVARIANT])


def _invariant(metadata: object) -> str:
    """Return the condition in an invariant (Protocol § Column Invariants)."""
    try:
        return str(json.loads(str(metadata))["expression"]["expression"])
    except (ValueError, KeyError, TypeError):
        return str(metadata)


def _overlap(path: Sequence[str], name: Sequence[str]) -> bool:
    """Whether one of two columns is the other, or a field of it; names are case-insensitive."""
    pairs = zip(path, name, strict=False)
    return all(folded_name(ours) == folded_name(theirs) for ours, theirs in pairs)
