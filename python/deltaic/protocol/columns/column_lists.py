"""Lists of columns in a table property: ``delta.dataSkippingStatsColumns``."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence

from deltaic.exceptions import error
from deltaic.protocol.columns.schema_checks import same_names
from deltaic.protocol.columns.schema_edits import find_field, quoted_path
from deltaic.protocol.properties import checked_number
from deltaic.protocol.schema import PrimitiveType, StructType, folded_name, has_bounds, type_text

STATS_COLUMNS = "delta.dataSkippingStatsColumns"
NUM_INDEXED_COLUMNS = "delta.dataSkippingNumIndexedCols"

_OUTSIDE_OF_QUOTES = r"(?=(?:[^`]*`[^`]*`)*[^`]*$)"
_COMMA = re.compile("," + _OUTSIDE_OF_QUOTES)
_DOT = re.compile(r"\." + _OUTSIDE_OF_QUOTES)
#: A name that Spark's parser accepts: without quotes, it is not a number.
_READABLE = re.compile("[A-Za-z0-9_]*[A-Za-z_][A-Za-z0-9_]*|`(?:[^`]|``)+`")


def without_columns(
    configuration: Mapping[str, str], dropped: Sequence[Sequence[str]]
) -> dict[str, str]:
    """Return the properties of a table after some columns, with their fields, are dropped."""
    return _with_list(
        configuration,
        lambda path: None if any(_begins(path, prefix) for prefix in dropped) else path,
    )


def with_renamed_column(
    configuration: Mapping[str, str], path: Sequence[str], new_name: str
) -> dict[str, str]:
    """Return the properties of a table after a column is renamed."""
    after = (*path[:-1], new_name)
    return _with_list(
        configuration,
        lambda named: (*after, *named[len(path) :]) if _begins(named, path) else named,
    )


def with_columns_of(
    schema: StructType, partition_columns: Sequence[str], configuration: Mapping[str, str]
) -> dict[str, str]:
    """Return the properties of a table with this schema, without columns that are not allowed."""
    return _with_list(
        configuration,
        lambda path: None if _objection(path, schema, partition_columns) else path,
    )


def check_statistics_columns(
    table: str,
    schema: StructType,
    partition_columns: Sequence[str],
    configuration: Mapping[str, str],
) -> None:
    """Refuse a list that writers cannot parse, or with a column that is not allowed or repeated.

    With such a list, delta-spark refuses any change of the table's definition, and any write.

    Raises
    ------
    InvalidArgumentError
        If the list is not valid.
    """
    listed = configuration.get(STATS_COLUMNS, "")
    for reason in _objections(listed, schema, partition_columns):
        raise error(
            "DELTAIC_INVALID_TABLE_PROPERTY",
            table=table,
            property=STATS_COLUMNS,
            value=listed,
            reason=reason,
        )


def _objections(listed: str, schema: StructType, partition_columns: Sequence[str]) -> Iterator[str]:
    for name in _COMMA.split(listed) if listed.strip() else ():
        if not all(_READABLE.fullmatch(part.strip()) for part in _DOT.split(name)):
            yield (
                f"SQL does not parse {name.strip()!r} as a column; separate columns by commas, and"
                " put a name in backquotes if it is a number or has characters other than letters,"
                " digits and underscores"
            )
    named = _parse(listed)
    for path in named:
        if reason := _objection(path, schema, partition_columns):
            yield reason
    columns = [column for path in named for column in _within(schema, path)]
    for column, count in Counter(columns).items():
        if count > 1:
            yield f"{quoted_path(column)} is named twice"


def _objection(
    path: Sequence[str], schema: StructType, partition_columns: Sequence[str]
) -> str | None:
    """Return why a column is not allowed in the list; None if it is."""
    column, written = find_field(schema, path), quoted_path(path)
    if column is None:
        return f"the table has no column {written}"
    if folded_name(path[0]) in map(folded_name, partition_columns):
        return f"{written} is a partition column, whose values are in the log anyway"
    # In structs, delta-spark accepts fields of any type.
    accepted = isinstance(column.type, StructType) or column.type == PrimitiveType("variant")
    if len(path) == 1 and not accepted and not has_bounds(column.type):
        kind = type_text(column.type)
        return f"{written} is of type {kind}, which has no min/max statistics"
    return None


def _within(schema: StructType, path: Sequence[str]) -> Iterator[tuple[str, ...]]:
    """Yield the leaf columns of a path, with case-folded names."""
    column = find_field(schema, path)
    folded = tuple(map(folded_name, path))
    below = column.type if column is not None else None
    leaves = _leaves(below, folded) if isinstance(below, StructType) else [folded]
    for leaf in leaves:
        yield tuple(map(folded_name, leaf))


def has_statistics(
    table: str, schema: StructType, path: Sequence[str], configuration: Mapping[str, str]
) -> bool:
    """Whether writers collect statistics of a column that is not a partition column.

    They do for the columns of ``delta.dataSkippingStatsColumns``; if it is not set, for the first
    columns up to ``delta.dataSkippingNumIndexedCols`` (Protocol § Per-file Statistics leaves it to
    the writer).
    """
    named = configuration.get(STATS_COLUMNS)
    if named is not None:
        return any(_begins(path, column) for column in _parse(named))
    limit = checked_number(table, configuration, NUM_INDEXED_COLUMNS)
    leaves = enumerate(_leaves(schema, ()))
    position = next((i for i, leaf in leaves if same_names(leaf, path)), None)
    return position is not None and (limit < 0 or position < limit)


def _leaves(struct: StructType, above: tuple[str, ...]) -> Iterator[tuple[str, ...]]:
    for column in struct.fields:
        if isinstance(column.type, StructType):
            yield from _leaves(column.type, (*above, column.name))
        else:
            yield (*above, column.name)


def _with_list(
    configuration: Mapping[str, str],
    change: Callable[[tuple[str, ...]], tuple[str, ...] | None],
) -> dict[str, str]:
    listed = configuration.get(STATS_COLUMNS)
    if listed is None:
        return dict(configuration)
    before = _parse(listed)
    after = [changed for path in before if (changed := change(path)) is not None]
    if after == before:
        return dict(configuration)
    return {**configuration, STATS_COLUMNS: ",".join(map(quoted_path, after))}


def _begins(path: Sequence[str], start: Sequence[str]) -> bool:
    return same_names(path[: len(start)], start)


def name_parts(name: str) -> tuple[str, ...]:
    """Return the parts of a column's name, each as it is or in backticks."""
    return tuple(_unquoted(part) for part in _DOT.split(name))


def _parse(text: str) -> list[tuple[str, ...]]:
    names = (name.strip() for name in _COMMA.split(text))
    return [name_parts(name) for name in names if name]


def _unquoted(part: str) -> str:
    part = part.strip()
    if len(part) > 1 and part[0] == part[-1] == "`":
        return part[1:-1].replace("``", "`")
    return part
