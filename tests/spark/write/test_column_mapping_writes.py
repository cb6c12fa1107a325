"""Writing to tables whose columns have physical names (Protocol § Column Mapping)."""

from __future__ import annotations

import json
from typing import Any

import pyarrow.parquet as pq
import pytest
from pyspark.sql import SparkSession

from deltaic.exceptions import InvalidArgumentError
from tests.support import log
from tests.support.table_builder import in_order, rows_of

MODE = "delta.columnMapping.mode"


def fields(table: str) -> dict[str, dict[str, Any]]:
    """Return the metadata of every field, by its path."""
    found: dict[str, dict[str, Any]] = {}

    def walk(node: Any, path: str) -> None:
        if not isinstance(node, dict):
            return
        for part in node.get("fields", ()):
            found[path + part["name"]] = part["metadata"]
            walk(part["type"], f"{path}{part['name']}.")
        for key, name in (("elementType", "element"), ("keyType", "key"), ("valueType", "value")):
            walk(node.get(key), f"{path}{name}.")

    walk(json.loads(log.metadata(table)["schemaString"]), "")
    return found


def physical(table: str, column: str) -> str:
    return str(fields(table)[column]["delta.columnMapping.physicalName"])


def create(spark: SparkSession, table: str, mode: str, vectors: bool = True) -> None:
    df = spark.sql(
        "SELECT * FROM VALUES (1, 'a', named_struct('x', 1, 'y y', array(named_struct('z', 1)))), "
        "(2, 'b', named_struct('x', 2, 'y y', NULL)), (3, 'a', NULL) t(id, `p, q`, s)"
    )
    df.coalesce(1).write.format("delta").partitionBy("p, q").options(
        **{MODE: mode, "delta.enableDeletionVectors": str(vectors).lower()}
    ).save(table)


@pytest.mark.protocol("writer-column-mapping-1", "writer-column-mapping-11")
@pytest.mark.protocol("writer-column-mapping-9")
@pytest.mark.parametrize("mode", ["name", "id"])
def test_every_column_of_a_new_table_has_an_id_and_a_name_of_its_own(
    spark: SparkSession, table: str, mode: str
) -> None:
    create(spark, table, mode)
    mapped = fields(table)
    assert list(mapped) == ["id", "p, q", "s", "s.x", "s.y y", "s.y y.element.z"]
    ids = [metadata["delta.columnMapping.id"] for metadata in mapped.values()]
    assert ids == [1, 2, 3, 4, 5, 6]
    names = {metadata["delta.columnMapping.physicalName"] for metadata in mapped.values()}
    assert len(names) == 6 and all(name.startswith("col-") for name in names)
    assert log.metadata(table)["configuration"]["delta.columnMapping.maxColumnId"] == "6"
    (protocol,) = log.actions(table, 0, "protocol")
    assert protocol["minReaderVersion"] >= 2 and "columnMapping" in protocol["writerFeatures"]


@pytest.mark.protocol("consistency-between-table-metadata-and-data-files-2")
@pytest.mark.protocol("writer-column-mapping-5", "writer-column-mapping-6")
@pytest.mark.protocol("writer-column-mapping-7", "writer-column-mapping-8")
@pytest.mark.parametrize("mode", ["name", "id"])
def test_files_partition_values_and_statistics_go_by_physical_names(
    spark: SparkSession, table: str, mode: str
) -> None:
    create(spark, table, mode)
    for add in log.active_files(table):
        assert list(add["partitionValues"]) == [physical(table, "p, q")]
        assert physical(table, "id") in log.statistics(add)["minValues"]
        schema = pq.read_schema(log.data_path(table, add))
        assert schema.names == [physical(table, "id"), physical(table, "s")]
        inner = schema.field(1).type
        ids = [f.metadata[b"PARQUET:field_id"] for f in (*schema, inner.field(0), inner.field(1))]
        assert ids == [b"1", b"3", b"4", b"5"]


@pytest.mark.parametrize("mode", ["name", "id"])
@pytest.mark.parametrize("vectors", [True, False])
def test_rows_are_changed_as_in_any_table(
    spark: SparkSession, table: str, mode: str, vectors: bool
) -> None:
    create(spark, table, mode, vectors)
    target = f"delta.`{table}`"
    spark.sql(f"INSERT INTO {target} VALUES (4, 'c', NULL), (5, NULL, NULL)")
    spark.sql(f"DELETE FROM {target} WHERE id = 1")
    spark.sql(f"UPDATE {target} SET s.x = s.x + 10, `p, q` = 'z' WHERE id = 2")
    spark.sql(
        f"MERGE INTO {target} t USING (SELECT explode(array(4, 6)) k) u ON t.id = u.k "
        "WHEN MATCHED THEN UPDATE SET s = named_struct('x', 4, 'y y', NULL) "
        "WHEN NOT MATCHED THEN INSERT (id, `p, q`) VALUES (k, 'm')"
    )
    expected = [(2, "z", (12, None)), (3, "a", None), (4, "c", (4, None)), (5, None, None)]
    assert rows_of(spark, table) == in_order([*expected, (6, "m", None)])
    with_mode = spark.sql("SELECT 7 id, 'a' `p, q`").write.format("delta").mode("overwrite")
    with_mode.option("partitionOverwriteMode", "dynamic").save(table)
    assert [row[0] for row in rows_of(spark, table)] == [2, 4, 5, 6, 7]


