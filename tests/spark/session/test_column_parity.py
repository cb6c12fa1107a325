"""What both languages implement about columns agrees (see `test_parity`).

============================  ==============================  ==================================
Python (`deltaic.protocol`)   Scala (`io.deltaic.spark`)      fact
============================  ==============================  ==================================
schema                        schema.TableSchema,             schema strings; the kinds of values
                              SchemaChecks                    in column metadata
columns.column_mapping,       schema.ColumnMapping,           whether columns have physical names,
file_columns                  PhysicalSchema                  and which
columns.column_lists,         write.files.StatisticsColumns,  columns with statistics, and with
schema.has_bounds             FileStatistics                  bounds
columns.clustering            schema.ClusteringColumns        clustering columns in the domain
columns.type_widening,        schema.TypeChange,              ``type-changes.json``; changes that
iceberg_compat                write.SchemaEvolution           Iceberg reads, too
columns.schema_evolution      write.SchemaEvolution           columns that a write adds or widens
columns.identity              schema.IdentityColumn           high-water marks, next values
columns.char_varchar          schema.CharVarchar              types that the log has as strings
============================  ==============================  ==================================
"""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any
from uuid import uuid4

import pytest
from hypothesis import given
from hypothesis import strategies as st

from deltaic.protocol.actions import DomainMetadata, Metadata, Protocol
from deltaic.protocol.columns import clustering, column_lists
from deltaic.protocol.columns.char_varchar import CHAR_VARCHAR_TYPE, CHAR_VARCHAR_TYPE_KEY
from deltaic.protocol.columns.column_mapping import MODE, has_physical_names
from deltaic.protocol.columns.file_columns import column_paths, physical_partition_columns
from deltaic.protocol.columns.identity import START, STEP, high_water_mark_at, with_high_water_marks
from deltaic.protocol.columns.identity_high_water_marks import HIGH_WATER_MARK
from deltaic.protocol.columns.schema_edits import quoted_path
from deltaic.protocol.columns.schema_evolution import SchemaEvolution
from deltaic.protocol.columns.type_widening import (
    TYPE_CHANGES,
    is_enabled,
    is_stored_alike,
    widens,
    widens_in_iceberg,
)
from deltaic.protocol.schema import (
    VOID,
    DataType,
    Field,
    PrimitiveType,
    StructType,
    has_bounds,
    leaf_types,
    map_fields,
    parse_schema,
    write_schema,
)
from tests.support.cases import drawn_cases
from tests.support.column_strategies import (
    mapped,
    names,
    primitive_names,
    primitives,
    schemas,
    structs_of,
    types,
)
from tests.support.scala_objects import REFUSED, ScalaObjects, outcome

if TYPE_CHECKING:
    from pathlib import Path

    from pyspark.sql import SparkSession

few_cases = drawn_cases(30, thorough=300)

MAPPING = Protocol(2, 5)
PLAIN = Protocol(1, 2)
CLUSTERED = Protocol(3, 7, frozenset({"columnMapping"}), frozenset({"columnMapping", "clustering"}))


@pytest.fixture(scope="module")
def scala(spark: SparkSession) -> ScalaObjects:
    return ScalaObjects(spark)


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("parity")


def leaves(struct: StructType) -> list[tuple[str, ...]]:
    """Return the paths of the columns that are no structs."""
    return [
        (field.name, *below)
        for field in struct.fields
        for below in (leaves(field.type) if isinstance(field.type, StructType) else [()])
    ]


# Schemas


any_value = st.one_of(st.integers(-5, 5), st.booleans(), names, st.just({"a": 1}), st.just([1, 2]))
entries = st.dictionaries(
    st.sampled_from(
        [
            *("comment", "CURRENT_DEFAULT", "EXISTS_DEFAULT", "delta.invariants"),
            *("delta.generationExpression", "delta.identity.start"),
            *("delta.identity.allowExplicitInsert", "delta.columnMapping.id"),
            "delta.columnMapping.physicalName",
        ]
    ),
    any_value,
    max_size=2,
)


@few_cases
@given(schema=schemas, metadata=entries)
def test_schema_strings(scala: ScalaObjects, schema: StructType, metadata: dict[str, Any]) -> None:
    first, *others = schema.fields
    columns = StructType((replace(first, metadata=metadata), *others))
    text = write_schema(columns)
    definition = scala.metadata(Metadata("t", text))
    stored = outcome(scala["spark.schema.TableSchema"].of, "t", scala.protocol(PLAIN), definition)
    parsed = outcome(parse_schema, text, "t")
    assert (parsed is REFUSED) == (stored is REFUSED)
    if parsed is REFUSED:
        return
    read = scala.columns(columns).json()
    assert parsed == columns == parse_schema(read, "t")
    assert parse_schema(write_schema(columns), "t") == columns


