"""Definitions that a table gets in the commit that rewrites the files which do not fit them."""

from __future__ import annotations

from dataclasses import replace

from deltaic.commands.definitions.changed_properties import with_changed_properties
from deltaic.commands.definitions.definition import plan_metadata_update, upgraded_protocol
from deltaic.commit.plan import CommitPlan, Definition
from deltaic.commit.ports import TableSnapshot
from deltaic.exceptions import error
from deltaic.protocol.columns.clustering import clustering_columns, clustering_domain
from deltaic.protocol.columns.column_mapping import MODE, is_mapped, unmapped
from deltaic.protocol.columns.iceberg_compat import DELETION_VECTORS, PROPERTIES
from deltaic.protocol.columns.schema_checks import check_table_schema
from deltaic.protocol.features import is_append_only
from deltaic.protocol.properties import check_properties, is_true


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
    plan = _plan_rewrite(Definition(protocol, after), current)
    return replace(plan, domains=(clustering_domain(after, columns),) if columns else ())


def plan_uniform_upgrade(table: str, current: TableSnapshot, compat_version: str) -> CommitPlan:
    """Plan the commit after which a version of Iceberg compatibility is enabled.

    It enables column mapping, and disables other versions of Iceberg compatibility. It disables
    deletion vectors if the version does not allow them.

    Parameters
    ----------
    compat_version
        As the statement specifies it.

    Raises
    ------
    InvalidArgumentError
        If there is no such version, or the table cannot be compatible with it.
    """
    versions = {str(version): name for version, name in PROPERTIES.items()}
    if compat_version not in versions:
        known = ", ".join(versions)
        reason = f"ICEBERG_COMPAT_VERSION = {compat_version} of {table} is none of {known}"
        raise error("DELTAIC_REORG_INVALID", reason=reason)
    before = current.metadata
    excluded = {name for version, name in versions.items() if version != compat_version}
    if compat_version != "3":
        excluded.add(DELETION_VECTORS)
    requested = {
        **{name: "false" for name in excluded if is_true(before.configuration, name)},
        **({} if is_mapped(before.configuration) else {MODE: "name"}),
        versions[compat_version]: "true",
    }
    checked = check_properties(table, requested)
    configuration = {**before.configuration, **checked.configuration}
    after = with_changed_properties(
        table, current, replace(before, configuration=configuration), before.configuration
    )
    protocol = upgraded_protocol(table, current, after, checked.request)
    return _plan_rewrite(Definition(protocol, after), current)


def _plan_rewrite(definition: Definition, current: TableSnapshot) -> CommitPlan:
    return replace(
        plan_metadata_update(definition, current),
        # Files that are added concurrently do not fit the new definition.
        changes_columns=True,
        changes_data=False,
        was_append_only=is_append_only(current.protocol, current.metadata),
    )
