"""Names and values that end a quotation, or look like SQL: they stay what they are."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING

import deltalake
import pyarrow as pa
import pytest
from pyspark.sql import functions as F

from deltaic import DeltaTable
from deltaic.exceptions import InvalidArgumentError
from tests.support import log

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

#: Column names that break out of backticks, quotes, comments, and JSON, or name a path.
COLUMNS = ["a`b", "it's; --", 'say "x"', "dot.ted", "c /* d", "$e", "\\", "{f},<g>"]

#: The same for values, one of them a partition's.
VALUES = ["'", '"', "`", "'; DROP TABLE t; --", "\\'", "${x}", "%27", "../../up", "a=b/c"]


def quoted(name: str) -> str:
    escaped = name.replace("`", "``")
    return f"`{escaped}`"


def test_hostile_names_and_values_are_written_read_filtered_and_described(
    spark: SparkSession, tmp_path: Path
) -> None:
    path = str(tmp_path / "it's a `table; --" / 'with "quotes" %27')
    name = "hostile_names"  # Spark allows a table no other name
    columns = ", ".join(f"{quoted(c)} STRING" for c in COLUMNS)
    location = path.replace("\\", "\\\\").replace("'", "\\'")
    spark.sql(
        f"CREATE TABLE {name} ({columns}) USING delta PARTITIONED BY ({quoted(COLUMNS[0])})"
        f" LOCATION '{location}' TBLPROPERTIES ('delta.columnMapping.mode' = 'name',"
        " 'delta.enableDeletionVectors' = 'true', 'user`s' = 'it''s; \"here\"')"
    )
    try:
        rows = [tuple(value + str(n) for n in range(len(COLUMNS))) for value in VALUES]
        df = spark.createDataFrame(rows, spark.table(name).schema)
        df.write.format("delta").mode("append").save(path)
        table = DeltaTable.forName(spark, name)
        assert sorted(map(tuple, table.toDF().collect())) == sorted(rows)
        for value, column in zip(VALUES, COLUMNS, strict=False):
            index = COLUMNS.index(column)
            wanted = [row for row in rows if row[index] == value + str(index)]
            found = table.toDF().filter(F.col(quoted(column)) == value + str(index))
            assert list(map(tuple, found.collect())) == wanted
        constrained = quoted("check `' --")
        spark.sql(
            f"ALTER TABLE {name} ADD CONSTRAINT {constrained}"
            f" CHECK ({quoted(COLUMNS[1])} <> 'it\\'s \" `')"
        )
        DeltaTable.forPath(spark, path).delete(F.col(quoted(COLUMNS[0])) == "'0")
        spark.sql(f"DELETE FROM {name} WHERE {quoted(COLUMNS[2])} = '\"2'")
        left = [row for row in rows if row[0] != "'0" and row[2] != '"2']
        assert sorted(map(tuple, spark.table(name).collect())) == sorted(left)
        predicate = json.loads(log.commit_info(path)["operationParameters"]["predicate"])
        assert len(predicate) == 1 and COLUMNS[2] in predicate[0].replace("``", "`")
        assert table.detail().collect()[0]["partitionColumns"] == [COLUMNS[0]]
        assert table.history().count() == log.newest(path) + 1
        assert log.files_in(tmp_path, ".parquet") == log.files_in(path, ".parquet"), "escaped"
    finally:
        spark.sql(f"DROP TABLE {name}")


def test_columns_named_almost_as_scans_name_their_own_are_read_and_changed(
    spark: SparkSession, tmp_path: Path
) -> None:
    path = str(tmp_path / "table")
    names = ["__deltaic_id", "__deltaic_row_index_", "__deltaic", "_metadata_"]
    columns = {name: pa.array(range(n, n + 9), pa.int64()) for n, name in enumerate(names)}
    deltalake.write_deltalake(path, pa.table(columns))
    spark.sql(f"DELETE FROM delta.`{path}` WHERE __deltaic_id = 3")
    spark.sql(f"UPDATE delta.`{path}` SET __deltaic_row_index_ = 0 WHERE __deltaic = 4")
    rows = spark.read.format("delta").load(path)
    with pytest.raises(InvalidArgumentError, match=r"DELTAIC_RESERVED_COLUMN_NAME.*__deltaic_new"):
        added = rows.withColumn("__deltaic_new", F.lit(1)).write.format("delta").mode("append")
        added.option("mergeSchema", "true").save(path)
    found = rows.where("__deltaic_id < 8").collect()
    expected = [(i, 0 if i == 2 else i + 1, i + 2, i + 3) for i in range(8) if i != 3]
    assert sorted(map(tuple, found)) == expected


@pytest.mark.parametrize("column", ["__Row_Operation", "__original_row_id___deltaic_file_path"])
def test_columns_that_spark_would_take_for_its_own_are_written_and_not_updated(
    spark: SparkSession, tmp_path: Path, column: str
) -> None:
    path = str(tmp_path / "table")
    name = f"delta.`{path}`"
    spark.sql(
        f"CREATE TABLE {name} (id INT, `{column}` STRING) USING delta"
        " TBLPROPERTIES ('delta.columnMapping.mode' = 'name')"
    )
    spark.sql(f"INSERT INTO {name} VALUES (1, 'a'), (2, 'b')")
    spark.sql(f"DELETE FROM {name} WHERE id = 1")
    before = log.contents(path)
    merge = f"MERGE INTO {name} t USING (SELECT 2 AS k) ON id = k WHEN MATCHED THEN UPDATE SET id=3"
    for statement in (f"UPDATE {name} SET id = 3", merge):
        with pytest.raises(InvalidArgumentError, match=f"DELTAIC_RESERVED_COLUMN_NAME.*{column}"):
            spark.sql(statement)
    assert log.contents(path) == before
    spark.sql(f"ALTER TABLE {name} RENAME COLUMN `{column}` TO other")
    spark.sql(merge)
    assert [tuple(row) for row in spark.table(name).collect()] == [(3, "b")]


@pytest.mark.parametrize("column", ["__row_id", "__row_from_source", "__row_from_target"])
def test_columns_that_sparks_merges_would_take_for_their_own_are_not_merged(
    spark: SparkSession, tmp_path: Path, column: str
) -> None:
    name = f"delta.`{tmp_path / 'table'}`"
    spark.sql(f"CREATE TABLE {name} (id INT, `{column}` BIGINT) USING delta")
    spark.sql(f"INSERT INTO {name} VALUES (1, 7), (2, 7)")
    spark.sql(f"UPDATE {name} SET id = id + 1")
    with pytest.raises(InvalidArgumentError, match=f"DELTAIC_RESERVED_COLUMN_NAME.*{column}"):
        spark.sql(
            f"MERGE INTO {name} t USING (SELECT id AS k FROM range(9)) ON id = k"
            " WHEN MATCHED THEN UPDATE SET id = 3"
        )
    assert sorted(map(tuple, spark.table(name).collect())) == [(2, 7), (3, 7)]