modes = st.sampled_from(["none", "name", "id", "NAME", "Id", " name", "name ", "", "both", "ſ"])


@pytest.mark.protocol("reader-column-mapping-1", "writer-column-mapping-7")
@pytest.mark.protocol("writer-column-mapping-8")
@few_cases
@given(schema=schemas, mode=st.none() | modes, protocol=st.sampled_from([MAPPING, PLAIN]))
def test_physical_names(
    scala: ScalaObjects, schema: StructType, mode: str | None, protocol: Protocol
) -> None:
    columns = mapped(without_void(schema))
    partitions = tuple(f.name for f in columns.fields if isinstance(f.type, PrimitiveType))
    configuration = {} if mode is None else {MODE: mode}
    metadata = Metadata("t", write_schema(columns), partitions, configuration)
    action, definition = scala.protocol(protocol), scala.metadata(metadata)
    stored = outcome(scala["spark.schema.TableSchema"].of, "t", action, definition)
    if stored is REFUSED:
        assert has_physical_names(protocol, metadata)
        assert mode is not None and mode.lower() not in ("none", "name", "id")
        return
    physical = [stored.logName(name) for name in partitions]
    assert list(physical_partition_columns(protocol, metadata)) == physical
    is_mapped = stored.mapping().toString() != "NoMapping"
    found = statistics_paths(
        scala, columns, {column_lists.NUM_INDEXED_COLUMNS: "-1"}, mapped=is_mapped
    )
    assert has_physical_names(protocol, metadata) == is_mapped
    known = column_paths(protocol, metadata)
    assert found == [path for path, has_fields in known.items() if not has_fields]


# Statistics


def statistics_paths(
    scala: ScalaObjects, columns: StructType, configuration: dict[str, str], *, mapped: bool = False
) -> list[tuple[str, ...]]:
    """Return the columns of which a writer collects statistics, by their names in files."""
    nothing, empty = scala.seq_of([]), scala.map_of({})
    table = scala["spark.write.files.WrittenTable"].apply(
        "/t",
        scala.columns(columns),
        nothing,
        scala.map_of(configuration),
        mapped,
        False,
        False,
        nothing,
        empty,
    )
    spec = scala["spark.write.files.DataWriteSpec"].forTable(
        scala.session, table, empty, nothing, nothing, 0
    )
    found = spec.statistics().leaves()
    return [tuple(scala.value(found.apply(i).path())) for i in range(found.size())]


@st.composite
def column_lists_of(draw: st.DrawFn, schema: StructType) -> str:
    """Return a list of some columns of a schema, and of others, as users write them."""
    paths = [path[: draw(st.integers(1, len(path)))] for path in leaves(schema)]
    chosen = draw(st.lists(st.sampled_from(paths) | st.tuples(names), max_size=3))
    styles: list[Callable[[Sequence[str]], str]] = [
        quoted_path,
        lambda path: quoted_path(path).swapcase(),
        lambda path: f" {quoted_path(path)} ",
        ".".join,
    ]
    return ",".join(draw(st.sampled_from(styles))(path) for path in chosen)


numbers = st.sampled_from(["-1", "0", "1", "2", "32", "-2", " 1", "+1", "x", "٣", "9999999999", ""])


@few_cases
@given(schema=schemas, data=st.data())
def test_columns_with_statistics(
    scala: ScalaObjects, schema: StructType, data: st.DataObject
) -> None:
    stored = without_void(schema)
    configuration = data.draw(
        st.one_of(
            st.just({}),
            numbers.map(lambda n: {column_lists.NUM_INDEXED_COLUMNS: n}),
            column_lists_of(stored).map(lambda names: {column_lists.STATS_COLUMNS: names}),
        )
    )
    found = outcome(statistics_paths, scala, stored, configuration)
    paths = leaves(stored)
    collected = outcome(
        lambda: [p for p in paths if column_lists.has_statistics("t", stored, p, configuration)]
    )
    checked = outcome(column_lists.check_statistics_columns, "t", stored, (), configuration)
    if found is REFUSED:
        assert REFUSED in (collected, checked)
    elif checked is not REFUSED or column_lists.STATS_COLUMNS not in configuration:
        assert collected == found


def without_void(schema: StructType) -> StructType:
    """Return the schema with strings instead of columns that files do not store."""

    def stored(field: Field) -> Field:
        is_void = VOID in leaf_types(field.type)
        return replace(field, type=PrimitiveType("string")) if is_void else field

    return map_fields(schema, stored)


