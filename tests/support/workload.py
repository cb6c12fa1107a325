"""Tables and statements that change them, with the expected outcome: SQL and plain Python.

A `Layout` says how a table is made. A step has its SQL and, in `apply`, what it does to rows as
brute force. Rows are tuples of values in the order of the layout's columns, as PySpark's
``collect`` returns them.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING, Any, Literal, Protocol

from tests.support.predicates import Predicate
from tests.support.workload_values import Kind

if TYPE_CHECKING:
    from tests.support.workload_sources import Source

Row = tuple[Any, ...]
Environment = Mapping[str, Any]


class RefusedError(Exception):
    """Every engine must refuse the statement and leave the table as it was."""


@dataclass(frozen=True)
class Value:
    """An expression: its SQL, and its value in Python."""

    sql: str
    of: Callable[[Environment], Any]

    def __repr__(self) -> str:
        return self.sql


@dataclass(frozen=True)
class Column:
    """A column.

    Attributes
    ----------
    generated
        Computes the column; statements never name it.
    default
        What an INSERT that leaves the column out gives it.
    """

    name: str
    kind: Kind
    nullable: bool = True
    generated: Value | None = None
    default: Any = None

    @property
    def sql(self) -> str:
        return quoted(self.name)

    @property
    def ddl(self) -> str:
        parts = [self.sql, self.kind.ddl]
        if not self.nullable:
            parts.append("NOT NULL")
        if self.generated is not None:
            parts.append(f"GENERATED ALWAYS AS ({self.generated.sql})")
        if self.default is not None:
            parts.append(f"DEFAULT {self.kind.literal(self.default)}")
        return " ".join(parts)


def quoted(name: str) -> str:
    return "`" + name.replace("`", "``") + "`"


@dataclass(frozen=True)
class Layout:
    """How a table is made.

    Attributes
    ----------
    columns
        The first is ``id``, the key of merges; it is not unique in the table.
    check
        A condition that every row must not break.
    """

    columns: tuple[Column, ...]
    partition_by: tuple[str, ...] = ()
    properties: Mapping[str, str] = field(default_factory=dict)
    check: Predicate | None = None

    @cached_property
    def names(self) -> tuple[str, ...]:
        return tuple(column.name for column in self.columns)

    @property
    def has_feed(self) -> bool:
        return self.properties.get("delta.enableChangeDataFeed") == "true"

    @property
    def has_vectors(self) -> bool:
        return self.properties.get("delta.enableDeletionVectors") == "true"

    @property
    def tracks_rows(self) -> bool:
        return self.properties.get("delta.enableRowTracking") == "true"

    def create(self, table: str) -> list[str]:
        """Return the statements that make the empty table."""
        columns = ", ".join(column.ddl for column in self.columns)
        partitioning = ", ".join(map(quoted, self.partition_by))
        properties = ", ".join(f"'{k}' = '{v}'" for k, v in self.properties.items())
        statements = [
            f"CREATE TABLE {table} ({columns}) USING delta"
            + (f" PARTITIONED BY ({partitioning})" if partitioning else "")
            + (f" TBLPROPERTIES ({properties})" if properties else "")
        ]
        if self.check is not None:
            statements.append(f"ALTER TABLE {table} ADD CONSTRAINT c CHECK ({self.check.sql})")
        return statements

    def named(self, row: Row, prefix: str = "") -> dict[str, Any]:
        """Return a row as the environment of expressions."""
        return {prefix + name: value for name, value in zip(self.names, row, strict=True)}

    def computed(self, given: Mapping[str, Any]) -> Row:
        """Return the row with these values, its generated ones computed."""
        return tuple(
            given[column.name] if column.generated is None else column.generated.of(given)
            for column in self.columns
        )

    def stored(self, given: Mapping[str, Any]) -> Row:
        """Return the row that the table holds once these values are written to it.

        Raises
        ------
        RefusedError
            If the table does not allow such a row.
        """
        row = self.computed(given)
        for column, value in zip(self.columns, row, strict=True):
            if value is None and not column.nullable:
                raise RefusedError(f"{column.name} is null")
        if self.check is not None and self.check.evaluate(self.named(row)) is False:
            raise RefusedError(self.check.sql)
        return row


@dataclass
class Outcome:
    """What a statement does to the rows of a table.

    Attributes
    ----------
    updated
        Pairs of what was and what is; a row counts though it stays as it was.
    counts
        What the statement returns, if that is known.
    metrics
        What the history shows beside them.
    """

    kept: list[Row] = field(default_factory=list)
    updated: list[tuple[Row, Row]] = field(default_factory=list)
    deleted: list[Row] = field(default_factory=list)
    inserted: list[Row] = field(default_factory=list)
    counts: tuple[int, ...] | None = None
    metrics: dict[str, int] = field(default_factory=dict)

    @property
    def after(self) -> list[Row]:
        return [*self.kept, *(new for _, new in self.updated), *self.inserted]

    @property
    def feed(self) -> list[tuple[str, Row]]:
        """The rows of the change data feed, each with its ``_change_type``."""
        return [
            *(("delete", row) for row in self.deleted),
            *(("insert", row) for row in self.inserted),
            *(("update_preimage", old) for old, _ in self.updated),
            *(("update_postimage", new) for _, new in self.updated),
        ]


class Step(Protocol):
    """A statement that changes a table."""

    def before(self) -> list[str]:
        """Return statements to run first; in them ``{t}`` is the table, ``{s}`` one beside it."""
        return []

    def sql(self, table: str) -> str: ...

    def apply(self, rows: Sequence[Row]) -> Outcome:
        """Do what the statement does."""
        ...


@dataclass(frozen=True)
class Insert(Step):
    """INSERT INTO, with or without the columns that have defaults; or INSERT OVERWRITE.

    Attributes
    ----------
    rows
        Values of `columns`.
    files
        How many tasks write.
    where
        Replaces the rows that meet the condition; the new ones meet it, too.
    """

    layout: Layout
    columns: tuple[str, ...]
    rows: tuple[Row, ...]
    files: int = 1
    overwrite: bool = False
    where: Predicate | None = None

    def sql(self, table: str) -> str:
        names = ", ".join(map(quoted, self.columns))
        start = f"INSERT {'OVERWRITE' if self.overwrite else 'INTO'} {table}"
        if self.where is not None:
            start = f"INSERT INTO {table} REPLACE WHERE {self.where.sql}"
        else:
            start += f" ({names})"
        hint = f"/*+ REPARTITION({self.files}) */ " if self.files > 1 else ""
        return f"{start} SELECT {hint}{names} FROM {values(self.layout, self.columns, self.rows)}"

    def apply(self, rows: Sequence[Row]) -> Outcome:
        defaults = {column.name: column.default for column in self.layout.columns}
        new = [
            self.layout.stored({**defaults, **dict(zip(self.columns, row, strict=True))})
            for row in self.rows
        ]
        if self.where is not None:
            goes = [self.where.evaluate(self.layout.named(row)) is True for row in rows]
        else:
            goes = [self.overwrite] * len(rows)
        return Outcome(
            kept=[row for row, gone in zip(rows, goes, strict=True) if not gone],
            deleted=[row for row, gone in zip(rows, goes, strict=True) if gone],
            inserted=new,
        )


@dataclass(frozen=True)
class Delete(Step):
    layout: Layout
    condition: Predicate

    def sql(self, table: str) -> str:
        return f"DELETE FROM {table} WHERE {self.condition.sql}"

    def apply(self, rows: Sequence[Row]) -> Outcome:
        outcome = Outcome()
        for row in rows:
            gone = self.condition.evaluate(self.layout.named(row)) is True
            (outcome.deleted if gone else outcome.kept).append(row)
        outcome.counts = (len(outcome.deleted),)
        return outcome


@dataclass(frozen=True)
class Update(Step):
    """UPDATE; an assignment's target may be a field, such as ``("st", "x")``."""

    layout: Layout
    assignments: tuple[tuple[tuple[str, ...], Value], ...]
    condition: Predicate | None

    def sql(self, table: str) -> str:
        where = "" if self.condition is None else f" WHERE {self.condition.sql}"
        return f"UPDATE {table} SET {assigned(self.assignments)}{where}"

    def apply(self, rows: Sequence[Row]) -> Outcome:
        outcome = Outcome()
        for row in rows:
            environment = self.layout.named(row)
            if self.condition is None or self.condition.evaluate(environment) is True:
                new = change(self.layout, row, self.assignments, environment)
                outcome.updated.append((row, new))
            else:
                outcome.kept.append(row)
        outcome.counts = (len(outcome.updated),)
        return outcome


