"""Columns take the wider types of their rows, by every writer as in delta-spark."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

import pytest
from pyspark.sql import Row

from deltaic import DeltaTable
from tests.support import log
from tests.support.session_settings import session_settings
from tests.support.table_builder import rows_of

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

    from pyspark.sql import SparkSession

    from tests.support.spark_process import SparkProcess

WIDENING = "TBLPROPERTIES ('delta.enableTypeWidening' = 'true')"
AUTO_MERGE = "spark.deltaic.schema.autoMerge.enabled"
SETTING = "spark.deltaic.typeWidening.allowAutomaticWidening"

COLUMNS = [
    *("TINYINT", "SMALLINT", "INT", "BIGINT", "FLOAT", "DOUBLE"),
    *("DECIMAL(5,2)", "DECIMAL(10,0)", "DECIMAL(20,0)", "DECIMAL(38,30)"),
    *("STRUCT<a: TINYINT>", "MAP<STRING, INT>"),  # delta-spark casts the elements of arrays
]
VALUES = [
    *("TINYINT", "SMALLINT", "INT", "BIGINT", "FLOAT", "DOUBLE", "DECIMAL(3,1)", "DECIMAL(5,2)"),
    *("DECIMAL(10,0)", "DECIMAL(12,2)", "DECIMAL(20,0)", "DECIMAL(22,2)", "DECIMAL(38,30)"),
]


def source(value: str, columns: list[str] = COLUMNS) -> str:
    one = f"CAST(1 AS {value})"
    made = {"STRUCT": "named_struct('a', {})", "MAP": "map('k', {})"}

    def valued(column: str) -> str:
        return made.get(column.split("<")[0], "{}").format(one)

    named = ", ".join(f"{valued(column)} AS c{i}" for i, column in enumerate(columns))
    return f"SELECT 1 AS k, {named}"


def definition(columns: list[str] = COLUMNS) -> str:
    return ", ".join(["k INT", *(f"c{i} {column}" for i, column in enumerate(columns))])


PEER = """
spark.conf.set("spark.databricks.delta.schema.autoMerge.enabled", "true")
result = []
for number, query in enumerate(queries):
    table = f"delta.`{folder}/{number}`"
    spark.sql(f"CREATE TABLE {table} ({columns}) USING delta {widening}")
    spark.sql(f"INSERT INTO {table} {query}")
    result.append(spark.table(table).schema.simpleString())
