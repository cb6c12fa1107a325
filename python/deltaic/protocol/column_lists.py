"""Lists of columns in a table property: ``delta.dataSkippingStatsColumns``."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping, Sequence

from deltaic.exceptions import error
from deltaic.protocol.properties import stored_number
from deltaic.protocol.schema import StructType, folded_name
from deltaic.protocol.schema_checks import same_names
from deltaic.protocol.schema_edits import find_field

STATS_COLUMNS = "delta.dataSkippingStatsColumns"
NUM_INDEXED_COLUMNS = "delta.dataSkippingNumIndexedCols"

_OUTSIDE_OF_QUOTES = r"(?=(?:[^`]*`[^`]*`)*[^`]*$)"
_COMMA = re.compile("," + _OUTSIDE_OF_QUOTES)
_DOT = re.compile(r"\." + _OUTSIDE_OF_QUOTES)
#: Spark's parser takes such a name without quotes.
_PLAIN = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")


def without_columns(
    configuration: Mapping[str, str], dropped: Sequence[Sequence[str]]
) -> dict[str, str]:
    """Return the properties of a table that some columns, and all below them, are dropped from."""
    return _with_list(
        configuration,
        lambda path: None if any(_begins(path, gone) for gone in dropped) else path,
    )


def with_renamed_column(
    configuration: Mapping[str, str], path: Sequence[str], new_name: str
) -> dict[str, str]:
    """Return the properties of a table one of whose columns gets another name."""
    after = (*path[:-1], new_name)
    return _with_list(
        configuration,
        lambda named: (*after, *named[len(path) :]) if _begins(named, path) else named,
    )


def check_statistics_columns(
    table: str,
    schema: StructType,
    partition_columns: Sequence[str],
    configuration: Mapping[str, str],
) -> None:
    """Refuse a list of columns that names others than those of the data files, or one twice.

    Raises
    ------
    InvalidArgumentError
        If it does.
    """
    listed = configuration.get(STATS_COLUMNS)
    if listed is None:
        return
    named = _parse(listed)
    folded = [tuple(folded_name(part) for part in path) for path in named]
    partitioned = {folded_name(name) for name in partition_columns}
    for path, name in zip(named, folded, strict=True):
        written = _written(path)
        if find_field(schema, path) is None:
            reason = f"the table has no column {written}"
        elif name[0] in partitioned:
            reason = f"rows are partitioned by {written}, whose values the log has anyway"
        elif folded.count(name) > 1:
            reason = f"{written} is named twice"
        else:
            continue
        raise error(
            "DELTAIC_INVALID_TABLE_PROPERTY",
            table=table,
            property=STATS_COLUMNS,
            value=listed,
            reason=reason,
        )


def has_statistics(
    table: str, schema: StructType, path: Sequence[str], configuration: Mapping[str, str]
) -> bool:
    """Whether writers keep statistics of a column, which is not one that rows are partitioned by.

    They do for the columns that the property names, else for the first so many (Protocol §
    Per-file Statistics leaves it to the writer).
    """
    named = configuration.get(STATS_COLUMNS)
    if named is not None:
        return any(_begins(path, column) for column in _parse(named))
    limit = stored_number(table, configuration, NUM_INDEXED_COLUMNS)
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
    after = [kept for path in before if (kept := change(path)) is not None]
    if after == before:
        return dict(configuration)
    return {**configuration, STATS_COLUMNS: ",".join(_written(path) for path in after)}


def _begins(path: Sequence[str], start: Sequence[str]) -> bool:
    return same_names(path[: len(start)], start)


def _parse(text: str) -> list[tuple[str, ...]]:
    names = (name.strip() for name in _COMMA.split(text))
    return [tuple(_unquoted(part) for part in _DOT.split(name)) for name in names if name]


def _unquoted(part: str) -> str:
    part = part.strip()
    if len(part) > 1 and part[0] == part[-1] == "`":
        return part[1:-1].replace("``", "`")
    return part


def _written(path: Sequence[str]) -> str:
    return ".".join(
        part if _PLAIN.fullmatch(part) else "`" + part.replace("`", "``") + "`" for part in path
    )
