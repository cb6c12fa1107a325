"""Tables with Iceberg compatibility, as both engines define and write them."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import pyarrow.parquet as pq
import pytest
from pyspark.sql import SparkSession

from tests.peers.test_delta_spark import shown
from tests.support import log
from tests.support.spark_process import SparkProcess

RUN = """
for statement in statements:
    spark.sql(statement)
result = sorted(map(repr, spark.sql(f"SELECT * FROM delta.`{path}`").collect()))
"""

CREATE = {
    "V1": "CREATE TABLE delta.`{t}` (id BIGINT, s STRUCT<a: INT, b: STRING>, ts TIMESTAMP, p DATE) "
    "USING delta PARTITIONED BY (p) TBLPROPERTIES ('delta.enableIcebergCompatV1' = 'true')",
    "V2": "CREATE TABLE delta.`{t}` (id BIGINT, s STRUCT<a: INT, b: ARRAY<ARRAY<INT>>>, "
    "m MAP<STRING, STRUCT<x: ARRAY<BIGINT>>>, ts TIMESTAMP, p DATE) USING delta "
    "PARTITIONED BY (p) TBLPROPERTIES ('delta.enableIcebergCompatV2' = 'true')",
}
ROWS = {
    "V1": "INSERT INTO delta.`{t}` VALUES (1, named_struct('a', 1, 'b', 'x'), "
    "TIMESTAMP '2024-01-01 00:00:00', DATE '2024-02-29'), (2, null, null, null)",
    "V2": "INSERT INTO delta.`{t}` VALUES (1, named_struct('a', 1, 'b', array(array(1, 2))), "
    "map('k', named_struct('x', array(5L))), TIMESTAMP '2024-01-01 00:00:00', "
    "DATE '2024-02-29'), (2, null, null, null, null)",
}


def field_ids(table: str) -> list[list[Any]]:
    """Return the ids in each data file: of each column, followed by those of what is in it."""
    files = [pq.ParquetFile(log.data_path(table, add)) for add in log.active_files(table)]
    return [[_ids(column) for column in file.schema_arrow] for file in files]


def _ids(field: Any) -> list[Any]:
    own = (field.metadata or {}).get(b"PARQUET:field_id")
    parts = [field.type.field(i) for i in range(field.type.num_fields)]
    return [own and int(own), *map(_ids, parts)]


@pytest.mark.parametrize("version", CREATE)
@pytest.mark.parametrize("maker", ["deltaic", "delta-spark"])
def test_files_of_both_engines_have_the_columns_and_ids_that_iceberg_needs(
    spark: SparkSession, delta_spark: SparkProcess, table: str, version: str, maker: str
) -> None:
    create, insert = (text[version].replace("{t}", table) for text in (CREATE, ROWS))
    if maker == "deltaic":
        spark.sql(create)
    else:
        delta_spark.run(RUN, statements=[create], path=table)
    spark.sql(insert)
    ours = field_ids(table)
    rows = shown(spark.read.format("delta").load(table))
    assert delta_spark.run(RUN, statements=[], path=table) == rows
    both = delta_spark.run(RUN, statements=[insert], path=table)
    assert shown(spark.read.format("delta").load(table)) == both

    assert all(file == ours[0] for file in field_ids(table)), "delta-spark's files have other ids"
    columns = json.loads(log.metadata(table)["schemaString"])["fields"]
    assert [ids[0] for ids in ours[0]] == [
        column["metadata"]["delta.columnMapping.id"] for column in columns
    ]
    given = [number for ids in ours[0] for number in _flat(ids) if number is not None]
    newest = log.metadata(table)["configuration"]["delta.columnMapping.maxColumnId"]
    assert sorted(given) == list(range(1, int(newest) + 1))


def _flat(ids: list[Any]) -> Iterator[Any]:
    for part in ids:
        yield from _flat(part) if isinstance(part, list) else [part]
