"""What a write commits besides files, decided before any data is written."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from deltaic.commands.definition import (
    DefinitionRequest,
    clustering_of,
    define_table,
    plan_of_successor,
    redefine_table,
)
from deltaic.commands.evolve_table import evolve_table
from deltaic.commit.idempotence import requested_txn
from deltaic.commit.notices import warn_once
from deltaic.commit.operations import Operation, WriteMode
from deltaic.commit.plan import CommitPlan, Definition
from deltaic.commit.ports import TableHeader, Tables
from deltaic.exceptions import error
from deltaic.protocol.constraints import constraint_properties, without_constraints
from deltaic.protocol.features import is_append_only, require_writable
from deltaic.protocol.properties import (
    PREFIX,
    check_properties,
    property_value,
    require_nothing_binding,
)
from deltaic.protocol.schema import parse_schema
from deltaic.protocol.schema_checks import extra_columns, same_names

#: Options that say which rows a write replaces.
_REPLACES_ROWS = frozenset({"replacewhere", "replaceon", "replaceusing"})
#: Statements that replace a table by one without rows, whose columns they list.
_WITHOUT_QUERY = frozenset({Operation.REPLACE_TABLE, Operation.CREATE_OR_REPLACE_TABLE})


@dataclass(frozen=True, slots=True)
class WriteRequest:
    """A write, as the JVM announces it.

    Attributes
    ----------
    read_version
        The version the write is based on; -1 if there is no table.
    mode
        What becomes of the rows that are there.
    joins_if_created
        Whether a write that finds no table, and another writer's when it commits, appends to that.
    schema_string
        The columns of the data; None where the table's own are meant.
    partition_by
        The partition columns asked for; None or empty if none were.
    constraints
        The conditions of CHECK constraints that a new or replaced table is to have, by name.
    cluster_by
        The columns that such a table is to be clustered by; None if that is not said.
    options
        The writer's options, their names in lower case.
    evolved_schema_string
        The table's columns with those that the data brings along, if it may bring any.
    keeps_definition
        Whether the operation leaves columns and properties alone although its name says otherwise.
    """

    table: str
    operation: Operation
    read_version: int
    mode: WriteMode
    schema_string: str | None = None
    partition_by: Sequence[str] = ()
    properties: Mapping[str, str] = field(default_factory=dict)
    constraints: Mapping[str, str] = field(default_factory=dict)
    cluster_by: Sequence[Sequence[str]] | None = None
    description: str | None = None
    options: Mapping[str, str] = field(default_factory=dict)
    joins_if_created: bool = False
    evolved_schema_string: str | None = None
    keeps_definition: bool = False

    @staticmethod
    def from_json(body: Mapping[str, Any]) -> WriteRequest:
        """Read the JSON of ``Committer.plan``."""
        return WriteRequest(
            table=body["table"],
            operation=Operation(body["operation"]),
            read_version=body["readVersion"],
            mode=WriteMode(body["mode"]),
            schema_string=body.get("schema"),
            partition_by=tuple(body.get("partitionBy") or ()),
            properties=body.get("properties") or {},
            constraints=body.get("constraints") or {},
            cluster_by=body.get("clusterBy"),
            description=body.get("description"),
            options=body.get("options") or {},
            joins_if_created=body.get("joinsIfCreated", False),
            evolved_schema_string=body.get("evolvedSchema"),
            keeps_definition=body.get("keepsDefinition", False),
        )

    @property
    def replaces_table(self) -> bool:
        """Whether the operation states the table anew, properties included."""
        return self.operation.replaces_table and not self.keeps_definition

    @property
    def replaces_columns(self) -> bool:
        """Whether the data's columns become the table's."""
        overwrites = self.mode is WriteMode.OVERWRITE and self.option_is_true("overwriteschema")
        # Rows of a write that states no columns have been fitted to the table's, and rows that a
        # condition leaves in the table keep their columns.
        fitted = self.schema_string is None or _REPLACES_ROWS & self.options.keys()
        return self.replaces_table or (overwrites and not fitted)

    @property
    def changes_data(self) -> bool:
        """Whether the rows are others afterwards, or lie in other files only."""
        return self.options.get("datachange", "true").strip().casefold() == "true"

    def option_is_true(self, name: str) -> bool:
        """Return a boolean option, given in lower case."""
        return self.options.get(name, "false").strip().casefold() == "true"


def plan_write(request: WriteRequest, tables: Tables, now_ms: int) -> CommitPlan:
    """Decide what a write may do and what its commit holds besides files.

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
    txn = requested_txn(request.table, request.options)
    if request.read_version < 0:
        asked = _definition(request, tables)
        definition = define_table(asked, now_ms)
        return CommitPlan(
            definition,
            is_blind_append=request.mode is WriteMode.APPEND,
            changes_protocol=True,
            changes_metadata=True,
            joins_if_created=request.joins_if_created,
            changes_data=request.changes_data,
            domains=clustering_of(asked, definition),
        )
    current = tables.header(request.table, request.read_version)
    if current is None:
        raise error("DELTAIC_NOT_A_TABLE", table=request.table)
    require_writable(request.table, current.version, current.protocol, current.metadata)
    _require_removes_allowed(request, current)
    plan = (
        _replacement(request, current, tables)
        if request.replaces_columns
        else _kept(request, current, tables)
    )
    after = plan.effective.metadata
    require_nothing_binding(request.table, current.version, after.configuration)
    if txn is not None and current.transactions.get(txn.app_id, -1) >= txn.version:
        return replace(plan, skipped=True)
    return plan


