"""What a restored table has besides its rows, and what readers of its changes see."""

from __future__ import annotations

import json
from collections import Counter
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from pyspark.errors import StreamingQueryException

from deltaic import DeltaTable
from tests.support import log
from tests.support.table_builder import build_table, rows_of

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

FEED = "'delta.enableChangeDataFeed' = 'true'"
VECTORS = "'delta.enableDeletionVectors' = 'true'"
TRACKED = "'delta.enableRowTracking' = 'true'"
MAPPED = "'delta.columnMapping.mode' = 'name'"


def run(spark: SparkSession, table: str, *statements: str) -> None:
    for statement in statements:
        spark.sql(statement.replace("{t}", f"delta.`{table}`"))


#: Histories; after each, every version is restored in turn.
HISTORIES: dict[str, list[str]] = {
    "columns": [
        f"CREATE TABLE {{t}} (id INT, v STRING) USING delta TBLPROPERTIES ({MAPPED}, {VECTORS})",
        "INSERT INTO {t} VALUES (1, 'a'), (2, 'b')",
        "ALTER TABLE {t} ADD COLUMN w INT",
        "INSERT INTO {t} VALUES (3, 'c', 30)",
        "ALTER TABLE {t} RENAME COLUMN v TO x",
        "DELETE FROM {t} WHERE id = 1",
        "ALTER TABLE {t} DROP COLUMN w",
        "ALTER TABLE {t} ADD COLUMN w STRING",
        "INSERT INTO {t} VALUES (4, 'd', 'w')",
    ],
    "mapping enabled": [
        "CREATE TABLE {t} (id INT, v STRING) USING delta",
        "INSERT INTO {t} VALUES (1, 'a'), (2, 'b')",
        f"ALTER TABLE {{t}} SET TBLPROPERTIES ({MAPPED})",
        "ALTER TABLE {t} RENAME COLUMN v TO x",
        "INSERT INTO {t} VALUES (3, 'c')",
    ],
    "types": [
        "CREATE TABLE {t} (id INT, v SMALLINT) USING delta "
        f"TBLPROPERTIES ('delta.enableTypeWidening' = 'true', {VECTORS})",
        "INSERT INTO {t} VALUES (1, 1), (2, 2)",
        "ALTER TABLE {t} ALTER COLUMN v TYPE BIGINT",
        "INSERT INTO {t} VALUES (3, 5000000000)",
        "DELETE FROM {t} WHERE id = 1",
    ],
    "replaced": [
        f"CREATE TABLE {{t}} (id INT, p STRING) USING delta PARTITIONED BY (p) "
        f"TBLPROPERTIES ({VECTORS})",
        "INSERT INTO {t} VALUES (1, 'a'), (2, 'b'), (3, NULL)",
        "CREATE OR REPLACE TABLE {t} (p INT, q DATE) USING delta",
        "INSERT INTO {t} VALUES (7, DATE '2024-01-01')",
        "CREATE OR REPLACE TABLE {t} (id BIGINT) USING delta CLUSTER BY (id)",
        "INSERT INTO {t} VALUES (9)",
        "ALTER TABLE {t} CLUSTER BY NONE",
    ],
    "row tracking": [
        f"CREATE TABLE {{t}} (id INT, v STRING) USING delta TBLPROPERTIES ({VECTORS})",
        "INSERT INTO {t} VALUES (1, 'a'), (2, 'b'), (3, 'c')",
        f"ALTER TABLE {{t}} SET TBLPROPERTIES ({TRACKED})",
        "UPDATE {t} SET v = 'new' WHERE id = 1",
        "INSERT INTO {t} VALUES (4, 'd')",
        "DELETE FROM {t} WHERE id = 2",
    ],
    "constraints and timestamps": [
        "CREATE TABLE {t} (id INT, v INT) USING delta",
        "INSERT INTO {t} VALUES (1, 1)",
        "ALTER TABLE {t} ADD CONSTRAINT positive CHECK (v > 0)",
        "ALTER TABLE {t} SET TBLPROPERTIES ('delta.enableInCommitTimestamps' = 'true')",
        "INSERT INTO {t} VALUES (2, 2)",
        "ALTER TABLE {t} DROP CONSTRAINT positive",
        "INSERT INTO {t} VALUES (3, -3)",
    ],
}


