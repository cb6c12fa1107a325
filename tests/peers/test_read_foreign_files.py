"""Tables that no Delta engine wrote, by hand from Parquet and JSON: as delta-spark reads them."""

from __future__ import annotations

import datetime as dt
import decimal
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from tests.support import log
from tests.support.foreign_table import (
    MAPPED,
    ForeignTable,
    array,
    field,
    map_of,
    mapped,
    struct,
    with_features,
)
from tests.support.oracle_reads import assert_same_reads, our_rows
from tests.support.session_settings import session_settings
from tests.support.table_builder import in_order, rows_of

if TYPE_CHECKING:
    from collections.abc import Callable

    from pyspark.sql import SparkSession

    from tests.support.spark_process import SparkProcess

BY_ID = {"delta.columnMapping.mode": "id"}
BY_NAME = {"delta.columnMapping.mode": "name"}

ROW_BASED = {"spark.sql.parquet.enableVectorizedReader": "false"}


def with_id(name: str, kind: pa.DataType, number: int) -> pa.Field:
    return pa.field(name, kind, metadata={b"PARQUET:field_id": str(number).encode()})


def one_column(name: str, values: list[Any], kind: pa.DataType) -> pa.Table:
    return pa.table({name: pa.array(values, kind)})


@pytest.mark.protocol("reader-column-mapping-2")
def test_names_may_differ_in_case(
    spark: SparkSession, delta_spark: SparkProcess, table: str
) -> None:
    ours = ForeignTable(
        table,
        field("Id", "integer"),
        field("Nest", struct(field("Inner", "string"))),
        field("Part", "string"),
        partition_by=["Part"],
    )
    nest = pa.array([{"INNER": "x"}, None], pa.struct([("INNER", pa.string())]))
    ours.add(pa.table({"ID": pa.array([1, 2], pa.int32()), "nest": nest}), {"Part": "a"})
    queries = [
        "SELECT * FROM {t}",
        "SELECT id, nest.inner FROM {t} WHERE ID = 1 AND PART = 'a'",
        "SELECT * FROM {t} WHERE nest.INNER = 'x'",
    ]
    assert assert_same_reads(spark, delta_spark, table, queries)[1] == ["Row(id=1, inner='x')"]


@pytest.mark.protocol("consistency-between-table-metadata-and-data-files-3")
@pytest.mark.protocol("note-for-non-change-data-readers-1")
def test_columns_that_a_file_lacks_are_null_at_every_depth(
    spark: SparkSession, delta_spark: SparkProcess, table: str
) -> None:
    inner = struct(field("a", "integer"), field("late", "string"))
    ours = ForeignTable(
        table,
        field("id", "integer"),
        field("s", struct(field("t", inner), field("late", struct(field("x", "integer"))))),
        field("l", array(inner)),
        field("m", map_of("string", array(map_of("string", inner)))),
        field("gone", array(inner)),
        field("only", struct(field("late", "integer"))),
    )
    there = pa.struct([("a", pa.int32()), ("extra", pa.string())])
    nested = pa.list_(pa.map_(pa.string(), there))
    row = {"a": 5, "extra": "unseen"}
    file = {
        "id": pa.array([1, 2], pa.int32()),
        "_change_type": pa.array(["insert", "insert"]),
        "s": pa.array([{"t": row}, None], pa.struct([("t", there)])),
        "l": pa.array([[row, None], []], pa.list_(there)),
        "m": pa.array([[("k", [[("j", row)], None])], None], pa.map_(pa.string(), nested)),
        "only": pa.array([row, None], there),
    }
    ours.add(pa.table(file))
    queries = [
        "SELECT * FROM {t}",
        "SELECT s.t.late, s.late.x, l.late, m['k'][0]['j'].late, gone, only.late FROM {t}",
        "SELECT id FROM {t} WHERE s.t.late IS NULL AND gone IS NULL",
        "SELECT id FROM {t} WHERE only IS NOT NULL",
    ]
    assert_same_reads(spark, delta_spark, table, queries)
    with session_settings(spark, ROW_BASED):
        assert (
            our_rows(spark, table, queries[0])
            == assert_same_reads(spark, delta_spark, table, queries[:1])[0]
        )


