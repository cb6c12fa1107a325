"""CLONE: a table with the rows and the definition of a version of another table.

Parquet files can be cloned, too. The files of a shallow clone are those of its source; a deep clone
copies them. The JVM does both.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace

from deltaic.commands.definitions.cloned_definition import CloneSource, cloned_definition
from deltaic.commands.definitions.copied_clustering import copied_clustering
from deltaic.commands.definitions.definition import plan_metadata_update
from deltaic.commands.definitions.iceberg_files import require_iceberg_compatible_files
from deltaic.commands.definitions.parquet_definition import (
    ParquetDefinition,
    parquet_definition,
    require_met,
)
from deltaic.commands.rows import RowSet, result_schema
from deltaic.commands.shallow_clones import register_shallow_clone
from deltaic.commit.clock import Clock
from deltaic.commit.message import Message
from deltaic.commit.operations import Operation
from deltaic.commit.parquet_source import ParquetEntry, ParquetFiles, ParquetRequest
from deltaic.commit.plan import CommitPlan, Definition
from deltaic.commit.ports import (
    ClonedVersion,
    CommitSummary,
    OperationInfo,
    TableAccess,
    TableSnapshot,
)
from deltaic.commit.transaction import RetryPolicy, commit, with_user_metadata
from deltaic.exceptions import error
from deltaic.protocol.columns.iceberg_compat import newly_active
from deltaic.protocol.features import is_append_only, require_writable
from deltaic.protocol.properties import CheckedProperties, check_properties

CLONE_SCHEMA = result_schema("cloneTable")

#: The columns of the result, and the operation metrics that they show.
_COLUMNS = {
    "source_table_size": "sourceTableSize",
    "source_num_of_files": "sourceNumOfFiles",
    "num_removed_files": "numRemovedFiles",
    "num_copied_files": "numCopiedFiles",
    "removed_files_size": "removedFilesSize",
    "copied_files_size": "copiedFilesSize",
}


@dataclass(frozen=True, slots=True)
class CloneTable(Message):
    """The arguments.

    Attributes
    ----------
    source_name
        The source as the history shows it.
    replaces
        Whether an existing table is replaced.
    properties
        Table properties of the clone; they take precedence over those of the source.
    parquet
        What the catalog knows of the source if it has Parquet files, and no versions.
    """

    table: str
    source: str
    source_name: str
    source_version: int
    is_shallow: bool
    replaces: bool
    properties: Mapping[str, str]
    parquet: ParquetEntry | None = None


@dataclass(frozen=True, slots=True)
class CloneRequest(Message):
    """A method of `DeltaTable` that clones the table, which the JVM runs as a statement.

    Attributes
    ----------
    target
        The path or the name of the clone.
    version, timestamp
        The version to clone, or the timestamp of it; the newest version if both are None.
    """

    target: str
    is_path: bool
    is_shallow: bool
    replaces: bool
    properties: Mapping[str, str]
    version: str | None = None
    timestamp: str | None = None


def clone_table(
    arguments: CloneTable, tables: TableAccess, policy: RetryPolicy, clock_ms: Clock
) -> RowSet:
    """Clone a version of a table.

    A clone that replaces a table keeps the files that it has of the source already. If nothing
    differs, nothing is committed.

    Raises
    ------
    InvalidArgumentError
        If a property is not valid, or Parquet files do not have the columns of a table.
    TableStateError
        If the table exists and is not to be replaced, a file of the source does not exist, or it
        is no Parquet file.
    ProtocolError
        If this build cannot read the source, or write the clone.
    ConcurrentModificationError
        If another commit changed the clone concurrently.
    """
    table = arguments.table
    _require_apart(table, arguments.source)
    current = tables.snapshot(table) if arguments.replaces else None
    if current is not None:
        require_writable(table, current.version, current.protocol, current.metadata)
    checked = check_properties(
        table, arguments.properties, any_name=tables.allows_unknown_properties()
    )
    source, files = _source(arguments, checked, tables, clock_ms())
    definition = cloned_definition(CloneSource(table, source, current, checked), clock_ms())
    require_writable(table, source.version, definition.protocol, definition.metadata)
    _require_files_fit(arguments, definition, source, tables)
    summary = with_user_metadata(_summary(arguments, definition, source, current), tables)
    version = ClonedVersion(arguments.source, source.version, arguments.is_shallow)
    prepared = (
        tables.prepare_clone(summary, version)
        if files is None
        else tables.prepare_parquet_clone(summary, files, is_shallow=arguments.is_shallow)
    )
    counts = prepared.summary().engine_metrics
    if arguments.is_shallow and files is None and arguments.source != table:
        # Before the commit: VACUUM of the source never sees a clone that it does not know.
        register_shallow_clone(version.table, table, tables, policy)
    commit(prepared, tables, policy, clock_ms)
    return RowSet(
        CLONE_SCHEMA, [{column: counts.get(metric, 0) for column, metric in _COLUMNS.items()}]
    )


def _require_apart(table: str, source: str) -> None:
    """Refuse a clone in the directory of its source, whose VACUUM would delete it, and the reverse.

    Raises
    ------
    InvalidArgumentError
        Naming both.
    """
    one, other = (f"{path.rstrip('/')}/" for path in (table, source))
    if one != other and (one.startswith(other) or other.startswith(one)):
        raise error(
            "DELTAIC_CLONE_INVALID",
            reason=f"one of the clone {table} and its source {source} is inside the other",
        )


def _source(
    arguments: CloneTable, properties: CheckedProperties, tables: TableAccess, now_ms: int
) -> tuple[TableSnapshot, ParquetFiles | None]:
    """Return the version that is cloned; for Parquet files, a table that they would be."""
    entry = arguments.parquet
    if entry is None:
        source = tables.snapshot(arguments.source, arguments.source_version)
        if source is None:
            raise error("DELTAIC_NOT_A_TABLE", table=arguments.source)
        return source, None
    request = ParquetRequest(
        entry.catalog_table, properties={**entry.properties, **properties.configuration}
    )
    files = tables.read_parquet(arguments.source, request)
    columns = ParquetDefinition(
        arguments.source, files.summary(), entry, tables.allows_unknown_properties()
    )
    # The defaults of the session are for new tables, which a clone is not.
    table = parquet_definition(columns, {}, now_ms)
    return TableSnapshot(arguments.source_version, now_ms, table.protocol, table.metadata), files


def _require_files_fit(
    arguments: CloneTable, definition: Definition, source: TableSnapshot, tables: TableAccess
) -> None:
    """Refuse properties of the clone that require what the files of the source do not have."""
    if arguments.parquet is not None:
        require_met(arguments.source, definition, has_statistics=True)
        return
    enabled = newly_active(definition.metadata.configuration, source.metadata.configuration)
    if enabled is not None:
        require_iceberg_compatible_files(
            arguments.source, enabled, source, definition.metadata, tables
        )


def _summary(
    arguments: CloneTable,
    definition: Definition,
    source: TableSnapshot,
    current: TableSnapshot | None,
) -> CommitSummary:
    domains = copied_clustering(
        definition, source.domains, {} if current is None else current.domains
    )
    if current is None:
        plan = CommitPlan(definition, changes_protocol=True, changes_metadata=True, domains=domains)
    else:
        plan = replace(
            plan_metadata_update(definition, current),
            domains=domains,
            was_append_only=is_append_only(current.protocol, current.metadata),
        )
    return CommitSummary(
        table=arguments.table,
        read_version=-1 if current is None else current.version,
        operation=OperationInfo(
            Operation.CLONE,
            {
                "source": arguments.source_name,
                "sourceVersion": str(source.version),
                "isShallow": "true" if arguments.is_shallow else "false",
            },
        ),
        plan=plan,
        is_blind_append=False,
        reads_whole_table=current is not None,
    )
