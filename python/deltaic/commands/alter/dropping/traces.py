"""What features leave in a table, and the commits that remove it before the feature is dropped."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace

from deltaic.commands import shallow_clones
from deltaic.commands.alter.dropping.target import Target
from deltaic.commands.definitions.column_parameters import compact
from deltaic.commit.operations import Operation
from deltaic.commit.ports import TableSnapshot
from deltaic.exceptions import error
from deltaic.protocol import domains, in_commit_timestamps, row_tracking
from deltaic.protocol.actions import DomainMetadata, Metadata
from deltaic.protocol.columns import type_widening
from deltaic.protocol.columns.column_mapping import COLUMN_MAPPING, is_mapped
from deltaic.protocol.features import features_in_use
from deltaic.protocol.properties import (
    CHECKPOINT_PROTECTION,
    PROTECTED_VERSION_PROPERTY,
    property_value,
    spellings,
)

CONSTRAINTS = "checkConstraints"
DELETION_VECTORS = "deletionVectors"
TYPE_WIDENING = "typeWidening"
V2_CHECKPOINT = "v2Checkpoint"
VACUUM_CHECK = "vacuumProtocolCheck"
MATERIALIZED_PARTITIONS = "materializePartitionColumns"

_POLICY = "delta.checkpointPolicy"
_VECTORS_ENABLED = "delta.enableDeletionVectors"
_MATERIALIZES = "delta.enableMaterializePartitionColumnsFeature"


def _nothing(target: Target) -> bool:
    return False


@dataclass(frozen=True, slots=True)
class Removal:
    """How a feature is dropped.

    Attributes
    ----------
    traces
        Removes its traces from the newest version; returns False if there are none.
    properties
        The properties that the commit which drops it removes.
    binds_history
        Whether earlier versions of the table can only be read with it.
    in_files
        Whether file actions may use it.
    """

    traces: Callable[[Target], bool] = _nothing
    properties: tuple[str, ...] = ()
    binds_history: bool = False
    in_files: bool = False


def is_used(target: Target, current: TableSnapshot, name: str) -> bool:
    """Return whether a version uses a feature."""
    if name in features_in_use(current.metadata, target.table):
        return True
    return REMOVALS[name].in_files and target.files.files_use(current.version, name)


def without_properties(name: str, metadata: Metadata) -> Metadata:
    """Return the definition without the properties that only configure the feature."""
    if name == in_commit_timestamps.FEATURE:
        return in_commit_timestamps.disabled(metadata)
    removed = REMOVALS[name].properties
    retained = {k: v for k, v in metadata.configuration.items() if k not in removed}
    return replace(metadata, configuration=retained)


def _without_vectors(target: Target) -> bool:
    """Rewrite the files with deletion vectors, of which there are no new ones from now on."""
    changed = target.unset(spellings(_VECTORS_ENABLED))
    while target.files.rewrite_files(DELETION_VECTORS):
        changed = True
    current = target.current()
    summary = target.summary(current, Operation.VECTOR_TOMBSTONES, {})
    tombstones = target.tables.prepare_vector_tombstones(summary)
    if tombstones is not None:
        target.commit(tombstones)
    return changed


def _without_older_types(target: Target) -> bool:
    changed = target.unset(spellings(type_widening.PROPERTY))
    # A file that another writer adds after this version was not checked: it is a conflict.
    current = target.current()
    while target.files.rewrite_files(TYPE_WIDENING):
        changed = True
        current = target.current()
    metadata = type_widening.without_type_changes(current.metadata)
    if metadata == current.metadata:
        return changed
    columns = [
        now.name
        for before, now in zip(current.metadata.schema.fields, metadata.schema.fields, strict=True)
        if before != now
    ]
    return target.set_definition(
        current,
        metadata,
        Operation.CHANGE_COLUMNS,
        {"columns": compact(columns)},
        changes_columns=True,
    )


def _without_mapping(target: Target) -> bool:
    if not is_mapped(target.current().metadata.configuration):
        return False
    target.files.rewrite_files(COLUMN_MAPPING)
    return True


def _without_v2_checkpoints(target: Target) -> bool:
    policy = property_value(target.current().metadata.configuration, _POLICY)
    return policy.casefold() == "v2" and target.unset(spellings(_POLICY))


def _without_row_ids(target: Target) -> bool:
    """Remove the row IDs from all files, after new files get none."""
    current = target.current()
    suspended = row_tracking.suspended(current.metadata.configuration)
    changed = target.set_definition(
        current,
        replace(current.metadata, configuration=suspended),
        Operation.SET_TBLPROPERTIES,
        {"properties": compact({row_tracking.SUSPENDED: "true"})},
    )
    while True:
        current = target.current()
        summary = target.summary(current, Operation.ROW_TRACKING_UNBACKFILL, {"batchId": "0"})
        prepared = target.tables.prepare_without_row_ids(summary)
        if prepared is None:
            break
        target.commit(prepared)
        changed = True
    return _without_domains(target, row_tracking.DOMAIN) or changed


def _without_domains(target: Target, only: str | None = None) -> bool:
    current = target.current()
    removed = tuple(
        DomainMetadata(name, configuration, removed=True)
        for name, configuration in sorted(current.domains.items())
        if only in (None, name)
    )
    if not removed:
        return False
    names = ", ".join(domain.domain for domain in removed)
    parameters = {"domain": names, "removed": "true"}
    target.commit_summary(
        target.summary(current, Operation.SET_DOMAIN_METADATA, parameters, removed)
    )
    return True


def _without_all_domains(target: Target) -> bool:
    """Remove the domains, unless one of them protects files of the table from VACUUM.

    Raises
    ------
    TableStateError
        If the table has shallow clones.
    """
    configuration = target.current().domains.get(shallow_clones.DOMAIN)
    known = shallow_clones.shallow_clones(target.table, configuration)
    existing = [clone for clone in known if target.tables.snapshot(clone) is not None]
    if existing:
        raise error(
            "DELTAIC_DROP_FEATURE_OF_CLONED_TABLE",
            table=target.table,
            feature=domains.FEATURE,
            clones=", ".join(existing),
        )
    return _without_domains(target)


#: The features that can be dropped.
REMOVALS: Mapping[str, Removal] = {
    CONSTRAINTS: Removal(),
    domains.FEATURE: Removal(_without_all_domains),
    in_commit_timestamps.FEATURE: Removal(),
    VACUUM_CHECK: Removal(),
    MATERIALIZED_PARTITIONS: Removal(properties=(_MATERIALIZES,)),
    row_tracking.FEATURE: Removal(
        _without_row_ids, properties=(row_tracking.SUSPENDED,), in_files=True
    ),
    DELETION_VECTORS: Removal(_without_vectors, binds_history=True, in_files=True),
    COLUMN_MAPPING: Removal(_without_mapping, binds_history=True),
    TYPE_WIDENING: Removal(_without_older_types, binds_history=True),
    V2_CHECKPOINT: Removal(_without_v2_checkpoints, binds_history=True),
    CHECKPOINT_PROTECTION: Removal(properties=(PROTECTED_VERSION_PROPERTY,), binds_history=True),
}