def id_columns() -> list[dict[str, Any]]:
    return [
        mapped("id", "integer", 1),
        mapped("s", struct(mapped("a", "integer", 3), mapped("b", "string", 4)), 2),
        mapped("l", array(struct(mapped("x", "integer", 6))), 5),
    ]


@pytest.mark.protocol("reader-column-mapping-3")
@pytest.mark.parametrize("settings", [{}, ROW_BASED], ids=["vectorized", "row-based"])
def test_mode_id_finds_columns_by_id_whatever_their_names(
    spark: SparkSession, table: str, settings: dict[str, str]
) -> None:
    ours = ForeignTable(table, *id_columns(), protocol=MAPPED, properties=BY_ID)
    inner = pa.struct([with_id("col-3", pa.string(), 4), with_id("other", pa.int32(), 3)])
    element = pa.struct([with_id("y", pa.int32(), 6)])
    columns = [
        (with_id("col-2", pa.int32(), 1), [1, 2]),
        (with_id("any", inner, 2), [{"col-3": "b", "other": 10}, None]),
        (with_id("list", pa.list_(element), 5), [[{"y": 7}, None], None]),
        (pa.field("col-1", pa.string()), ["not", "this"]),
    ]
    schema = pa.schema([column for column, _ in columns])
    arrays = [pa.array(values, column.type) for column, values in columns]
    ours.add(pa.Table.from_arrays(arrays, schema=schema))
    with session_settings(spark, settings):
        assert rows_of(spark, table) == in_order([(1, (10, "b"), [(7,), None]), (2, None, None)])
        assert our_rows(spark, table, "SELECT s.b FROM {t} WHERE id = 1") == ["Row(b='b')"]
        assert our_rows(spark, table, "SELECT id FROM {t} WHERE s.a IS NULL") == ["Row(id=2)"]


@pytest.mark.protocol("column-mapping-1")
def test_mapping_has_no_effect_where_the_protocol_lists_it_nowhere(
    spark: SparkSession, table: str
) -> None:
    ours = ForeignTable(table, mapped("id", "integer", 1), properties=BY_NAME)
    ours.add(one_column("id", [1], pa.int32()))
    assert rows_of(spark, table) == [(1,)]


@pytest.mark.protocol("reader-column-mapping-1")
@pytest.mark.parametrize(
    ("columns", "properties", "reason"),
    [
        ([field("id", "integer")], BY_NAME, "column id lacks delta.columnMapping.physicalName"),
        (
            [field("id", "integer", delta__columnMapping__physicalName="p")],
            BY_ID,
            "column id lacks delta.columnMapping.id",
        ),
        (
            [mapped("a", struct(mapped("x", "integer", 1), mapped("y", "integer", 2, "col-1")), 3)],
            BY_NAME,
            "columns x and a.y share delta.columnMapping.physicalName col-1",
        ),
        ([mapped("id", "integer", 1)], {"delta.columnMapping.mode": "both"}, "both"),
    ],
)
def test_damaged_mapping_is_an_error_that_names_the_column(
    spark: SparkSession,
    table: str,
    columns: list[dict[str, Any]],
    properties: dict[str, str],
    reason: str,
) -> None:
    ForeignTable(table, *columns, protocol=MAPPED, properties=properties)
    with pytest.raises(Exception, match=reason):
        spark.read.format("delta").load(table)