@pytest.mark.protocol("dv-generate-1")
@pytest.mark.parametrize("name", HISTORIES)
def test_each_version_of_a_history_is_restored(spark: SparkSession, table: str, name: str) -> None:
    run(spark, table, *HISTORIES[name])
    versions = log.versions(table)

    def shown(version: int | None = None) -> Any:
        options = {} if version is None else {"versionAsOf": version}
        df = spark.read.format("delta").options(**options).load(table)
        return df.schema, sorted(map(repr, df.collect()))

    expected = {v: shown(v) for v in versions}
    for version in [*versions, *reversed(versions)]:
        run(spark, table, f"RESTORE TABLE {{t}} TO VERSION AS OF {version}")
        assert shown() == shown(version) == expected[version], version


@pytest.mark.protocol("writer-column-mapping-13")
def test_restored_table_can_be_written_to(spark: SparkSession, table: str) -> None:
    run(spark, table, *HISTORIES["columns"], "RESTORE {t} VERSION AS OF 5")
    run(spark, table, "INSERT INTO {t} VALUES (5, 'e', 50)", "UPDATE {t} SET x = 'u' WHERE id = 3")
    assert rows_of(spark, table) == [(2, "b", None), (3, "u", 30), (5, "e", 50)]
    run(spark, table, "ALTER TABLE {t} ADD COLUMN z INT", "INSERT INTO {t} VALUES (6, 'f', 60, 1)")
    [metadata] = log.actions(table, log.newest(table) - 1, "metaData")
    fields = json.loads(metadata["schemaString"])["fields"]
    ids = [field["metadata"]["delta.columnMapping.id"] for field in fields]
    assert ids == [1, 2, 3, 5], "the id of the column that version 7 added is not assigned again"


def row_ids(spark: SparkSession, table: str) -> dict[int, tuple[int, int]]:
    rows = spark.read.format("delta").load(table)
    found = rows.selectExpr("id", "_metadata.row_id", "_metadata.row_commit_version").collect()
    return {row[0]: (row[1], row[2]) for row in found}


@pytest.mark.protocol("writer-row-tracking-3")
def test_rows_have_their_ids_again_and_new_rows_get_others(spark: SparkSession, table: str) -> None:
    rows = [[(n, "a") for n in range(4)], [(n, "b") for n in range(4, 8)]]
    build_table(
        spark, table, "id INT, v STRING", rows, properties={"delta.enableRowTracking": "true"}
    )
    run(spark, table, "UPDATE {t} SET v = 'u' WHERE id = 1")
    before = row_ids(spark, table)
    run(
        spark,
        table,
        "DELETE FROM {t} WHERE id IN (1, 2)",
        "DELETE FROM {t} WHERE id > 3",
        "INSERT INTO {t} VALUES (20, 'x'), (21, 'y')",
    )
    later = row_ids(spark, table)
    run(spark, table, "RESTORE {t} VERSION AS OF 1")
    assert row_ids(spark, table) == before
    run(spark, table, "INSERT INTO {t} VALUES (30, 'z')")
    ids = row_ids(spark, table)
    assert ids[30][0] > max(row_id for row_id, _ in [*before.values(), *later.values()])
    [info] = log.actions(table, 5, "commitInfo")
    assert info["tags"] == {"delta.rowTracking.preserved": "true"}


@pytest.mark.protocol("row-ids-1")
def test_rows_without_ids_keep_those_that_the_backfill_assigned(
    spark: SparkSession, table: str
) -> None:
    run(spark, table, *HISTORIES["row tracking"])
    run(spark, table, "INSERT INTO {t} VALUES (5, 'e')")
    before = row_ids(spark, table)
    run(spark, table, "RESTORE {t} VERSION AS OF 1")
    run(spark, table, f"ALTER TABLE {{t}} SET TBLPROPERTIES ({TRACKED})")
    after = row_ids(spark, table)
    assert after[3] == before[3], "the row was never gone"
    assert len({row_id for row_id, _ in after.values()}) == 3


