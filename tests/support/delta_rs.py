"""What delta-rs reads, in one form with what Spark collects."""

from __future__ import annotations

from datetime import datetime
from typing import Any

import deltalake
import pyarrow as pa
from deltalake import QueryBuilder
from pyspark.sql import Row


def plain(value: Any) -> Any:
    """Return one form for what Spark and Arrow show differently: structs, maps, lists, times."""
    if isinstance(value, Row):
        return tuple(plain(item) for item in value)
    if isinstance(value, dict):  # a map of Spark's or a struct of Arrow's: see `as_struct`
        return tuple(sorted((plain(k), plain(v)) for k, v in value.items()))
    if isinstance(value, list | tuple):
        return tuple(plain(item) for item in value)
    if isinstance(value, float) and value != value:
        return "NaN"  # which does not equal itself
    if isinstance(value, bytearray):
        return bytes(value)
    if isinstance(value, datetime) and value.tzinfo is not None:
        return value.astimezone().replace(tzinfo=None)  # as Spark's collect() does
    return value


def in_order(rows: Any) -> list[Any]:
    return sorted((plain(row) for row in rows), key=repr)


def arrow_rows(found: pa.Table) -> list[Any]:
    """Rows of an Arrow table; structs become tuples, so that only maps are key-value pairs."""
    columns = [arrow_column(column.combine_chunks()) for column in found.columns]
    return in_order(zip(*columns, strict=True))


def arrow_column(array: pa.Array) -> list[Any]:
    return [as_struct(value, array.type) for value in array.to_pylist()]


def as_struct(value: Any, kind: pa.DataType) -> Any:
    if value is None:
        return None
    if pa.types.is_struct(kind):
        return tuple(as_struct(value[field.name], field.type) for field in kind)
    if pa.types.is_map(kind):
        pairs = ((k, as_struct(v, kind.item_type)) for k, v in value)
        return tuple(sorted(pairs, key=repr))
    if pa.types.is_list(kind) or pa.types.is_large_list(kind):
        return [as_struct(item, kind.value_type) for item in value]
    return value


def by_arrow(path: str, version: int | None = None) -> list[Any]:
    return arrow_rows(deltalake.DeltaTable(path, version=version).to_pyarrow_table())


def by_query(path: str) -> list[Any]:
    """Read by delta-rs's query engine, which unlike its Arrow reader knows deletion vectors."""
    query = QueryBuilder().register("t", deltalake.DeltaTable(path))
    return arrow_rows(pa.table(query.execute("SELECT * FROM t").read_all()))