@pytest.mark.protocol("table-features-6")
@pytest.mark.parametrize(
    ("feature", "column", "properties"),
    [
        (
            "icebergWriterCompatV1",
            field("id", "integer"),
            {"delta.enableIcebergWriterCompatV1": "true"},
        ),
        ("coordinatedCommits-preview", field("id", "integer"), {}),
    ],
)
def test_writing_is_refused_by_the_name_of_the_feature(
    spark: SparkSession,
    table: str,
    feature: str,
    column: dict[str, Any],
    properties: dict[str, str],
) -> None:
    ForeignTable(table, column, protocol=with_features(feature), properties=properties)
    with pytest.raises(Exception, match=rf"cannot write: {feature}"):
        spark.sql(f"INSERT INTO delta.`{table}` VALUES (NULL)")
    assert rows_of(spark, table) == []


@pytest.mark.protocol("column-mapping-1")
def test_mapping_without_support_is_not_written_either(spark: SparkSession, table: str) -> None:
    ForeignTable(table, mapped("id", "integer", 1), properties=BY_NAME)
    spark.sql(f"INSERT INTO delta.`{table}` VALUES (1)")
    (add,) = log.last_actions(table, "add")
    assert pq.read_schema(log.data_path(table, add)).names == ["id"]
    assert log.statistics(add)["minValues"] == {"id": 1}
    assert rows_of(spark, table) == [(1,)]


def test_type_that_does_not_exist_is_an_error_that_names_it(
    spark: SparkSession, table: str
) -> None:
    ForeignTable(table, field("id", "integer"), field("x", "unheard_of"))
    with pytest.raises(Exception, match=r"schema of table .* is not valid: .*unheard_of"):
        spark.read.format("delta").load(table)


@pytest.mark.parametrize(
    ("change", "column"),
    [
        ({"fromType": "string", "toType": "integer"}, "s.f"),
        ({"fromType": "long", "toType": "double"}, "s.f"),
        ({"fromType": "decimal(10,2)", "toType": "decimal(11,4)"}, "s.f"),
        ({"fromType": "future", "toType": "long", "fieldPath": "element"}, "s.f.element"),
    ],
)
def test_unknown_type_change_is_refused_by_column(
    spark: SparkSession, table: str, change: dict[str, str], column: str
) -> None:
    changed = field("f", "long", delta__typeChanges=[change])
    ForeignTable(table, field("s", struct(changed)), protocol=with_features("typeWidening"))
    with pytest.raises(Exception, match=rf"Column {column} of table .* from type"):
        spark.read.format("delta").load(table)


@pytest.mark.protocol("file-types-data-files-1")
def test_partition_columns_in_files_yield_to_the_log(
    spark: SparkSession, delta_spark: SparkProcess, table: str
) -> None:
    ours = ForeignTable(
        table,
        field("p", "integer"),
        field("id", "integer"),
        field("q", "string"),
        partition_by=["q", "p"],
    )
    rows = pa.table(
        {
            "id": pa.array([1, 2], pa.int32()),
            "p": pa.array([100, 200], pa.int32()),
            "q": pa.array(["in file", None]),
        }
    )
    ours.add(rows, {"p": "7", "q": "in log"})
    ours.add(rows, {"p": None, "q": None})
    queries = [
        "SELECT * FROM {t}",
        "SELECT id FROM {t} WHERE p = 7",
        "SELECT id FROM {t} WHERE p = 100 OR q = 'in file'",
        "SELECT p, q FROM {t} WHERE id = 2",
    ]
    assert assert_same_reads(spark, delta_spark, table, queries)[2] == []


