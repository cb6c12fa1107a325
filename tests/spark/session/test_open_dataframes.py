"""DataFrames of a path or a name, and views of them, while the table goes on: what they show."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import TYPE_CHECKING

import pytest

from tests.support.plans import plan_nodes, scans
from tests.support.session_settings import session_settings
from tests.support.table_builder import build_table

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

#: Reads the table four times, once in a subquery and once what changed in it.
QUERY = """
SELECT id FROM newest
UNION ALL SELECT id FROM newest WHERE id IN (SELECT id FROM newest WHERE id > 0)
UNION ALL SELECT id FROM changes
"""


def test_query_of_a_path_reads_one_version_though_another_is_committed_between_its_scans(
    spark: SparkSession, table: str
) -> None:
    recorded = {"delta.enableChangeDataFeed": "true"}
    build_table(spark, table, "id INT", [[(1,), (2,)]], properties=recorded)
    spark.read.format("delta").load(table).createOrReplaceTempView("newest")
    feed = spark.read.format("delta").option("readChangeFeed", "true").option("startingVersion", 0)
    feed.load(table).createOrReplaceTempView("changes")
    df = spark.sql(QUERY)
    before = spark.sql(QUERY)
    # The first scan, as Spark plans it; the others it plans when the query runs.
    relation = df._jdf.queryExecution().withCachedData().collectLeaves().apply(0)
    relation.table().newScanBuilder(relation.options()).build()
    spark.sql(f"INSERT INTO delta.`{table}` VALUES (3)")
    assert sorted(row.id for row in df.collect()) == [1, 1, 1, 2, 2, 2]
    read = " ".join(str(scan.scan().description()) for scan in scans(df))
    assert set(re.findall(r" versions? (?:0\.\.)?(\d+)", read)) == {"0"}, read
    assert sorted(row.id for row in before.collect()) == [1, 1, 1, 2, 2, 2, 3, 3, 3]


def test_commit_between_the_scans_of_a_path_without_itself_is_seen_by_none(
    spark: SparkSession, table: str
) -> None:
    build_table(spark, table, "id INT", [[(1,), (2,)]])
    spark.read.format("delta").load(table).createOrReplaceTempView("newest")
    df = spark.sql("SELECT id FROM newest EXCEPT SELECT id FROM newest")
    query = df._jdf.queryExecution()
    seen = []
    for plan in (query.analyzed(), query.withCachedData()):
        for leaf in (0, 1):
            relation = plan.collectLeaves().apply(leaf)
            scan = relation.table().newScanBuilder(relation.options()).build()
            seen += re.findall(r" version (\d+)", scan.description())
            spark.sql(f"INSERT INTO delta.`{table}` VALUES (3)")
    assert seen == ["0", "1", "2", "2"], "two of no query, then those of the query"
    assert df.collect() == []


def test_scans_of_a_path_in_one_query_share_an_exchange(spark: SparkSession, table: str) -> None:
    build_table(spark, table, "id INT", [[(1,), (2,)]])
    spark.read.format("delta").load(table).createOrReplaceTempView("newest")
    counts = "SELECT id, count(*) AS n FROM newest GROUP BY id"
    with session_settings(spark, {"spark.sql.adaptive.enabled": "false"}):
        twice = spark.sql(f"{counts} UNION ALL {counts}")
        assert twice.count() == 4
        assert "ReusedExchangeExec" in {node.kind for node in plan_nodes(twice)}
        explained = spark.sql(f"EXPLAIN {counts} UNION ALL {counts}").collect()[0][0]
    assert "ReusedExchange" in explained and f"deltaic file:{table}" in explained


@pytest.fixture
def mapped(spark: SparkSession, table: str) -> Iterator[str]:
    """The name of a table with column mapping and one row."""
    spark.sql(
        f"CREATE TABLE open_frames (id INT, a STRING, b STRING, s STRUCT<x: INT, y: INT>) "
        f"USING delta LOCATION '{table}' TBLPROPERTIES ('delta.columnMapping.mode' = 'name')"
    )
    spark.sql("INSERT INTO open_frames VALUES (1, 'is a', 'is b', named_struct('x', 3, 'y', 4))")
    yield "open_frames"
    spark.sql("DROP TABLE IF EXISTS open_frames")


def _frames(spark: SparkSession, name: str) -> list[DataFrame]:
    spark.table(name).createOrReplaceTempView("open_frame")
    return [spark.table(name), spark.sql(f"SELECT a, s.x FROM {name}"), spark.table("open_frame")]


@pytest.mark.parametrize(
    "changes",
    [
        ("RENAME COLUMN a TO c", "RENAME COLUMN b TO a", "RENAME COLUMN c TO b"),
        ("DROP COLUMN a", "ADD COLUMN a STRING"),
        ("RENAME COLUMN s.x TO z", "RENAME COLUMN s.y TO x", "RENAME COLUMN s.z TO y"),
    ],
    ids=["swapped", "dropped and added", "swapped fields"],
)
def test_dataframe_of_a_name_does_not_take_another_column_for_its_own(
    spark: SparkSession, mapped: str, changes: tuple[str, ...]
) -> None:
    dfs = _frames(spark, mapped)
    for change in changes:
        spark.sql(f"ALTER TABLE {mapped} {change}")
    for df in dfs:
        with pytest.raises(Exception, match="DELTAIC_SCHEMA_CHANGED"):
            df.collect()
    assert spark.table(mapped).count() == 1


def test_dataframe_of_a_name_keeps_the_columns_it_has(spark: SparkSession, mapped: str) -> None:
    dfs = _frames(spark, mapped)
    cached = spark.table(mapped).where("id < 10").cache()
    assert cached.count() == 1
    spark.sql(f"ALTER TABLE {mapped} ADD COLUMN c STRING FIRST")
    spark.sql(f"INSERT INTO {mapped} VALUES ('is c', 2, 'a', 'b', null)")
    assert [df.count() for df in dfs] == [2, 2, 2]
    assert sorted(row.a for row in dfs[0].collect()) == ["a", "is a"]
    assert cached.count() == 2
    cached.unpersist()


def test_mapped_columns_of_any_name_are_read_by_the_tables_name(spark: SparkSession, table: str):
    name = "odd_frames"
    spark.sql(
        f"CREATE TABLE {name} (`a\nb` INT, `a.b,c` INT, s STRUCT<`x\ny`: INT>) USING delta "
        f"LOCATION '{table}' TBLPROPERTIES ('delta.columnMapping.mode' = 'name')"
    )
    df = spark.table(name)
    spark.sql(f"INSERT INTO {name} VALUES (1, 2, named_struct('x\ny', 3))")
    assert df.collect() == [(1, 2, (3,))]
    spark.sql(f"ALTER TABLE {name} RENAME COLUMN `a\nb` TO `c`")
    with pytest.raises(Exception, match=r"COLUMNS|DELTAIC_SCHEMA_CHANGED"):
        df.count()
    spark.sql(f"DROP TABLE {name}")


def test_dataframe_of_a_name_shows_the_table_that_replaces_its_own(
    spark: SparkSession, table: str
) -> None:
    name = "replaced_frames"
    definition = f"TABLE {name} (id INT, a STRING) USING delta LOCATION '{table}'"
    spark.sql(f"CREATE {definition}")
    spark.sql(f"INSERT INTO {name} VALUES (1, 'old')")
    spark.table(name).createOrReplaceTempView("replaced_frame")
    dfs = [spark.table(name), spark.sql(f"SELECT a FROM {name}"), spark.table("replaced_frame")]
    cached = spark.table(name).where("id > 0").cache()
    assert cached.count() == 1
    spark.sql(f"CREATE OR REPLACE {definition}")
    assert [df.count() for df in dfs] == [0, 0, 0]
    spark.sql(f"INSERT INTO {name} VALUES (7, 'new')")
    assert [df.collect()[0].a for df in dfs] == ["new", "new", "new"]
    assert [row.id for row in spark.table(name).where("id > 0").collect()] == [7]
    cached.unpersist()
    spark.sql(f"DROP TABLE {name}")
