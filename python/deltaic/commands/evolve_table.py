"""A table's definition after schema evolution."""

from __future__ import annotations

from deltaic.commands.definitions.altered_schema import with_schema
from deltaic.commands.definitions.definition import stored_column, upgraded_protocol
from deltaic.commands.definitions.dependents import require_retypable
from deltaic.commit.plan import Definition
from deltaic.commit.ports import TableAccess, TableSnapshot
from deltaic.protocol.columns import type_widening
from deltaic.protocol.columns.schema_checks import check_duplicates
from deltaic.protocol.columns.schema_evolution import SchemaEvolution
from deltaic.protocol.schema import map_fields, parse_schema


def evolve_table(
    table: str, current: TableSnapshot, written: str, tables: TableAccess
) -> Definition:
    """Return the definition after a write that may add columns and widen types.

    Parameters
    ----------
    written
        The schema of the table, merged with the columns of the written rows.

    Raises
    ------
    InvalidArgumentError
        If a column cannot be added, its type cannot be changed to that of the rows, or two columns
        have the same name.
    TableStateError
        If the new definition would activate a property that had no effect before.
    """
    before = current.metadata
    schema = before.schema
    evolution = SchemaEvolution(
        table,
        current.version,
        widens_types=type_widening.is_enabled(current.protocol, before),
        require_retypable=lambda path: require_retypable(table, path, before, tables),
    )
    columns = map_fields(parse_schema(written, table), stored_column)
    # Columns are resolved by name: of two with the same name, the second would be ignored.
    check_duplicates(table, columns)
    evolved = evolution.evolved(schema, columns)
    if evolved == schema:
        return Definition(current.protocol, before)
    metadata = with_schema(table, before, evolved)
    return Definition(upgraded_protocol(table, current, metadata), metadata)