@dataclass(frozen=True)
class Clause:
    """One WHEN of a MERGE.

    Attributes
    ----------
    assignments
        None means all columns, from the source's of the same names.
    """

    when: Literal["matched", "not matched", "not matched by source"]
    action: Literal["update", "delete", "insert"]
    condition: Predicate | None = None
    assignments: tuple[tuple[tuple[str, ...], Value], ...] | None = None

    def sql(self) -> str:
        also = "" if self.condition is None else f" AND {self.condition.sql}"
        start = f"WHEN {self.when.upper()}{also} THEN {self.action.upper()}"
        if self.action == "delete":
            return start
        if self.assignments is None:
            return f"{start} *" if self.action == "insert" else f"{start} SET *"
        if self.action == "update":
            return f"{start} SET {assigned(self.assignments)}"
        names = ", ".join(quoted(target[0]) for target, _ in self.assignments)
        return f"{start} ({names}) VALUES ({', '.join(v.sql for _, v in self.assignments)})"

    def holds(self, environment: Environment) -> bool:
        return self.condition is None or self.condition.evaluate(environment) is True


#: What the history calls rows that no row of the source matched.
_BY_SOURCE = {
    "update": "numTargetRowsNotMatchedBySourceUpdated",
    "delete": "numTargetRowsNotMatchedBySourceDeleted",
}


