"""Tables that we drop a feature from: delta-spark and delta-rs read them and write them.

A reader that lacks the feature reads them, too.
"""

from __future__ import annotations

import pyarrow as pa
import pytest
from deltalake import DeltaTable, write_deltalake
from pyspark.sql import SparkSession

from deltaic import DeltaTable as OurTable
from deltaic.exceptions import TableStateError
from tests.support import log
from tests.support.maintenance import await_maintenance
from tests.support.plain_reader import Unreadable, plain_rows
from tests.support.quick import quick_and_thorough
from tests.support.session_settings import session_settings
from tests.support.spark_process import SparkProcess

GO_ON = """
name = f"delta.`{path}`"
spark.sql(f"INSERT INTO {name} VALUES (-7, 'theirs')")
spark.sql(f"UPDATE {name} SET v = 'changed' WHERE id = 1")
history = spark.sql(f"DESCRIBE HISTORY {name}")
history = history.select("version", "operation", "operationParameters")
detail = spark.sql(f"DESCRIBE DETAIL {name}").select("tableFeatures").head()[0]
rows = sorted(map(list, spark.sql(f"SELECT id, v FROM {name}").collect()))
result = {"history": sorted(map(list, history.collect())), "features": detail, "rows": rows}
"""


@pytest.mark.parametrize(
    ("feature", "properties", "before"),
    [
        (
            "checkConstraints",
            "",
            ["ADD CONSTRAINT c CHECK (id > 0)", "DROP CONSTRAINT c"],
        ),
        ("domainMetadata", "'delta.feature.domainMetadata' = 'supported'", []),
        ("inCommitTimestamp", "'delta.enableInCommitTimestamps' = 'true'", []),
        (
            "materializePartitionColumns",
            "'delta.enableMaterializePartitionColumnsFeature' = 'true'",
            [],
        ),
        ("vacuumProtocolCheck", "'delta.feature.vacuumProtocolCheck' = 'supported'", []),
    ],
)
def test_peers_go_on_with_a_table_that_lost_a_feature(
    spark: SparkSession,
    delta_spark: SparkProcess,
    table: str,
    feature: str,
    properties: str,
    before: list[str],
) -> None:
    name = f"delta.`{table}`"
    given = f"TBLPROPERTIES ({properties})" if properties else ""
    spark.sql(f"CREATE TABLE {name} (id BIGINT, v STRING) USING delta {given}")
    for change in before:
        spark.sql(f"ALTER TABLE {name} {change}")
    spark.sql(f"INSERT INTO {name} VALUES (1, 'a'), (2, 'b')")
    spark.sql(f"ALTER TABLE {name} DROP FEATURE {feature}")
    dropped = log.newest(table)

    seen = delta_spark.run(GO_ON, path=table)
    assert seen["rows"] == [[-7, "theirs"], [1, "changed"], [2, "b"]]
    assert feature not in seen["features"]
    version, operation, parameters = seen["history"][dropped]
    assert (version, operation, parameters["featureName"]) == (dropped, "DROP FEATURE", feature)
    assert [row[0] for row in seen["history"]] == list(range(dropped + 3))

    more = pa.table({"id": pa.array([3], pa.int64()), "v": ["rust"]})
    write_deltalake(table, more, mode="append")
    ours = sorted(map(tuple, spark.read.format("delta").load(table).collect()))
    assert ours == [(-7, "theirs"), (1, "changed"), (2, "b"), (3, "rust")]
    theirs = DeltaTable(table).to_pyarrow_table().to_pylist()
    assert sorted((row["id"], row["v"]) for row in theirs) == ours


READ_AND_WRITE = """
name = f"delta.`{path}`"
found = spark.read.format("delta").load(path)
rows = sorted(str(row) for row in found.selectExpr("to_json(struct(*))").collect())
spark.sql(f"INSERT INTO {name} SELECT * FROM {name} LIMIT 1")
detail = spark.sql(f"DESCRIBE DETAIL {name}").select("tableFeatures").head()[0]
result = {"rows": rows, "features": detail, "count": found.count()}
"""

