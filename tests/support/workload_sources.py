"""What a MERGE or an INSERT of a random workload reads: SQL beside the rows it stands for."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

from tests.support.predicates import Predicate
from tests.support.workload import Layout, Outcome, Row, Step, quoted, values

#: Ids are below.
KEYS = 12

_VIEW = "workload_source"


class Source(Protocol):
    """Rows with the columns of a layout."""

    def before(self, layout: Layout) -> list[str]:
        """Return what has to be run first; ``{s}`` in it is a table beside the target, ``{t}``."""

    def sql(self, layout: Layout, table: str) -> str:
        """Return the relation."""

    def rows(self, layout: Layout, present: Sequence[Row]) -> Sequence[Row]:
        """Return its rows, given those of the table."""


@dataclass(frozen=True)
class Values:
    given: tuple[Row, ...]

    def before(self, layout: Layout) -> list[str]:
        return []

    def sql(self, layout: Layout, table: str) -> str:
        return values(layout, layout.names, self.given)

    def rows(self, layout: Layout, present: Sequence[Row]) -> Sequence[Row]:
        return self.given


@dataclass(frozen=True)
class Stored(Values):
    """A Delta table of its own."""

    def before(self, layout: Layout) -> list[str]:
        mapped = "TBLPROPERTIES ('delta.columnMapping.mode' = 'name')"
        rows = super().sql(layout, "")
        return [f"CREATE OR REPLACE TABLE {{s}} USING delta {mapped} AS SELECT * FROM {rows}"]

    def sql(self, layout: Layout, table: str) -> str:
        return "{s}"


@dataclass(frozen=True)
class Grouped(Values):
    """Those rows whose id no other one of them has, by an aggregation."""

    def sql(self, layout: Layout, table: str) -> str:
        given = super().sql(layout, table)
        counts = f"(SELECT id, count(*) AS n FROM {given} GROUP BY id)"
        return f"(SELECT a.* FROM {given} a JOIN {counts} b ON a.id = b.id WHERE b.n = 1)"

    def rows(self, layout: Layout, present: Sequence[Row]) -> Sequence[Row]:
        counts = Counter(row[0] for row in self.given)
        return [row for row in self.given if counts[row[0]] == 1]


@dataclass(frozen=True)
class Known(Values):
    """Those rows whose id is in the table once, by an aggregation of the table."""

    def sql(self, layout: Layout, table: str) -> str:
        return f"(SELECT a.* FROM {super().sql(layout, table)} a JOIN {_once(table)} b USING (id))"

    def rows(self, layout: Layout, present: Sequence[Row]) -> Sequence[Row]:
        counts = Counter(row[0] for row in present)
        return [row for row in self.given if counts[row[0]] == 1]


@dataclass(frozen=True)
class Itself:
    """Rows of the table, under other ids.

    Attributes
    ----------
    unique
        Leaves out rows that share their id.
    """

    condition: Predicate | None
    shift: int
    unique: bool

    def before(self, layout: Layout) -> list[str]:
        return []

    def sql(self, layout: Layout, table: str) -> str:
        conditions = [] if self.condition is None else [self.condition.sql]
        if self.unique:
            conditions.append(f"id IN (SELECT id FROM {_once(table)})")
        where = f" WHERE {' AND '.join(f'({c})' for c in conditions)}" if conditions else ""
        if self.shift == 0:
            return f"(SELECT * FROM {table}{where})"
        stored = [c.sql for c in layout.columns[1:] if c.generated is None]
        shifted = f"CAST((id + {self.shift}) % {KEYS} AS INT) AS id"
        inner = f"(SELECT {', '.join([shifted, *stored])} FROM {table}{where})"
        columns = [
            c.sql if c.generated is None else f"{c.generated.sql} AS {c.sql}"
            for c in layout.columns
        ]
        return f"(SELECT {', '.join(columns)} FROM {inner})"

    def rows(self, layout: Layout, present: Sequence[Row]) -> Sequence[Row]:
        counts = Counter(row[0] for row in present)
        found = []
        for row in present:
            given = layout.named(row)
            if self.condition is not None and self.condition.evaluate(given) is not True:
                continue
            if self.unique and counts[row[0]] > 1:
                continue
            given["id"] = (given["id"] + self.shift) % KEYS
            found.append(layout.computed(given))
        return found


@dataclass(frozen=True)
class Cached:
    """Another source, held in Spark's cache."""

    source: Source

    def before(self, layout: Layout) -> list[str]:
        relation = self.source.sql(layout, "{t}")
        return [
            *self.source.before(layout),
            f"DROP VIEW IF EXISTS {_VIEW}",
            f"CACHE TABLE {_VIEW} AS SELECT * FROM {relation}",
        ]

    def sql(self, layout: Layout, table: str) -> str:
        return _VIEW

    def rows(self, layout: Layout, present: Sequence[Row]) -> Sequence[Row]:
        return self.source.rows(layout, present)


def _once(table: str) -> str:
    return f"(SELECT id FROM {table} GROUP BY id HAVING count(*) = 1)"


@dataclass(frozen=True)
class Refill(Step):
    """INSERT of rows that the table has, beside them or in the place of all."""

    layout: Layout
    source: Itself
    overwrite: bool

    def before(self) -> list[str]:
        return self.source.before(self.layout)

    def sql(self, table: str) -> str:
        columns = [c for c in self.layout.columns if c.generated is None]
        names = ", ".join(quoted(c.name) for c in columns)
        start = f"INSERT {'OVERWRITE' if self.overwrite else 'INTO'} {table} ({names})"
        return f"{start} SELECT {names} FROM {self.source.sql(self.layout, table)}"

    def apply(self, rows: Sequence[Row]) -> Outcome:
        found = self.source.rows(self.layout, rows)
        new = [self.layout.stored(self.layout.named(row)) for row in found]
        gone = list(rows) if self.overwrite else []
        return Outcome(kept=[] if self.overwrite else list(rows), deleted=gone, inserted=new)