@dataclass(frozen=True)
class Merge(Step):
    """MERGE on ``t.id = s.id`` and on what `also` says about the target."""

    layout: Layout
    source: Source
    clauses: tuple[Clause, ...]
    also: Predicate | None = None

    def before(self) -> list[str]:
        return self.source.before(self.layout)

    def sql(self, table: str) -> str:
        also = "" if self.also is None else f" AND {self.also.sql}"
        source = self.source.sql(self.layout, table)
        clauses = " ".join(clause.sql() for clause in self.clauses)
        return f"MERGE INTO {table} t USING {source} s ON t.id = s.id{also} {clauses}"

    def apply(self, rows: Sequence[Row]) -> Outcome:
        sources = self.source.rows(self.layout, rows)
        outcome = Outcome(metrics=dict.fromkeys(_BY_SOURCE.values(), 0))
        outcome.metrics["numSourceRows"] = len(sources)
        matched_sources: set[int] = set()
        for row in rows:
            target = self.layout.named(row, "t.")
            matches = [
                number
                for number, source in enumerate(sources)
                if source[0] == row[0] and (self.also is None or self.also.evaluate(target) is True)
            ]
            matched_sources.update(matches)
            if len(matches) > 1 and self._asks_for_one_match:
                raise RefusedError("more than one row of the source matches")
            environment = target
            if matches:
                environment = {**target, **self.layout.named(sources[matches[0]], "s.")}
            self._target(outcome, row, environment, bool(matches))
        for number, source in enumerate(sources):
            if number not in matched_sources:
                self._insert(outcome, self.layout.named(source, "s."))
        updated, deleted = len(outcome.updated), len(outcome.deleted)
        inserted = len(outcome.inserted)
        outcome.counts = (updated + deleted + inserted, updated, deleted, inserted)
        return outcome

    @property
    def _asks_for_one_match(self) -> bool:
        """Only rows that go in any case may be matched twice."""
        matched = [clause for clause in self.clauses if clause.when == "matched"]
        goes = [clause.action == "delete" and clause.condition is None for clause in matched]
        return bool(matched) and goes != [True]

    def _target(self, outcome: Outcome, row: Row, environment: Environment, matched: bool) -> None:
        when = "matched" if matched else "not matched by source"
        clause = self._first(when, environment)
        if clause is not None and not matched:
            outcome.metrics[_BY_SOURCE[clause.action]] += 1
        if clause is None:
            outcome.kept.append(row)
        elif clause.action == "delete":
            outcome.deleted.append(row)
        elif clause.assignments is None:
            given = {name: environment[f"s.{name}"] for name in self.layout.names}
            outcome.updated.append((row, self.layout.stored(given)))
        else:
            new = change(self.layout, row, clause.assignments, environment)
            outcome.updated.append((row, new))

    def _insert(self, outcome: Outcome, environment: Environment) -> None:
        clause = self._first("not matched", environment)
        if clause is None:
            return
        if clause.assignments is None:
            given = {name: environment[f"s.{name}"] for name in self.layout.names}
        else:
            given = {column.name: column.default for column in self.layout.columns}
            given |= {target[0]: value.of(environment) for target, value in clause.assignments}
        outcome.inserted.append(self.layout.stored(given))

    def _first(self, when: str, environment: Environment) -> Clause | None:
        applicable = (c for c in self.clauses if c.when == when and c.holds(environment))
        return next(applicable, None)


