"""Generated columns: computed where they are left out, checked where they are given."""

from __future__ import annotations

import datetime as dt
import re
from typing import Any

import pytest
from pyspark.sql import SparkSession

from tests.support import log
from tests.support.foreign_table import ForeignTable, field
from tests.support.plans import scanned_files
from tests.support.session_settings import session_settings
from tests.support.table_builder import in_order, rows_of


@pytest.fixture(params=[True, False], ids=["vectors", "rewrite"])
def generated(request: pytest.FixtureRequest, spark: SparkSession, table: str) -> str:
    spark.sql(
        f"CREATE TABLE delta.`{table}` (id INT, s STRUCT<a: INT, b: INT>, "
        "double BIGINT GENERATED ALWAYS AS (ID * 2), "
        "sum INT NOT NULL GENERATED ALWAYS AS (coalesce(s.a + s.b, 0)), "
        "p STRING GENERATED ALWAYS AS (CASE WHEN id > 5 THEN 'high' ELSE 'low' END)) "
        "USING delta PARTITIONED BY (p) "
        f"TBLPROPERTIES ('delta.enableDeletionVectors' = '{str(request.param).lower()}')"
    )
    return table


def row(i: int | None, a: int | None = 1, b: int | None = 2) -> tuple[Any, ...]:
    total = 0 if a is None or b is None else a + b
    high = i is not None and i > 5
    return (i, (a, b), None if i is None else 2 * i, total, "high" if high else "low")


def run(spark: SparkSession, table: str, *statements: str) -> None:
    for statement in statements:
        spark.sql(statement.format(t=f"delta.`{table}`"))


def seed(spark: SparkSession, table: str, *ids: int) -> None:
    rows = ", ".join(f"({i}, named_struct('a', 1, 'b', 2))" for i in ids)
    run(spark, table, f"INSERT INTO {{t}} (id, s) VALUES {rows}")


def contents(spark: SparkSession, table: str) -> list[tuple[Any, ...]]:
    return in_order((i, tuple(s), *rest) for i, s, *rest in rows_of(spark, table))


@pytest.mark.protocol("generated-columns-1")
def test_protocol_and_schema_hold_the_expressions(generated: str) -> None:
    (protocol,) = log.actions(generated, 0, "protocol")
    assert "generatedColumns" in protocol["writerFeatures"]
    assert protocol["minReaderVersion"] in (1, 3)
    held = re.findall(r'generationExpression":"([^"]*)"', log.metadata(generated)["schemaString"])
    # Of the type of their columns, as delta-spark demands.
    assert held[:2] == ["CAST((ID * 2) AS BIGINT)", "coalesce(s.a + s.b, 0)"]


@pytest.mark.protocol("generated-columns-2")
def test_column_that_is_left_out_is_computed(spark: SparkSession, generated: str) -> None:
    seed(spark, generated, 1, 9)
    df = spark.sql("SELECT 7 id, named_struct('a', 3, 'b', 4) s")
    df.write.format("delta").mode("append").save(generated)
    run(spark, generated, "INSERT INTO {t} (s, id) VALUES (named_struct('b', 1, 'a', NULL), NULL)")
    # By position within structs: b of the statement is a of the table.
    expected = [row(1), row(9), row(7, 3, 4), row(None, 1, None)]
    assert contents(spark, generated) == in_order(expected)
    assert {f["partitionValues"]["p"] for f in log.active_files(generated)} == {"high", "low"}


@pytest.mark.protocol("generated-columns-2", "generated-columns-3")
def test_column_that_is_given_is_checked(spark: SparkSession, generated: str) -> None:
    run(spark, generated, "INSERT INTO {t} VALUES (1, named_struct('a', 1, 'b', 2), 2, 3, 'low')")
    for values in (
        "(1, named_struct('a', 1, 'b', 2), 3, 3, 'low')",
        "(1, named_struct('a', 1, 'b', 2), NULL, 3, 'low')",
        "(1, named_struct('a', 1, 'b', 2), 2, 3, 'high')",
    ):
        with pytest.raises(Exception, match=r"DELTAIC_CHECK_VIOLATED.*generated column"):
            run(spark, generated, f"INSERT INTO {{t}} VALUES {values}")
    df = spark.sql("SELECT 1 id, named_struct('a', 1, 'b', 2) s, 4L double, 3 sum, 'low' p")
    with pytest.raises(Exception, match="generated column double"):
        df.write.format("delta").mode("append").save(generated)
    assert contents(spark, generated) == [row(1)]