@few_cases
@given(name=primitive_names)
def test_types_with_bounds(scala: ScalaObjects, name: str) -> None:
    found = scala["spark.write.files.FileStatistics"].hasBounds(scala.data_type(name))
    assert found == has_bounds(PrimitiveType(name))


# Clustering


listed = st.one_of(
    st.lists(st.one_of(names, st.lists(names, max_size=2))),
    st.lists(st.one_of(names, st.integers(0, 9), st.none(), st.lists(st.integers(), max_size=2))),
    st.sampled_from([None, "a", 5, True, {"a": "b"}, {"a": ["b"]}]),
)


@few_cases
@given(columns=listed, damage=st.sampled_from(["", "", "", "{", "["]))
def test_clustering_columns_of_a_domain(scala: ScalaObjects, columns: Any, damage: str) -> None:
    text = damage + json.dumps({"clusteringColumns": columns, "domainName": "delta.clustering"})
    found = scala.value(scala["spark.schema.ClusteringColumns"].physical(text))
    # A malformed domain is an error for commands, and no clustering for reads.
    expected = outcome(clustering.physical_paths, "t", text)
    assert found == ([] if expected is REFUSED else expected)


@few_cases
@given(
    schema=schemas,
    mode=st.sampled_from(["none", "name", "id"]),
    protocol=st.sampled_from([CLUSTERED, MAPPING, PLAIN]),
    data=st.data(),
)
def test_clustering_columns_by_logical_names(
    scala: ScalaObjects,
    folder: Path,
    schema: StructType,
    mode: str,
    protocol: Protocol,
    data: st.DataObject,
) -> None:
    columns = mapped(schema)
    metadata = Metadata("t", write_schema(columns), (), {MODE: mode})
    known = column_paths(protocol, metadata)
    paths = [path for path, has_fields in known.items() if not has_fields]
    chosen = data.draw(st.lists(st.sampled_from(paths), max_size=3))
    domain = DomainMetadata(
        clustering.DOMAIN, json.dumps({"clusteringColumns": list(map(list, chosen))})
    )
    snapshot = scala.snapshot(folder / uuid4().hex, protocol, metadata, domain)
    stored = scala["spark.schema.TableSchema"].of(snapshot)
    found = scala.value(scala["spark.schema.ClusteringColumns"].logical(snapshot, stored))
    domains = {domain.domain: domain.configuration}
    expected = clustering.clustering_columns("t", protocol, metadata, domains)
    assert found == list(map(list, expected))


# Types


spelled_types = primitive_names | st.sampled_from(
    [
        *("decimal", "decimal( 5 , 2 )", "decimal(39,2)", "decimal(5,6)", "decimal(5,-2)"),
        *("decimal(0,0)", "int", "bigint", "varchar(5)", "unheard_of", "Integer"),
    ]
)
some_types = st.sampled_from(["byte", "short", "integer", "long", "float", "double", "date"])


@few_cases
@given(
    pairs=st.lists(st.tuples(some_types | spelled_types, spelled_types), min_size=5, max_size=10)
)
def test_type_changes(scala: ScalaObjects, pairs: list[tuple[str, str]]) -> None:
    change = scala.java("io.deltaic.spark.schema.TypeChange")
    for older, newer in pairs:
        expected = widens(PrimitiveType(older), PrimitiveType(newer))
        assert change(older, newer, scala.none).isSupported() == expected, (older, newer)


@few_cases
@given(pairs=st.lists(st.tuples(primitives, primitives), min_size=5, max_size=10))
def test_types_that_files_store_alike_or_iceberg_widens(
    scala: ScalaObjects, pairs: list[tuple[PrimitiveType, PrimitiveType]]
) -> None:
    for older, newer in pairs:
        before, after = scala.data_type(older.name), scala.data_type(newer.name)
        alike = scala["spark.schema.TypeChange"].isStoredAlike(before, after)
        assert is_stored_alike(older, newer) == alike
        in_iceberg = scala["spark.write.SchemaEvolution"].isWiderInIceberg(before, after)
        assert (older != newer and widens_in_iceberg(older, newer)) == in_iceberg


lengths = st.builds("{}({})".format, st.sampled_from(["char", "varchar"]), st.integers(1, 300))


@few_cases
@given(name=names, declared=lengths)
def test_types_with_a_length(scala: ScalaObjects, name: str, declared: str) -> None:
    columns = scala.columns(StructType((Field(name, PrimitiveType(declared)),)))
    stored = parse_schema(scala["spark.schema.CharVarchar"].stored(columns).json(), "t")
    (column,) = stored.fields
    assert column.type == PrimitiveType("string")
    assert column.metadata == {CHAR_VARCHAR_TYPE_KEY: declared}
    assert CHAR_VARCHAR_TYPE.fullmatch(declared)