#: Type, and spellings of partition values with what they mean; None stands for a null.
PARTITION_VALUES: dict[str, dict[str | None, Any]] = {
    "string": {"plain": "plain", "a b/c\\d%41+z": "a b/c\\d%41+z", "ä€𝄞": "ä€𝄞", " ": " "},
    "integer": {"-7": -7, "2147483647": 2147483647},
    "byte": {"-128": -128},
    "long": {"9223372036854775807": 9223372036854775807},
    "double": {"1.5": 1.5, "-1.0E-10": -1e-10, "Infinity": float("inf")},
    "float": {"0.5": 0.5},
    "boolean": {"true": True, "false": False},
    "decimal(38,10)": {
        "1.5": decimal.Decimal("1.5000000000"),
        "-9999999999999999999999999999.9999999999": decimal.Decimal(
            "-9999999999999999999999999999.9999999999"
        ),
    },
    "date": {"2024-02-29": dt.date(2024, 2, 29), "0001-01-01": dt.date(1, 1, 1)},
    "timestamp": {
        "2024-02-29 01:02:03": dt.datetime(2024, 2, 29, 1, 2, 3),
        "2024-02-29 01:02:03.000004": dt.datetime(2024, 2, 29, 1, 2, 3, 4),
        "2024-02-29T01:02:03.000004Z": dt.datetime(2024, 2, 29, 1, 2, 3, 4),
        "2024-02-29T01:02:03.5+05:30": dt.datetime(2024, 2, 28, 19, 32, 3, 500000),
    },
    "timestamp_ntz": {
        "2024-02-29 01:02:03": dt.datetime(2024, 2, 29, 1, 2, 3),
        "2024-02-29 01:02:03.000004": dt.datetime(2024, 2, 29, 1, 2, 3, 4),
        "2024-02-29": dt.datetime(2024, 2, 29),
    },
    "binary": {"\u0001\u0002ä": bytearray(b"\x01\x02\xc3\xa4")},
}


@pytest.mark.protocol("file-types-data-files-1")
@pytest.mark.parametrize("mode", ["none", "name"])
def test_partition_values_of_every_type_in_every_spelling(
    spark: SparkSession, delta_spark: SparkProcess, tmp_path: Path, mode: str
) -> None:
    """All types are columns of one table; each file spells one of them and leaves others null."""
    names = {
        kind: f"p {kind}" if mode == "name" else f"p{i}" for i, kind in enumerate(PARTITION_VALUES)
    }
    logged = {k: f"col-{i}" if mode == "name" else names[k] for i, k in enumerate(names)}
    kinds = list(PARTITION_VALUES)
    columns = [
        mapped(names[k], k, i, logged[k]) if mode == "name" else field(names[k], k)
        for i, k in enumerate(kinds)
    ]
    key = mapped("id", "integer", 99) if mode == "name" else field("id", "integer")
    path = str(tmp_path / "table")
    ours = ForeignTable(
        path,
        key,
        *columns,
        partition_by=list(names.values()),
        protocol=with_features("timestampNtz", "columnMapping"),
        properties={"delta.columnMapping.mode": mode},
    )
    expected: list[tuple[Any, ...]] = []
    empty = []
    for kind, spellings in PARTITION_VALUES.items():
        for text, value in [*spellings.items(), (None, None), ("", None)]:
            number = len(expected)
            rows = one_column("col-99" if mode == "name" else "id", [number], pa.int32())
            others = {logged[k]: None for k in kinds if k != kind}
            ours.add(rows, {**others, logged[kind]: text})
            expected.append((number, *(value if k == kind else None for k in kinds)))
            if text == "":
                empty.append(str(number))
    assert rows_of(spark, path) == in_order(expected)
    for i, kind in enumerate(kinds):
        found = our_rows(spark, path, f"SELECT id FROM {{t}} WHERE `{names[kind]}` IS NOT NULL")
        assert found == sorted(f"Row(id={r[0]})" for r in expected if r[i + 1] is not None), kind
    # delta-spark takes an empty string for one where the column's type is string.
    query = f"SELECT * FROM {{t}} WHERE id NOT IN ({', '.join(empty)})"
    assert_same_reads(spark, delta_spark, path, [query])