#: Statements after which a table uses a feature in files, log and checkpoints.
USES: dict[str, list[str]] = {
    "deletionVectors": [
        "CREATE TABLE {} (id BIGINT, p STRING) USING delta PARTITIONED BY (p) "
        "TBLPROPERTIES ('delta.enableDeletionVectors' = 'true')",
        "INSERT INTO {} SELECT /*+ REPARTITION(1) */ id, 'a b' FROM range(20)",
        "INSERT INTO {} VALUES (100, 'c')",
        "DELETE FROM {} WHERE id IN (3, 5)",
        "UPDATE {} SET id = -1 WHERE id = 7",
    ],
    "typeWidening": [
        "CREATE TABLE {} (id INT, p STRING) USING delta "
        "TBLPROPERTIES ('delta.enableTypeWidening' = 'true')",
        "INSERT INTO {} VALUES (1, 'a'), (2, 'b')",
        "ALTER TABLE {} ALTER COLUMN id TYPE BIGINT",
        "INSERT INTO {} VALUES (3000000000, 'c')",
    ],
    "columnMapping": [
        "CREATE TABLE {} (id BIGINT, x STRING, v STRING, p STRING) USING delta "
        "PARTITIONED BY (p) TBLPROPERTIES ('delta.columnMapping.mode' = 'name')",
        "INSERT INTO {} VALUES (1, 'x', 'a', 'p'), (2, 'x', 'b', 'q')",
        "ALTER TABLE {} RENAME COLUMN v TO w",
        "ALTER TABLE {} RENAME COLUMN p TO part",
        "ALTER TABLE {} DROP COLUMN x",
        "INSERT INTO {} VALUES (3, 'c', 'q')",
    ],
    "v2Checkpoint": [
        "CREATE TABLE {} (id BIGINT, p STRING) USING delta TBLPROPERTIES "
        "('delta.checkpointPolicy' = 'v2', 'delta.checkpointInterval' = '2')",
        "INSERT INTO {} VALUES (1, 'a')",
        "INSERT INTO {} VALUES (2, 'b')",
        "INSERT INTO {} VALUES (3, 'c')",
    ],
    "rowTracking": [
        "CREATE TABLE {} (id BIGINT, p STRING) USING delta "
        "TBLPROPERTIES ('delta.enableRowTracking' = 'true')",
        "INSERT INTO {} VALUES (1, 'a'), (2, 'b')",
        "UPDATE {} SET p = 'c' WHERE id = 1",
    ],
}
READER_FEATURES = ("deletionVectors", "typeWidening", "columnMapping", "v2Checkpoint")


def as_json(spark: SparkSession, table: str) -> list[str]:
    found = spark.read.format("delta").load(table).selectExpr("to_json(struct(*))")
    return sorted(str(row) for row in found.collect())


def plain(spark: SparkSession, table: str) -> list[tuple[object, ...]]:
    return sorted(map(tuple, spark.read.format("delta").load(table).collect()))


def make(spark: SparkSession, table: str, feature: str) -> str:
    name = f"delta.`{table}`"
    for statement in USES[feature]:
        spark.sql(statement.format(name))
    await_maintenance(spark)
    return name


@pytest.mark.protocol("dv-functional-7")
@pytest.mark.parametrize("feature", quick_and_thorough(USES, "deletionVectors", "columnMapping"))
def test_every_reader_reads_a_table_that_lost_a_feature_it_used(
    spark: SparkSession, delta_spark: SparkProcess, table: str, feature: str
) -> None:
    name = make(spark, table, feature)
    before, rows = as_json(spark, table), plain(spark, table)
    with pytest.raises(Unreadable):
        plain_rows(table, feature)

    if feature in ("deletionVectors", "rowTracking"):
        spark.sql(f"ALTER TABLE {name} DROP FEATURE {feature}")
    else:
        OurTable.forPath(spark, table).dropFeatureSupport(feature)

    features = set(OurTable.forPath(spark, table).detail().collect()[0].tableFeatures)
    assert feature not in features
    protected = log.metadata(table)["configuration"].get(
        "delta.requireCheckpointProtectionBeforeVersion"
    )
    if feature in READER_FEATURES:
        assert "checkpointProtection" in features
        assert protected == str(log.newest(table))
    else:
        assert protected is None
    assert as_json(spark, table) == before
    assert sorted(plain_rows(table, feature)) == rows
    theirs = DeltaTable(table).to_pyarrow_table().to_pylist()
    assert sorted(tuple(row.values()) for row in theirs) == rows
    seen = delta_spark.run(READ_AND_WRITE, path=table)
    assert seen["rows"] == before
    assert feature not in seen["features"]
    assert seen["count"] == len(rows) + 1
    assert len(plain_rows(table, feature)) == len(rows) + 1