@pytest.mark.protocol("writer-row-tracking-3")
def test_files_that_were_removed_meanwhile_keep_the_ids_of_the_backfill(
    spark: SparkSession, table: str
) -> None:
    rows = [[(n, "a") for n in range(4)], [(n, "b") for n in range(4, 8)]]
    build_table(spark, table, "id INT, v STRING", rows)
    run(
        spark,
        table,
        "INSERT INTO {t} VALUES (8, 'c')",
        "DELETE FROM {t} WHERE id = 0",
        f"ALTER TABLE {{t}} SET TBLPROPERTIES ({TRACKED})",
    )
    before = row_ids(spark, table)
    run(
        spark,
        table,
        "DELETE FROM {t} WHERE id < 4",
        "INSERT INTO {t} VALUES (20, 'x')",
        "DELETE FROM {t} WHERE id > 3 AND id < 20",
    )
    used = {row_id for row_id, _ in [*before.values(), *row_ids(spark, table).values()]}
    # No file of version 2 is in the newest version, and none has row IDs in version 2.
    run(spark, table, "RESTORE {t} VERSION AS OF 2")
    adds = log.active_files(table)
    assert len(adds) == 3 and all("baseRowId" in add for add in adds)
    run(spark, table, f"ALTER TABLE {{t}} SET TBLPROPERTIES ({TRACKED})")
    assert row_ids(spark, table) == before
    # So it is if the table is restored to a version in which the rows have IDs, and back.
    run(spark, table, "RESTORE {t} VERSION AS OF 0")
    run(spark, table, "INSERT INTO {t} VALUES (30, 'z')")
    run(spark, table, f"ALTER TABLE {{t}} SET TBLPROPERTIES ({TRACKED})")
    after = row_ids(spark, table)
    assert {key: ids for key, ids in after.items() if key in before and key < 8} == {
        key: ids for key, ids in before.items() if key < 8
    }
    assert after[30][0] not in used


def test_row_ids_from_before_row_tracking_was_dropped_do_not_come_back(
    spark: SparkSession, table: str
) -> None:
    build_table(spark, table, "id INT, v STRING", [[(n, "a") for n in range(100)]])
    enable = f"ALTER TABLE {{t}} SET TBLPROPERTIES ({TRACKED})"
    run(
        spark,
        table,
        enable,
        "ALTER TABLE {t} DROP FEATURE rowTracking",
        "DELETE FROM {t}",
        enable,
        "INSERT INTO {t} SELECT id + 200, 'b' FROM range(10)",
        "RESTORE {t} VERSION AS OF 0",
        enable,
        "INSERT INTO {t} SELECT id + 300, 'c' FROM range(20)",
    )
    ids = [row_id for row_id, _ in row_ids(spark, table).values()]
    assert len(ids) == 120 == len(set(ids))


def test_identity_values_are_not_generated_twice(spark: SparkSession, table: str) -> None:
    run(
        spark,
        table,
        "CREATE TABLE {t} (id BIGINT GENERATED ALWAYS AS IDENTITY, v STRING) USING delta",
        "INSERT INTO {t} (v) VALUES ('a')",
        "INSERT INTO {t} (v) VALUES ('b'), ('c')",
    )
    used = {row[0] for row in rows_of(spark, table)}
    for version in (1, 0):
        run(
            spark,
            table,
            f"RESTORE {{t}} VERSION AS OF {version}",
            "INSERT INTO {t} (v) VALUES ('d')",
        )
        [new] = [row[0] for row in rows_of(spark, table) if row[1] == "d"]
        assert new not in used
        used.add(new)


def test_clustering_columns_come_back(spark: SparkSession, table: str) -> None:
    run(spark, table, *HISTORIES["replaced"])
    for version, columns in {4: ["id"], 0: [], 5: ["id"], 6: []}.items():
        run(spark, table, f"RESTORE {{t}} VERSION AS OF {version}")
        assert DeltaTable.forPath(spark, table).detail().collect()[0].clusteringColumns == columns


