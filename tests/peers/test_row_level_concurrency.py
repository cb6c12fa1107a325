"""Changes to rows of one file by two engines at the same time, read by both."""

from __future__ import annotations

from pyspark.sql import SparkSession

from tests.support import log
from tests.support.interleave import committed_meanwhile
from tests.support.spark_process import SparkProcess
from tests.support.table_builder import rows_of

RUN = """
for statement in statements:
    spark.sql(statement)
result = None
"""

SHOW = """
result = [list(row) for row in spark.sql(query).collect()]
"""

FEED = """
df = spark.read.format("delta").option("readChangeFeed", "true").option("startingVersion", 4)
rows = df.load(table).select("id", "v", "_change_type").orderBy("id", "v").collect()
result = [list(row) for row in rows]
"""


def test_our_update_follows_deletes_of_delta_spark_and_both_read_the_same(
    spark: SparkSession, delta_spark: SparkProcess, table: str
) -> None:
    named = f"delta.`{table}`"
    delta_spark.run(
        RUN,
        statements=[
            f"CREATE TABLE {named} (id BIGINT, v STRING) USING delta TBLPROPERTIES"
            " ('delta.enableDeletionVectors' = 'true', 'delta.enableRowTracking' = 'true',"
            " 'delta.enableChangeDataFeed' = 'true')",
            f"INSERT INTO {named} SELECT id, 'a' FROM range(0, 100, 1, 1)",
        ],
    )
    theirs = [
        f"DELETE FROM {named} WHERE id % 10 = 1",
        f"UPDATE {named} SET v = 'theirs' WHERE id % 10 = 2",
    ]
    with committed_meanwhile(lambda: delta_spark.run(RUN, statements=theirs)):
        spark.sql(f"UPDATE {named} SET v = 'ours' WHERE id % 10 = 3")
    assert log.commit_info(table)["operation"] == "UPDATE"
    assert log.newest(table) == 4
    values = {2: "theirs", 3: "ours"}
    expected = [[i, values.get(i % 10, "a")] for i in range(100) if i % 10 != 1]
    assert [list(row) for row in sorted(rows_of(spark, table))] == expected
    query = f"SELECT id, v FROM {named} ORDER BY id"
    assert delta_spark.run(SHOW, query=query) == expected
    ids = f"SELECT id, _metadata.row_id, _metadata.row_commit_version FROM {named} ORDER BY id"
    known = delta_spark.run(SHOW, query=ids)
    assert [list(row) for row in spark.sql(ids).collect()] == known
    assert [row_id for _, row_id, _ in known] == [row[0] for row in expected]
    changes = [
        row
        for i in range(3, 100, 10)
        for row in ([i, "a", "update_preimage"], [i, "ours", "update_postimage"])
    ]
    assert delta_spark.run(FEED, table=table) == changes
    df = spark.read.format("delta").option("readChangeFeed", "true").option("startingVersion", 4)
    ours = df.load(table).select("id", "v", "_change_type").orderBy("id", "v").collect()
    assert [list(row) for row in ours] == changes
