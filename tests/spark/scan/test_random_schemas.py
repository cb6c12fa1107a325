"""Random nested schemas, and files that have some of their columns: plain Python says what is seen.

A table's columns are drawn as a tree. Each file draws its own: of every struct some fields, in some
order, under the names that the mode of column mapping gives them, among others that the table does
not know.
"""

from __future__ import annotations

import itertools
import random
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.support.cases import drawn_cases
from tests.support.foreign_table import MAPPED, ForeignTable, array, map_of, mapped, struct
from tests.support.session_settings import session_settings
from tests.support.table_builder import assert_same_rows

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

_numbers = itertools.count()

PRIMITIVES: dict[str, tuple[pa.DataType, list[Any]]] = {
    "integer": (pa.int32(), [0, -7, 2147483647]),
    "string": (pa.string(), ["", "ä", "text"]),
    "double": (pa.float64(), [0.5, -1e300]),
    "boolean": (pa.bool_(), [True, False]),
}


@dataclass(frozen=True)
class Leaf:
    kind: str


@dataclass(frozen=True)
class ArrayOf:
    element: Type


@dataclass(frozen=True)
class MapOf:
    value: Type


@dataclass(frozen=True)
class StructOf:
    fields: tuple[Column, ...]


Type = Leaf | ArrayOf | MapOf | StructOf


@dataclass(frozen=True)
class Column:
    name: str
    number: int
    type: Type


@dataclass
class Draw:
    """Draws a table and its files from one seed; hypothesis picks the seed and the sizes."""

    rng: random.Random
    mode: str
    numbers: Any = field(default_factory=lambda: itertools.count(1))

    def columns(self, count: int, depth: int) -> tuple[Column, ...]:
        return tuple(
            Column(f"{self.rng.choice('abXY')}{i}", next(self.numbers), self.type(depth))
            for i in range(count)
        )

    def type(self, depth: int) -> Type:
        if depth == 0 or self.rng.random() < 0.3:
            return Leaf(self.rng.choice(list(PRIMITIVES)))
        shape = self.rng.choice(["array", "map", "struct", "struct"])
        if shape == "array":
            return ArrayOf(self.type(depth - 1))
        if shape == "map":
            return MapOf(self.type(depth - 1))
        return StructOf(self.columns(self.rng.randint(1, 3), depth - 1))

    def file_columns(self, columns: tuple[Column, ...]) -> tuple[Column, ...]:
        """Some of the columns, and others; at least one, as Parquet wants of a struct."""
        kept = [
            Column(c.name, c.number, self.file_type(c.type))
            for c in columns
            if self.rng.random() < 0.7
        ]
        if not kept or self.rng.random() < 0.3:
            kept.append(Column("unknown", 1000 + next(self.numbers), Leaf("string")))
        self.rng.shuffle(kept)
        return tuple(kept)

    def file(self, table: StructOf) -> StructOf:
        """The schema of a file of the table. By name, it has one of the columns at least."""
        stored = self.file_columns(table.fields)
        if self.mode == "none" and not {c.name for c in stored} & {c.name for c in table.fields}:
            column = self.rng.choice(table.fields)
            stored += (Column(column.name, column.number, self.file_type(column.type)),)
        return StructOf(stored)

    def file_type(self, kind: Type) -> Type:
        match kind:
            case StructOf(columns):
                return StructOf(self.file_columns(columns))
            case ArrayOf(element):
                return ArrayOf(self.file_type(element))
            case MapOf(value):
                return MapOf(self.file_type(value))
        return kind

    def value(self, kind: Type) -> Any:
        """A value as pyarrow takes it; structs are keyed by the columns' numbers."""
        if self.rng.random() < 0.2:
            return None
        match kind:
            case StructOf(columns):
                return {c.number: self.value(c.type) for c in columns}
            case ArrayOf(element):
                return [self.value(element) for _ in range(self.rng.randint(0, 2))]
            case MapOf(value):
                return {
                    k: self.value(value) for k in self.rng.sample("klm", self.rng.randint(0, 2))
                }
        return self.rng.choice(PRIMITIVES[kind.kind][1])

    def name(self, column: Column) -> str:
        """What a file calls a column; another name each time where ids are what counts."""
        if self.mode == "none":
            return self.rng.choice([column.name.upper(), column.name.lower(), column.name])
        return f"col-{column.number}" if self.mode == "name" else f"any {next(self.numbers)}"


