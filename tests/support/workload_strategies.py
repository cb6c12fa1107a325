"""Random workloads for hypothesis: the simplest example already has a step of each sort."""

from __future__ import annotations

import operator
import os
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from hypothesis import HealthCheck, Phase, assume, settings
from hypothesis import strategies as st

from tests.support.predicates import Predicate, combined
from tests.support.workload import (
    Clause,
    Column,
    Delete,
    Insert,
    Layout,
    Merge,
    Row,
    Step,
    Update,
    Value,
    Workload,
    quoted,
)
from tests.support.workload_sources import (
    KEYS,
    Cached,
    Grouped,
    Itself,
    Known,
    Refill,
    Source,
    Stored,
    Values,
)
from tests.support.workload_values import (
    CHAR,
    INT,
    KINDS,
    PARTITION_KINDS,
    STRING,
    VARCHAR,
    Kind,
    scalar,
)

Draw = Callable[[st.SearchStrategy[Any]], Any]
Sort = Callable[[Layout, bool], st.SearchStrategy[Any]]
SourceSort = Callable[[Layout], st.SearchStrategy[Source]]
Assignments = tuple[tuple[tuple[str, ...], Value], ...]

#: Few keys, so that merges meet rows.
_ID = scalar("INT", *range(KEYS))
_FORBIDDEN = 11

_COMPARISONS: Sequence[tuple[str, Callable[[Any, Any], bool]]] = (
    ("=", operator.eq),
    (">", operator.gt),
    ("<=", operator.le),
    ("<>", operator.ne),
)


@dataclass(frozen=True)
class Style:
    """What is settled of a layout; None leaves it to chance.

    Attributes
    ----------
    first
        With which of the sorts of steps the simplest example begins.
    """

    kinds: tuple[Kind, ...] | None = None
    mapping: str | None = None
    partitioned: bool | None = None
    vectors: bool | None = None
    feed: bool | None = None
    tracked: bool | None = None
    extra: str | None = None
    first: int = 0


_ANY = Style()

#: Each way of storing rows, between them each type and, in their simplest examples, each sort of
#: step.
STYLES = {
    "any": _ANY,
    "vectors": Style((*KINDS[:4], CHAR), "none", False, True, True, False, "default", 3),
    "tracked": Style(KINDS[4:8], "none", False, True, True, True, "none", 6),
    "partitioned": Style(KINDS[8:12], "none", True, True, True, True, "generated", 9),
    "mapped by name": Style(KINDS[12:16], "name", True, True, False, False, "check", 1),
    "mapped by id": Style(KINDS[16:20], "id", False, True, True, True, "default", 4),
    "rewritten": Style((CHAR, VARCHAR), "none", False, False, True, False, "none", 7),
    "rewritten and tracked": Style(KINDS[:3], "name", True, False, True, True, "generated", 10),
}
assert {k.ddl for s in STYLES.values() for k in s.kinds or ()} == {k.ddl for k in KINDS}


@st.composite
def workloads(
    draw: Draw,
    *,
    min_steps: int = 4,
    max_steps: int = 8,
    beside_delta_spark: bool = False,
    style: Style = _ANY,
) -> Workload:
    """Draw a workload; delta-spark has no subqueries in conditions and stumbles over backticks."""
    layout = draw(layouts(backticks=not beside_delta_spark, style=style))
    count = draw(st.integers(min_steps, max_steps))
    names, rows = draw(_full_rows(layout, 4, 12))
    allowed = tuple(row for row in rows if layout.check is None or row[0] != _FORBIDDEN)
    steps: list[Step] = [Insert(layout, names, allowed, files=draw(st.integers(1, 3)))]
    for number in range(1, count):
        # What the simplest example takes differs from step to step.
        start = (style.first + number) % len(_SORTS)
        sort = draw(st.sampled_from([*_SORTS[start:], *_SORTS]))
        steps.append(draw(sort(layout, not beside_delta_spark)))
    workload = Workload(layout, tuple(steps))
    assume(workload.is_lively)
    return workload


