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
from tests.support.delta_rs import by_query, in_order
from tests.support.spark_process import SparkProcess
from tests.support.table_builder import rows_of

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
CREATE["V3"] = CREATE["V2"].replace("V2", "V3")
ROWS = {
    "V1": "INSERT INTO delta.`{t}` VALUES (1, named_struct('a', 1, 'b', 'x'), "
    "TIMESTAMP '2024-01-01 00:00:00', DATE '2024-02-29'), (2, null, null, null)",
    "V2": "INSERT INTO delta.`{t}` VALUES (1, named_struct('a', 1, 'b', array(array(1, 2))), "
    "map('k', named_struct('x', array(5L))), TIMESTAMP '2024-01-01 00:00:00', "
    "DATE '2024-02-29'), (2, null, null, null, null)",
}
ROWS["V3"] = ROWS["V2"]


def field_ids(table: str) -> list[list[Any]]:
    """Return the ids in each data file: of each column, followed by those of what is in it."""
    files = [pq.ParquetFile(log.data_path(table, add)) for add in log.active_files(table)]
    return [[_ids(column) for column in file.schema_arrow] for file in files]


def _ids(field: Any) -> list[Any]:
    own = (field.metadata or {}).get(b"PARQUET:field_id")
    parts = [field.type.field(i) for i in range(field.type.num_fields)]
    return [own and int(own), *map(_ids, parts)]


@pytest.mark.protocol("writer-column-mapping-6", "writer-icebergcompatv1-3")
@pytest.mark.protocol("writer-icebergcompatv2-3", "writer-icebergcompatv2-6")
@pytest.mark.protocol("writer-icebergcompatv2-9")
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


MAPPED = "'delta.columnMapping.mode' = 'name'"
V1 = "'delta.enableIcebergCompatV1' = 'true'"
V2 = "'delta.enableIcebergCompatV2' = 'true'"
TRACKED = "'delta.enableRowTracking' = 'true'"


def alter(spark: SparkSession, table: str, properties: str) -> None:
    spark.sql(f"ALTER TABLE delta.`{table}` SET TBLPROPERTIES ({properties})")


@pytest.mark.protocol("writer-icebergcompatv2-2", "writer-icebergcompatv2-6")
def test_delta_spark_goes_on_with_a_table_that_became_compatible(
    spark: SparkSession, delta_spark: SparkProcess, table: str
) -> None:
    columns = "id BIGINT, s STRUCT<a: INT, b: STRING>, ts TIMESTAMP"
    spark.sql(f"CREATE TABLE delta.`{table}` ({columns}) USING delta TBLPROPERTIES ({MAPPED})")
    row = "1, named_struct('a', 1, 'b', 'x'), TIMESTAMP '2024-01-01 00:00:00'"
    insert = f"INSERT INTO delta.`{table}` VALUES ({row})"
    spark.sql(insert)
    alter(spark, table, V1)
    assert len(delta_spark.run(RUN, statements=[insert], path=table)) == 2

    # Without types that version 1 does not know, and with ids in all files, the other follows.
    spark.sql(f"DELETE FROM delta.`{table}`")  # timestamps of delta-spark may have 96 bits
    spark.sql(insert)
    alter(spark, table, f"'delta.enableIcebergCompatV1' = 'false', {V2}")
    spark.sql(f"ALTER TABLE delta.`{table}` ADD COLUMNS (m MAP<STRING, ARRAY<INT>>)")
    insert = f"INSERT INTO delta.`{table}` VALUES ({row}, map('k', array(1)))"
    spark.sql(insert)
    both = delta_spark.run(RUN, statements=[insert], path=table)
    assert len(both) == 3
    assert shown(spark.read.format("delta").load(table)) == both
    newest = [ids for ids in field_ids(table) if len(ids) == 4]
    assert newest == [[[1], [2, [3], [4]], [5], [6, [None, [7], [8, [9]]]]]] * 2


WRITTEN = {
    "not all columns": ("'delta.appendOnly' = 'false'", MAPPED, V2),
    "96 bits": (MAPPED, "", V2),
    "deletion vector": (
        f"{MAPPED}, 'delta.enableDeletionVectors' = 'true'",
        "'delta.enableDeletionVectors' = 'false'",
        V2,
    ),
}


@pytest.mark.protocol("writer-icebergcompatv1-3", "writer-icebergcompatv2-11")
def test_a_table_stays_as_it_is_if_files_of_it_are_of_no_use_to_iceberg(
    spark: SparkSession, delta_spark: SparkProcess, table: str
) -> None:
    tables = {reason: f"{table}{number}" for number, reason in enumerate(WRITTEN)}
    statements = [
        statement
        for reason, (properties, _, _) in WRITTEN.items()
        for statement in (
            f"CREATE TABLE delta.`{tables[reason]}` (id BIGINT, ts TIMESTAMP) USING delta "
            f"TBLPROPERTIES ({properties})",
            f"INSERT INTO delta.`{tables[reason]}` SELECT /*+ COALESCE(1) */ id, "
            "TIMESTAMP '2024-01-01 00:00:00' FROM range(2)",
        )
    ]
    vectors = tables["deletion vector"]
    statements.append(f"DELETE FROM delta.`{vectors}` WHERE id = 1")
    partitioned = [
        f"CREATE TABLE delta.`{table}` (id BIGINT, p INT) USING delta PARTITIONED BY (p) "
        f"TBLPROPERTIES ({MAPPED})",
        f"INSERT INTO delta.`{table}` VALUES (1, 2)",
    ]
    for statement in partitioned:
        spark.sql(statement)
    # Under column mapping, delta-spark leaves the partition columns in its files; we do not.
    theirs = [statement.replace(table, f"{table}-theirs") for statement in partitioned]
    delta_spark.run(RUN, statements=[*statements, *theirs], path=vectors)
    alter(spark, f"{table}-theirs", V1)
    with pytest.raises(Exception, match="does not hold the values of the partition columns"):
        alter(spark, table, V1)
    for reason, (_, before, properties) in WRITTEN.items():
        if before:
            alter(spark, tables[reason], before)
        with pytest.raises(Exception, match=reason):
            alter(spark, tables[reason], properties)