def test_overwrite_computes_too(spark: SparkSession, generated: str) -> None:
    seed(spark, generated, 1, 9)
    df = spark.sql("SELECT 4 id, named_struct('a', 1, 'b', 2) s")
    df.write.format("delta").mode("overwrite").save(generated)
    assert contents(spark, generated) == [row(4)]
    run(spark, generated, "INSERT OVERWRITE {t} (id, s) SELECT 8, named_struct('a', 1, 'b', 2)")
    assert contents(spark, generated) == [row(8)]


@pytest.mark.protocol("generated-columns-3")
def test_update_computes_what_depends_on_what_it_sets(spark: SparkSession, generated: str) -> None:
    seed(spark, generated, 1, 2, 9)
    run(spark, generated, "UPDATE {t} SET id = id + 5 WHERE id < 3")
    assert contents(spark, generated) == in_order([row(6), row(7), row(9)])
    run(spark, generated, "UPDATE {t} SET s.b = 10")
    expected = [row(6, 1, 10), row(7, 1, 10), row(9, 1, 10)]
    assert contents(spark, generated) == in_order(expected)
    run(spark, generated, "UPDATE {t} SET double = 2 * id, s = NULL WHERE id = 6")
    assert (6, None, 12, 0, "high") in rows_of(spark, generated)
    with pytest.raises(Exception, match="generated column double"):
        run(spark, generated, "UPDATE {t} SET double = 1")


@pytest.mark.parametrize(
    "change",
    [
        "UPDATE {t} SET s.a = 5",
        "MERGE INTO {t} t USING (SELECT 1 k) src ON t.id = k WHEN MATCHED THEN UPDATE SET s.a = 5",
    ],
)
def test_field_of_a_struct_that_is_null_is_assigned_before_what_depends_on_it(
    spark: SparkSession, table: str, change: str
) -> None:
    run(
        spark,
        table,
        "CREATE TABLE {t} (id INT, s STRUCT<a: INT, b: STRUCT<c: INT>>,"
        " g INT GENERATED ALWAYS AS (s.a + 1)) USING delta",
        "INSERT INTO {t} (id, s) VALUES (1, NULL)",
        change,
    )
    assert rows_of(spark, table) == [(1, (5, None), 6)]


def test_merge_computes_in_every_clause(spark: SparkSession, generated: str) -> None:
    seed(spark, generated, 1, 2, 3)
    run(
        spark,
        generated,
        "MERGE INTO {t} t USING (SELECT explode(array(2, 8)) k) src ON t.id = src.k "
        "WHEN MATCHED THEN UPDATE SET id = k + 10 "
        "WHEN NOT MATCHED THEN INSERT (id, s) VALUES (k, named_struct('a', 5, 'b', 5)) "
        "WHEN NOT MATCHED BY SOURCE AND t.id = 3 THEN UPDATE SET s.a = 7",
    )
    expected = [row(1), row(12), row(3, 7, 2), row(8, 5, 5)]
    assert contents(spark, generated) == in_order(expected)
    run(
        spark,
        generated,
        "MERGE INTO {t} t USING (SELECT 20 k) src ON t.id = src.k WHEN NOT MATCHED "
        "THEN INSERT (id, s) VALUES (k, named_struct('a', 5, 'b', 5))",
    )
    assert contents(spark, generated) == in_order([*expected, row(20, 5, 5)])