def _kept(request: WriteRequest, current: TableHeader, tables: Tables) -> CommitPlan:
    """Plan a write that leaves the definition alone, or only adds to its columns.

    New columns are null in the rows of others: that there are
    any is no matter to who appends meanwhile, and no file has to be written anew.
    """
    _require_partitioning_fits(request, current)
    _check_properties(request, current, tables)
    if request.evolved_schema_string is None:
        _require_columns_fit(request, current)
        definition = Definition(current.protocol, current.metadata)
    else:
        definition = evolve_table(request.table, current, request.evolved_schema_string, tables)
    columns = parse_schema(definition.metadata.schema_string, request.table).fields
    if request.schema_string is not None and not columns:
        raise error("DELTAIC_NO_DATA_COLUMNS", table=request.table)
    return replace(
        plan_of_successor(definition, current),
        is_blind_append=request.mode is WriteMode.APPEND,
        changes_data=request.changes_data,
        replaces_append_only=is_append_only(current.protocol, current.metadata),
    )


def _check_properties(request: WriteRequest, current: TableHeader, tables: Tables) -> None:
    """Check the properties among the options of a write to an existing table.

    As with delta-spark, they do not change those of the table; a warning names each property whose
    value differs. Constraints are neither checked nor added.

    Raises
    ------
    InvalidArgumentError
        If one could not be a property of a new table either.
    """
    configuration = current.metadata.configuration
    checked = check_properties(
        request.table,
        without_constraints(request.properties),
        any_name=tables.allows_unknown_properties(),
    )
    for name, value in checked.configuration.items():
        is_property = name.casefold().startswith(PREFIX)
        if is_property and property_value(configuration, name).casefold() != value.casefold():
            _warn_of_option(request.table, name, value, "SET TBLPROPERTIES")
    for name, condition in constraint_properties(request.properties).items():
        if configuration.get(name) != condition:
            _warn_of_option(request.table, name, condition, "ADD CONSTRAINT")


def _warn_of_option(table: str, name: str, value: str, statement: str) -> None:
    warn_once(
        table,
        f"option {name}",
        f"Table {table} exists, and a write into it does not set the property {name} = {value}: "
        f"use ALTER TABLE ... {statement}.",
    )


def _replacement(request: WriteRequest, current: TableHeader, tables: Tables) -> CommitPlan:
    asked, keep = _definition(request, tables), not request.replaces_table
    if keep:
        _check_properties(request, current, tables)
    definition = redefine_table(asked, current, keep_properties=keep)
    before, after = current.metadata, definition.metadata
    columns_change = (before.schema_string, before.partition_columns) != (
        after.schema_string,
        after.partition_columns,
    )
    return replace(
        plan_of_successor(definition, current),
        changes_columns=columns_change,
        changes_data=request.changes_data,
        replaces_append_only=is_append_only(current.protocol, current.metadata),
        domains=clustering_of(asked, definition, current, keep_properties=keep),
    )


def _definition(request: WriteRequest, tables: Tables) -> DefinitionRequest:
    return DefinitionRequest(
        request.table,
        request.schema_string,
        request.partition_by,
        request.properties,
        request.description,
        tables.default_properties(),
        request.constraints,
        request.cluster_by,
        tables.allows_unknown_properties(),
        states_columns=request.operation in _WITHOUT_QUERY,
    )


def _require_removes_allowed(request: WriteRequest, current: TableHeader) -> None:
    """Refuse early what an append-only table forbids (Protocol § Append-only Tables)."""
    removes = request.mode is not WriteMode.APPEND or request.replaces_table
    # A MERGE may do nothing but insert; whether it does is seen when it commits.
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
            operation=request.operation.value,
        )


def _require_columns_fit(request: WriteRequest, current: TableHeader) -> None:
    if request.schema_string is None:
        return
    known = parse_schema(current.metadata.schema_string, request.table)
    extra = extra_columns(known, parse_schema(request.schema_string, request.table))
    if not extra:
        return
    raise error(
        "DELTAIC_SCHEMA_MISMATCH",
        table=request.table,
        version=current.version,
        columns=", ".join(extra),
        tableColumns=", ".join(f.name for f in known.fields),
    )


def _require_partitioning_fits(request: WriteRequest, current: TableHeader) -> None:
    partition_columns = current.metadata.partition_columns
    if request.partition_by and not same_names(request.partition_by, partition_columns):
        raise error(
            "DELTAIC_PARTITION_MISMATCH",
            table=request.table,
            version=current.version,
            tableColumns=", ".join(partition_columns),
            columns=", ".join(request.partition_by),
        )


def _refuse_options(request: WriteRequest) -> None:
    for option in sorted(_REPLACES_ROWS & request.options.keys()):
        _require_replacement(request, request.options[option])
    data_change = request.options.get("datachange", "true").strip().casefold()
    if data_change not in ("true", "false"):
        raise error("DELTAIC_INVALID_WRITE_OPTION", option="dataChange", value=data_change)


def _require_replacement(request: WriteRequest, predicate: str) -> None:
    """Refuse what contradicts a replacement of those rows alone that meet a condition."""
    clash = None
    if request.mode is not WriteMode.OVERWRITE:
        clash = f"mode {request.mode.value}, which replaces no row"
    elif request.replaces_table:
        clash = "a replacement of the table, which leaves no rows"
    elif request.options.get("partitionoverwritemode", "").strip().casefold() == "dynamic":
        clash = "partitionOverwriteMode=dynamic, which replaces whole partitions"
    if clash is not None:
        raise error(
            "DELTAIC_REPLACE_WHERE_REFUSED",
            table=request.table,
            predicate=predicate,
            reason=f"it goes with mode overwrite alone, and not with {clash}",
        )
