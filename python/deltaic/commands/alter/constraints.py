"""ALTER TABLE ADD CONSTRAINT and DROP CONSTRAINT (Protocol § CHECK Constraints)."""

from __future__ import annotations

from dataclasses import dataclass, replace

from deltaic.commands.alter.alteration import Alteration, alter, current_snapshot
from deltaic.commit.clock import Clock
from deltaic.commit.message import Message
from deltaic.commit.operations import Operation
from deltaic.commit.ports import TableAccess
from deltaic.commit.transaction import CommitResult, RetryPolicy
from deltaic.exceptions import error
from deltaic.protocol.constraints import constraint_key, find_constraint, require_free_name


@dataclass(frozen=True, slots=True)
class AddConstraint(Message):
    """The arguments of ADD CONSTRAINT; `expression` is the condition, in SQL."""

    table: str
    name: str
    expression: str


@dataclass(frozen=True, slots=True)
class DropConstraint(Message):
    """The arguments of DROP CONSTRAINT."""

    table: str
    name: str
    if_exists: bool = False


def add_constraint(
    arguments: AddConstraint, tables: TableAccess, policy: RetryPolicy, clock_ms: Clock
) -> CommitResult:
    """Add a CHECK constraint that all rows of the table must satisfy, including existing rows.

    A condition that is null for a row is violated, as when rows are written.

    Raises
    ------
    InvalidArgumentError
        If the expression is not a condition, the table has a constraint of this name, or the name
        is reserved.
    TableStateError
        If a row of the table violates the condition.
    ConcurrentModificationError
        If rows were added concurrently, which were not checked.
    """
    require_free_name(arguments.table, arguments.name)
    current = current_snapshot(arguments.table, tables)
    configuration = current.metadata.configuration
    existing = find_constraint(configuration, arguments.name)
    if existing is not None:
        raise error(
            "DELTAIC_CONSTRAINT_EXISTS",
            table=arguments.table,
            constraint=arguments.name,
            expression=configuration[existing],
        )
    row = tables.first_violation(
        arguments.table, current.version, arguments.name, arguments.expression
    )
    if row is not None:
        raise error(
            "DELTAIC_CONSTRAINT_VIOLATED_BY_DATA",
            table=arguments.table,
            version=current.version,
            constraint=arguments.name,
            expression=arguments.expression,
            row=row,
        )
    key = constraint_key(arguments.name)
    after = replace(current.metadata, configuration={**configuration, key: arguments.expression})
    return alter(
        Alteration(
            arguments.table,
            current,
            after,
            Operation.ADD_CONSTRAINT,
            {"name": arguments.name, "expr": arguments.expression},
            reads_whole_table=True,
        ),
        tables,
        policy,
        clock_ms,
    )


def drop_constraint(
    arguments: DropConstraint, tables: TableAccess, policy: RetryPolicy, clock_ms: Clock
) -> CommitResult:
    """Drop a constraint of the table; the protocol retains the feature.

    Raises
    ------
    InvalidArgumentError
        If there is no such constraint, unless `if_exists` is set.
    """
    current = current_snapshot(arguments.table, tables)
    configuration = current.metadata.configuration
    existing = find_constraint(configuration, arguments.name)
    if existing is None:
        if arguments.if_exists:
            return CommitResult(current.version, skipped=True)
        raise error(
            "DELTAIC_CONSTRAINT_NOT_FOUND", table=arguments.table, constraint=arguments.name
        )
    others = {key: value for key, value in configuration.items() if key != existing}
    after = replace(current.metadata, configuration=others)
    return alter(
        Alteration(
            arguments.table,
            current,
            after,
            Operation.DROP_CONSTRAINT,
            {"name": arguments.name, "expr": configuration[existing], "existed": "true"},
        ),
        tables,
        policy,
        clock_ms,
    )
