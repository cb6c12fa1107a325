"""The change data feed of tables that delta-spark wrote shows what delta-spark shows."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from tests.support import log
from tests.support.session_settings import session_settings

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

    from tests.support.spark_process import SparkProcess

#: What `ours` does, for the other process.
READ = """
reader = spark.read.format("delta").option("readChangeFeed", "true")
try:
    df = reader.options(**options).load(path)
    result = [df.schema.json(), sorted(map(repr, df.collect()))]
except Exception as e:
    result = ["error", str(e)]
"""
RUN = """
for statement in statements:
    spark.sql(statement)
result = None
"""

FEED = "'delta.enableChangeDataFeed' = 'true'"
VECTORS = "'delta.enableDeletionVectors' = 'true'"
ROWS = "SELECT /*+ REPARTITION(3) */ id, id % 3 AS p, cast(id AS STRING) s FROM range(3000)"

#: Statements that build a table at `{t}` with a feed, run by delta-spark.
TABLES: dict[str, list[str]] = {
    "without vectors": [
        f"CREATE TABLE {{t}} USING delta TBLPROPERTIES ({FEED}) AS {ROWS}",
        "INSERT INTO {t} VALUES (9000, 7, NULL)",
        "UPDATE {t} SET s = 'new' WHERE id % 700 = 0",
        "DELETE FROM {t} WHERE id % 500 = 1",
        "DELETE FROM {t} WHERE id < 100000",
        "INSERT OVERWRITE {t} VALUES (1, 2, 'x'), (2, 3, NULL)",
    ],
    "with vectors": [
        f"CREATE TABLE {{t}} USING delta TBLPROPERTIES ({FEED}, {VECTORS}) AS {ROWS}",
        "DELETE FROM {t} WHERE id = 17",
        "DELETE FROM {t} WHERE id % 300 = 0",
        "UPDATE {t} SET s = concat('new ', s) WHERE id % 1000 = 5",
        "DELETE FROM {t} WHERE id BETWEEN 2900 AND 2950",
        "MERGE INTO {t} t USING (SELECT id + 2990 AS k FROM range(20)) s ON t.id = s.k "
        "WHEN MATCHED AND s.k % 2 = 0 THEN DELETE WHEN MATCHED THEN UPDATE SET s = 'merged' "
        "WHEN NOT MATCHED THEN INSERT (id, p, s) VALUES (k, 0, 'inserted')",
        "OPTIMIZE {t}",
        "DELETE FROM {t}",
    ],
    "rows restored": [
        f"CREATE TABLE {{t}} USING delta TBLPROPERTIES ({FEED}, {VECTORS}) AS {ROWS}",
        "DELETE FROM {t} WHERE id % 500 = 0",
        "DELETE FROM {t} WHERE id % 700 = 0",
        "RESTORE TABLE {t} TO VERSION AS OF 1",
        "DELETE FROM {t} WHERE id % 900 = 0",
        "RESTORE TABLE {t} TO VERSION AS OF 2",
        "RESTORE TABLE {t} TO VERSION AS OF 0",
    ],
    "partitioned": [
        "CREATE TABLE {t} USING delta PARTITIONED BY (p) "
        f"TBLPROPERTIES ({FEED}, {VECTORS}) AS {ROWS}",
        "DELETE FROM {t} WHERE p = 1",
        "DELETE FROM {t} WHERE p = 2 AND id % 100 = 2",
        "UPDATE {t} SET p = 5 WHERE id % 300 = 0",
        "INSERT INTO {t} VALUES (7000, NULL, 'null partition'), (7001, 5, 'five')",
        "DELETE FROM {t} WHERE p IS NULL",
    ],
    "column added": [
        f"CREATE TABLE {{t}} USING delta TBLPROPERTIES ({FEED}, {VECTORS}) AS {ROWS}",
        "DELETE FROM {t} WHERE id = 17",
        "ALTER TABLE {t} ADD COLUMNS (extra STRUCT<a: INT, b: STRING>)",
        "INSERT INTO {t} VALUES (8000, 1, 's', named_struct('a', 1, 'b', 'b'))",
        "UPDATE {t} SET extra = named_struct('a', 2, 'b', NULL) WHERE id = 18",
        "DELETE FROM {t} WHERE id = 20 OR id = 8000",
    ],
    "mapped by name": [
        "CREATE TABLE {t} (id BIGINT, p BIGINT, s STRING) USING delta PARTITIONED BY (p) "
        f"TBLPROPERTIES ({FEED}, {VECTORS}, 'delta.columnMapping.mode' = 'name')",
        f"INSERT INTO {{t}} {ROWS}",
        "DELETE FROM {t} WHERE id = 17 OR p = 1",
        "UPDATE {t} SET s = 'new' WHERE id % 700 = 0",
    ],
    "mapped by id": [
        "CREATE TABLE {t} (id BIGINT, p BIGINT, s STRING) USING delta PARTITIONED BY (p) "
        f"TBLPROPERTIES ({FEED}, {VECTORS}, 'delta.columnMapping.mode' = 'id')",
        f"INSERT INTO {{t}} {ROWS}",
        "DELETE FROM {t} WHERE id = 17 OR p = 1",
        "UPDATE {t} SET s = 'new' WHERE id % 700 = 0",
    ],
    "in-commit timestamps": [
        f"CREATE TABLE {{t}} USING delta TBLPROPERTIES ({FEED}) AS {ROWS}",
        "INSERT INTO {t} VALUES (8000, 1, 's')",
        "ALTER TABLE {t} SET TBLPROPERTIES ('delta.enableInCommitTimestamps' = 'true')",
        "INSERT INTO {t} VALUES (8001, 1, 's')",
        "DELETE FROM {t} WHERE id > 5",
    ],
}


def frame_of(spark: SparkSession, path: str, **options: object) -> DataFrame:
    reader = spark.read.format("delta").option("readChangeFeed", "true")
    return reader.options(**options).load(path)  # type: ignore[arg-type]


def ours(spark: SparkSession, path: str, **options: object) -> list[Any]:
    df = frame_of(spark, path, **options)
    return [df.schema.json(), sorted(map(repr, df.collect()))]


def theirs(peer: SparkProcess, path: str, **options: object) -> Any:
    return peer.run(READ, path=path, options={k: str(v) for k, v in options.items()})


def build(peer: SparkProcess, path: str, statements: list[str]) -> None:
    peer.run(RUN, statements=[s.replace("{t}", f"delta.`{path}`") for s in statements])


@pytest.mark.protocol("add-cdc-file-1", "change-data-files-1", "dv-functional-5")
@pytest.mark.protocol("reader-addcdcfile-1", "reader-addcdcfile-4")
@pytest.mark.parametrize("name", TABLES)
def test_feed_shows_what_delta_spark_shows(
    spark: SparkSession, delta_spark: SparkProcess, table: str, name: str
) -> None:
    build(delta_spark, table, TABLES[name])
    latest = log.versions(table)[-1]
    whole = theirs(delta_spark, table, startingVersion=0)
    assert ours(spark, table, startingVersion=0) == whole
    with session_settings(spark, {"spark.sql.codegen.wholeStage": "false"}):
        assert ours(spark, table, startingVersion=0) == whole
    # The whole feed shows every version; a range only has to begin and end where it should.
    for first, last in [(latest, latest), (1, latest - 1)]:
        options = {"startingVersion": first, "endingVersion": last}
        assert ours(spark, table, **options) == theirs(delta_spark, table, **options), options


#: Table properties and partitioning of a table on which both engines run `WORKLOAD`.
LAYOUTS = {
    "rewritten": f"USING delta TBLPROPERTIES ({FEED})",
    "vectors": f"USING delta PARTITIONED BY (p) TBLPROPERTIES ({FEED}, {VECTORS})",
    "mapped": f"USING delta PARTITIONED BY (p) TBLPROPERTIES ({FEED}, {VECTORS}, "
    "'delta.columnMapping.mode' = 'name')",
}
WORKLOAD = [
    "CREATE TABLE {t} (id BIGINT, p BIGINT, st STRUCT<a: STRING, `b.c`: INT>) {layout}",
    "INSERT INTO {t} SELECT /*+ REPARTITION(3) */ id, id % 3, "
    "if(id % 7 = 0, NULL, named_struct('a', cast(id AS STRING), 'b.c', 1)) FROM range(60)",
    "UPDATE {t} SET st.a = 'new', p = p + 1 WHERE id % 10 = 0",
    "DELETE FROM {t} WHERE id % 9 = 4",
    "MERGE INTO {t} t USING (SELECT id + 55 AS k FROM range(10)) s ON t.id = s.k "
    "WHEN MATCHED AND k % 2 = 0 THEN DELETE WHEN MATCHED THEN UPDATE SET st = NULL "
    "WHEN NOT MATCHED AND k < 63 THEN INSERT (id, p) VALUES (k, NULL) "
    "WHEN NOT MATCHED BY SOURCE AND t.id < 5 THEN UPDATE SET p = 7",
    "MERGE INTO {t} t USING (SELECT explode(array(1, 900)) k) s ON t.id = s.k "
    "WHEN NOT MATCHED THEN INSERT (id) VALUES (k)",
    "UPDATE {t} SET id = id + 1000 WHERE p = 1",
    "DELETE FROM {t} WHERE p = 2",
]


@pytest.mark.parametrize("name", LAYOUTS)
def test_same_statements_make_the_same_feed_on_either_engine(
    spark: SparkSession, delta_spark: SparkProcess, tmp_path: Path, name: str
) -> None:
    mine, peers = str(tmp_path / "ours"), str(tmp_path / "theirs")
    statements = [s.replace("{layout}", LAYOUTS[name]) for s in WORKLOAD]
    build(delta_spark, peers, statements)
    for statement in statements:
        spark.sql(statement.replace("{t}", f"delta.`{mine}`"))
    assert log.versions(mine) == log.versions(peers) == list(range(len(WORKLOAD)))
    assert theirs(delta_spark, mine, startingVersion=0) == ours(spark, mine, startingVersion=0)
    feeds = [frame_of(spark, path, startingVersion=0) for path in (mine, peers)]
    rows = [sorted(map(repr, f.drop("_commit_timestamp").collect())) for f in feeds]
    assert rows[0] == rows[1]
    metrics = [
        [log.commit_info(p, v)["operationMetrics"] for v in log.versions(p)] for p in (mine, peers)
    ]
    for ours_, theirs_ in zip(*metrics, strict=True):
        for counted in ("numUpdatedRows", "numDeletedRows", "numTargetRowsUpdated"):
            if counted in theirs_:
                assert ours_[counted] == theirs_[counted], counted