@pytest.mark.parametrize("vectors", ["true", "false"])
def test_merge_computes_from_fields_that_its_source_lacks(
    spark: SparkSession, table: str, vectors: str
) -> None:
    run(
        spark,
        table,
        "CREATE TABLE {t} (id INT, s STRUCT<a: INT, b: INT, in: STRUCT<c: INT, d: INT>>,"
        " g INT GENERATED ALWAYS AS (s.b + 1), h INT GENERATED ALWAYS AS (s.a + s.in.d),"
        " k BOOLEAN GENERATED ALWAYS AS (s IS NULL)) USING delta TBLPROPERTIES"
        f" ('delta.enableDeletionVectors' = '{vectors}')",
        "INSERT INTO {t} (id, s) SELECT id, IF(id = 3, NULL, named_struct('a', 1, 'b', 2,"
        " 'in', IF(id = 4, NULL, named_struct('c', 3, 'd', 4)))) FROM range(5)",
        "MERGE WITH SCHEMA EVOLUTION INTO {t} t USING (SELECT id, IF(id = 1, NULL,"
        " named_struct('a', 9, 'in', named_struct('c', 8), 'new', 7)) s FROM range(1, 6)) src"
        " ON t.id = src.id WHEN MATCHED THEN UPDATE SET * WHEN NOT MATCHED THEN INSERT *",
    )
    rows = {r.id: r for r in spark.read.format("delta").load(table).collect()}
    assert rows[2].s.asDict(recursive=True) == {"a": 9, "b": 2, "in": {"c": 8, "d": 4}, "new": 7}
    for row in rows.values():
        b = None if row.s is None else row.s.b
        d = None if row.s is None or row.s["in"] is None else row.s["in"].d
        a = None if row.s is None else row.s.a
        assert row.g == (None if b is None else b + 1)
        assert row.h == (None if a is None or d is None else a + d)
        assert row.k == (row.s is None)
    assert (rows[2].g, rows[2].h, len(rows)) == (3, 13, 6)


@pytest.mark.parametrize(
    "expression", ["g + 1", "rand()", "(SELECT 1)", "h + 1", "current_date() + id"]
)
def test_expression_that_is_not_computed_from_the_row_is_refused(
    spark: SparkSession, table: str, expression: str
) -> None:
    with pytest.raises(Exception, match=r"GENERATED|UNSUPPORTED|aggregate|DELTAIC|MISSING"):
        spark.sql(
            f"CREATE TABLE delta.`{table}` (id INT, h INT GENERATED ALWAYS AS (id + 1), "
            f"g INT GENERATED ALWAYS AS ({expression})) USING delta"
        )


def test_rows_of_a_generated_table_make_a_plain_one(
    spark: SparkSession, generated: str, tmp_path: object
) -> None:
    seed(spark, generated, 1)
    spark.read.format("delta").load(generated).write.format("delta").save(f"{tmp_path}/copy")
    assert "generation" not in log.metadata(f"{tmp_path}/copy")["schemaString"]


#: Times of more than a year, around two turns of a year.
_TIMES = [dt.datetime(2022, 12, 1) + dt.timedelta(hours=305 * n) for n in range(40)]
_VALUES = ", ".join(
    f"({n}, TIMESTAMP'{t}', DATE'{t.date()}', 'k{n:03}')" for n, t in enumerate(_TIMES)
)

#: Generation expressions of partition columns, and filters on what they are computed from.
PRUNED: dict[str, tuple[list[str], list[str]]] = {
    "date": (["DATE", "CAST(ts AS DATE)"], ["ts >= '2023-06-01'", "ts = '2022-12-26 10:00:00'"]),
    "year": (["INT", "year(d)"], ["d < '2023-01-01'", "d IN (DATE'2024-03-01', DATE'2023-12-30')"]),
    "month": (
        ["STRING", "date_format(ts, 'yyyy-MM')"],
        ["ts BETWEEN '2023-03-01' AND '2023-03-20'", "ts < '2023-01-01' OR ts > '2024-04-01'"],
    ),
    "hour": (["STRING", "date_format(ts, 'yyyy-MM-dd-HH')"], ["ts > '2024-04-01 10:00:00'"]),
    "trunc": (["DATE", "trunc(d, 'MONTH')"], ["d = DATE'2023-05-05'", "d > DATE'2024-03-01'"]),
    "date_trunc": (
        ["TIMESTAMP", "date_trunc('MONTH', ts)"],
        ["ts >= '2024-03-10'", "ts <= '2023-01-10 12:00:00'"],
    ),
    "substring, column in another case": (
        ["STRING", "substring(K, 1, 3)"],
        ["k = 'k017'", "k > 'k030'", "k IN ('k001', 'k039')", "k <=> 'k020'"],
    ),
    "empty": (["STRING", "substring(k, 3, 1)"], ["k = 'k017'", "k IN ('k001', 'k039')"]),
    "any function": (["INT", "pmod(hash(k), 16)"], ["k = 'k017'", "k IN ('k001', 'k039')"]),
}


