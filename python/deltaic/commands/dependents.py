"""What a table computes or checks from a column."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence

from deltaic.commit.ports import Tables
from deltaic.exceptions import error
from deltaic.protocol.actions import Metadata
from deltaic.protocol.column_expressions import GENERATED, INVARIANT
from deltaic.protocol.properties import CONSTRAINT_PREFIX
from deltaic.protocol.schema import folded_name, parse_schema, walk
from deltaic.protocol.schema_edits import path_text


def require_independent(
    table: str, change: str, paths: Sequence[Sequence[str]], metadata: Metadata, tables: Tables
) -> None:
    """Refuse to change columns that constraints, invariants or generated columns are about.

    Parameters
    ----------
    change
        What is to be done to the columns, such as ``renamed``.
    paths
        The columns.
    metadata
        The definition whose expressions count.

    Raises
    ------
    InvalidArgumentError
        Naming the column, and the first thing that depends on it.
    """
    expressions = list(_expressions(table, metadata))
    if not expressions or not paths:
        return
    referred = tables.columns_in(metadata.schema_string, [sql for _, sql in expressions])
    for (owner, sql), names in zip(expressions, referred, strict=True):
        for path in paths:
            if names is None or any(_meet(path, name) for name in names):
                raise error(
                    "DELTAIC_COLUMN_DEPENDED_ON",
                    table=table,
                    column=path_text(path),
                    change=change,
                    dependent=owner,
                    expression=sql,
                )


def require_retypable(table: str, path: Sequence[str], metadata: Metadata, tables: Tables) -> None:
    """Refuse another type of a column that is computed, or from which something is.

    A generated column has the type of its expression: delta-spark refuses to change the definition
    of a table in which one has another.

    Raises
    ------
    InvalidArgumentError
        Naming the column, and what computes it or depends on it.
    """
    column = parse_schema(metadata.schema_string, table).find(path[0])
    if column is not None and GENERATED in column.metadata:
        raise error(
            "DELTAIC_UNSUPPORTED_COLUMN_CHANGE",
            table=table,
            column=path_text(path),
            reason=f"it keeps the type of what computes it: {column.metadata[GENERATED]}",
        )
    require_independent(table, "given another type", [path], metadata, tables)


def _expressions(table: str, metadata: Metadata) -> Iterator[tuple[str, str]]:
    for key, sql in metadata.configuration.items():
        if key.casefold().startswith(CONSTRAINT_PREFIX):
            yield f"the CHECK constraint {key[len(CONSTRAINT_PREFIX) :]}", sql
    for path, column in walk(parse_schema(metadata.schema_string, table)):
        if GENERATED in column.metadata:
            yield f"the generated column {path}", str(column.metadata[GENERATED])
        if INVARIANT in column.metadata:
            yield f"an invariant of the column {path}", _invariant(column.metadata[INVARIANT])


def _invariant(text: object) -> str:
    """Return the condition in an invariant (Protocol § Column Invariants)."""
    try:
        return str(json.loads(str(text))["expression"]["expression"])
    except (ValueError, KeyError, TypeError):
        return str(text)


def _meet(path: Sequence[str], name: Sequence[str]) -> bool:
    """Whether one of two columns is the other, or a field of it; case does not count."""
    pairs = zip(path, name, strict=False)
    return all(folded_name(ours) == folded_name(theirs) for ours, theirs in pairs)