@st.composite
def layouts(draw: Draw, backticks: bool, style: Style = _ANY) -> Layout:
    def chosen(settled: Any, *values: Any) -> Any:
        return draw(st.sampled_from(values)) if settled is None else settled

    data = style.kinds or draw(st.lists(st.sampled_from(KINDS), min_size=2, max_size=4))
    mapping = chosen(style.mapping, "none", "name", "none", "id")
    names = ("a", "b", "c", "D", "f", "g")
    if mapping != "none":
        names = ("a", "b c", "d`e" if backticks else "d", "Ä.x", "f", "g")
    columns = [Column("id", _ID, nullable=False)]
    columns += [Column(name, kind) for name, kind in zip(names[: len(data)], data, strict=True)]
    partition_by: tuple[str, ...] = ()
    if chosen(style.partitioned, False, True):
        columns.append(Column("p", draw(st.sampled_from(PARTITION_KINDS))))
        partition_by = ("p",)
    properties = {
        "delta.enableDeletionVectors": _flag(chosen(style.vectors, True, False)),
        "delta.enableChangeDataFeed": _flag(chosen(style.feed, True, False)),
        "delta.enableRowTracking": _flag(chosen(style.tracked, False, True)),
        "delta.checkpointInterval": draw(st.sampled_from(["10", "3"])),
        # However small a file is, so that files of a few rows are rewritten, too.
        "deltaic.deletionVectors.maxDeletedRowsRatio": draw(st.sampled_from(["1", "0.3"])),
    }
    if mapping != "none":
        properties["delta.columnMapping.mode"] = mapping
    extra = chosen(style.extra, "none", "default", "generated", "check")
    check = None
    if extra == "default":
        columns.append(Column("dflt", STRING, default="it's"))
        properties["delta.feature.allowColumnDefaults"] = "supported"
    elif extra == "generated":
        value = Value("id % 3", lambda row: None if row["id"] is None else row["id"] % 3)
        columns.append(Column("gen", INT, generated=value))
        if draw(st.booleans()):
            partition_by = (*partition_by, "gen")
    elif extra == "check":
        check = Predicate(f"id <> {_FORBIDDEN}", lambda row: row["id"] != _FORBIDDEN)
    return Layout(tuple(columns), partition_by, properties, check)


def _flag(value: bool) -> str:
    return str(value).lower()


def _writable(layout: Layout) -> list[Column]:
    return [column for column in layout.columns if column.generated is None]


def _value(column: Column) -> st.SearchStrategy[Any]:
    values = st.sampled_from(column.kind.values)
    return st.one_of(values, st.none()) if column.nullable else values


@st.composite
def _full_rows(
    draw: Draw, layout: Layout, least: int, most: int, columns: Sequence[Column] | None = None
) -> tuple[tuple[str, ...], tuple[Row, ...]]:
    chosen = _writable(layout) if columns is None else columns
    rows = st.lists(st.tuples(*map(_value, chosen)), min_size=least, max_size=most)
    return tuple(column.name for column in chosen), tuple(draw(rows))


@st.composite
def _inserts(draw: Draw, layout: Layout, subqueries: bool) -> Insert:
    needed = [c for c in _writable(layout) if not c.nullable]
    columns = None
    if draw(st.booleans()):
        left_out = draw(st.sampled_from([c.name for c in _writable(layout) if c.nullable]))
        columns = [c for c in _writable(layout) if c.name != left_out] or needed
    names, rows = draw(_full_rows(layout, 1, 6, columns))
    return Insert(layout, names, rows, draw(st.integers(1, 2)))


@st.composite
def _overwrites(draw: Draw, layout: Layout, subqueries: bool) -> Insert:
    names, rows = draw(_full_rows(layout, 0, 6))
    return Insert(layout, names, rows, overwrite=True)


@st.composite
def _replacements(draw: Draw, layout: Layout, subqueries: bool) -> Insert:
    names, rows = draw(_full_rows(layout, 0, 6))
    where = draw(conditions(layout, compound=False, columns=_writable(layout)))
    # A row that breaks a rule of the table says so before it is asked for the condition.
    given = [dict(zip(names, row, strict=True)) for row in rows]
    chosen = [layout.computed(row) for row in given if where.evaluate(row) is True]
    # Columns go by their place, which a generated one has, too.
    return Insert(layout, layout.names, tuple(chosen), where=where)


@st.composite
def _deletes(draw: Draw, layout: Layout, subqueries: bool) -> Delete:
    listed = _listed_keys(subqueries)
    return Delete(layout, draw(st.one_of(conditions(layout), listed)))


@st.composite
def _updates(draw: Draw, layout: Layout, subqueries: bool) -> Update:
    condition = draw(st.one_of(conditions(layout), _listed_keys(subqueries), st.none()))
    return Update(layout, draw(_assignments(layout)), condition)


