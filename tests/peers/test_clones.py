"""Clones beside delta-spark: both read and change ours, and we theirs."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from tests.support import delta_rs, log
from tests.support.table_builder import rows_of

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from tests.support.spark_process import SparkProcess

VECTORS = "'delta.enableDeletionVectors' = 'true'"

TABLES: dict[str, list[str]] = {
    "vectors": [
        f"CREATE TABLE {{t}} USING delta TBLPROPERTIES ({VECTORS}) AS "
        "SELECT /*+ REPARTITION(3) */ id, id % 5 AS p FROM range(1000)",
        "DELETE FROM {t} WHERE id % 10 = 0",
        "UPDATE {t} SET p = 9 WHERE id < 20",
    ],
    "partitions": [
        "CREATE TABLE {t} (id BIGINT, p STRING) USING delta PARTITIONED BY (p)",
        "INSERT INTO {t} VALUES (1, 'a b'), (2, 'ü/%'), (3, NULL)",
    ],
    "columns": [
        "CREATE TABLE {t} (id BIGINT, v STRING) USING delta "
        "TBLPROPERTIES ('delta.columnMapping.mode' = 'name')",
        "INSERT INTO {t} VALUES (1, 'a'), (2, 'b')",
        "ALTER TABLE {t} RENAME COLUMN v TO w",
        "INSERT INTO {t} VALUES (3, 'c')",
    ],
    "row tracking": [
        f"CREATE TABLE {{t}} (id BIGINT, v STRING) USING delta TBLPROPERTIES ({VECTORS}, "
        "'delta.enableRowTracking' = 'true')",
        "INSERT INTO {t} VALUES (1, 'a'), (2, 'b'), (3, 'c')",
        "UPDATE {t} SET v = 'd' WHERE id = 2",
    ],
    "clustering": [
        "CREATE TABLE {t} (id BIGINT, v STRING) USING delta CLUSTER BY (id)",
        "INSERT INTO {t} VALUES (1, 'a'), (2, 'b'), (3, 'c')",
    ],
}

#: delta-rs does not read tables with column mapping.
NOT_IN_DELTA_RS = {"columns"}

RUN = """
spark.sql(statement)
result = None
"""
IDS = """
result = sorted(row.id for row in spark.read.format("delta").load(path).collect())
"""


@pytest.mark.parametrize("kind", ["SHALLOW", "DEEP"])
@pytest.mark.parametrize("shape", TABLES)
def test_peers_read_and_change_our_clone(
    spark: SparkSession, delta_spark: SparkProcess, table: str, shape: str, kind: str
) -> None:
    name, target = f"delta.`{table}`", f"{table}-clone"
    for statement in TABLES[shape]:
        spark.sql(statement.format(t=name))
    spark.sql(f"CREATE TABLE delta.`{target}` {kind} CLONE {name}")
    expected = rows_of(spark, table)
    assert rows_of(spark, target) == expected
    ids = sorted(row[0] for row in expected)
    assert delta_spark.run(IDS, path=target) == ids
    if shape not in NOT_IN_DELTA_RS:
        assert sorted(row[0] for row in delta_rs.by_query(target)) == ids
    delta_spark.run(RUN, statement=f"DELETE FROM delta.`{target}` WHERE id = 3")
    left = [n for n in ids if n != 3]
    assert sorted(row[0] for row in rows_of(spark, target)) == left
    assert sorted(row[0] for row in rows_of(spark, table)) == ids


@pytest.mark.parametrize("shape", TABLES)
def test_shallow_clones_are_like_those_of_delta_spark(
    spark: SparkSession, delta_spark: SparkProcess, table: str, shape: str
) -> None:
    name = f"delta.`{table}`"
    for statement in TABLES[shape]:
        spark.sql(statement.format(t=name))
    ours, theirs = f"{table}-ours", f"{table}-theirs"
    spark.sql(f"CREATE TABLE delta.`{ours}` SHALLOW CLONE {name}")
    delta_spark.run(RUN, statement=f"CREATE TABLE delta.`{theirs}` SHALLOW CLONE {name}")
    assert rows_of(spark, theirs) == rows_of(spark, ours)
    paths = [
        sorted(
            (
                f["path"].replace("file:///", "file:/"),
                str(log.dv_id(f)).replace("file:///", "file:/"),
            )
            for f in log.active_files(clone)
        )
        for clone in (ours, theirs)
    ]
    assert paths[0] == paths[1]


@pytest.mark.parametrize("kind", ["SHALLOW", "DEEP"])
def test_peers_read_and_change_a_clone_of_parquet_files(
    spark: SparkSession, delta_spark: SparkProcess, table: str, kind: str
) -> None:
    folder = f"{table}-parquet"
    spark.range(10).selectExpr("id", "id % 2 AS p").write.partitionBy("p").parquet(folder)
    spark.sql(f"CREATE TABLE delta.`{table}` {kind} CLONE parquet.`{folder}`")
    assert delta_spark.run(IDS, path=table) == list(range(10))
    assert sorted(row[0] for row in delta_rs.by_query(table)) == list(range(10))
    delta_spark.run(RUN, statement=f"DELETE FROM delta.`{table}` WHERE id = 3")
    assert sorted(row[0] for row in rows_of(spark, table)) == [n for n in range(10) if n != 3]


def test_a_shallow_clone_of_parquet_files_is_like_that_of_delta_spark(
    spark: SparkSession, delta_spark: SparkProcess, table: str
) -> None:
    folder, theirs = f"{table}-parquet", f"{table}-theirs"
    spark.range(10).write.parquet(folder)
    spark.sql(f"CREATE TABLE delta.`{table}` SHALLOW CLONE parquet.`{folder}`")
    words = f"CREATE TABLE delta.`{theirs}` SHALLOW CLONE parquet.`{folder}`"
    delta_spark.run(RUN, statement=words)
    ours, peers = log.commit_info(table, 0), log.commit_info(theirs, 0)
    for name, value in peers["operationParameters"].items():
        assert ours["operationParameters"][name] == str(value), name
    assert {f["path"] for f in log.active_files(table)} == {
        f["path"] for f in log.active_files(theirs)
    }
    assert ours["operationMetrics"] == peers["operationMetrics"]
