"""The definition of a table that loses its column mapping when its files are rewritten."""

from __future__ import annotations

from dataclasses import replace

from deltaic.commands.definitions.definition import plan_metadata_update, upgraded_protocol
from deltaic.commit.plan import CommitPlan, Definition
from deltaic.commit.ports import TableSnapshot
from deltaic.protocol.columns.clustering import clustering_columns, clustering_domain
from deltaic.protocol.columns.column_mapping import unmapped
from deltaic.protocol.columns.schema_checks import check_table_schema
from deltaic.protocol.features import is_append_only


def plan_without_mapping(table: str, current: TableSnapshot) -> CommitPlan:
    """Plan the commit after which files name the columns as the schema does.

    Raises
    ------
    InvalidArgumentError
        If a column name has characters that files without column mapping cannot have, or another
        feature requires column mapping.
    """
    before, after = current.metadata, unmapped(current.metadata)
    check_table_schema(
        table, after.schema, after.partition_columns, columnless=True, before=before.schema
    )
    protocol = upgraded_protocol(table, current, after)
    columns = clustering_columns(table, current.protocol, before, current.domains)
    return replace(
        plan_metadata_update(Definition(protocol, after), current),
        # Files that are added concurrently have physical names.
        changes_columns=True,
        changes_data=False,
        was_append_only=is_append_only(current.protocol, before),
        domains=(clustering_domain(after, columns),) if columns else (),
    )
