"""Writes to a clustered table order the rows of each task, and write each of them once."""

from __future__ import annotations

import random
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest
from pyspark.sql import DataFrame, SparkSession

from tests.support import log
from tests.support.delta_rs import by_query, in_order
from tests.support.session_settings import session_settings
from tests.support.table_builder import rows_of

SETTING = "spark.deltaic.clusteredWrite.enabled"


def shuffled(spark: SparkSession, count: int) -> DataFrame:
    """Return rows of one task in random order, of which one in seven has a null in each column."""
    chance = random.Random(7)
    a, b = ([n if chance.random() > 1 / 7 else None for n in range(count)] for _ in range(2))
    for values in (a, b):
        chance.shuffle(values)
    rows = [
        (n, x, None if y is None else f"{y:06d}") for n, (x, y) in enumerate(zip(a, b, strict=True))
    ]
    return spark.createDataFrame(rows, "id INT, a INT, b STRING").coalesce(1)


def stored(table: str) -> list[list[dict[str, Any]]]:
    """Return the rows of each file, as they are in it."""
    return [pq.read_table(log.data_path(table, add)).to_pylist() for add in log.active_files(table)]


@pytest.mark.parametrize("enabled", [True, False])
def test_rows_of_a_task_are_ordered_by_one_column(
    spark: SparkSession, table: str, enabled: bool
) -> None:
    rows = shuffled(spark, 5000)
    with session_settings(spark, {SETTING: str(enabled).lower()}):
        rows.write.format("delta").clusterBy("b").save(table)
        rows.write.format("delta").mode("append").save(table)
    for file in stored(table):
        values = [row["b"] or "" for row in file]
        assert len(values) == 5000 and (values == sorted(values)) is enabled
    assert in_order(rows_of(spark, table)) == in_order([*rows.collect(), *rows.collect()])
    assert in_order(by_query(table)) == in_order(rows_of(spark, table))


def box_share(spark: SparkSession, table: str) -> float:
    """Return the share of a table's files that queries of a 64th of the grid have to read."""
    spark.sql(
        f"CREATE TABLE delta.`{table}` (id INT, a INT, b STRING) USING delta CLUSTER BY (a, b)"
    )
    rows = shuffled(spark, 16000).na.fill(0).na.fill("000000")
    rows.write.format("delta").option("maxRecordsPerFile", 250).mode("append").save(table)
    files = stored(table)
    assert len(files) == 64 and sum(map(len, files)) == 16000
    assert in_order(rows_of(spark, table)) == in_order(rows.collect())
    bounds = [
        [(min(row[name] for row in file), max(row[name] for row in file)) for name in "ab"]
        for file in files
    ]
    edges = [(16000 * n // 8, 16000 * (n + 1) // 8 - 1) for n in range(1, 8)]
    read = sum(
        low <= y and x <= high and least <= f"{last:06d}" and f"{first:06d}" <= most
        for x, y in edges
        for first, last in edges
        for (low, high), (least, most) in bounds
    )
    return float(read / len(files) / len(edges) ** 2)


def test_files_of_a_task_have_narrow_ranges_of_several_columns(
    spark: SparkSession, tmp_path: Path
) -> None:
    assert box_share(spark, str(tmp_path / "on")) < 0.1
    with session_settings(spark, {SETTING: "false"}):
        assert box_share(spark, str(tmp_path / "off")) > 0.9


def test_nested_column_rename_and_overwrite(spark: SparkSession, table: str) -> None:
    name = f"delta.`{table}`"
    spark.sql(
        f"CREATE TABLE {name} (id INT, s STRUCT<x: INT, y: STRING>) USING delta CLUSTER BY (s.x)"
        " TBLPROPERTIES ('delta.columnMapping.mode' = 'name', 'delta.enableRowTracking' = 'true')"
    )
    values = random.Random(3).sample(range(300), 300)
    source = spark.createDataFrame(
        [(n, None if x % 10 == 0 else (x, str(x))) for n, x in enumerate(values)],
        "id INT, s STRUCT<x: INT, y: STRING>",
    ).coalesce(1)
    source.write.format("delta").mode("append").save(table)
    spark.sql(f"ALTER TABLE {name} RENAME COLUMN s TO t")
    source.withColumnRenamed("s", "t").write.format("delta").mode("overwrite").save(table)
    (file,) = log.active_files(table)
    column = spark.read.parquet(f"{table}/{file['path']}")
    physical = next(c for c in column.columns if column.schema[c].dataType.typeName() == "struct")
    nested = column.select(f"{physical}.*")
    found = [row[0] for row in nested.collect()]
    expected = sorted(x for x in values if x % 10)
    assert found == [None] * 30 + expected
    assert in_order(rows_of(spark, table)) == in_order(source.collect())


def test_rows_that_an_update_writes_are_those_of_the_table(spark: SparkSession, table: str) -> None:
    rows = shuffled(spark, 2000)
    spark.sql(
        f"CREATE TABLE delta.`{table}` (id INT, a INT, b STRING) USING delta CLUSTER BY (a)"
        " TBLPROPERTIES ('delta.enableDeletionVectors' = 'true')"
    )
    rows.write.format("delta").mode("append").save(table)
    spark.sql(f"UPDATE delta.`{table}` SET a = -a WHERE id % 3 = 0")
    expected = [(i, -a if i % 3 == 0 and a is not None else a, b) for i, a, b in rows.collect()]
    assert in_order(rows_of(spark, table)) == in_order(expected)