def arrow_type(kind: Type, draw: Draw, names: dict[int, str]) -> pa.DataType:
    match kind:
        case StructOf(columns):
            return pa.struct([arrow_field(c, draw, names) for c in columns])
        case ArrayOf(element):
            return pa.list_(arrow_type(element, draw, names))
        case MapOf(value):
            return pa.map_(pa.string(), arrow_type(value, draw, names))
    return PRIMITIVES[kind.kind][0]


def arrow_field(column: Column, draw: Draw, names: dict[int, str]) -> pa.Field:
    names[column.number] = draw.name(column)
    metadata = {b"PARQUET:field_id": str(column.number).encode()} if draw.mode == "id" else None
    return pa.field(names[column.number], arrow_type(column.type, draw, names), metadata=metadata)


def arrow_value(value: Any, kind: Type, names: dict[int, str]) -> Any:
    if value is None:
        return None
    match kind:
        case StructOf(columns):
            return {names[c.number]: arrow_value(value[c.number], c.type, names) for c in columns}
        case ArrayOf(element):
            return [arrow_value(v, element, names) for v in value]
        case MapOf(inner):
            return [(k, arrow_value(v, inner, names)) for k, v in value.items()]
    return value


def seen(value: Any, kind: Type) -> Any:
    """What the table shows of a file's value."""
    if value is None:
        return None
    match kind:
        case StructOf(columns):
            return tuple(seen(value.get(c.number), c.type) for c in columns)
        case ArrayOf(element):
            return [seen(v, element) for v in value]
        case MapOf(inner):
            return {k: seen(v, inner) for k, v in value.items()}
    return value


def logged(kind: Type) -> Any:
    match kind:
        case StructOf(columns):
            return struct(*(mapped(c.name, logged(c.type), c.number) for c in columns))
        case ArrayOf(element):
            return array(logged(element))
        case MapOf(value):
            return map_of("string", logged(value))
    return kind.kind


def paths(kind: Type, value: Any, sql: str) -> list[tuple[str, Any]]:
    """SQL for every field below structs, and what it gives for a value as the table shows it."""
    if not isinstance(kind, StructOf):
        return [(sql, value)]
    below = [
        paths(c.type, None if value is None else value[i], f"{sql}.{c.name}")
        for i, c in enumerate(kind.fields)
    ]
    return [(sql, value), *itertools.chain(*below)]


@pytest.mark.protocol("reader-column-mapping-1", "reader-column-mapping-2")
@pytest.mark.protocol("reader-column-mapping-7")
@drawn_cases(10, thorough=100)
@given(
    seed=st.integers(0, 2**32),
    mode=st.sampled_from(["none", "name", "id"]),
    columns=st.integers(1, 3),
    depth=st.integers(0, 4),
    files=st.integers(1, 2),
    vectorized=st.booleans(),
)
def test_files_with_some_of_the_columns_show_null_for_the_others(
    spark: SparkSession,
    tmp_path_factory: Any,
    seed: int,
    mode: str,
    columns: int,
    depth: int,
    files: int,
    vectorized: bool,
) -> None:
    draw = Draw(random.Random(seed), mode)
    top = StructOf(draw.columns(columns, depth))
    path = str(tmp_path_factory.getbasetemp() / f"random-schema-{next(_numbers)}")
    table = ForeignTable(
        path,
        *logged(top)["fields"],
        protocol=MAPPED,
        properties={"delta.columnMapping.mode": mode},
    )
    expected = []
    for _ in range(files):
        stored = draw.file(top)
        names: dict[int, str] = {}
        schema = pa.schema([arrow_field(c, draw, names) for c in stored.fields])
        rows = [{c.number: draw.value(c.type) for c in stored.fields} for _ in range(4)]
        table.add(pa.Table.from_pylist([arrow_value(r, stored, names) for r in rows], schema))
        expected += [seen(row, top) for row in rows]
    with session_settings(
        spark, {"spark.sql.parquet.enableVectorizedReader": str(vectorized).lower()}
    ):
        df = spark.read.format("delta").load(path)
        assert_same_rows([tuple(row) for row in df.collect()], expected)
        sql = [path for c in top.fields for path, _ in paths(c.type, None, c.name)]
        chosen = draw.rng.choice(sql)
        values = [dict(of_row(top, row))[chosen] for row in expected]
        assert_same_rows(
            [tuple(r) for r in df.selectExpr(chosen).collect()], [(v,) for v in values]
        )
        nulls = sum(v is None for v in values)
        assert df.where(f"{chosen} IS NULL").count() == nulls


def of_row(top: StructOf, row: Any) -> list[tuple[str, Any]]:
    return [p for c, v in zip(top.fields, row, strict=True) for p in paths(c.type, v, c.name)]