@pytest.mark.protocol("writer-column-mapping-4", "writer-column-mapping-6")
def test_table_without_mapping_is_upgraded_in_place(spark: SparkSession, table: str) -> None:
    target = f"delta.`{table}`"
    spark.sql(
        f"CREATE TABLE {target} (id INT, s STRUCT<x: INT>, p STRING) USING delta PARTITIONED BY (p)"
    )
    spark.sql(f"INSERT INTO {target} VALUES (1, named_struct('x', 1), 'a')")
    spark.sql(f"ALTER TABLE {target} SET TBLPROPERTIES ('{MODE}' = 'name')")
    assert {n: physical(table, n) for n in fields(table)} == {
        "id": "id",
        "s": "s",
        "s.x": "x",
        "p": "p",
    }
    assert log.metadata(table)["configuration"]["delta.columnMapping.maxColumnId"] == "4"
    spark.sql(f"INSERT INTO {target} VALUES (2, named_struct('x', 2), 'b')")
    spark.sql(f"UPDATE {target} SET s.x = 5 WHERE id = 1")
    assert rows_of(spark, table) == [(1, (5,), "a"), (2, (2,), "b")]
    schema = pq.read_schema(log.data_path(table, log.active_files(table)[0]))
    assert schema.field("id").metadata[b"PARQUET:field_id"] == b"1"


@pytest.mark.protocol("writer-icebergcompatv1-1")
@pytest.mark.parametrize(("before", "after"), [("name", "id"), ("none", "id")])
def test_mode_that_would_leave_files_unreadable_is_refused(
    spark: SparkSession, table: str, before: str, after: str
) -> None:
    spark.sql("SELECT 1 id").write.format("delta").option(MODE, before).save(table)
    with pytest.raises(InvalidArgumentError, match=f"from {before} to {after}"):
        spark.sql(f"ALTER TABLE delta.`{table}` SET TBLPROPERTIES ('{MODE}' = '{after}')")
    with pytest.raises(InvalidArgumentError, match="cannot be unset"):
        spark.sql(f"ALTER TABLE delta.`{table}` UNSET TBLPROPERTIES ('{MODE}')")


@pytest.mark.protocol("writer-column-mapping-9")
def test_replaced_columns_get_ids_and_names_that_no_file_has_had(
    spark: SparkSession, table: str
) -> None:
    spark.sql("SELECT 1 a, 2 b").write.format("delta").option(MODE, "name").save(table)
    before = fields(table)
    df = spark.sql("SELECT 'x' a, 2 b, 3 c")
    df.write.format("delta").mode("overwrite").option("overwriteSchema", "true").save(table)
    after = fields(table)
    assert after["b"] == before["b"]
    assert [after[n]["delta.columnMapping.id"] for n in ("a", "c")] == [3, 4]
    assert after["a"] != before["a"]
    assert rows_of(spark, table) == [("x", 2, 3)]
    assert rows_of(spark, table, version=0) == [(1, 2)]


def test_table_made_of_mapped_rows_does_not_take_over_their_mapping(
    spark: SparkSession, table: str, tmp_path: object
) -> None:
    create(spark, table, "name")
    rows = spark.read.format("delta").load(table).select("id", "s.x")
    rows.write.format("delta").save(f"{tmp_path}/plain")
    assert fields(f"{tmp_path}/plain") == {"id": {}, "x": {}}


@pytest.mark.protocol("append-only-tables-2", "writer-icebergcompatv2-1")
def test_properties_are_set_and_unset(spark: SparkSession, table: str) -> None:
    target = f"delta.`{table}`"
    spark.sql(f"CREATE TABLE {target} (id INT) USING delta")
    spark.sql(
        f"ALTER TABLE {target} SET TBLPROPERTIES ('mine' = '1', 'delta.APPENDONLY' = 'true', "
        "'delta.enableDeletionVectors' = 'true')"
    )
    (protocol,) = log.last_actions(table, "protocol")
    assert {"appendOnly", "invariants", "deletionVectors"} == set(protocol["writerFeatures"])
    assert log.metadata(table)["configuration"] == {
        "mine": "1",
        "delta.appendOnly": "true",
        "delta.enableDeletionVectors": "true",
    }
    assert log.commit_info(table)["operation"] == "SET TBLPROPERTIES"
    spark.sql(f"ALTER TABLE {target} UNSET TBLPROPERTIES ('mine', 'delta.appendOnly')")
    assert log.metadata(table)["configuration"] == {"delta.enableDeletionVectors": "true"}
    for wrong in ("'delta.appendOnly' = 'maybe'", "'delta.constraints.c' = 'id > 0'"):
        with pytest.raises(InvalidArgumentError):
            spark.sql(f"ALTER TABLE {target} SET TBLPROPERTIES ({wrong})")
    with pytest.raises(Exception, match="mode must be name or id"):
        spark.sql(
            f"ALTER TABLE {target} SET TBLPROPERTIES ('delta.enableIcebergCompatV2' = 'true')"
        )