def _merges(first: int) -> Sort:
    """Return merges the simplest of which read a source of that sort."""
    sorts = [*_SOURCES[first:], *_SOURCES[:first]]

    @st.composite
    def merges(draw: Draw, layout: Layout, subqueries: bool) -> Merge:
        # delta-spark does not resolve a MERGE of a table with CHAR columns into itself.
        padded = any(column.kind.ddl.startswith("CHAR") for column in layout.columns)
        usable = [s for s in sorts if subqueries or not padded or s not in _OF_TABLE]
        source = draw(draw(st.sampled_from(usable))(layout))
        merge: Merge = draw(_merge(layout, source))
        return merge

    return merges


@st.composite
def _given_rows(draw: Draw, layout: Layout) -> tuple[Row, ...]:
    """Rows for a source; one time of four, keys may come twice."""
    writable = _writable(layout)
    keys_are_unique = draw(st.sampled_from([True, True, True, False]))
    unique_by = (lambda row: row[0]) if keys_are_unique else None
    rows = draw(st.lists(st.tuples(*map(_value, writable)), max_size=8, unique_by=unique_by))
    names = [column.name for column in writable]
    return tuple(layout.computed(dict(zip(names, row, strict=True))) for row in rows)


def _of_given(kind: Callable[[tuple[Row, ...]], Source]) -> SourceSort:
    return lambda layout: _given_rows(layout).map(kind)


@st.composite
def _rows_of_table(draw: Draw, layout: Layout, unique: bool | None = None) -> Itself:
    condition = draw(st.one_of(st.none(), conditions(layout, compound=False)))
    shift = draw(st.sampled_from([0, 1, 5]))
    chosen = draw(st.sampled_from([True, True, True, False])) if unique is None else unique
    return Itself(condition, shift, chosen)


_known = _of_given(Known)
_OF_TABLE = (_rows_of_table, _known)

_SOURCES: tuple[SourceSort, ...] = (
    _of_given(Values),
    _rows_of_table,
    _of_given(Stored),
    _of_given(lambda rows: Cached(Values(rows))),
    _known,
    lambda layout: _rows_of_table(layout).map(Cached),
    _of_given(Grouped),
)


@st.composite
def _refills(draw: Draw, layout: Layout, subqueries: bool) -> Refill:
    # Rows whose ids are not unique would double from step to step.
    return Refill(layout, draw(_rows_of_table(layout, unique=True)), draw(st.booleans()))


@st.composite
def _merge(draw: Draw, layout: Layout, source: Source) -> Merge:
    also = draw(st.one_of(st.none(), conditions(layout, "t.", compound=False)))
    clauses = [
        *draw(_clauses(layout, "matched", ["update", "delete"], ["t.", "s."])),
        *draw(_clauses(layout, "not matched", ["insert"], ["s."])),
        *draw(_clauses(layout, "not matched by source", ["update", "delete"], ["t."], least=0)),
    ]
    chosen = draw(st.sampled_from([clauses, *([c] for c in clauses)]))
    return Merge(layout, source, tuple(chosen), also)


@st.composite
def _clauses(
    draw: Draw,
    layout: Layout,
    when: Any,
    actions: Sequence[Any],
    sides: Sequence[str],
    least: int = 1,
) -> list[Clause]:
    found = []
    count = draw(st.integers(least, 2))
    for number in range(count):
        action = draw(st.sampled_from(actions))
        side = draw(st.sampled_from(sides))
        last = number == count - 1
        condition = draw(conditions(layout, side, compound=False))
        if last and draw(st.booleans()):
            condition = None
        assignments = None
        if action == "insert" and draw(st.booleans()):
            assignments = draw(_insertions(layout))
        elif action == "update" and ("s." not in sides or draw(st.booleans())):
            assignments = draw(_assignments(layout, sides, named="t."))
        found.append(Clause(when, action, condition, assignments))
    return found


@st.composite
def _insertions(draw: Draw, layout: Layout) -> Assignments:
    columns = [c for c in _writable(layout) if not c.nullable or draw(st.booleans())]
    return tuple(((c.name,), draw(_value_for(c, _writable(layout), ["s."]))) for c in columns)


@st.composite
def _assignments(
    draw: Draw, layout: Layout, sides: Sequence[str] = ("",), named: str = ""
) -> Assignments:
    columns = draw(
        st.lists(st.sampled_from(_writable(layout)[::-1]), min_size=1, max_size=2, unique_by=id)
    )
    found: list[tuple[tuple[str, ...], Value]] = []
    for column in columns:
        if column.kind.fields and draw(st.booleans()):
            name, kind = draw(st.sampled_from(column.kind.fields))
            inner = draw(_value_for(Column(name, kind), [], sides))
            found.append(((column.name, name), inner))
        else:
            found.append(((column.name,), draw(_value_for(column, layout.columns, sides))))
    return tuple(found)


