"""A table's definition with the columns that rows bring along."""

from __future__ import annotations

from deltaic.commands.altered_schema import with_schema
from deltaic.commands.definition import protocol_of_successor, stored_column
from deltaic.commands.dependents import require_retypable
from deltaic.commit.plan import Definition
from deltaic.commit.ports import TableHeader, Tables
from deltaic.protocol import type_widening
from deltaic.protocol.schema import map_fields, parse_schema
from deltaic.protocol.schema_checks import check_duplicates
from deltaic.protocol.schema_evolution import SchemaEvolution


def evolve_table(table: str, current: TableHeader, written: str, tables: Tables) -> Definition:
    """Return the definition after a write that may add columns and widen types.

    Parameters
    ----------
    written
        The schema of the table with the columns of the rows in it.

    Raises
    ------
    InvalidArgumentError
        If a column cannot be added, or its type cannot become that of the rows, or two columns have
        the same name.
    TableStateError
        If something in the definition would come into force with another.
    """
    before = current.metadata
    schema = parse_schema(before.schema_string, table)
    evolution = SchemaEvolution(
        table,
        current.version,
        widens_types=type_widening.is_enabled(current.protocol, before),
        require_retypable=lambda path: require_retypable(table, path, before, tables),
    )
    columns = map_fields(parse_schema(written, table), stored_column)
    # Columns are found by their names: a second one of the same name would be taken for the first.
    check_duplicates(table, columns)
    evolved = evolution.evolved(schema, columns)
    if evolved == schema:
        return Definition(current.protocol, before)
    metadata = with_schema(table, before, evolved)
    return Definition(protocol_of_successor(table, current, metadata), metadata)
