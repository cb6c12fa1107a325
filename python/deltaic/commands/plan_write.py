"""Plans what a write commits besides files, before any data is written."""

from __future__ import annotations

from dataclasses import dataclass, field, replace

from deltaic.commands.definitions.create_statement import RequestedDefinition
from deltaic.commands.definitions.definition import (
    DefinitionRequest,
    clustering_of,
    define_table,
    plan_metadata_update,
    redefine_table,
)
from deltaic.commands.definitions.rewritten_definition import (
    plan_uniform_upgrade,
    plan_without_mapping,
)
from deltaic.commands.evolve_table import evolve_table
from deltaic.commands.optimize import require_optimizable
from deltaic.commit.idempotence import requested_txn
from deltaic.commit.message import Message, json_name
from deltaic.commit.notices import warn_once
from deltaic.commit.operations import Operation, WriteMode
from deltaic.commit.plan import CommitPlan, Definition
from deltaic.commit.ports import OperationInfo, TableAccess, TableSnapshot
from deltaic.exceptions import error
from deltaic.protocol.columns.schema_checks import extra_columns, same_names
from deltaic.protocol.constraints import constraint_properties, without_constraints
from deltaic.protocol.features import is_append_only, require_writable
from deltaic.protocol.properties import (
    OWN_PREFIX,
    PREFIX,
    check_properties,
    property_value,
    require_no_writer_binding_properties,
)
from deltaic.protocol.schema import parse_schema

#: Options that say which rows a write replaces.
_REPLACES_ROWS = frozenset({"replacewhere", "replaceon", "replaceusing"})
#: Statements that replace a table by an empty one, whose columns they list.
_WITHOUT_QUERY = frozenset({Operation.REPLACE_TABLE, Operation.CREATE_OR_REPLACE_TABLE})


@dataclass(frozen=True, slots=True)
class WriteRequest(Message):
    """A write, as the JVM requests it.

    Attributes
    ----------
    read_version
        The version the write is based on; -1 if there is no table.
    mode
        How existing rows are treated.
    appends_if_created_concurrently
        Whether a write that creates the table appends instead if another writer creates it first.
    definition
        What the write specifies of the table; its columns are those of the data, or none if these
        are the table's own.
    evolved_schema_string
        The table's columns merged with those of the data, if schema evolution is enabled.
    keeps_definition
        Whether the operation retains columns and properties, although its name implies otherwise.
    """

    table: str
    read_version: int
    operation: OperationInfo
    mode: WriteMode
    definition: RequestedDefinition = field(default_factory=RequestedDefinition)
    evolved_schema_string: str | None = field(default=None, metadata=json_name("evolvedSchema"))
    keeps_definition: bool = False
    appends_if_created_concurrently: bool = False

    @property
    def replaces_table(self) -> bool:
        """Whether the operation replaces the table, its properties included."""
        return self.operation.kind.replaces_table and not self.keeps_definition

    @property
    def replaces_columns(self) -> bool:
        """Whether the data's columns become the table's."""
        overwrites = self.mode is WriteMode.OVERWRITE and self.option_is_true("overwriteschema")
        # A write without a schema has cast its rows to the table's columns, and rows that
        # replaceWhere retains keep their columns.
        keeps_columns = (
            self.definition.schema_string is None or _REPLACES_ROWS & self.operation.options.keys()
        )
        return self.replaces_table or (overwrites and not keeps_columns)

    @property
    def changes_data(self) -> bool:
        """Whether the rows change; if not, they are only rewritten to other files."""
        return self.option("datachange", "true") == "true"

    def option_is_true(self, name: str) -> bool:
        """Return a boolean option, given in lower case."""
        return self.option(name, "false") == "true"

    def option(self, name: str, default: str = "") -> str:
        """Return an option, given in lower case, without surrounding spaces and in lower case."""
        return self.operation.options.get(name, default).strip().casefold()


