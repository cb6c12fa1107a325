"""Random conditions, each as SQL and as a function in Python with SQL's three truth values."""

from __future__ import annotations

import datetime as dt
import math
import operator
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from hypothesis import strategies as st

Row = Mapping[str, Any]
Truth = bool | None


@dataclass(frozen=True)
class Predicate:
    """A condition.

    Attributes
    ----------
    sql
        Its text.
    evaluate
        Its value for a row; None is SQL's null.
    """

    sql: str
    evaluate: Callable[[Row], Truth]

    def __repr__(self) -> str:
        return self.sql


#: Values of each column's type: few, so that conditions meet rows, the awkward ones among them.
COLUMN_VALUES: Mapping[str, list[Any]] = {
    "n": [-3, 0, 1, 7, 2_147_483_647],
    "s": ["", "a", "ab", "abc", "ä", "b%", "🙂"],
    "d": [-math.inf, -1.5, -0.0, 0.0, 1.5, math.nan],
    "day": [dt.date(1969, 12, 31), dt.date(2024, 2, 29), dt.date(2024, 3, 1)],
    "flag": [True, False],
    "p": [0, 1, 2],
}
SCHEMA = "n INT, s STRING, d DOUBLE, day DATE, flag BOOLEAN, p INT"

_OPERATORS: Mapping[str, Callable[[Any, Any], bool]] = {
    "=": operator.eq,
    "<>": operator.ne,
    "<": operator.lt,
    "<=": operator.le,
    ">": operator.gt,
    ">=": operator.ge,
}


def rows() -> st.SearchStrategy[tuple[Any, ...]]:
    """Rows of `SCHEMA`; every column may be null."""
    return st.tuples(*(st.sampled_from([None, *values]) for values in COLUMN_VALUES.values()))


def predicates() -> st.SearchStrategy[Predicate]:
    columns = st.sampled_from(list(COLUMN_VALUES))
    leaves = columns.flatmap(_leaf)
    return st.recursive(leaves, combined, max_leaves=4)


def _leaf(column: str) -> st.SearchStrategy[Predicate]:
    values = st.sampled_from(COLUMN_VALUES[column])
    kinds = [
        st.builds(_comparison, st.just(column), st.sampled_from(list(_OPERATORS)), values),
        st.builds(_null_test, st.just(column), st.booleans()),
        st.builds(_in_list, st.just(column), st.lists(values, min_size=1, max_size=3)),
    ]
    if column == "s":
        kinds.append(st.builds(_like, st.sampled_from(["a%", "%b%", "a_c", "ä%", "%"])))
    return st.one_of(kinds)


def combined(parts: st.SearchStrategy[Predicate]) -> st.SearchStrategy[Predicate]:
    """Join conditions by AND and OR, or negate one: what `st.recursive` extends leaves by."""
    return st.one_of(
        st.builds(_and, parts, parts), st.builds(_or, parts, parts), st.builds(_not, parts)
    )


def _comparison(column: str, symbol: str, value: Any) -> Predicate:
    compare = _OPERATORS[symbol]

    def evaluate(row: Row) -> Truth:
        found = row[column]
        return None if found is None else compare(_order(found), _order(value))

    return Predicate(f"{column} {symbol} {_literal(value)}", evaluate)


def _null_test(column: str, is_null: bool) -> Predicate:
    return Predicate(
        f"{column} IS {'' if is_null else 'NOT '}NULL",
        lambda row: (row[column] is None) is is_null,
    )


def _in_list(column: str, values: list[Any]) -> Predicate:
    def evaluate(row: Row) -> Truth:
        found = row[column]
        return None if found is None else any(_order(found) == _order(v) for v in values)

    return Predicate(f"{column} IN ({', '.join(map(_literal, values))})", evaluate)


def _like(pattern: str) -> Predicate:
    tests: Mapping[str, Callable[[str], bool]] = {
        "a%": lambda s: s.startswith("a"),
        "%b%": lambda s: "b" in s,
        "a_c": lambda s: len(s) == 3 and s[0] == "a" and s[2] == "c",
        "ä%": lambda s: s.startswith("ä"),
        "%": lambda s: True,
    }
    return Predicate(
        f"s LIKE '{pattern}'",
        lambda row: None if row["s"] is None else tests[pattern](row["s"]),
    )


def _and(left: Predicate, right: Predicate) -> Predicate:
    def evaluate(row: Row) -> Truth:
        sides = left.evaluate(row), right.evaluate(row)
        return False if False in sides else None if None in sides else True

    return Predicate(f"({left.sql} AND {right.sql})", evaluate)


def _or(left: Predicate, right: Predicate) -> Predicate:
    def evaluate(row: Row) -> Truth:
        sides = left.evaluate(row), right.evaluate(row)
        return True if True in sides else None if None in sides else False

    return Predicate(f"({left.sql} OR {right.sql})", evaluate)


def _not(inner: Predicate) -> Predicate:
    def evaluate(row: Row) -> Truth:
        value = inner.evaluate(row)
        return None if value is None else not value

    return Predicate(f"(NOT {inner.sql})", evaluate)


def _order(value: Any) -> Any:
    """Return what stands for a value in Spark's order: NaN last, equal to itself; UTF-8 bytes."""
    if isinstance(value, float):
        return (1, 0.0) if math.isnan(value) else (0, value)
    return value.encode() if isinstance(value, str) else value


def _literal(value: Any) -> str:
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, float):
        return f"CAST('{value}' AS DOUBLE)"
    if isinstance(value, dt.date):
        return f"DATE'{value}'"
    return f"'{value}'" if isinstance(value, str) else str(value)
