"""COUNT, MIN and MAX without opening a data file, where the log has the exact answer."""

from __future__ import annotations

import itertools
from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.support import log
from tests.support.cases import drawn_cases
from tests.support.log import stored_files
from tests.support.plans import plan_nodes, scans
from tests.support.predicates import COLUMN_VALUES, SCHEMA, Predicate, predicates, rows
from tests.support.session_settings import session_settings
from tests.support.table_builder import (
    BuildWithOracle,
    TableWithOracle,
    append_file,
    assert_same_rows,
    build_table,
    build_with_oracle,
)

if TYPE_CHECKING:
    from pathlib import Path

    from pyspark.sql import DataFrame, SparkSession

_numbers = itertools.count()


def typed_rows(spark: SparkSession) -> DataFrame:
    """Three partitions of 40 rows each, one of them null, and a column of most types."""
    return spark.range(0, 120, 1, 3).selectExpr(
        "id",
        "CAST(NULLIF(id DIV 40, 2) AS INT) AS p",
        "IF(id DIV 40 = 0, 'a', 'b') AS kind",
        "CASE WHEN id % 4 <> 0 THEN CAST(id AS SMALLINT) END AS small",
        "CAST(NULL AS INT) AS nothing",
        "date_add(DATE'2024-01-01', CAST(id AS INT)) AS d",
        "CAST(id AS DECIMAL(9, 3)) AS dec",
        "concat('s', id) AS s",
        "timestamp_micros(id) AS ts",
        "id / 3.0D AS dbl",
        "named_struct('x', CAST(id AS INT), 'y', named_struct('z', -id)) AS st",
        "array(id) AS arr",
    )