def plan_write(request: WriteRequest, tables: TableAccess, now_ms: int) -> CommitPlan:
    """Check a write and plan what its commit holds besides files.

    Raises
    ------
    InvalidArgumentError
        If the data, partitioning or options do not fit the table or are not supported.
    TableStateError
        If rows would be removed from an append-only table.
    ProtocolError
        If the table uses a feature that this build cannot write.
    """
    _refuse_options(request)
    txn = requested_txn(request.table, request.operation.options)
    if request.read_version < 0:
        definition_request = _definition(request, tables)
        definition = define_table(definition_request, now_ms)
        return CommitPlan(
            definition,
            is_blind_append=request.mode is WriteMode.APPEND,
            changes_protocol=True,
            changes_metadata=True,
            appends_if_created_concurrently=request.appends_if_created_concurrently,
            changes_data=request.changes_data,
            domains=clustering_of(definition_request, definition),
        )
    current = tables.snapshot(request.table, request.read_version)
    if current is None:
        raise error("DELTAIC_NOT_A_TABLE", table=request.table)
    require_writable(request.table, current.version, current.protocol, current.metadata)
    _require_removes_allowed(request, current)
    if request.operation.kind is Operation.OPTIMIZE:
        require_optimizable(
            request.table,
            current,
            request.operation.parameters,
            needs_statistics=request.option("checkstatistics", "true") == "true",
        )
    if request.operation.kind is Operation.REMOVE_COLUMN_MAPPING:
        plan = plan_without_mapping(request.table, current)
    elif request.operation.kind is Operation.UPGRADE_UNIFORM:
        compat_version = request.operation.options["icebergcompatversion"]
        plan = plan_uniform_upgrade(request.table, current, compat_version)
    elif request.replaces_columns:
        plan = _replacement(request, current, tables)
    else:
        plan = _write_to_existing(request, current, tables)
    after = plan.definition.metadata
    require_no_writer_binding_properties(request.table, current.version, after.configuration)
    if txn is not None and current.transactions.get(txn.app_id, -1) >= txn.version:
        return replace(plan, already_committed=True)
    return plan


def _write_to_existing(
    request: WriteRequest, current: TableSnapshot, tables: TableAccess
) -> CommitPlan:
    """Plan a write that does not change the definition, except for schema evolution.

    New columns are null in other rows, so they do not affect concurrent appends, and no file has to
    be rewritten.
    """
    _require_partitioning_fits(request, current)
    _check_properties(request, current, tables)
    if request.evolved_schema_string is None:
        _require_columns_fit(request, current)
        definition = Definition(current.protocol, current.metadata)
    else:
        definition = evolve_table(request.table, current, request.evolved_schema_string, tables)
    columns = definition.metadata.schema.fields
    if request.definition.schema_string is not None and not columns:
        raise error("DELTAIC_NO_DATA_COLUMNS", table=request.table)
    return replace(
        plan_metadata_update(definition, current),
        is_blind_append=request.mode is WriteMode.APPEND,
        changes_data=request.changes_data,
        was_append_only=is_append_only(current.protocol, current.metadata),
    )


def _check_properties(request: WriteRequest, current: TableSnapshot, tables: TableAccess) -> None:
    """Check the table properties among the options of a write to an existing table.

    As in delta-spark, they do not change the table's properties; a warning names each one whose
    value differs. Constraints are neither checked nor added.

    Raises
    ------
    InvalidArgumentError
        If a property is not valid for a new table either.
    """
    configuration = current.metadata.configuration
    checked = check_properties(
        request.table,
        without_constraints(request.definition.properties),
        any_name=tables.allows_unknown_properties(),
    )
    for name, value in checked.configuration.items():
        is_property = name.casefold().startswith((PREFIX, OWN_PREFIX))
        if is_property and property_value(configuration, name).casefold() != value.casefold():
            _warn_of_option(request.table, name, value, "SET TBLPROPERTIES")
    for name, condition in constraint_properties(request.definition.properties).items():
        if configuration.get(name) != condition:
            _warn_of_option(request.table, name, condition, "ADD CONSTRAINT")