def assigned(assignments: Sequence[tuple[tuple[str, ...], Value]]) -> str:
    return ", ".join(
        f"{'.'.join(map(quoted, target))} = {value.sql}" for target, value in assignments
    )


def change(
    layout: Layout,
    row: Row,
    assignments: Sequence[tuple[tuple[str, ...], Value]],
    environment: Environment,
) -> Row:
    """Return a row after assignments, all of which see it as it was."""
    given = layout.named(row)
    for target, value in assignments:
        name, *inner = target
        kind = next(column.kind for column in layout.columns if column.name == name)
        given[name] = _set(kind, given[name], inner, value.of(environment))
    return layout.stored(given)


def _set(kind: Kind, old: Any, inner: Sequence[str], new: Any) -> Any:
    """Set a field of a struct; of one that is null, the other fields are null."""
    if not inner:
        return new
    parts = list(old) if old is not None else [None] * len(kind.fields)
    for number, (name, field_kind) in enumerate(kind.fields):
        if name == inner[0]:
            parts[number] = _set(field_kind, parts[number], inner[1:], new)
    return tuple(parts)


def values(layout: Layout, names: Sequence[str], rows: Sequence[Row]) -> str:
    """Return rows as a relation in SQL, which may be empty."""
    kinds = {column.name: column.kind for column in layout.columns}
    columns = ", ".join(map(quoted, names))
    nulls = ", ".join(kinds[name].literal(None) for name in names)
    if not rows:
        return f"(SELECT * FROM VALUES ({nulls}) AS v({columns}) WHERE false)"
    lines = ", ".join(
        "("
        + ", ".join(kinds[name].literal(value) for name, value in zip(names, row, strict=True))
        + ")"
        for row in rows
    )
    return f"(SELECT * FROM VALUES {lines} AS v({columns}))"


@dataclass(frozen=True)
class Workload:
    layout: Layout
    steps: tuple[Step, ...]

    def __repr__(self) -> str:
        lines = self.layout.create("{t}")
        for step in self.steps:
            lines += [*step.before(), step.sql("{t}")]
        return ";\n".join(["", *lines])

    def _repr_pretty_(self, printer: Any, cycle: bool) -> None:
        """Let hypothesis show the statements, not the objects."""
        printer.text(repr(self))

    @property
    def is_lively(self) -> bool:
        """Whether more than half of the steps change rows."""
        rows: list[Row] = []
        changing = 0
        for step in self.steps:
            try:
                outcome = step.apply(rows)
            except RefusedError:
                continue
            rows = outcome.after
            changing += bool(outcome.feed)
        return 2 * changing > len(self.steps)