@pytest.mark.parametrize("name", PRUNED)
def test_filter_on_the_base_column_leaves_out_partitions(
    spark: SparkSession, table: str, name: str
) -> None:
    (data_type, expression), filters = PRUNED[name]
    create_times(spark, table, {"g": (data_type, expression)})
    assert_pruned_soundly(spark, table, filters)


def create_by_hand(table: str, data_type: str, expression: str) -> None:
    """Create a table of s and, from it, g: Spark creates no CHAR of a STRING expression."""
    g = field("g", "binary" if data_type == "binary" else "string")
    g["metadata"]["delta.generationExpression"] = expression
    if data_type != "binary":
        g["metadata"]["__CHAR_VARCHAR_TYPE_STRING"] = data_type
    protocol = {"minReaderVersion": 1, "minWriterVersion": 4}
    ForeignTable(table, field("s", "string"), g, partition_by=["g"], protocol=protocol)


@pytest.mark.parametrize(
    ("data_type", "expression", "stored"),
    [
        ("char(5)", "substring(s, 1, 3)", {"     ", "ab   ", "abc  ", None}),
        ("varchar(3)", "substring(s, 1, 4)", {"ab", "abc", None}),
        ("binary", "CAST(s AS BINARY)", {"ab", "abc", "abc ", None}),
    ],
)
def test_image_that_is_stored_as_something_else_loses_no_row(
    spark: SparkSession, table: str, data_type: str, expression: str, stored: set[str | None]
) -> None:
    create_by_hand(table, data_type, expression)
    strings = ["", "ab", "abc", "abc "]
    spark.sql(f"INSERT INTO delta.`{table}` (s) VALUES ('abc'), ('abc '), (''), ('ab'), (NULL)")
    assert {add["partitionValues"]["g"] for add in log.actions(table, 1, "add")} == stored
    df = spark.read.format("delta").load(table)
    for n, text in enumerate(strings):
        for operator, expected in {
            "=": strings[n : n + 1],
            "<=>": strings[n : n + 1],
            "<=": strings[: n + 1],
            ">=": strings[n:],
        }.items():
            rows = df.where(f"s {operator} '{text}'").select("s").collect()
            assert sorted(r.s for r in rows) == expected, (text, operator)
    assert df.where("s IS NULL").count() == 1


def test_computed_string_is_checked_like_a_given_one(spark: SparkSession, table: str) -> None:
    create_by_hand(table, "varchar(3)", "substring(s, 1, 4)")
    with pytest.raises(Exception, match="EXCEED_LIMIT_LENGTH"):
        spark.sql(f"INSERT INTO delta.`{table}` (s) VALUES ('abcd')")
    assert log.newest(table) == 0


def test_year_month_day_and_hour_prune_together(spark: SparkSession, table: str) -> None:
    hands = {"y": "year(ts)", "m": "month(ts)", "dd": "day(ts)"}
    create_times(spark, table, {name: ("INT", sql) for name, sql in hands.items()})
    filters = ["ts >= '2023-06-15'", "ts < '2023-02-03 10:00:00'", "ts = '2022-12-26 10:00:00'"]
    assert_pruned_soundly(spark, table, filters)


