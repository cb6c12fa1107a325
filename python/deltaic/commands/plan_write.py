"""What a write commits besides files, decided before any data is written."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from deltaic.commands.definition import (
    DefinitionRequest,
    clustering_of,
    define_table,
    redefine_table,
)
from deltaic.commit.idempotence import requested_txn
from deltaic.commit.operations import Operation, WriteMode
from deltaic.commit.plan import CommitPlan, Definition
from deltaic.commit.ports import TableHeader, Tables
from deltaic.exceptions import error
from deltaic.protocol import in_commit_timestamps
from deltaic.protocol.features import require_writable
from deltaic.protocol.properties import is_true
from deltaic.protocol.schema import parse_schema
from deltaic.protocol.schema_checks import extra_columns, same_names


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
        )

    @property
    def replaces_columns(self) -> bool:
        """Whether the data's columns become the table's."""
        overwrites = self.mode is WriteMode.OVERWRITE and self.option_is_true("overwriteschema")
        return self.operation.replaces_table or overwrites

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
        asked = _definition(request, tables.default_properties())
        definition = define_table(asked, now_ms)
        return CommitPlan(
            definition,
            is_blind_append=request.mode is WriteMode.APPEND,
            changes_protocol=True,
            changes_metadata=True,
            joins_if_created=request.joins_if_created,
            domains=clustering_of(asked, definition),
        )
    current = tables.header(request.table, request.read_version)
    if current is None:
        raise error("DELTAIC_NOT_A_TABLE", table=request.table)
    require_writable(request.table, current.version, current.protocol, current.metadata)
    _require_removes_allowed(request, current)
    plan = _replacement(request, current) if request.replaces_columns else _kept(request, current)
    if txn is not None and current.transactions.get(txn.app_id, -1) >= txn.version:
        return replace(plan, skipped=True)
    return plan


def _kept(request: WriteRequest, current: TableHeader) -> CommitPlan:
    """Plan a write that leaves the definition alone; properties given with it are ignored."""
    _require_columns_fit(request, current)
    _require_partitioning_fits(request, current)
    return CommitPlan(
        Definition(current.protocol, current.metadata),
        current.as_predecessor(),
        is_blind_append=request.mode is WriteMode.APPEND,
    )


def _replacement(request: WriteRequest, current: TableHeader) -> CommitPlan:
    asked, keep = _definition(request, {}), not request.operation.replaces_table
    definition = redefine_table(asked, current, keep_properties=keep)
    before, after = current.metadata, definition.metadata
    columns_change = (before.schema_string, before.partition_columns) != (
        after.schema_string,
        after.partition_columns,
    )
    return CommitPlan(
        definition,
        current.as_predecessor(),
        changes_protocol=definition.protocol != current.protocol,
        changes_metadata=before != after,
        changes_columns=columns_change,
        enables_in_commit_timestamps=in_commit_timestamps.is_enabled(after)
        and not in_commit_timestamps.is_enabled(before),
        domains=clustering_of(asked, definition, current, keep_properties=keep),
    )


def _definition(request: WriteRequest, defaults: Mapping[str, str]) -> DefinitionRequest:
    return DefinitionRequest(
        request.table,
        request.schema_string,
        request.partition_by,
        request.properties,
        request.description,
        defaults,
        request.constraints,
        request.cluster_by,
    )


def _require_removes_allowed(request: WriteRequest, current: TableHeader) -> None:
    """Refuse early what an append-only table forbids (Protocol § Append-only Tables)."""
    removes = request.mode is not WriteMode.APPEND or request.operation.replaces_table
    # A MERGE may do nothing but insert; whether it does is seen when it commits.
    if (
        removes
        and request.mode is not WriteMode.MERGE
        and (is_true(current.metadata.configuration, "delta.appendOnly"))
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
    if request.option_is_true("mergeschema"):
        raise _unsupported(
            request,
            "mergeSchema",
            "the data has new columns: " + ", ".join(extra),
            "Leave the columns out, or replace the table with mode overwrite and "
            "overwriteSchema=true.",
        )
    advice = "Leave them out; adding columns while writing (mergeSchema) is not supported yet."
    if request.mode is WriteMode.OVERWRITE:
        advice += " To replace the table's columns by the data's, set overwriteSchema=true."
    raise error(
        "DELTAIC_SCHEMA_MISMATCH",
        table=request.table,
        version=current.version,
        columns=", ".join(extra),
        tableColumns=", ".join(f.name for f in known.fields),
        advice=advice,
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


#: Options that change which rows are written or replaced, and that nothing implements yet. Ignoring
#: one would lose or duplicate rows.
_UNSUPPORTED_OPTIONS: Mapping[str, tuple[str, str]] = {
    "replacewhere": ("replaceWhere", "Use DELETE with the condition, then append."),
    "replaceon": ("replaceOn", "Use MERGE or DELETE, then append."),
    "replaceusing": ("replaceUsing", "Use MERGE or DELETE, then append."),
}


def _refuse_options(request: WriteRequest) -> None:
    for key, (name, advice) in _UNSUPPORTED_OPTIONS.items():
        if key in request.options:
            raise _unsupported(request, name, request.options[key], advice)
    data_change = request.options.get("datachange", "true").strip().casefold()
    if data_change != "true":
        raise _unsupported(request, "dataChange", data_change, "Leave the option out.")


def _unsupported(request: WriteRequest, option: str, value: str, advice: str) -> Exception:
    return error(
        "DELTAIC_UNSUPPORTED_OPTION",
        table=request.table,
        option=option,
        value=value,
        advice=advice,
    )