@pytest.fixture(scope="module")
def whole(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> TableWithOracle:
    path = str(tmp_path_factory.mktemp("whole") / "table")
    return build_with_oracle(spark, path, typed_rows(spark), partition_by=("p", "kind"))


@pytest.fixture(scope="module")
def holey(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> TableWithOracle:
    """The same rows without some, by deletion vectors in two of the three partitions."""
    path = str(tmp_path_factory.mktemp("holey") / "table")
    rows = typed_rows(spark)
    table = build_with_oracle(spark, path, rows, partition_by=("p", "kind"), deletion_vectors=True)
    table.delete("id IN (0, 1, 39) OR (p = 1 AND id % 3 = 0)")
    return table


def opens_files(df: DataFrame) -> bool:
    return bool(scans(df))


EXACT_OF_ANY_ROWS = [
    "SELECT count(*) FROM {t}",
    "SELECT count(1) AS n, count(*) + 1 AS m FROM {t}",
    "SELECT count(p), max(p), min(p), max(kind) FROM {t}",
    "SELECT count(*) FROM {t} WHERE p = 1",
    "SELECT count(*) FROM {t} WHERE p IS NULL OR kind = 'a'",
    "SELECT count(*), max(p) FROM {t} WHERE p = 99",
    "SELECT p, count(*) FROM {t} GROUP BY p",
    "SELECT kind, p, count(*), min(p) FROM {t} GROUP BY p, kind",
    "SELECT kind AS k, count(*) AS n FROM {t} WHERE p IS NOT NULL GROUP BY kind HAVING n > 39",
    "SELECT DISTINCT p FROM {t}",
    "SELECT count(nothing), min(nothing) FROM {t}",
    "SELECT count(id) FROM {t}",
    "SELECT count(*) FROM (SELECT id, s FROM {t})",
]

EXACT_OF_WHOLE_FILES = [
    "SELECT min(id), max(id) FROM {t}",
    "SELECT max(id) + 1 FROM {t} WHERE p = 0",
    "SELECT p, max(id), min(d) FROM {t} GROUP BY p",
    "SELECT count(small), min(small), max(small) FROM {t}",
    "SELECT min(d), max(dec) FROM {t}",
    "SELECT max(st.x), min(st.y.z), count(st.x) FROM {t}",
]

OPEN = [
    "SELECT count(*) FROM {t} WHERE id > 3",
    "SELECT count(*) FROM {t} WHERE p = 1 AND id > 3",
    "SELECT max(s) FROM {t}",
    "SELECT min(ts) FROM {t}",
    "SELECT max(dbl) FROM {t}",
    "SELECT max(id), max(s) FROM {t}",
    "SELECT count(DISTINCT p) + 0, sum(id) FROM {t}",
    "SELECT count(arr) FROM {t} WHERE id < 50",
    "SELECT small, count(*) FROM {t} GROUP BY small",
    "SELECT p + 1, count(*) FROM {t} GROUP BY p + 1",
    "SELECT count(*) FILTER (WHERE id > 3) FROM {t}",
    "SELECT max(id + 1) FROM {t}",
]


@pytest.mark.parametrize("query", EXACT_OF_ANY_ROWS + EXACT_OF_WHOLE_FILES)
def test_whole_files_are_not_opened(spark: SparkSession, whole: TableWithOracle, query: str):
    assert not opens_files(spark.sql(query.format(t=whole.sql_name)))
    whole.assert_same_answer(query)


@pytest.mark.parametrize("query", EXACT_OF_ANY_ROWS)
def test_files_with_deleted_rows_are_not_opened_to_count(
    spark: SparkSession, holey: TableWithOracle, query: str
):
    assert not opens_files(spark.sql(query.format(t=holey.sql_name)))
    holey.assert_same_answer(query)


@pytest.mark.parametrize("query", EXACT_OF_WHOLE_FILES[:1] + EXACT_OF_WHOLE_FILES[2:])
def test_files_with_deleted_rows_are_opened_for_their_bounds(
    spark: SparkSession, holey: TableWithOracle, query: str
):
    assert opens_files(spark.sql(query.format(t=holey.sql_name)))
    holey.assert_same_answer(query)


@pytest.mark.parametrize("query", OPEN)
def test_data_files_are_read_where_the_log_is_not_exact(
    spark: SparkSession, whole: TableWithOracle, holey: TableWithOracle, query: str
):
    for table in (whole, holey):
        assert opens_files(spark.sql(query.format(t=table.sql_name)))
        table.assert_same_answer(query)


def test_partition_with_no_row_left_is_no_group(spark: SparkSession, build: BuildWithOracle):
    table = build(typed_rows(spark), partition_by=("p",), deletion_vectors=True)
    table.delete("p = 1 AND id % 2 = 0")
    table.delete("p = 1")
    for query in ("SELECT p, count(*) FROM {t} GROUP BY p", "SELECT max(p), count(*) FROM {t}"):
        assert not opens_files(spark.sql(query.format(t=table.sql_name)))
        table.assert_same_answer(query)


def test_answers_are_there_with_every_file_gone(spark: SparkSession, build: BuildWithOracle):
    table = build(typed_rows(spark), partition_by=("p",), deletion_vectors=True)
    table.delete("id = 7")
    for file in stored_files(table.path):
        file.unlink()
    df = table.df()
    assert df.count() == 119
    assert df.groupBy("p").count().count() == 3
    assert df.where("p = 1").agg({"id": "max"}).collect()[0][0] == 79


def test_table_without_statistics_is_read(spark: SparkSession, build: BuildWithOracle):
    table = build(typed_rows(spark), options={"delta.dataSkippingNumIndexedCols": "1"})
    assert not opens_files(spark.sql(f"SELECT min(id), max(id) FROM {table.sql_name}"))
    assert opens_files(spark.sql(f"SELECT min(small) FROM {table.sql_name}"))
    table.assert_same_answer("SELECT min(small), count(small) FROM {t}")


@pytest.mark.parametrize(
    ("query", "join"),
    [
        (
            "SELECT t.* FROM {t} t JOIN (SELECT max(p) AS p FROM {t}) m ON t.p = m.p",
            "BroadcastHashJoinExec",
        ),
        (
            "SELECT t.*, n FROM {t} t CROSS JOIN (SELECT count(*) AS n FROM {t})",
            "BroadcastNestedLoopJoinExec",
        ),
    ],
)
def test_answer_is_small_enough_to_broadcast(
    spark: SparkSession, whole: TableWithOracle, query: str, join: str
):
    with session_settings(spark, {"spark.sql.autoBroadcastJoinThreshold": "100"}):
        df = spark.sql(query.format(t=whole.sql_name))
        assert join in {node.kind for node in plan_nodes(df)}
        whole.assert_same_answer(query)


def test_each_version_has_its_own_answer(spark: SparkSession, build: BuildWithOracle):
    table = build(spark.range(10), deletion_vectors=True)
    table.delete("id < 3")
    table.append(spark.range(20, 25))
    counts = [
        spark.read.format("delta").option("versionAsOf", v).load(table.path).count()
        for v in range(3)
    ]
    assert counts == [10, 7, 12]


def test_dataframe_counts_again_after_a_write(spark: SparkSession, build: BuildWithOracle):
    table = build(spark.range(10))
    df = table.df()
    assert df.count() == 10
    table.append(spark.range(5))
    assert df.count() == 15


def test_append_of_a_metadata_only_scan_reads_its_table(
    spark: SparkSession, build: BuildWithOracle
):
    table = build(spark.range(10))
    spark.sql(f"INSERT INTO {table.sql_name} SELECT max(id) + count(*) FROM {table.sql_name}")
    assert log.commit_info(table.path)["isBlindAppend"] is False
    spark.sql(f"INSERT INTO {table.sql_name} VALUES (1)")
    assert log.commit_info(table.path)["isBlindAppend"] is True
    assert table.df().agg({"id": "max"}).collect()[0][0] == 19


#: Extremes of `d` are left out: of -0.0 and 0.0, which are equal, Spark may give either.
AGGREGATES = [
    "count(*)",
    "count(d)",
    *(
        f"{f}({column})"
        for f in ("count", "min", "max")
        for column in COLUMN_VALUES
        if column != "d"
    ),
]


@drawn_cases(5, thorough=40)
@given(
    files=st.lists(st.lists(rows(), min_size=1, max_size=5), min_size=1, max_size=3),
    delete=predicates(),
    appended=st.lists(rows(), min_size=1, max_size=3),
    chosen=st.lists(st.sampled_from(AGGREGATES), min_size=1, max_size=4, unique=True),
    where=st.sampled_from(["", "WHERE p = 1", "WHERE p <> 0", "WHERE p IS NULL"]),
    grouped=st.booleans(),
    partitioned=st.booleans(),
)
def test_answers_are_those_of_plain_rows(
    spark: SparkSession,
    tmp_path_factory: pytest.TempPathFactory,
    files: list[list[tuple[Any, ...]]],
    delete: Predicate,
    appended: list[tuple[Any, ...]],
    chosen: list[str],
    where: str,
    grouped: bool,
    partitioned: bool,
):
    path = str(tmp_path_factory.getbasetemp() / f"answers-{next(_numbers)}")
    build_table(spark, path, SCHEMA, files, partition_by=("p",) if partitioned else ())
    spark.sql(f"DELETE FROM delta.`{path}` WHERE {delete.sql}")
    append_file(spark, path, SCHEMA, appended)
    names = list(COLUMN_VALUES)
    left = [
        row
        for file in files
        for row in file
        if delete.evaluate(dict(zip(names, row, strict=True))) is not True
    ]
    view = f"plain_{next(_numbers)}"
    spark.createDataFrame([*left, *appended], SCHEMA).createOrReplaceTempView(view)
    keys, group = ("p, ", "GROUP BY p") if grouped else ("", "")
    query = f"SELECT {keys}{', '.join(chosen)} FROM {{t}} {where} {group}"
    ours = spark.sql(query.format(t=f"delta.`{path}`")).collect()
    assert_same_rows(ours, spark.sql(query.format(t=view)).collect())


@pytest.mark.protocol("reader-column-mapping-4", "reader-column-mapping-5")
@pytest.mark.parametrize("mode", ["name", "id"])
def test_answers_are_of_the_columns_that_have_the_names_now(
    spark: SparkSession, tmp_path: Path, mode: str
) -> None:
    table = f"delta.`{tmp_path}/table`"
    spark.sql(
        f"CREATE TABLE {table} (a INT, b INT, p INT) USING delta PARTITIONED BY (p) TBLPROPERTIES"
        f" ('delta.columnMapping.mode' = '{mode}', 'delta.enableTypeWidening' = 'true')"
    )
    spark.sql(f"INSERT INTO {table} VALUES (1, 10, 1), (2, 20, 2)")
    for old, new in (("a", "c"), ("b", "a"), ("c", "b"), ("p", "q")):
        spark.sql(f"ALTER TABLE {table} RENAME COLUMN {old} TO {new}")
    spark.sql(f"ALTER TABLE {table} ALTER COLUMN a TYPE BIGINT")
    spark.sql(f"INSERT INTO {table} VALUES (3, 3000000000, 3)")
    exact = spark.sql(f"SELECT min(a), max(a), min(b), max(b), min(q), max(q) FROM {table}")
    assert not opens_files(exact)
    assert exact.collect() == [(10, 3000000000, 1, 3, 1, 3)]

    # The name comes back for a column of which the older files have nothing.
    spark.sql(f"ALTER TABLE {table} DROP COLUMN b")
    spark.sql(f"ALTER TABLE {table} ADD COLUMN b INT")
    spark.sql(f"INSERT INTO {table} VALUES (7, 4, 70)")
    answer = spark.sql(f"SELECT count(*), max(a), count(b), min(b), max(b), max(q) FROM {table}")
    assert answer.collect() == [(4, 3000000000, 1, 70, 70, 4)]