@st.composite
def _value_for(
    draw: Draw, column: Column, columns: Sequence[Column], sides: Sequence[str]
) -> Value:
    """A constant, or a column of the same type."""
    like = [c for c in columns if c.kind.ddl == column.kind.ddl]
    if like and draw(st.booleans()):
        other, side = draw(st.sampled_from(like)), draw(st.sampled_from(sides))
        name = side + other.name
        return Value(f"{side}{other.sql}", lambda row: row[name])
    constant = draw(_value(column))
    return Value(column.kind.literal(constant), lambda row: constant)


@st.composite
def conditions(
    draw: Draw,
    layout: Layout,
    prefix: str = "",
    *,
    compound: bool = True,
    columns: Sequence[Column] | None = None,
) -> Predicate:
    leaves = st.sampled_from(layout.columns if columns is None else columns).flatmap(
        lambda column: _leaf(column, prefix)
    )
    drawn: Predicate = draw(st.recursive(leaves, combined, max_leaves=3) if compound else leaves)
    return drawn


def _leaf(column: Column, prefix: str) -> st.SearchStrategy[Predicate]:
    kind, name, sql = column.kind, prefix + column.name, prefix + column.sql
    null_test = st.booleans().map(
        lambda isnull: Predicate(
            f"{sql} IS {'' if isnull else 'NOT '}NULL", lambda row: (row[name] is None) is isnull
        )
    )
    if kind.order is not None:
        return st.one_of(_comparison(kind, sql, lambda row: row[name]), null_test)
    inner = [(number, f) for number, f in enumerate(kind.fields) if f[1].order is not None]
    if not inner:
        return null_test

    def of_field(chosen: tuple[int, tuple[str, Kind]]) -> st.SearchStrategy[Predicate]:
        number, (field_name, field_kind) = chosen

        def found(row: Any) -> Any:
            return None if row[name] is None else row[name][number]

        return _comparison(field_kind, f"{sql}.{quoted(field_name)}", found)

    return st.one_of(st.sampled_from(inner).flatmap(of_field), null_test)


def _comparison(kind: Kind, sql: str, found: Callable[[Any], Any]) -> st.SearchStrategy[Predicate]:
    order = kind.order
    assert order is not None

    def build(chosen: tuple[str, Callable[[Any, Any], bool]], value: Any) -> Predicate:
        symbol, compare = chosen

        def evaluate(row: Any) -> bool | None:
            here = found(row)
            return None if here is None else compare(order(here), order(value))

        return Predicate(f"{sql} {symbol} {kind.literal(value)}", evaluate)

    return st.builds(build, st.sampled_from(_COMPARISONS), st.sampled_from(kind.values))


@st.composite
def _listed_keys(draw: Draw, subqueries: bool) -> Predicate:
    keys = draw(st.lists(st.sampled_from(_ID.values), min_size=1, max_size=4, unique=True))
    relation = f"VALUES {', '.join(f'({key})' for key in keys)} AS v(k)"
    forms = [f"id IN ({', '.join(map(str, keys))})"]
    if subqueries:
        forms += [
            f"id IN (SELECT k FROM {relation})",
            f"EXISTS (SELECT 1 FROM {relation} WHERE k = id)",
        ]
    return Predicate(draw(st.sampled_from(forms[::-1])), lambda row: row["id"] in keys)


_SORTS: tuple[Sort, ...] = (
    _inserts,
    _updates,
    _merges(1),
    _deletes,
    _merges(2),
    _updates,
    _replacements,
    _merges(0),
    _refills,
    _merges(3),
    _overwrites,
)


def few_examples(count: int) -> Callable[[Any], Any]:
    """Run the same few examples each time, or as many others as ``DELTAIC_WORKLOADS`` says."""
    by_hand = os.environ.get("DELTAIC_WORKLOADS") or None
    return settings(
        max_examples=int(by_hand or count),
        derandomize=by_hand is None,
        phases=(Phase.generate,) if by_hand is None else (Phase.generate, Phase.shrink),
        database=None,
        deadline=None,
        print_blob=True,
        suppress_health_check=list(HealthCheck),
    )