def test_tombstones_keep_the_files_of_vectors_that_older_versions_need(
    spark: SparkSession, table: str
) -> None:
    with session_settings(spark, {"spark.deltaic.deletionVectors.maxInlineBytes": "0"}):
        name = make(spark, table, "deletionVectors")
    slow = {"spark.deltaic.tableFeatures.fastDropFeature.enabled": "false"}
    with session_settings(spark, slow), pytest.raises(TableStateError, match="interval 30 days"):
        spark.sql(f"ALTER TABLE {name} DROP FEATURE deletionVectors")
    removed = {a["path"] for v in log.versions(table) for a in log.actions(table, v, "remove")}
    vectors = log.files_in(table, ".bin")
    assert vectors and vectors <= removed
    assert log.last_actions(table, "remove") == []


@pytest.mark.parametrize("feature", quick_and_thorough(READER_FEATURES, "deletionVectors"))
def test_history_is_truncated_in_two_runs(
    spark: SparkSession, delta_spark: SparkProcess, table: str, feature: str
) -> None:
    name = make(spark, table, feature)
    before, rows, used = as_json(spark, table), plain(spark, table), log.newest(table)
    statement = f"ALTER TABLE {name} DROP FEATURE {feature} TRUNCATE HISTORY"
    with pytest.raises(TableStateError, match="Run the statement again after") as caught:
        spark.sql(statement)
    assert caught.value.condition == "DELTAIC_FEATURE_IN_HISTORY"
    spark.sql(
        f"ALTER TABLE {name} SET TBLPROPERTIES "
        "('delta.dropFeatureTruncateHistory.retentionDuration' = 'interval 0 seconds')"
    )
    spark.sql(statement)
    assert log.versions(table)[0] > used
    features = set(OurTable.forPath(spark, table).detail().collect()[0].tableFeatures)
    assert features == {"appendOnly", "invariants"}
    assert as_json(spark, table) == before
    assert sorted(plain_rows(table, feature)) == rows
    theirs = DeltaTable(table).to_pyarrow_table().to_pylist()
    assert sorted(tuple(row.values()) for row in theirs) == rows
    assert delta_spark.run(READ_AND_WRITE, path=table)["rows"] == before


@pytest.mark.thorough
def test_protection_that_delta_spark_left_is_dropped_with_the_history(
    spark: SparkSession, delta_spark: SparkProcess, table: str
) -> None:
    make(spark, table, "deletionVectors")
    delta_spark.run(
        'spark.sql(f"ALTER TABLE delta.`{path}` DROP FEATURE deletionVectors")', path=table
    )
    dropped = log.newest(table)
    name, before = f"delta.`{table}`", as_json(spark, table)
    spark.sql(
        f"ALTER TABLE {name} SET TBLPROPERTIES "
        "('delta.dropFeatureTruncateHistory.retentionDuration' = 'interval 0 seconds')"
    )
    spark.sql(f"ALTER TABLE {name} DROP FEATURE checkpointProtection TRUNCATE HISTORY")
    assert log.versions(table)[0] >= dropped
    assert len(DeltaTable(table).to_pyarrow_table()) == len(before)
    assert delta_spark.run(READ_AND_WRITE, path=table)["rows"] == before