def test_table_of_the_catalog_has_the_columns_of_the_version(spark: SparkSession) -> None:
    spark.sql("CREATE TABLE restored (id INT, v STRING) USING delta PARTITIONED BY (v)")
    try:
        spark.sql("INSERT INTO restored VALUES (1, 'a')")
        cached = spark.table("restored").cache()
        assert cached.count() == 1
        spark.sql("CREATE OR REPLACE TABLE restored (n DATE) USING delta")
        spark.sql("RESTORE TABLE restored TO VERSION AS OF 1")
        assert spark.table("restored").collect() == [(1, "a")]
        described = [row.col_name for row in spark.sql("DESCRIBE restored").collect()]
        assert described[:2] == ["id", "v"]
        spark.sql("INSERT INTO restored VALUES (2, 'b')")
        assert DeltaTable.forName(spark, "restored").toDF().count() == 2
        assert spark.catalog.listColumns("restored")[1].isPartition
    finally:
        spark.sql("DROP TABLE restored")


CHANGES = [
    f"CREATE TABLE {{t}} USING delta TBLPROPERTIES ({FEED}, {VECTORS}) AS "
    "SELECT /*+ REPARTITION(3) */ id, id % 7 AS v FROM range(300)",
    "DELETE FROM {t} WHERE id % 5 = 0",
    "DELETE FROM {t} WHERE id % 7 = 0",
    "UPDATE {t} SET v = 100 WHERE id % 11 = 0",
    "INSERT INTO {t} SELECT id + 1000, 0 FROM range(10)",
    "DELETE FROM {t} WHERE id % 3 = 0",
    "DELETE FROM {t} WHERE id > 20",
]


@pytest.mark.parametrize("version", range(6))
def test_change_data_feed_has_the_difference_of_the_rows(
    spark: SparkSession, table: str, version: int
) -> None:
    run(spark, table, *CHANGES)
    for step, target in enumerate((version, 6, 3)):
        before = Counter(rows_of(spark, table))
        run(spark, table, f"RESTORE {{t}} VERSION AS OF {target}")
        after = Counter(rows_of(spark, table))
        options = {"readChangeFeed": "true", "startingVersion": str(7 + step)}
        feed = spark.read.format("delta").options(**options).load(table).collect()
        changes: dict[str, Counter[Any]] = {"insert": Counter(), "delete": Counter()}
        for row in feed:
            changes[row["_change_type"]][(row["id"], row["v"])] += 1
        net = Counter(before)
        net.subtract(changes["delete"])
        net.update(changes["insert"])
        assert +net == after and not -net
        if step == 0 and version in (0, 1, 2):
            # The files of version 0 are the same; a row that stays in one of them is no change.
            same = before & after
            moved = {row for row in same if row[1] == 100 or row[0] >= 1000}
            assert not set(changes["insert"]) & (set(same) - moved)


def test_stream_sees_a_restore_like_any_commit_that_removes_files(
    spark: SparkSession, table: str, tmp_path: Path
) -> None:
    run(spark, table, *CHANGES[:2])

    def rows_after(options: dict[str, str], name: str) -> list[Any]:
        source = spark.readStream.format("delta").options(**options).load(table)
        query = source.writeStream.format("parquet").option(
            "checkpointLocation", f"{tmp_path}/c{name}"
        )
        query.trigger(availableNow=True).start(f"{tmp_path}/o{name}").awaitTermination()
        return sorted(tuple(r) for r in spark.read.parquet(f"{tmp_path}/o{name}").collect())

    first = rows_after({}, "fails")
    assert rows_after({}, "skips") == rows_after({}, "changes") == first
    run(spark, table, "RESTORE {t} VERSION AS OF 0")
    with pytest.raises(StreamingQueryException):
        rows_after({}, "fails")
    assert rows_after({"skipChangeCommits": "true"}, "skips") == first
    assert set(rows_after({"ignoreChanges": "true"}, "changes")) == set(rows_of(spark, table))
