"""Files that a scan skips because of a LIMIT, or because of the keys of a join at run time."""

from __future__ import annotations

import itertools
import json
from collections.abc import Iterator
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.support import log
from tests.support.cases import drawn_cases
from tests.support.log import stored_files
from tests.support.plans import plan_nodes, scanned_files, scanned_rows
from tests.support.predicates import SCHEMA, Predicate, predicates, rows
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
    from pyspark.sql import DataFrame, SparkSession

_numbers = itertools.count()


@pytest.fixture(scope="module")
def holey(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> TableWithOracle:
    """Ten files of 100 ids; two have 10 rows and one row left, and come last."""
    path = str(tmp_path_factory.mktemp("holey") / "table")
    table = build_with_oracle(spark, path, spark.range(0, 1000, 1, 10), deletion_vectors=True)
    table.delete("(id < 100 AND id % 10 <> 0) OR (id BETWEEN 100 AND 198)")
    return table


@pytest.mark.parametrize(
    ("limit", "files"),
    [(0, 0), (1, 1), (100, 1), (101, 2), (800, 8), (801, 9), (811, 10), (9999, 10)],
)
def test_limit_reads_as_many_files_as_have_that_many_rows_left(
    spark: SparkSession, holey: TableWithOracle, limit: int, files: int
):
    df = spark.sql(f"SELECT * FROM {holey.sql_name} LIMIT {limit}")
    assert df.count() == min(limit, 811)
    if limit > 0:
        assert len(scanned_files(df)) == files
    ids = [row.id for row in df.collect()]
    assert len(ids) == len(set(ids)) == min(limit, 811)


def test_limit_needs_no_other_file_to_be_there(spark: SparkSession, build: BuildWithOracle):
    table = build(spark.range(0, 100, 1, 10), deletion_vectors=True)
    table.delete("id IN (0, 1)")
    kept = {Path(path) for path in scanned_files(table.df().limit(12))}
    assert len(kept) == 2
    for file in stored_files(table.path) - kept:
        if file.suffix == ".parquet":
            file.unlink()
    assert table.df().limit(12).count() == 12
    assert len(table.df().take(12)) == 12
    assert len(table.df().offset(3).limit(9).collect()) == 9


@pytest.mark.parametrize(
    ("query", "files"),
    [
        ("SELECT * FROM {t} WHERE id > 5 LIMIT 3", 10),
        ("SELECT * FROM {t} ORDER BY id LIMIT 3", 10),
        ("SELECT DISTINCT id FROM {t} LIMIT 3", 10),
        ("SELECT * FROM (SELECT * FROM {t} LIMIT 150) WHERE id % 2 = 0", 2),
        ("SELECT id + 1 FROM {t} LIMIT 10", 1),
        ("SELECT * FROM {t} LIMIT 95 OFFSET 6", 2),
    ],
)
def test_limit_applies_only_where_every_row_of_the_scan_is_wanted(
    spark: SparkSession, holey: TableWithOracle, query: str, files: int
):
    df = spark.sql(query.format(t=holey.sql_name))
    assert len(scanned_files(df)) == files


def test_limit_of_some_partitions_reads_those_alone(spark: SparkSession, build: BuildWithOracle):
    rows = spark.range(0, 100, 1, 10).selectExpr("id", "id DIV 50 AS p")
    table = build(rows, partition_by=("p",))
    df = table.df().where("p = 1").limit(11)
    assert len(scanned_files(df)) == 2
    assert {row.p for row in df.collect()} == {1}


def test_file_that_does_not_say_how_many_rows_it_has_counts_for_nothing(
    spark: SparkSession, table: str
):
    build_with_oracle(spark, table, spark.range(0, 100, 1, 10))
    silent = itertools.count()
    commit = log.commit_path(table, 0)
    lines = [json.loads(line) for line in commit.read_text().splitlines()]
    for line in lines:
        if "add" in line and next(silent) < 4:
            del line["add"]["stats"]
    commit.write_text("\n".join(map(json.dumps, lines)) + "\n")
    spark._jvm.io.deltaic.replay.DeltaLog.invalidate(  # type: ignore[union-attr]
        spark._jvm.org.apache.hadoop.fs.Path("file:" + table)  # type: ignore[union-attr]
    )
    df = spark.read.format("delta").load(table)
    assert len(scanned_files(df.limit(3))) == 5
    assert df.limit(3).count() == 3
    assert df.limit(70).count() == 70
    assert df.count() == 100
    assert len(scanned_files(df.groupBy().count())) == 10


@drawn_cases(4, thorough=40)
@given(
    files=st.lists(st.lists(rows(), min_size=1, max_size=5), min_size=1, max_size=4),
    delete=predicates(),
    appended=st.lists(rows(), min_size=1, max_size=3),
    limit=st.integers(1, 15),
)
def test_limit_gives_that_many_rows_of_the_table(
    spark: SparkSession,
    tmp_path_factory: pytest.TempPathFactory,
    files: list[list[tuple[Any, ...]]],
    delete: Predicate,
    appended: list[tuple[Any, ...]],
    limit: int,
):
    path = str(tmp_path_factory.getbasetemp() / f"limits-{next(_numbers)}")
    build_table(spark, path, SCHEMA, files)
    spark.sql(f"DELETE FROM delta.`{path}` WHERE {delete.sql}")
    append_file(spark, path, SCHEMA, appended)
    everything = [tuple(row) for row in spark.read.format("delta").load(path).collect()]
    some = [tuple(r) for r in spark.read.format("delta").load(path).limit(limit).collect()]
    assert len(some) == min(limit, len(everything))
    left = [repr(row) for row in everything]
    for row in some:
        left.remove(repr(row))


@pytest.fixture(scope="module")
def keys(spark: SparkSession) -> str:
    """Rows to join with: a view of keys with a column to choose them by."""
    df = spark.range(0, 1000, 7).selectExpr(
        "id AS k", "concat('name ', id % 50) AS name", "CAST(id DIV 100 AS INT) AS p"
    )
    df.createOrReplaceTempView("keys_to_join")
    return "keys_to_join"


@pytest.fixture(scope="module", params=["whole", "deleted rows"])
def facts(
    spark: SparkSession, tmp_path_factory: pytest.TempPathFactory, request: pytest.FixtureRequest
) -> TableWithOracle:
    """Ten files of 1000 ids, in ten partitions."""
    path = str(tmp_path_factory.mktemp("facts") / "table")
    rows = spark.range(0, 10_000, 1, 10).selectExpr(
        "id DIV 10 AS id",
        "CAST(id DIV 1000 AS INT) AS p",
        "concat('name ', id DIV 10 % 50) AS name",
        "id AS payload",
    )
    table = build_with_oracle(spark, path, rows, partition_by=("p",), deletion_vectors=True)
    if request.param != "whole":
        table.delete("payload % 100 = 0")
    return table


@pytest.fixture
def small_tables_are_pruned(spark: SparkSession) -> Iterator[None]:
    """Offers columns of tables of a few small files to joins, which by default do not pay."""
    settings = {
        "spark.deltaic.joinPruning.minFiles": "2",
        "spark.deltaic.joinPruning.minBytes": "0",
    }
    with session_settings(spark, settings):
        yield


@pytest.mark.usefixtures("small_tables_are_pruned")
@pytest.mark.parametrize(
    ("query", "most"),
    [
        ("SELECT * FROM {t} f JOIN {k} d ON f.p = d.p WHERE d.name = 'name 7'", 3000),
        ("SELECT * FROM {t} f JOIN {k} d ON f.id = d.k WHERE d.name = 'name 7'", 3000),
        ("SELECT * FROM {t} f JOIN {k} d ON f.id = d.k WHERE d.k BETWEEN 200 AND 220", 1000),
        ("SELECT * FROM {k} d JOIN {t} f ON f.id = d.k WHERE d.k IN (7, 994)", 2000),
        ("SELECT * FROM {t} f LEFT SEMI JOIN {k} d ON f.id = d.k AND d.k = 21", 1000),
        ("SELECT * FROM {t} WHERE p IN (SELECT p FROM {k} WHERE k = 777)", 1000),
        ("SELECT * FROM {t} f JOIN {k} d ON f.id = d.k WHERE d.name = 'no such name'", 0),
    ],
)
def test_join_reads_the_files_that_may_hold_its_keys(
    spark: SparkSession, facts: TableWithOracle, keys: str, query: str, most: int
):
    df = spark.sql(query.format(t=facts.sql_name, k=keys))
    assert scanned_rows(df) <= most
    facts.assert_same_answer(query.replace("{k}", keys))


@pytest.mark.usefixtures("small_tables_are_pruned")
@pytest.mark.parametrize(
    "query",
    [
        "SELECT * FROM {t} f LEFT JOIN {k} d ON f.id = d.k AND d.name = 'name 7'",
        "SELECT * FROM {t} f FULL JOIN {k} d ON f.id = d.k WHERE d.name = 'name 7' OR f.p < 5",
        "SELECT * FROM {t} f JOIN {k} d ON f.id % 10 = d.k % 10 WHERE d.name = 'name 7'",
        "SELECT * FROM {t} f LEFT ANTI JOIN {k} d ON f.id = d.k AND d.name = 'name 7'",
    ],
)
def test_join_that_wants_all_rows_gets_them(
    spark: SparkSession, facts: TableWithOracle, keys: str, query: str
):
    facts.assert_same_answer(query.replace("{k}", keys))


@pytest.mark.usefixtures("small_tables_are_pruned")
def test_scan_without_filter_beside_the_same_with_one_stays_whole(
    spark: SparkSession, facts: TableWithOracle, keys: str
):
    # Both sides of the union read the table; the filter of one must not reach the other.
    query = (
        "WITH f AS (SELECT id, p FROM {t}) "
        f"SELECT f.id FROM f JOIN {keys} d ON f.p = d.p WHERE d.k = 7 "
        "UNION ALL SELECT id FROM f"
    )
    facts.assert_same_answer(query)
    facts.assert_same_answer(f"SELECT count(*) FROM ({query}) WHERE id >= 0")


@pytest.mark.usefixtures("small_tables_are_pruned")
def test_self_join_prunes_by_its_own_keys(spark: SparkSession, facts: TableWithOracle):
    facts.assert_same_answer(
        "SELECT a.payload, b.payload FROM {t} a JOIN {t} b ON a.p = b.p AND a.id = b.id"
        " WHERE b.name = 'name 3' AND b.payload < 600"
    )


@pytest.mark.usefixtures("small_tables_are_pruned")
@pytest.mark.parametrize("adaptive", ["true", "false"])
def test_pruning_works_with_and_without_adaptive_execution(
    spark: SparkSession, facts: TableWithOracle, keys: str, adaptive: str
):
    with session_settings(spark, {"spark.sql.adaptive.enabled": adaptive}):
        query = f"SELECT * FROM {{t}} f JOIN {keys} d ON f.id = d.k WHERE d.name = 'name 7'"
        assert scanned_rows(spark.sql(query.format(t=facts.sql_name))) <= 3000
        facts.assert_same_answer(query)


def _pruning_subqueries(df: DataFrame) -> int:
    plan = str(df._jdf.queryExecution().optimizedPlan().toString())
    return plan.count("dynamicpruning")


@pytest.mark.parametrize(
    ("settings", "column", "subqueries"),
    [
        ({}, "id", 0),
        ({}, "p", 0),
        ({"minFiles": "10", "minBytes": "0"}, "id", 1),
        ({"minFiles": "10", "minBytes": "0"}, "p", 1),
        ({"minFiles": "11", "minBytes": "0"}, "id", 0),
        # Spark takes the opening of a file for 4 MB.
        ({"minFiles": "2", "minBytes": "40m"}, "id", 1),
        ({"minFiles": "2", "minBytes": "50m"}, "id", 0),
        # Every file has every name.
        ({"minFiles": "2", "minBytes": "0"}, "name", 0),
    ],
)
def test_join_prunes_a_table_only_where_that_pays(
    spark: SparkSession,
    facts: TableWithOracle,
    keys: str,
    settings: dict[str, str],
    column: str,
    subqueries: int,
):
    other = {"id": "k"}.get(column, column)
    prefixed = {f"spark.deltaic.joinPruning.{name}": value for name, value in settings.items()}
    with session_settings(spark, prefixed):
        query = f"SELECT f.payload FROM {{t}} f JOIN {keys} d ON f.{column} = d.{other}"
        query += " WHERE d.k % 9 = 0"
        df = spark.sql(query.format(t=facts.sql_name))
        assert _pruning_subqueries(df) == subqueries
        facts.assert_same_answer(query)


@pytest.mark.parametrize("name", ["minFiles", "minBytes"])
def test_join_pruning_refuses_a_setting_that_is_no_number(
    spark: SparkSession, facts: TableWithOracle, name: str
):
    with (
        session_settings(spark, {f"spark.deltaic.joinPruning.{name}": "many"}),
        pytest.raises(Exception, match=f"joinPruning.{name}"),
    ):
        spark.sql(
            f"SELECT 1 FROM {facts.sql_name} a JOIN {facts.sql_name} b ON a.id = b.id WHERE b.p = 3"
        ).collect()


@pytest.mark.parametrize(
    ("condition", "most"),
    [
        ("p = (SELECT max(p) FROM {k} WHERE k < 300)", 1000),
        ("p = (SELECT CAST(max(p) AS BIGINT) FROM {k} WHERE k < 300)", 1000),
        ("p + 1 = (SELECT max(p) FROM {k} WHERE k < 300)", 1000),
        ("p < (SELECT min(p) + 2 FROM {k}) OR p = 9", 3000),
        ("id = (SELECT max(k) FROM {k})", 1000),
        ("id BETWEEN (SELECT min(k) FROM {k} WHERE k > 200) AND 399", 2000),
        ("p = (SELECT max(p) FROM {k}) AND payload > 5", 1000),
        ("p = (SELECT max(p) FROM {k} WHERE k < 0)", 0),
        ("NOT p >= (SELECT max(p) FROM {k} WHERE k < 300)", 2000),
    ],
)
def test_value_of_a_subquery_leaves_out_files(
    spark: SparkSession, facts: TableWithOracle, keys: str, condition: str, most: int
):
    query = "SELECT * FROM {t} WHERE " + condition.replace("{k}", keys)
    assert scanned_rows(spark.sql(query.format(t=facts.sql_name))) <= most
    facts.assert_same_answer(query)


def test_merge_reads_the_files_that_may_hold_its_keys(spark: SparkSession, build: BuildWithOracle):
    table = build(spark.range(0, 1000, 1, 10).selectExpr("id", "0 AS v"), deletion_vectors=True)
    source = spark.createDataFrame([(5, 1), (17, 2), (2000, 3)], "id LONG, v INT")
    source.createOrReplaceTempView("changes_to_merge")
    spark.sql(
        f"MERGE INTO {table.sql_name} t USING (SELECT * FROM changes_to_merge WHERE v > 0) s"
        " ON t.id = s.id WHEN MATCHED THEN UPDATE SET v = s.v WHEN NOT MATCHED THEN INSERT *"
    )
    changed = table.df().where("v <> 0").collect()
    assert_same_rows(changed, source.collect())
    assert table.df().where("id >= 0").count() == 1001


def test_optimizer_has_rows_and_partition_values(spark: SparkSession, facts: TableWithOracle):
    with session_settings(spark, {"spark.sql.cbo.enabled": "true"}):
        df = facts.df().where("p < 4").select("p", "id")
        stats = df._jdf.queryExecution().optimizedPlan().stats()
        assert stats.rowCount().get() == facts.live.where("p < 4").count()
        [(_, column)] = [
            (pair._1().name(), pair._2())
            for pair in (stats.attributeStats().toSeq().apply(i) for i in range(1))
        ]
        assert column.distinctCount().get() == 4
        assert (column.min().get(), column.max().get()) == (0, 3)
        # Estimates from partial statistics must not fail the query.
        facts.assert_same_answer(
            "SELECT a.id FROM {t} a JOIN {t} b ON a.p = b.p AND a.id = b.id"
            " WHERE a.p = b.p AND a.id < a.payload AND b.p IN (1, 2) AND b.id = 150"
        )


@pytest.mark.parametrize(
    "condition",
    [
        "a.id = b.id WHERE a.p >= TIMESTAMP_NTZ'2024-01-15 00:00:00' OR a.id = 5",
        "a.p = b.p JOIN {t} c ON b.id = c.id WHERE c.id = 2",
    ],
)
def test_optimizer_does_not_get_partition_values_that_it_cannot_estimate(
    spark: SparkSession, table: str, condition: str
):
    months = [(n, datetime(2024, n, 1)) for n in (1, 2)]
    build_table(spark, table, "id INT, p TIMESTAMP_NTZ", [months], partition_by=["p"])
    query = "SELECT a.id FROM {t} a JOIN {t} b ON " + condition
    with session_settings(spark, {"spark.sql.cbo.enabled": "true"}):
        assert spark.sql(query.format(t=f"delta.`{table}`")).collect() == [(2,)]


def test_small_side_by_its_selected_files_is_broadcast(spark: SparkSession, facts: TableWithOracle):
    df = spark.sql(
        f"SELECT a.id FROM {facts.sql_name} a JOIN {facts.sql_name} b ON a.id = b.id WHERE b.p = 3"
    )
    assert any(node.kind == "BroadcastHashJoinExec" for node in plan_nodes(df))
