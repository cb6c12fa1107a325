"""DataFrames of a path, and views of them, while the table goes on: which version they show."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from tests.support.plans import plan_nodes, scans
from tests.support.session_settings import session_settings
from tests.support.table_builder import build_table

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

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
    frame = spark.sql(QUERY)
    before = spark.sql(QUERY)
    # The first scan, as Spark plans it; the others it plans when the query runs.
    relation = frame._jdf.queryExecution().withCachedData().collectLeaves().apply(0)
    relation.table().newScanBuilder(relation.options()).build()
    spark.sql(f"INSERT INTO delta.`{table}` VALUES (3)")
    assert sorted(row.id for row in frame.collect()) == [1, 1, 1, 2, 2, 2]
    read = " ".join(str(scan.scan().description()) for scan in scans(frame))
    assert set(re.findall(r" versions? (?:0\.\.)?(\d+)", read)) == {"0"}, read
    assert sorted(row.id for row in before.collect()) == [1, 1, 1, 2, 2, 2, 3, 3, 3]


def test_commit_between_the_scans_of_a_path_without_itself_is_seen_by_none(
    spark: SparkSession, table: str
) -> None:
    build_table(spark, table, "id INT", [[(1,), (2,)]])
    spark.read.format("delta").load(table).createOrReplaceTempView("newest")
    frame = spark.sql("SELECT id FROM newest EXCEPT SELECT id FROM newest")
    query = frame._jdf.queryExecution()
    seen = []
    for plan in (query.analyzed(), query.withCachedData()):
        for leaf in (0, 1):
            relation = plan.collectLeaves().apply(leaf)
            scan = relation.table().newScanBuilder(relation.options()).build()
            seen += re.findall(r" version (\d+)", scan.description())
            spark.sql(f"INSERT INTO delta.`{table}` VALUES (3)")
    assert seen == ["0", "1", "2", "2"], "two of no query, then those of the query"
    assert frame.collect() == []


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