def test_hands_of_one_clock_prune_within_a_year(spark: SparkSession, table: str) -> None:
    create_times(spark, table, {"y": ("BIGINT", "year(d)"), "m": ("INT", "month(d)")})
    df = spark.read.format("delta").load(table).where("d >= DATE'2024-03-01'")
    in_reach = {
        f["path"]
        for f in log.active_files(table)
        if f["partitionValues"]["y"] == "2024" and f["partitionValues"]["m"] in ("3", "4")
    }
    expected = [n for n, t in enumerate(_TIMES) if t.date() >= dt.date(2024, 3, 1)]
    assert sorted(r.n for r in df.select("n").collect()) == expected
    assert len(scanned_files(df)) == len(in_reach)


def test_month_as_text_does_not_order_as_months_do(spark: SparkSession, table: str) -> None:
    create_times(spark, table, {"y": ("INT", "year(ts)"), "m": ("STRING", "month(ts)")})
    assert_pruned_soundly(spark, table, ["ts >= '2023-09-15'", "ts < '2023-11-02'"])


@pytest.mark.parametrize(
    ("year", "month"),
    [("year(trunc(d, 'week'))", "month(d)"), ("year(d)", "month(trunc(d, 'week'))")],
)
def test_hands_of_different_times_are_no_clock(
    spark: SparkSession, table: str, year: str, month: str
) -> None:
    # The week of 1 January 2023 begins in December 2022.
    create_times(spark, table, {"y": ("INT", year), "m": ("INT", month)})
    spark.sql(f"INSERT INTO delta.`{table}` (n, d) VALUES (100, DATE'2023-01-01')")
    after = [n for n, t in enumerate(_TIMES) if t.date() >= dt.date(2022, 12, 20)]
    before = [n for n, t in enumerate(_TIMES) if t.date() <= dt.date(2023, 1, 10)]
    assert found(spark, table, "d >= DATE'2022-12-20'") == [*after, 100]
    assert found(spark, table, "d <= DATE'2023-01-10'") == [*before, 100]


#: Images that depend on the zone of the session, and rows that must be found in any other.
ZONED: dict[str, tuple[str, str, str, list[int]]] = {
    # 00:13 in UTC, which is still the day before in Los Angeles.
    "from_unixtime": ("STRING", "from_unixtime(n * 20000L, 'yyyy-MM-dd')", "n = 13", [13]),
    "several": ("STRING", "from_unixtime(n * 20000L, 'yyyy-MM-dd')", "n IN (13, 26)", [13, 26]),
    "unix_timestamp": (
        "BIGINT",
        "unix_timestamp(concat('20', substring(k, 3, 2), '-01-01'), 'yyyy-MM-dd')",
        "k = 'k017'",
        [17],
    ),
    "absent": (
        "DATE",
        "CAST(coalesce(ts, TIMESTAMP'2020-01-01 00:00:00') AS DATE)",
        "ts IS NULL",
        [-1],
    ),
}


@pytest.mark.parametrize("name", ZONED)
@pytest.mark.parametrize("reader", ["UTC", "America/Los_Angeles", "Pacific/Kiritimati"])
@pytest.mark.parametrize("writer", ["UTC", "America/Los_Angeles"])
def test_image_that_reads_the_zone_loses_no_row_in_another(
    spark: SparkSession, table: str, name: str, writer: str, reader: str
) -> None:
    data_type, expression, condition, expected = ZONED[name]
    with session_settings(spark, {"spark.sql.session.timeZone": writer}):
        create_times(spark, table, {"g": (data_type, expression)})
    with session_settings(spark, {"spark.sql.session.timeZone": reader}):
        assert found(spark, table, condition) == expected


@pytest.mark.parametrize(
    "partitions",
    [
        {"g": ("DATE", "CAST(ts AS DATE)")},
        {"g": ("TIMESTAMP", "date_trunc('MONTH', ts)")},
        {"y": ("INT", "year(ts)"), "m": ("INT", "month(ts)")},
    ],
    ids=["date", "trunc", "clock"],
)
def test_largest_timestamp_is_a_bound_that_prunes_nothing(
    spark: SparkSession, table: str, partitions: dict[str, tuple[str, str]]
) -> None:
    create_times(spark, table, partitions)
    largest = "timestamp_micros(9223372036854775807)"
    everything = list(range(len(_TIMES)))
    assert found(spark, table, f"ts <= {largest}") == everything
    assert found(spark, table, f"ts < {largest} AND n < 3") == [0, 1, 2]
    assert found(spark, table, f"ts = {largest}") == []


