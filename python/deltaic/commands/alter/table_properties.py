"""ALTER TABLE SET and UNSET TBLPROPERTIES."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace

from deltaic.commands.alter.alteration import Alteration, alter, current_snapshot, required_protocol
from deltaic.commands.alter.row_ids import backfill_row_ids
from deltaic.commands.definitions.changed_properties import with_changed_properties
from deltaic.commands.definitions.column_parameters import compact
from deltaic.commit.clock import Clock
from deltaic.commit.message import Message, json_name
from deltaic.commit.operations import Operation
from deltaic.commit.ports import TableAccess, TableSnapshot
from deltaic.commit.transaction import CommitResult, RetryPolicy
from deltaic.exceptions import error
from deltaic.protocol import row_tracking
from deltaic.protocol.change_data import check_feed_columns
from deltaic.protocol.columns.clustering import FEATURE as CLUSTERING
from deltaic.protocol.columns.clustering import require_no_clustering
from deltaic.protocol.columns.column_lists import check_statistics_columns
from deltaic.protocol.columns.column_mapping import (
    COLUMN_MAPPING,
    MAX_COLUMN_ID,
    MODE,
    has_physical_names,
    is_mapped,
)
from deltaic.protocol.features import supports
from deltaic.protocol.properties import (
    CONSTRAINT_PREFIX,
    CheckedProperties,
    check_properties,
    find_property,
    is_true,
    spellings,
)
from deltaic.protocol.properties_without_feature import properties_without_feature
from deltaic.protocol.retention import check_retention

_COMMENT = "comment"


@dataclass(frozen=True, slots=True)
class AlterProperties(Message):
    """The arguments: what to set and what to unset."""

    table: str
    properties: Mapping[str, str] = field(default_factory=dict, metadata=json_name("set"))
    unset: Sequence[str] = ()


def alter_properties(
    arguments: AlterProperties, tables: TableAccess, policy: RetryPolicy, clock_ms: Clock
) -> CommitResult:
    """Change properties of a table, and with them what its protocol requires.

    Raises
    ------
    InvalidArgumentError
        If a value is not valid, or a property cannot be changed on an existing table.
    ProtocolError, TableStateError
        As for `current_snapshot` and `upgraded_protocol`.
    """
    table = arguments.table
    unset = [_stored_name(name) for name in arguments.unset]
    current = current_snapshot(table, tables)
    before = current.metadata
    given = {k: v for k, v in arguments.properties.items() if k != _COMMENT}
    checked = check_properties(table, given, any_name=tables.allows_unknown_properties())
    if not supports(current.protocol, CLUSTERING):
        require_no_clustering(table, checked.request.features)
    without_effect = properties_without_feature(current.protocol, before).keys() & unset
    removed = without_effect | {
        n for name in unset if name not in without_effect for n in _removable(table, name)
    }
    if _removes_mapping(checked, current):
        # A commit of its own, whose plan refuses what needs column mapping.
        tables.downgrade(table).rewrite_files(COLUMN_MAPPING)
        current = current_snapshot(table, tables)
        before = current.metadata
    alteration = _alteration(arguments, current, checked, removed)
    tracks_rows = row_tracking.is_enabled(current.protocol, before)
    if is_true(checked.configuration, row_tracking.ENABLED) and not tracks_rows:
        # The backfill has its own commits, which would remain if the rest were refused later.
        required_protocol(alteration)
        backfill_row_ids(table, tables, policy, clock_ms)
        alteration = _alteration(arguments, current_snapshot(table, tables), checked, removed)
    return alter(alteration, tables, policy, clock_ms)


def _alteration(
    arguments: AlterProperties,
    current: TableSnapshot,
    checked: CheckedProperties,
    removed: set[str],
) -> Alteration:
    """Return the alteration that the arguments define, or refuse it."""
    table, before = arguments.table, current.metadata
    retained = {k: v for k, v in before.configuration.items() if k not in removed}
    after = replace(
        before,
        configuration=row_tracking.with_materialized_columns(
            {**retained, **checked.configuration}, before.configuration
        ),
        description=_description(arguments, before.description),
    )
    check_retention(table, after.configuration, {*checked.configuration, *removed})
    check_feed_columns(table, after.schema, after.configuration)
    check_statistics_columns(table, after.schema, after.partition_columns, checked.configuration)
    return Alteration(
        table,
        current,
        with_changed_properties(table, current, after, retained),
        Operation.SET_TBLPROPERTIES if arguments.properties else Operation.UNSET_TBLPROPERTIES,
        _parameters(arguments),
        checked.request,
    )


def _removes_mapping(checked: CheckedProperties, current: TableSnapshot) -> bool:
    """Whether all files have to be rewritten with the names of the columns."""
    return (
        has_physical_names(current.protocol, current.metadata)
        and MODE in checked.configuration
        and not is_mapped(checked.configuration)
    )


def _stored_name(name: str) -> str:
    known = find_property(name)
    return known.name if known is not None else name


def _removable(table: str, stored_name: str) -> tuple[str, ...]:
    """Return the names under which a table may store a property.

    Raises
    ------
    InvalidArgumentError
        If the property cannot be unset.
    """
    known = find_property(stored_name)
    if stored_name in (MODE, MAX_COLUMN_ID):
        advice = "It is required to read the files. Set the mode to none, which rewrites them."
    elif known is not None and known.internal:
        advice = "Deltaic and other writers maintain it; it describes existing files and commits."
    elif stored_name.casefold().startswith(CONSTRAINT_PREFIX):
        advice = "Use ALTER TABLE ... DROP CONSTRAINT."
    else:
        names = (stored_name,) if known is None else spellings(known.replaced_by or stored_name)
        return tuple(n for n in names if n == stored_name or not _stands_for_several(n))
    raise error("DELTAIC_CANNOT_UNSET_PROPERTY", table=table, property=stored_name, advice=advice)


def _stands_for_several(name: str) -> bool:
    known = find_property(name)
    return known is not None and bool(known.stands_for)


def _description(arguments: AlterProperties, before: str | None) -> str | None:
    if _COMMENT in arguments.unset:
        return None
    return arguments.properties.get(_COMMENT, before)


def _parameters(arguments: AlterProperties) -> dict[str, str]:
    if arguments.properties:
        return {"properties": compact(dict(arguments.properties))}
    return {"properties": compact(list(arguments.unset)), "ifExists": "true"}