@pytest.mark.parametrize("maker", ["deltaic", "delta-spark"])
def test_materialized_row_ids_have_the_ids_that_iceberg_reserves(
    spark: SparkSession, delta_spark: SparkProcess, table: str, maker: str
) -> None:
    name = f"delta.`{table}`"
    create = (
        f"CREATE TABLE {name} (id BIGINT, s STRUCT<a: INT>, d STRING DEFAULT 'it''s') USING delta "
        "TBLPROPERTIES ('delta.enableIcebergCompatV3' = 'true', "
        "'delta.feature.allowColumnDefaults' = 'supported')"
    )
    insert = f"INSERT INTO {name} (id, s) VALUES (1, named_struct('a', 1)), (2, NULL)"
    update = f"UPDATE {name} SET id = 5 WHERE id = 1"
    if maker == "deltaic":
        for statement in (create, insert, update):
            spark.sql(statement)
    else:
        delta_spark.run(RUN, statements=[create, insert, update], path=table)
    properties = log.metadata(table)["configuration"]
    tracked = [
        properties[f"delta.rowTracking.materialized{kind}ColumnName"]
        for kind in ("RowId", "RowCommitVersion")
    ]
    (add,) = log.last_actions(table, "add")
    file = pq.ParquetFile(log.data_path(table, add)).schema_arrow
    assert [_ids(file.field(column))[0] for column in tracked] == [2147483540, 2147483539]
    assert add["tags"]["ICEBERG_COMPAT_VERSION"] == "3"
    (protocol,) = log.actions(table, 0, "protocol")
    assert {"icebergCompatV3", "rowTracking", "columnMapping"} <= set(protocol["writerFeatures"])
    rows = shown(spark.read.format("delta").load(table))
    assert delta_spark.run(RUN, statements=[], path=table) == rows
    ids = "SELECT id, _metadata.row_id FROM {t} ORDER BY id".replace("{t}", name)
    assert [tuple(row) for row in spark.sql(ids).collect()] == [(2, 1), (5, 0)]


def test_a_table_of_version_3_may_have_deletion_vectors(
    spark: SparkSession, delta_spark: SparkProcess, table: str
) -> None:
    name = f"delta.`{table}`"
    spark.sql(
        f"CREATE TABLE {name} (id BIGINT) USING delta TBLPROPERTIES ({MAPPED}, "
        "'delta.enableRowTracking' = 'true', 'delta.enableDeletionVectors' = 'true')"
    )
    spark.sql(f"INSERT INTO {name} SELECT /*+ COALESCE(1) */ id FROM range(10)")
    spark.sql(f"DELETE FROM {name} WHERE id = 3")
    alter(spark, table, "'delta.enableIcebergCompatV3' = 'true'")
    spark.sql(f"DELETE FROM {name} WHERE id = 4")
    assert all(add.get("deletionVector") for add in log.active_files(table))
    rows = delta_spark.run(RUN, statements=[f"DELETE FROM {name} WHERE id = 5"], path=table)
    assert len(rows) == 7
    assert shown(spark.read.format("delta").load(table)) == rows


@pytest.mark.parametrize("maker", ["deltaic", "delta-spark"])
@pytest.mark.parametrize("version", [1, 2, 3])
def test_peers_read_and_write_a_table_after_reorg_with_upgrade_uniform(
    spark: SparkSession, delta_spark: SparkProcess, table: str, version: int, maker: str
) -> None:
    name = f"delta.`{table}`"
    properties = {
        1: "'delta.appendOnly' = 'false'",
        2: "'delta.enableDeletionVectors' = 'true'",
        3: TRACKED,
    }[version]
    made = [
        f"CREATE TABLE {name} (id BIGINT, ts TIMESTAMP, s STRUCT<a: INT>, p INT) USING delta "
        f"PARTITIONED BY (p) TBLPROPERTIES ({properties})",
        f"INSERT INTO {name} SELECT /*+ COALESCE(1) */ id, TIMESTAMP '2024-01-01 00:00:00', "
        "named_struct('a', 1), id % 2 FROM range(10)",
        f"DELETE FROM {name} WHERE id = 3",
    ]
    if maker == "deltaic":
        for statement in made:
            spark.sql(statement)
    else:
        delta_spark.run(RUN, statements=made, path=table)
    rows = shown(spark.read.format("delta").load(table))
    upgrade = f"APPLY (UPGRADE UNIFORM (ICEBERG_COMPAT_VERSION = {version}))"
    spark.sql(f"REORG TABLE {name} {upgrade}")
    assert shown(spark.read.format("delta").load(table)) == rows
    assert delta_spark.run(RUN, statements=[], path=table) == rows
    assert in_order(by_query(table)) == in_order(rows_of(spark, table))
    row_ids = [[2147483540], [2147483539]] if version == 3 else []
    assert field_ids(table) == [[[1], [2], [3, [4]], *row_ids, [5]]] * 2
    insert = f"INSERT INTO {name} VALUES (11, TIMESTAMP '2024-01-01 00:00:00', null, 1)"
    both = delta_spark.run(RUN, statements=[insert, f"OPTIMIZE {name}"], path=table)
    assert shown(spark.read.format("delta").load(table)) == both
    assert len(both) == 10