DIALECTS = {
    "size of null": ("ARRAY<INT>", "INT", "size(base)", "NULL", "base IS NULL"),
    "text as a number": ("STRING", "STRING", "CAST(base + 1 AS STRING)", "'1'", "base = '1'"),
    "no such element": ("INT", "INT", "element_at(array(1, 2), base)", "5", "base IN (5, 1)"),
}


@pytest.mark.parametrize("name", DIALECTS)
@pytest.mark.parametrize("writer", ["true", "false"])
@pytest.mark.parametrize("reader", ["true", "false"])
def test_image_that_the_dialect_changes_loses_no_row_in_another(
    spark: SparkSession, table: str, name: str, writer: str, reader: str
) -> None:
    base, data_type, expression, value, condition = DIALECTS[name]
    run(
        spark,
        table,
        f"CREATE TABLE {{t}} (n INT, base {base}, g {data_type} GENERATED ALWAYS AS ({expression}))"
        " USING delta PARTITIONED BY (g)",
    )
    with session_settings(spark, {"spark.sql.ansi.enabled": writer}):
        statement = f"INSERT INTO {{t}} (n, base) VALUES (1, {value})"
        if name == "no such element" and writer == "true":
            with pytest.raises(Exception, match="INVALID_ARRAY_INDEX"):
                run(spark, table, statement)
            return
        run(spark, table, statement)
    with session_settings(spark, {"spark.sql.ansi.enabled": reader}):
        assert found(spark, table, condition) == [1]


def found(spark: SparkSession, table: str, condition: str) -> list[int]:
    df = spark.read.format("delta").load(table).where(condition)
    return sorted(r.n for r in df.select("n").collect())


def create_times(spark: SparkSession, table: str, partitions: dict[str, tuple[str, str]]) -> None:
    columns = ", ".join(
        f"{name} {data_type} GENERATED ALWAYS AS ({sql})"
        for name, (data_type, sql) in partitions.items()
    )
    spark.sql(
        f"CREATE TABLE delta.`{table}` (n INT, ts TIMESTAMP, d DATE, k STRING, {columns}) "
        f"USING delta PARTITIONED BY ({', '.join(partitions)}) "
        # Without statistics nothing but the partition values can leave out a file.
        "TBLPROPERTIES ('delta.dataSkippingNumIndexedCols' = '0')"
    )
    spark.sql(f"INSERT INTO delta.`{table}` (n, ts, d, k) VALUES {_VALUES}, (-1, NULL, NULL, NULL)")


def assert_pruned_soundly(spark: SparkSession, table: str, filters: list[str]) -> None:
    files = len(log.active_files(table))
    rows = f"VALUES {_VALUES}, (-1, NULL, NULL, NULL) r(n, ts, d, k)"
    for condition in filters:
        for zone in ("Pacific/Kiritimati", "America/Los_Angeles"):
            # A session in another zone must find the rows that one in UTC has written.
            expected = brute_force(spark, rows, condition, zone)
            with session_settings(spark, {"spark.sql.session.timeZone": zone}):
                df = spark.read.format("delta").load(table).where(condition)
                assert sorted(r.n for r in df.select("n").collect()) == expected
                assert len(scanned_files(df)) < files, (condition, zone)


def brute_force(spark: SparkSession, rows: str, condition: str, zone: str) -> list[int]:
    with session_settings(spark, {"spark.sql.session.timeZone": "UTC"}):
        df = spark.sql(f"SELECT * FROM {rows}").localCheckpoint()
    with session_settings(spark, {"spark.sql.session.timeZone": zone}):
        return sorted(r.n for r in df.where(condition).collect())
