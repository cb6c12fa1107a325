"""Widened columns, variants, void, CHAR, VARCHAR and other types, as delta-spark writes them."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from tests.support.oracle_reads import READ_QUERIES, RUN, assert_same_reads, our_rows
from tests.support.quick import quick_and_thorough
from tests.support.session_settings import session_settings

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from tests.support.spark_process import SparkProcess

#: Older type, wider type, literals of the older and of the wider one.
WIDENINGS: list[tuple[str, str, list[str], list[str]]] = [
    ("TINYINT", "SMALLINT", ["-128Y", "3Y"], ["-32768S", "3S"]),
    ("TINYINT", "INT", ["-128Y", "3Y"], ["2147483647", "3"]),
    ("TINYINT", "BIGINT", ["127Y", "3Y"], ["-9223372036854775808L", "3L"]),
    ("SMALLINT", "BIGINT", ["-32768S", "3S"], ["9223372036854775807L", "3L"]),
    ("INT", "BIGINT", ["2147483647", "-1294967296"], ["3000000000L", "3L"]),
    ("TINYINT", "DOUBLE", ["127Y", "3Y"], ["3.5D", "CAST('NaN' AS DOUBLE)"]),
    ("INT", "DOUBLE", ["2147483647", "3"], ["3.5D", "1E300D"]),
    ("FLOAT", "DOUBLE", ["CAST(0.1 AS FLOAT)", "CAST('Infinity' AS FLOAT)"], ["0.1D", "1E300D"]),
    ("DECIMAL(5, 2)", "DECIMAL(20, 2)", ["999.99BD", "-0.01BD"], ["123456789012345678.25BD"]),
    ("DECIMAL(10, 2)", "DECIMAL(14, 5)", ["99999999.99BD", "3.00BD"], ["3.00001BD"]),
    ("DECIMAL(18, 0)", "DECIMAL(38, 10)", ["999999999999999999BD"], ["0.0000000001BD"]),
    ("TINYINT", "DECIMAL(12, 2)", ["-128Y", "3Y"], ["3.25BD"]),
    ("INT", "DECIMAL(10, 0)", ["2147483647", "3"], ["9999999999BD"]),
    ("INT", "DECIMAL(14, 4)", ["2147483647", "3"], ["3.0001BD"]),
    ("BIGINT", "DECIMAL(20, 0)", ["9223372036854775807L", "3L"], ["99999999999999999999BD"]),
    ("BIGINT", "DECIMAL(24, 4)", ["-9223372036854775808L", "3L"], ["3.0001BD"]),
    (
        "DATE",
        "TIMESTAMP_NTZ",
        ["DATE'2024-02-29'", "DATE'1969-12-31'"],
        ["TIMESTAMP_NTZ'2024-02-29 12:00:00.000001'"],
    ),
]

NESTED = [
    ("s STRUCT<f: INT>", "s.f", "BIGINT", "named_struct('f', {v})"),
    ("l ARRAY<INT>", "l.element", "BIGINT", "array({v}, NULL)"),
    ("mk MAP<INT, INT>", "mk.key", "BIGINT", "map({v}, 1)"),
    ("mv MAP<INT, FLOAT>", "mv.value", "DOUBLE", "map(1, {v})"),
    ("d ARRAY<STRUCT<x: DATE>>", "d.element.x", "TIMESTAMP_NTZ", "array(named_struct('x', {v}))"),
]
NESTED_VALUES = [
    ["7", "7", "7", "CAST(0.5 AS FLOAT)", "DATE'2024-02-29'"],
    ["7000000000L", "7000000000L", "7000000000L", "1E300D", "TIMESTAMP_NTZ'2024-03-01 01:00:00'"],
]

READERS = {
    "default": {},
    "row-based reader": {"spark.sql.parquet.enableVectorizedReader": "false"},
}


@pytest.fixture(scope="module")
def widened(delta_spark: SparkProcess, tmp_path_factory: pytest.TempPathFactory) -> str:
    """A table whose columns were all widened between its two files, three of them partitions."""
    path = str(tmp_path_factory.mktemp("widened") / "table")
    columns = [f"c{i} {older}" for i, (older, *_) in enumerate(WIDENINGS)]
    nested = [column for column, *_ in NESTED]
    partitions = ["pi INT", "pd DATE", "pf FLOAT"]
    changes = [
        *((f"c{i}", wider) for i, (_, wider, *_) in enumerate(WIDENINGS)),
        *((name, wider) for _, name, wider, _ in NESTED),
        ("pi", "DECIMAL(12, 1)"),
        ("pd", "TIMESTAMP_NTZ"),
        ("pf", "DOUBLE"),
    ]
    old_part = ["5", "DATE'2024-02-29'", "CAST(0.1 AS FLOAT)"]
    new_part = ["5.5BD", "TIMESTAMP_NTZ'2024-02-29 00:00:01'", "0.1D"]
    statements = [
        f"CREATE TABLE delta.`{path}` (id INT, {', '.join([*columns, *nested, *partitions])})"
        " USING delta PARTITIONED BY (pi, pd, pf)"
        " TBLPROPERTIES ('delta.enableTypeWidening' = 'true',"
        " 'delta.feature.timestampNtz' = 'supported')",
        insert(path, 0, [older for _, _, older, _ in WIDENINGS], NESTED_VALUES[0], old_part),
        *(
            f"ALTER TABLE delta.`{path}` ALTER COLUMN {name} TYPE {wider}"
            for name, wider in changes
        ),
        insert(path, 10, [newer for *_, newer in WIDENINGS], NESTED_VALUES[1], new_part),
    ]
    delta_spark.run(RUN, statements=statements)
    return path


def insert(
    path: str, first: int, values: list[list[str]], nested: list[str], partition: list[str]
) -> str:
    """Return a statement that writes the values one below the other, nulls where they end."""
    rows = []
    for i in range(3):
        cells = [column[i] if i < len(column) else "NULL" for column in values]
        below = (
            [form.replace("{v}", v) for (*_, form), v in zip(NESTED, nested, strict=True)]
            if i == 0
            else ["NULL"] * len(nested)
        )
        rows.append(f"({', '.join([str(first + i), *cells, *below, *partition])})")
    return f"INSERT INTO delta.`{path}` SELECT /*+ COALESCE(1) */ * FROM VALUES {', '.join(rows)}"


@pytest.mark.thorough
@pytest.mark.parametrize("reader", READERS)
def test_widened_columns_show_old_and_new_files(
    spark: SparkSession, delta_spark: SparkProcess, widened: str, reader: str
) -> None:
    queries = ["SELECT * FROM {t}", "SELECT s.f, mk, d.x, pi, pd, pf FROM {t} WHERE id < 10"]
    with session_settings(spark, READERS[reader]):
        assert_same_reads(spark, delta_spark, widened, queries)
    schema = spark.read.format("delta").load(widened).schema
    assert "typeChanges" not in schema.json()


def widened_conditions() -> list[str]:
    conditions = []
    for i, (older_type, wider, older, newer) in enumerate(WIDENINGS):
        for value in [*older, *newer, f"CAST({newer[0]} AS {wider})"]:
            conditions += [f"c{i} {op} {value}" for op in ("=", "<", ">")]
        conditions += [f"c{i} IS NULL", f"c{i} NOT IN ({', '.join(older)})"]
        conditions.append(f"c{i} <> CAST({older[0]} AS {older_type})")
    conditions += ["c4 NOT IN (2147483647L, 3000000000L)", "c13 < 3.00005BD", "c6 < 3.5D"]
    partitions = ["pi = 5", "pi > 5.2BD", "pd = DATE'2024-02-29'", "pf = 0.1D", "pf < 0.1000001D"]
    return [*conditions, *partitions, "s.f = 7", "s.f > 7", "s.f = 7000000000L"]


def test_filters_on_widened_columns_lose_no_row(spark: SparkSession, widened: str) -> None:
    """Statistics, row groups and dictionaries of old files hold the older type."""
    live = spark.read.format("delta").load(widened)
    rows = spark.createDataFrame(live.collect(), live.schema)
    conditions = widened_conditions()
    rows.createOrReplaceTempView("widened_rows")
    hits = ", ".join(f"collect_list(CASE WHEN {c} THEN id END)" for c in conditions)
    expected = spark.sql(f"SELECT {hits} FROM widened_rows").collect()[0]
    assert sum(map(len, expected)) > len(conditions)
    parts = [
        f"SELECT {n} AS n, id FROM delta.`{widened}` WHERE {c}" for n, c in enumerate(conditions)
    ]
    found: dict[int, list[int]] = {n: [] for n in range(len(conditions))}
    for first in range(0, len(parts), 20):
        for row in spark.sql(" UNION ALL ".join(parts[first : first + 20])).collect():
            found[row["n"]].append(row["id"])
    wrong = {
        condition: found[n]
        for n, condition in enumerate(conditions)
        if sorted(found[n]) != sorted(expected[n])
    }
    assert not wrong


#: Statements that build a table at `{t}`, and queries on it.
TYPES: dict[str, tuple[list[str], list[str]]] = {
    "variants": (
        [
            "CREATE TABLE delta.`{t}` (id INT, v VARIANT, l ARRAY<VARIANT>, s STRUCT<v: VARIANT>,"
            " m MAP<STRING, VARIANT>) USING delta",
            "INSERT INTO delta.`{t}` SELECT id, parse_json(j), array(parse_json(j), NULL),"
            " named_struct('v', parse_json(j)), map('k', parse_json(j)) FROM VALUES"
            ' (1, \'{"a": 1, "b": [1, "x", null]}\'), (2, \'"text"\'), (3, \'12.5\'),'
            " (4, 'null'), (5, NULL) AS t(id, j)",
        ],
        [
            "SELECT id, to_json(v), to_json(l[0]), to_json(s.v), to_json(m['k']) FROM {t}",
            "SELECT id, variant_get(v, '$.a', 'int'), schema_of_variant(s.v) FROM {t}",
            "SELECT id FROM {t} WHERE variant_get(v, '$.b[1]', 'string') = 'x'",
            "SELECT id FROM {t} WHERE v IS NULL",
            "SELECT count(*), count(v) FROM {t}",
        ],
    ),
    "shredded variants": (
        [
            "CREATE TABLE delta.`{t}` (id INT, v VARIANT) USING delta"
            " TBLPROPERTIES ('delta.enableVariantShredding' = 'true')",
            "SET spark.sql.variant.forceShreddingSchemaForTest = a BIGINT, b STRUCT<c: STRING>",
            "INSERT INTO delta.`{t}` SELECT id, parse_json(j) FROM VALUES"
            ' (1, \'{"a": 1, "b": {"c": "x"}, "d": true}\'), (2, \'{"a": "text"}\'),'
            " (3, '[1]'), (4, 'null'), (5, NULL) AS t(id, j)",
            "RESET spark.sql.variant.forceShreddingSchemaForTest",
            "INSERT INTO delta.`{t}` VALUES (6, parse_json('{\"a\": 6}'))",
        ],
        [
            "SELECT id, to_json(v) FROM {t}",
            "SELECT id, try_variant_get(v, '$.a', 'int'), try_variant_get(v, '$.b.c', 'string')"
            " FROM {t}",
            "SELECT id FROM {t} WHERE try_variant_get(v, '$.a', 'int') > 0",
        ],
    ),
    "limited text": (
        [
            "CREATE TABLE delta.`{t}` (id INT, c CHAR(5), v VARCHAR(5), s STRUCT<c: CHAR(3)>,"
            " l ARRAY<CHAR(3)>, p CHAR(4)) USING delta PARTITIONED BY (p)",
            "INSERT INTO delta.`{t}` VALUES (1, 'ab', 'cd ', named_struct('c', 'x'), array('y'),"
            " 'p'), (2, NULL, NULL, NULL, NULL, NULL)",
        ],
        [
            "SELECT * FROM {t}",
            "SELECT id FROM {t} WHERE c = 'ab'",
            "SELECT id FROM {t} WHERE c = 'ab   ' AND p = 'p'",
            "SELECT id FROM {t} WHERE v = 'cd'",
            "SELECT id FROM {t} WHERE c IN ('ab', 'zz')",
            "SELECT id FROM {t} WHERE s.c = 'x'",
            "SELECT id, length(c), length(v), length(s.c), length(l[0]), length(p) FROM {t}",
        ],
    ),
    "wide decimals and local times": (
        [
            "CREATE TABLE delta.`{t}` (id INT, a DECIMAL(38, 38), b DECIMAL(38, 0),"
            " c DECIMAL(1, 1), n TIMESTAMP_NTZ, l ARRAY<TIMESTAMP_NTZ>) USING delta",
            "INSERT INTO delta.`{t}` VALUES (1, 0.12345678901234567890123456789012345678BD,"
            " 99999999999999999999999999999999999999BD, -0.9BD,"
            " TIMESTAMP_NTZ'0001-01-01 00:00:00.000001',"
            " array(TIMESTAMP_NTZ'9999-12-31 23:59:59.999999')),"
            " (2, NULL, -1BD, NULL, TIMESTAMP_NTZ'2024-03-31 02:30:00', NULL)",
        ],
        [
            "SELECT * FROM {t}",
            "SELECT id FROM {t} WHERE a > 0.1BD AND b > 1BD",
            "SELECT id FROM {t} WHERE n < TIMESTAMP_NTZ'1900-01-01 00:00:00'",
            "SELECT id FROM {t} WHERE c = -0.9BD",
        ],
    ),
    **{
        f"{kind} of calendar {mode}": (
            [
                f"SET spark.sql.parquet.outputTimestampType = {kind}",
                f"SET spark.sql.parquet.int96RebaseModeInWrite = {mode}",
                f"SET spark.sql.parquet.datetimeRebaseModeInWrite = {mode}",
                "CREATE TABLE delta.`{t}` USING delta AS SELECT * FROM VALUES"
                " (1, TIMESTAMP'0001-01-03 00:00:00', DATE'0001-01-03'),"
                " (2, TIMESTAMP'1582-10-04 23:59:59.999', DATE'1582-10-04'),"
                " (3, TIMESTAMP'1900-01-01 00:00:00', DATE'1582-10-15'),"
                " (4, TIMESTAMP'2024-02-29 12:34:56.789', NULL) AS t(id, ts, d)",
                "RESET spark.sql.parquet.outputTimestampType",
                "RESET spark.sql.parquet.int96RebaseModeInWrite",
                "RESET spark.sql.parquet.datetimeRebaseModeInWrite",
            ],
            [
                "SELECT id, cast(ts AS STRING), cast(d AS STRING) FROM {t}",
                "SELECT id FROM {t} WHERE ts < TIMESTAMP'1582-10-05 00:00:00'",
                "SELECT id FROM {t} WHERE ts = TIMESTAMP'2024-02-29 12:34:56.789'",
                "SELECT id FROM {t} WHERE d = DATE'1582-10-04'",
            ],
        )
        for kind in ("INT96", "TIMESTAMP_MICROS", "TIMESTAMP_MILLIS")
        for mode in ("LEGACY", "CORRECTED")
    },
}


QUICK = ("limited text", "wide decimals and local times")


@pytest.mark.parametrize("name", quick_and_thorough(TYPES, *QUICK))
def test_types_read_as_delta_spark_reads_them(
    spark: SparkSession, delta_spark: SparkProcess, table: str, name: str
) -> None:
    statements, queries = TYPES[name]
    delta_spark.run(RUN, statements=[s.replace("{t}", table) for s in statements])
    # Interpreted, as the peer runs for the tests, Spark cannot cast fields of shredded variants.
    delta_spark.run(RUN, statements=["SET spark.sql.codegen.factoryMode = FALLBACK"])
    try:
        expected = delta_spark.run(READ_QUERIES, path=table, queries=queries)
    finally:
        delta_spark.run(RUN, statements=["RESET spark.sql.codegen.factoryMode"])
    for settings in READERS.values():
        with session_settings(spark, settings):
            for query, rows in zip(queries, expected, strict=True):
                assert our_rows(spark, table, query) == rows, query


def test_void_columns_are_null_at_any_depth(
    spark: SparkSession, delta_spark: SparkProcess, table: str
) -> None:
    query = "SELECT 1 AS id, named_struct('a', 2, 'n', NULL) AS s, NULL AS v"
    delta_spark.run(RUN, statements=[f"CREATE TABLE delta.`{table}` USING delta AS {query}"])
    df = spark.read.format("delta").load(table)
    assert df.schema.simpleString() == "struct<id:int,s:struct<a:int,n:void>,v:void>"
    expected = ["Row(id=1, s=Row(a=2, n=None), v=None)"]
    for settings in READERS.values():
        with session_settings(spark, settings):
            assert our_rows(spark, table, "SELECT * FROM {t} WHERE s.a = 2") == expected
            assert our_rows(spark, table, "SELECT v FROM {t}") == ["Row(v=None)"]