def _warn_of_option(table: str, name: str, value: str, statement: str) -> None:
    warn_once(
        table,
        f"option {name}",
        f"Table {table} exists, and a write into it does not set the property {name} = {value}: "
        f"use ALTER TABLE ... {statement}.",
    )


def _replacement(request: WriteRequest, current: TableSnapshot, tables: TableAccess) -> CommitPlan:
    definition_request, keep = _definition(request, tables), not request.replaces_table
    if keep:
        _check_properties(request, current, tables)
    definition = redefine_table(definition_request, current, keep_properties=keep)
    before, after = current.metadata, definition.metadata
    columns_change = (before.schema_string, before.partition_columns) != (
        after.schema_string,
        after.partition_columns,
    )
    return replace(
        plan_metadata_update(definition, current),
        changes_columns=columns_change,
        changes_data=request.changes_data,
        was_append_only=is_append_only(current.protocol, current.metadata),
        domains=clustering_of(definition_request, definition, current, keep_properties=keep),
    )


def _definition(request: WriteRequest, tables: TableAccess) -> DefinitionRequest:
    return DefinitionRequest(
        request.table,
        request.definition,
        tables.default_properties(),
        any_properties=tables.allows_unknown_properties(),
        specifies_columns=request.operation.kind in _WITHOUT_QUERY,
    )


def _require_removes_allowed(request: WriteRequest, current: TableSnapshot) -> None:
    """Refuse early to remove rows of an append-only table (Protocol § Append-only Tables)."""
    removes = request.mode is not WriteMode.APPEND or request.replaces_table
    # A MERGE may only insert, which is checked when it commits.
    if (
        removes
        and request.changes_data
        and request.mode is not WriteMode.MERGE
        and is_append_only(current.protocol, current.metadata)
    ):
        raise error(
            "DELTAIC_APPEND_ONLY",
            table=request.table,
            version=current.version,
            operation=request.operation.kind.value,
        )


def _require_columns_fit(request: WriteRequest, current: TableSnapshot) -> None:
    if request.definition.schema_string is None:
        return
    schema = current.metadata.schema
    extra = extra_columns(schema, parse_schema(request.definition.schema_string, request.table))
    if not extra:
        return
    raise error(
        "DELTAIC_SCHEMA_MISMATCH",
        table=request.table,
        version=current.version,
        columns=", ".join(extra),
        tableColumns=", ".join(f.name for f in schema.fields),
    )


def _require_partitioning_fits(request: WriteRequest, current: TableSnapshot) -> None:
    partition_columns = current.metadata.partition_columns
    requested = request.definition.partition_by
    if requested and not same_names(requested, partition_columns):
        raise error(
            "DELTAIC_PARTITION_MISMATCH",
            table=request.table,
            version=current.version,
            tableColumns=", ".join(partition_columns),
            columns=", ".join(requested),
        )


def _refuse_options(request: WriteRequest) -> None:
    for option in sorted(_REPLACES_ROWS & request.operation.options.keys()):
        _require_replacement(request, request.operation.options[option])
    data_change = request.option("datachange", "true")
    if data_change not in ("true", "false"):
        raise error(
            "DELTAIC_INVALID_WRITE_OPTION",
            option="dataChange",
            value=data_change,
            valid="true or false",
        )


def _require_replacement(request: WriteRequest, predicate: str) -> None:
    """Refuse modes and options that exclude replaceWhere."""
    clash = None
    if request.mode is not WriteMode.OVERWRITE:
        clash = f"mode {request.mode.value}, which replaces no row"
    elif request.replaces_table:
        clash = "a replacement of the table, which leaves no rows"
    elif request.option("partitionoverwritemode") == "dynamic":
        clash = "partitionOverwriteMode=dynamic, which replaces whole partitions"
    if clash is not None:
        raise error(
            "DELTAIC_REPLACE_WHERE_REFUSED",
            table=request.table,
            predicate=predicate,
            reason=f"it requires mode overwrite, and excludes {clash}",
        )