@pytest.mark.parametrize(
    ("name", "logged"),
    [
        ("plain.parquet", "plain.parquet"),
        ("with space.parquet", "with%20space.parquet"),
        ("p=a%2Fb/file.parquet", "p=a%252Fb/file.parquet"),
        ("ä€𝄞.parquet", "%C3%A4%E2%82%AC%F0%9D%84%9E.parquet"),
        ("ä€𝄞 raw.parquet", "ä€𝄞%20raw.parquet"),
        ("#?&=+,;@!$'()~.parquet", "%23%3F&=+,;@!$'()~.parquet"),
        ("a/b/c/d.parquet", "a/b/c/d.parquet"),
        ("50%.parquet", "50%25.parquet"),
    ],
)
def test_paths_are_urls_below_the_table(
    spark: SparkSession, table: str, name: str, logged: str
) -> None:
    ours = ForeignTable(table, field("id", "integer"))
    ours.add(one_column("id", [1], pa.int32()), name=name, logged_path=logged)
    assert rows_of(spark, table) == [(1,)]


@pytest.mark.parametrize(
    "spell", [Path.as_uri, str, lambda p: f"file:{p}"], ids=["url", "path", "file:"]
)
def test_absolute_paths_lead_out_of_the_table(
    spark: SparkSession, tmp_path: Path, spell: Callable[[Path], str]
) -> None:
    ours = ForeignTable(str(tmp_path / "table"), field("id", "integer"))
    elsewhere = tmp_path / "elsewhere" / "file.parquet"
    ours.add(one_column("id", [1], pa.int32()), name=str(elsewhere), logged_path=spell(elsewhere))
    assert rows_of(spark, str(tmp_path / "table")) == [(1,)]


OLD = [dt.datetime(1, 1, 1), dt.datetime(1582, 10, 4, 12), dt.datetime(1900, 1, 1), None]


@pytest.mark.parametrize("mode", ["CORRECTED", "LEGACY", "EXCEPTION"])
@pytest.mark.parametrize(
    "options",
    [
        {"use_deprecated_int96_timestamps": True},
        {"coerce_timestamps": "ms"},
        {"coerce_timestamps": "us"},
    ],
    ids=["INT96", "millis", "micros"],
)
def test_old_times_follow_the_rebase_mode(
    spark: SparkSession,
    delta_spark: SparkProcess,
    table: str,
    options: dict[str, Any],
    mode: str,
) -> None:
    ours = ForeignTable(table, field("ts", "timestamp"), field("d", "date"))
    times = pa.array(OLD, pa.timestamp("us", "UTC"))
    days = pa.array([t and t.date() for t in OLD], pa.date32())
    ours.add(pa.table({"ts": times, "d": days}), **options)
    ours.add(pa.table({"ts": times[2:], "d": days[2:]}), **options)
    settings = {
        "spark.sql.parquet.int96RebaseModeInRead": mode,
        "spark.sql.parquet.datetimeRebaseModeInRead": mode,
    }
    # A year that the other calendar moves before 1 has no Python value: compare as text.
    query = "SELECT cast(ts AS STRING) ts, cast(d AS STRING) d FROM {t}"
    theirs = delta_spark.run(REBASED, path=table, query=query, settings=settings)
    for reader in ({}, ROW_BASED):
        with session_settings(spark, {**settings, **reader}):
            if theirs is None:
                with pytest.raises(Exception, match="INCONSISTENT_BEHAVIOR_CROSS_VERSION"):
                    our_rows(spark, table, query)
            else:
                assert our_rows(spark, table, query) == theirs


#: Code for the other process: the rows, or None when the session's mode refuses old times.
REBASED = """
for name, value in settings.items():
    spark.conf.set(name, value)
try:
    rows = spark.sql(query.replace("{t}", f"delta.`{path}`")).collect()
    result = sorted(map(repr, rows))
except Exception as e:
    assert "INCONSISTENT_BEHAVIOR_CROSS_VERSION" in str(e), e
    result = None
finally:
    for name in settings:
        spark.conf.unset(name)
"""