spark.conf.unset("spark.databricks.delta.schema.autoMerge.enabled")
"""


@pytest.fixture(scope="module")
def expected(delta_spark: SparkProcess, tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    """The schemas after an INSERT of delta-spark, by the type of the values."""
    schemas = delta_spark.run(
        PEER,
        folder=str(tmp_path_factory.mktemp("peer")),
        columns=definition(),
        widening=WIDENING,
        queries=[source(value) for value in VALUES],
    )
    return dict(zip(VALUES, schemas, strict=True))


@pytest.fixture
def evolving(spark: SparkSession) -> Iterator[None]:
    with session_settings(spark, {AUTO_MERGE: "true"}):
        yield


def _merge(spark: SparkSession, name: str, path: str, query: str) -> None:
    spark.sql(
        f"MERGE INTO {name} t USING ({query}) s ON t.k = s.k"
        " WHEN MATCHED THEN UPDATE SET * WHEN NOT MATCHED THEN INSERT *"
    )


def _merge_by_method(spark: SparkSession, name: str, path: str, query: str) -> None:
    merge = (
        DeltaTable.forPath(spark, path).alias("t").merge(spark.sql(query).alias("s"), "t.k = s.k")
    )
    merge.whenNotMatchedInsertAll().execute()


#: Each takes the session, the table's name and path, and the query of the rows.
WRITERS: dict[str, Callable[[SparkSession, str, str, str], object]] = {
    "INSERT": lambda spark, name, path, query: spark.sql(f"INSERT INTO {name} {query}"),
    "INSERT BY NAME": lambda spark, name, path, query: spark.sql(
        f"INSERT INTO {name} BY NAME {query}"
    ),
    "INSERT OVERWRITE": lambda spark, name, path, query: spark.sql(
        f"INSERT OVERWRITE {name} {query}"
    ),
    "MERGE": _merge,
    "DeltaTable.merge": _merge_by_method,
    "append": lambda spark, name, path, query: (
        spark.sql(query).write.format("delta").mode("append").save(path)
    ),
    "overwrite": lambda spark, name, path, query: (
        spark.sql(query).write.format("delta").mode("overwrite").save(path)
    ),
    "saveAsTable": lambda spark, name, path, query: (
        spark.sql(query).write.format("delta").mode("append").saveAsTable(name)
    ),
    "writeTo": lambda spark, name, path, query: spark.sql(query).writeTo(name).append(),
    "insertInto": lambda spark, name, path, query: spark.sql(query).write.insertInto(name),
}


#: All values by two writers; the others go by the same rules.
WRITTEN = [
    (writer, value)
    for writer in WRITERS
    for value in (VALUES if writer in ("INSERT", "MERGE") else ["DOUBLE", "DECIMAL(12,2)"])
]


@pytest.fixture
def create(spark: SparkSession, table: str) -> Iterator[Callable[[str], str]]:
    """Give columns to a table of the catalog, which is gone afterwards; returns its name."""
    name = f"widened_{abs(hash(table))}"

    def created(columns: str) -> str:
        spark.sql(f"CREATE TABLE {name} ({columns}) USING delta LOCATION '{table}' {WIDENING}")
        return name

    yield created
    spark.sql(f"DROP TABLE IF EXISTS {name}")


@pytest.mark.usefixtures("evolving")
@pytest.mark.parametrize(("writer", "value"), WRITTEN)
def test_columns_take_the_types_that_delta_spark_gives_them(
    spark: SparkSession,
    expected: dict[str, str],
    table: str,
    create: Callable[[str], str],
    writer: str,
    value: str,
) -> None:
    name = create(definition())
    WRITERS[writer](spark, name, table, source(value))
    assert spark.table(name).schema.simpleString() == expected[value]
    assert spark.table(name).count() == 1


@pytest.mark.usefixtures("evolving")
def test_rows_of_a_batch_of_a_stream_widen_columns(
    spark: SparkSession, table: str, create: Callable[[str], str], tmp_path: Path
) -> None:
    create("k INT, c0 TINYINT")
    rows = str(tmp_path / "rows")
    spark.sql("SELECT 1 AS k, 2.5D AS c0").write.format("delta").save(rows)
    query = (
        spark.readStream.format("delta")
        .load(rows)
        .writeStream.foreachBatch(
            lambda batch, _: batch.write.format("delta").mode("append").save(table)
        )
        .option("checkpointLocation", str(tmp_path / "checkpoint"))
        .trigger(availableNow=True)
        .start()
    )
    query.awaitTermination()
    assert rows_of(spark, table) == [(1, 2.5)]


@pytest.mark.parametrize(
    ("column", "value", "after", "kept"),
    [
        ("TINYINT", "2.5D", "double", 2.5),
        ("SMALLINT", "1e10D", "double", 1e10),
        ("INT", "12345678901.5BD", "decimal(12,1)", "12345678901.5"),
        ("DATE", "TIMESTAMP_NTZ'2020-01-01 10:00:00'", "timestamp_ntz", "2020-01-01 10:00:00"),
        ("STRUCT<a: TINYINT>", "named_struct('a', 2.5D)", "struct<a:double>", Row(a=2.5)),
        ("ARRAY<TINYINT>", "array(2.5D)", "array<double>", [2.5]),
        ("MAP<TINYINT, TINYINT>", "map(1000, 2.5D)", "map<int,double>", {1000: 2.5}),
    ],
)
def test_merge_with_schema_evolution_keeps_values_whole(
    spark: SparkSession,
    delta_spark: SparkProcess,
    table: str,
    column: str,
    value: str,
    after: str,
    kept: Any,
) -> None:
    name = f"delta.`{table}`"
    spark.sql(f"CREATE TABLE {name} (k INT, v {column}) USING delta {WIDENING}")
    spark.sql(f"INSERT INTO {name} VALUES (2, NULL)")
    merge = (
        f"MERGE WITH SCHEMA EVOLUTION INTO {name} t"
        f" USING (SELECT explode(array(1, 2)) k, {value} v) s ON t.k = s.k"
        " WHEN MATCHED THEN UPDATE SET * WHEN NOT MATCHED THEN INSERT *"
    )
    spark.sql(merge)
    assert spark.table(name).schema["v"].dataType.simpleString() == after
    shown = [row.v for row in spark.table(name).collect()]
    assert [str(v) if isinstance(kept, str) else v for v in shown] == [kept] * 2
    read = "result = [str(r) for r in spark.read.format('delta').load(path).collect()]"
    assert delta_spark.run(read, path=table) == [str(r) for r in spark.table(name).collect()]


@pytest.mark.parametrize(
    ("column", "fitting", "cut", "reported"),
    [
        ("TINYINT", "2.0BD", "2.5BD", ("2.5", "2")),
        ("BIGINT", "2.0D", "2.5D", ("2.5", "2")),
        ("INT", "CAST(2 AS FLOAT)", "CAST(2.5 AS FLOAT)", ("2.5", "2")),
        (
            "DECIMAL(5,2)",
            "CAST(1.23 AS DECIMAL(5,3))",
            "CAST(1.234 AS DECIMAL(5,3))",
            ("1.234", "1.23"),
        ),
        (
            "DATE",
            "TIMESTAMP'2020-01-01'",
            "TIMESTAMP'2020-01-01 10:00:00'",
            ("2020-01-01 10:00:00", "2020-01-01"),
        ),
        (
            "STRUCT<a: TINYINT>",
            "named_struct('a', 2.0BD)",
            "named_struct('a', 2.5BD)",
            ("{2.5}", "{2}"),
        ),
        ("ARRAY<BIGINT>", "array(1D, NULL)", "array(1D, 2.5D)", ("[1.0, 2.5]", "[1, 2]")),
        (
            "MAP<STRING, BIGINT>",
            "map('a', 2D)",
            "map('a', 2D, 'b', 2.5D)",
            ("{a -> 2.0, b -> 2.5}", "{a -> 2, b -> 2}"),
        ),
    ],
)
@pytest.mark.parametrize("statement", ["INSERT", "MERGE"])
def test_value_that_no_wider_type_holds_is_refused_and_not_cut(
    spark: SparkSession,
    table: str,
    column: str,
    fitting: str,
    cut: str,
    reported: tuple[str, str],
    statement: str,
) -> None:
    name = f"delta.`{table}`"
    spark.sql(f"CREATE TABLE {name} (k INT, v {column}) USING delta {WIDENING}")

    def written(value: str) -> None:
        rows = f"SELECT 1 AS k, {value} AS v"
        if statement == "INSERT":
            spark.sql(f"INSERT WITH SCHEMA EVOLUTION INTO {name} {rows}")
        else:
            spark.sql(
                f"MERGE WITH SCHEMA EVOLUTION INTO {name} t USING ({rows}) s ON t.k = s.k"
                " WHEN NOT MATCHED THEN INSERT *"
            )

    value, stored = map(re.escape, reported)
    says = rf": {value} of type [A-Z].* would become {stored}\.\s"
    with pytest.raises(Exception, match=rf"DELTAIC_VALUE_DOES_NOT_FIT.*column v.*{says}"):
        written(cut)
    before = log.newest(table)
    written(fitting)
    assert log.newest(table) == before + 1
    assert spark.table(name).count() == 1


@pytest.mark.parametrize(
    ("mode", "types"),
    [
        ("always", ["double", "bigint", "decimal(10,0)"]),
        ("same_type", ["tinyint", "bigint", "int"]),
        ("never", ["tinyint", "int", "int"]),
    ],
)
@pytest.mark.parametrize("prefix", ["spark.deltaic.", "spark.databricks.delta."])
def test_session_says_which_columns_are_widened(
    spark: SparkSession, table: str, mode: str, types: list[str], prefix: str
) -> None:
    name = f"delta.`{table}`"
    spark.sql(f"CREATE TABLE {name} (a TINYINT, b INT, c INT) USING delta {WIDENING}")
    with session_settings(spark, {prefix + SETTING.removeprefix("spark.deltaic."): mode}):
        spark.sql(
            f"INSERT WITH SCHEMA EVOLUTION INTO {name} SELECT 1D, 1L, CAST(1 AS DECIMAL(10,0))"
        )
    assert [f.dataType.simpleString() for f in spark.table(name).schema] == types


MERGING_WRITERS: dict[str, Callable[[SparkSession, str, str, str], object]] = {
    "append": lambda spark, name, path, query: (
        spark.sql(query)
        .write.format("delta")
        .mode("append")
        .option("mergeSchema", "true")
        .save(path)
    ),
    "saveAsTable": lambda spark, name, path, query: (
        spark.sql(query)
        .write.format("delta")
        .mode("append")
        .option("mergeSchema", "true")
        .saveAsTable(name)
    ),
    "writeTo": lambda spark, name, path, query: (
        spark.sql(query).writeTo(name).option("mergeSchema", "true").append()
    ),
}


@pytest.mark.parametrize("writer", MERGING_WRITERS)
@pytest.mark.parametrize(
    ("mode", "value", "saved", "cast"),
    [
        ("never", "1L", "refused", "int"),
        ("never", "1D", "refused", "refused"),
        ("same_type", "1L", "bigint", "bigint"),
        ("same_type", "1D", "refused", "refused"),
    ],
)
def test_mergeschema_widens_columns_only_as_the_session_says(
    spark: SparkSession,
    table: str,
    create: Callable[[str], str],
    writer: str,
    mode: str,
    value: str,
    saved: str,
    cast: str,
) -> None:
    name = create("s STRUCT<a: INT>")
    after = saved if writer == "append" else cast
    query = f"SELECT named_struct('a', {value}) AS s"
    with session_settings(spark, {SETTING: mode}):
        if after == "refused":
            with pytest.raises(
                Exception, match=rf"DELTAIC_SCHEMA_EVOLUTION_REFUSED.*s\.a.*{SETTING} is {mode}"
            ):
                MERGING_WRITERS[writer](spark, name, table, query)
            assert log.newest(table) == 0
        else:
            MERGING_WRITERS[writer](spark, name, table, query)
            assert spark.table(name).schema.simpleString() == f"struct<s:struct<a:{after}>>"


@pytest.mark.parametrize("writer", [*MERGING_WRITERS, "MERGE"])
def test_identity_column_stays_as_it_is(
    spark: SparkSession, table: str, create: Callable[[str], str], writer: str
) -> None:
    name = create("id BIGINT GENERATED BY DEFAULT AS IDENTITY, k INT")
    query = "SELECT CAST({} AS DECIMAL(38, 0)) AS id, 1 AS k"
    write = MERGING_WRITERS.get(writer, _merge_by_method)
    with session_settings(spark, {AUTO_MERGE: "true"}):
        with pytest.raises(Exception, match=r"DOES_NOT_FIT|OVERFLOW|OUT_OF_RANGE"):
            write(spark, name, table, query.format("9223372036854775808BD"))
        write(spark, name, table, query.format("7"))
    assert spark.table(name).dtypes == [("id", "bigint"), ("k", "int")]
    assert rows_of(spark, table) == [(7, 1)]


def test_unknown_mode_of_widening_is_refused(spark: SparkSession, table: str) -> None:
    name = f"delta.`{table}`"
    spark.sql(f"CREATE TABLE {name} (a TINYINT) USING delta {WIDENING}")
    with (
        session_settings(spark, {SETTING: "sometimes"}),
        pytest.raises(Exception, match=r"DELTAIC_INVALID_SESSION_SETTING.*sometimes"),
    ):
        spark.sql(f"INSERT WITH SCHEMA EVOLUTION INTO {name} SELECT 1D")