# Schema evolution


@pytest.fixture(scope="module", params=["true", "false"])
def widening(request: pytest.FixtureRequest, scala: ScalaObjects, folder: Path) -> tuple[bool, Any]:
    """Whether a table allows type widening, and Scala's rules for the table."""
    wide = frozenset({"typeWidening"})
    metadata = Metadata(
        "t", write_schema(StructType()), (), {"delta.enableTypeWidening": request.param}
    )
    protocol = Protocol(3, 7, wide, wide)
    path = folder / f"widening-{request.param}"
    snapshot = scala.snapshot(path, protocol, metadata)
    version = scala["spark.catalog.TableVersion"].timeTravel(scala.log(path), snapshot)
    table = scala.java("io.deltaic.spark.catalog.DeltaicTable")(
        scala.session, version, *[scala.none] * 4
    )
    takes = scala["spark.catalog.target.AutomaticWidening"].of(table)
    return is_enabled(protocol, metadata), takes


@st.composite
def changed(draw: st.DrawFn, schema: StructType) -> StructType:
    """Return the columns of rows for a table: with other cases, types and columns."""

    def change(field: Field) -> Field:
        name = draw(st.sampled_from([field.name, field.name.swapcase()]))
        other: DataType = draw(st.just(field.type) | primitives)
        return Field(name, other, draw(st.booleans()))

    fields = [*map_fields(schema, change).fields, *draw(structs_of(types, columns=2)).fields]
    kept = draw(st.permutations(fields))[: draw(st.integers(1, len(fields)))]
    return StructType(tuple({f.name: f for f in distinct(kept)}.values()))


def distinct(fields: list[Field]) -> list[Field]:
    """Return the fields whose names differ in more than case from those before."""
    taken = StructType()
    for field in fields:
        if taken.find(field.name) is None:
            taken = StructType((*taken.fields, field))
    return list(taken.fields)


@few_cases
@given(schema=schemas, data=st.data())
def test_columns_after_a_write(
    scala: ScalaObjects, widening: tuple[bool, Any], schema: StructType, data: st.DataObject
) -> None:
    is_widening, takes = widening
    rows = data.draw(changed(schema))
    merge = scala.java("io.deltaic.spark.write.SchemaEvolution")(True, takes)
    sent = merge.evolved(scala.columns(schema), scala.columns(rows))
    written = parse_schema(sent.json(), "t")
    evolution = SchemaEvolution("t", 0, is_widening, lambda path: None)
    after = evolution.evolved(schema, written)

    def without_history(field: Field) -> Field:
        return field.with_entry(TYPE_CHANGES, None)

    assert map_fields(after, without_history) == written


# Identity columns


longs = st.integers(-(2**63), 2**63 - 1) | st.integers(-100, 100)


@few_cases
@given(
    start=longs, step=longs.filter(bool), mark=st.none() | longs, values=st.lists(longs, max_size=3)
)
def test_high_water_marks(
    scala: ScalaObjects, start: int, step: int, mark: int | None, values: list[int]
) -> None:
    marks = {} if mark is None else {HIGH_WATER_MARK: mark}
    field = Field("id", PrimitiveType("long"), True, {START: start, STEP: step, **marks})
    schema = StructType((field,))
    column = scala["spark.schema.IdentityColumn"].of(scala.columns(schema).apply(0)).get()
    for value in values:
        after = with_high_water_marks(Metadata("t", write_schema(schema)), {"id": value})
        (now,) = parse_schema(after.schema_string, "t").fields
        beyond = column.isBeyond(value, column.highWaterMark())
        assert (now.metadata[HIGH_WATER_MARK] != mark) == beyond


@few_cases
@given(start=longs, step=longs.filter(bool), value=longs)
def test_value_after_the_high_water_mark(
    scala: ScalaObjects, start: int, step: int, value: int
) -> None:
    field = Field("id", PrimitiveType("long"), True, {START: start, STEP: step})
    mark = high_water_mark_at(field, value)
    schema = StructType((field.with_entry(HIGH_WATER_MARK, mark),))
    column = scala["spark.schema.IdentityColumn"].of(scala.columns(schema).apply(0)).get()
    found = outcome(column.next, "t")
    expected = start if mark is None else mark + step
    if -(2**63) <= expected < 2**63:
        assert found == expected
    else:
        assert found is REFUSED