@pytest.mark.thorough
def test_files_without_mapping_keep_vectors_row_ids_clustering_and_nested_columns(
    spark: SparkSession, delta_spark: SparkProcess, table: str
) -> None:
    name = f"delta.`{table}`"
    spark.sql(
        f"CREATE TABLE {name} (id BIGINT, s STRUCT<a: INT, b: ARRAY<STRUCT<c: STRING>>>) "
        "USING delta CLUSTER BY (id) TBLPROPERTIES ('delta.columnMapping.mode' = 'id', "
        "'delta.enableRowTracking' = 'true', 'delta.enableDeletionVectors' = 'true')"
    )
    spark.sql(
        f"INSERT INTO {name} SELECT id, named_struct('a', CAST(id AS INT), 'b', "
        "array(named_struct('c', 'x'))) FROM range(20)"
    )
    spark.sql(f"ALTER TABLE {name} RENAME COLUMN id TO key")
    spark.sql(f"ALTER TABLE {name} RENAME COLUMN s.a TO first")
    spark.sql(f"DELETE FROM {name} WHERE key IN (3, 4)")
    ids = f"SELECT key, _metadata.row_id FROM {name}"
    spark.sql(f"OPTIMIZE {name} FULL")
    before, row_ids = as_json(spark, table), sorted(spark.sql(ids).collect())
    (clustered,) = log.active_files(table)
    spark.sql(f"ALTER TABLE {name} SET TBLPROPERTIES ('delta.columnMapping.mode' = 'none')")
    assert log.commit_info(table)["tags"] == {"delta.rowTracking.preserved": "true"}
    (rewritten,) = log.active_files(table)
    cube = {key: value for key, value in clustered["tags"].items() if key.startswith("ZCUBE")}
    assert cube and cube.items() <= rewritten["tags"].items()
    assert as_json(spark, table) == before
    assert sorted(spark.sql(ids).collect()) == row_ids
    assert OurTable.forPath(spark, table).detail().collect()[0].clusteringColumns == ["key"]
    assert not any(log.dv_id(add) for add in log.active_files(table))
    assert "physicalName" not in log.metadata(table)["schemaString"]
    spark.sql(f"ALTER TABLE {name} DROP FEATURE columnMapping")
    assert as_json(spark, table) == before
    seen = delta_spark.run(READ_AND_WRITE, path=table)
    assert seen["rows"] == before
    assert seen["count"] == len(before) + 1


@pytest.mark.thorough
def test_only_files_with_older_types_are_rewritten_at_every_depth(
    spark: SparkSession, delta_spark: SparkProcess, table: str
) -> None:
    name = f"delta.`{table}`"
    spark.sql(
        f"CREATE TABLE {name} (b TINYINT, d DECIMAL(5, 2), s STRUCT<a: ARRAY<SMALLINT>, v: VOID>, "
        "m MAP<INT, FLOAT>) USING delta TBLPROPERTIES ('delta.enableTypeWidening' = 'true')"
    )
    row = "(1, 1.25, named_struct('a', array(2S), 'v', NULL), map(3, CAST(0.5 AS FLOAT)))"
    spark.sql(f"INSERT INTO {name} VALUES {row}")
    for column, wider in (
        ("b", "SMALLINT"),
        ("d", "DECIMAL(10, 4)"),
        ("s.a.element", "INT"),
        ("m.key", "BIGINT"),
        ("m.value", "DOUBLE"),
    ):
        spark.sql(f"ALTER TABLE {name} ALTER COLUMN {column} TYPE {wider}")
    spark.sql(f"INSERT INTO {name} VALUES {row}")
    (kept,) = (add["path"] for add in log.last_actions(table, "add"))
    before = as_json(spark, table)
    spark.sql(f"ALTER TABLE {name} DROP FEATURE typeWidening")
    assert as_json(spark, table) == before
    files = [add["path"] for add in log.active_files(table)]
    assert kept in files and len(files) == 2
    assert "typeChanges" not in log.metadata(table)["schemaString"]
    assert delta_spark.run(READ_AND_WRITE, path=table)["rows"] == before
