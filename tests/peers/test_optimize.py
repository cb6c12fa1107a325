"""OPTIMIZE and REORG beside those of delta-spark, on copies of one table."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession

from tests.support import log
from tests.support.delta_rs import by_query, in_order
from tests.support.interleave import committed_meanwhile
from tests.support.quick import quick_and_thorough
from tests.support.spark_process import SparkProcess
from tests.support.table_builder import rows_of

#: Runs statements; returns the schema and the metrics of the last one, and the rows afterwards.
RUN = """
results = [spark.sql(one.replace("{t}", f"delta.`{table}`")) for one in statements]
rows = spark.sql(f"SELECT * FROM delta.`{table}`").collect()
result = {
    "schema": results[-1].schema.simpleString(),
    "metrics": results[-1].collect()[0].asDict(recursive=True).get("metrics"),
    "rows": [list(row) for row in rows],
}
"""

#: Runs statements; returns the rows of the last one.
ROWS = """
results = [spark.sql(one).collect() for one in statements]
result = [list(row) for row in results[-1]]
"""

#: What depends on the files that an engine writes, and on when.
OF_ENGINES = {"startTimeMs", "endTimeMs", "preserveInsertionOrder", "totalClusterParallelism"}

CASES: dict[str, list[str]] = {
    "all": ["OPTIMIZE {t}"],
    "a partition": ["OPTIMIZE {t} WHERE p = 1"],
    "nothing left": ["OPTIMIZE {t}", "OPTIMIZE {t}"],
    "z-order": ["OPTIMIZE {t} ZORDER BY (v, id)"],
    "z-order of a partition": ["OPTIMIZE {t} WHERE p = 1 ZORDER BY v"],
    "purge": ["REORG TABLE {t} APPLY (PURGE)"],
    "purge of a partition": ["REORG TABLE {t} WHERE p = 0 APPLY (PURGE)"],
}


def insert_three_times(spark: SparkSession, path: Path) -> None:
    """Append three files of twenty rows, or one for each partition."""
    for first in (0, 20, 40):
        spark.sql(
            f"INSERT INTO delta.`{path}` SELECT INT(id), INT(id % 2), concat('v', id)"
            f" FROM range({first}, {first + 20}, 1, 1)"
        )


@pytest.fixture(scope="module")
def base(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Build a table of three files in each of two partitions, some with deleted rows."""
    path = tmp_path_factory.mktemp("bases") / "base"
    spark.sql(
        f"CREATE TABLE delta.`{path}` (id INT, p INT, v STRING) USING delta PARTITIONED BY (p)"
        " TBLPROPERTIES ('delta.enableDeletionVectors' = 'true',"
        " 'delta.enableRowTracking' = 'true')"
    )
    insert_three_times(spark, path)
    spark.sql(f"DELETE FROM delta.`{path}` WHERE id IN (3, 8, 23)")
    return path


def comparable(metrics: dict[str, Any]) -> dict[str, Any]:
    """Return the metrics without sizes in bytes and times."""
    plain = {name: value for name, value in metrics.items() if name not in OF_ENGINES}
    for sizes in ("filesAdded", "filesRemoved"):
        plain[sizes] = {"totalFiles": plain[sizes]["totalFiles"]}
    for name, stats in (plain.get("clusteringStats") or {}).items():
        if isinstance(stats, dict):
            plain["clusteringStats"] = {**plain["clusteringStats"], name: stats["numFiles"]}
    return plain


@pytest.fixture(scope="module")
def clustered(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Build a clustered table of three files, one with deleted rows."""
    path = tmp_path_factory.mktemp("bases") / "clustered"
    spark.sql(
        f"CREATE TABLE delta.`{path}` (id INT, p INT, v STRING) USING delta CLUSTER BY (v, id)"
        " TBLPROPERTIES ('delta.enableDeletionVectors' = 'true',"
        " 'delta.enableRowTracking' = 'true', 'delta.columnMapping.mode' = 'name')"
    )
    spark.sql(f"ALTER TABLE delta.`{path}` RENAME COLUMN v TO `new name`")
    insert_three_times(spark, path)
    spark.sql(f"DELETE FROM delta.`{path}` WHERE id IN (3, 8)")
    return path


CLUSTERED_CASES = {
    "all": ["OPTIMIZE {t}"],
    "nothing left": ["OPTIMIZE {t}", "OPTIMIZE {t}"],
    "full": ["OPTIMIZE {t}", "INSERT INTO {t} VALUES (99, 1, 'z')", "OPTIMIZE {t} FULL"],
}


@pytest.mark.parametrize("case", quick_and_thorough(CLUSTERED_CASES, "full"))
def test_clustering_is_that_of_delta_spark(
    spark: SparkSession, delta_spark: SparkProcess, clustered: Path, tmp_path: Path, case: str
) -> None:
    ours, theirs = str(tmp_path / "ours"), str(tmp_path / "theirs")
    log.copy_table(clustered, ours)
    log.copy_table(clustered, theirs)
    statements = CLUSTERED_CASES[case]
    expected = delta_spark.run(RUN, statements=statements, table=theirs)
    results = [spark.sql(one.replace("{t}", f"delta.`{ours}`")) for one in statements]
    metrics = results[-1].collect()[0].metrics.asDict(recursive=True)
    mine, other = log.commit_info(ours), log.commit_info(theirs)
    tags = [
        {name: value for name, value in add["tags"].items() if name != "ZCUBE_ID"}
        for table in (ours, theirs)
        for add in log.active_files(table)
    ]
    assert mine["operationParameters"] == other["operationParameters"]
    assert tags[0] == tags[1]
    assert comparable(metrics) == comparable(expected["metrics"])


@pytest.mark.protocol("writer-clustered-table-5")
def test_delta_spark_goes_on_from_our_clustering_and_we_from_its(
    spark: SparkSession, delta_spark: SparkProcess, clustered: Path, table: str
) -> None:
    log.copy_table(clustered, table)
    before = {row[0] for row in rows_of(spark, table)}
    spark.sql(f"OPTIMIZE delta.`{table}`")
    (cube,) = {add["tags"]["ZCUBE_ID"] for add in log.active_files(table)}
    theirs = ["DELETE FROM {t} WHERE id = 11", "INSERT INTO {t} VALUES (100, 0, 'x')"]
    found = delta_spark.run(RUN, statements=[*theirs, "OPTIMIZE {t}"], table=table)
    assert found["metrics"]["clusteringStats"]["inputZCubeFiles"]["numFiles"] == 1
    (other,) = {add["tags"]["ZCUBE_ID"] for add in log.active_files(table)}
    assert other != cube
    version = log.newest(table)
    spark.sql(f"OPTIMIZE delta.`{table}`")
    assert log.newest(table) == version, "what delta-spark has clustered is left alone"
    spark.sql(f"INSERT INTO delta.`{table}` VALUES (101, 1, 'y')")
    spark.sql(f"OPTIMIZE delta.`{table}`")
    assert log.newest(table) == version + 2
    rows = in_order(rows_of(spark, table))
    assert {row[0] for row in rows} == (before - {11}) | {100, 101}
    assert rows == in_order(by_query(table))


@pytest.mark.protocol("dv-functional-3")
@pytest.mark.parametrize("case", quick_and_thorough(CASES, "all", "z-order", "purge"))
def test_results_and_history_are_those_of_delta_spark(
    spark: SparkSession, delta_spark: SparkProcess, base: Path, tmp_path: Path, case: str
) -> None:
    ours, theirs = str(tmp_path / "ours"), str(tmp_path / "theirs")
    log.copy_table(base, ours)
    log.copy_table(base, theirs)
    expected = delta_spark.run(RUN, statements=CASES[case], table=theirs)
    results = [spark.sql(one.replace("{t}", f"delta.`{ours}`")) for one in CASES[case]]
    assert results[-1].schema.simpleString() == expected["schema"]
    metrics = results[-1].collect()[0].metrics.asDict(recursive=True)
    assert comparable(metrics) == comparable(expected["metrics"])
    assert log.newest(ours) == log.newest(theirs)
    mine, other = log.commit_info(ours), log.commit_info(theirs)
    for name in ("operation", "isolationLevel", "isBlindAppend", "readVersion"):
        assert mine[name] == other[name]
    predicates = [info["operationParameters"].pop("predicate") for info in (mine, other)]
    assert len({predicate == "[]" for predicate in predicates}) == 1
    assert mine["operationParameters"] == other["operationParameters"]
    assert mine["operationMetrics"].keys() == other["operationMetrics"].keys()
    for name in ("numAddedFiles", "numRemovedFiles", "numDeletionVectorsRemoved"):
        assert mine["operationMetrics"][name] == other["operationMetrics"][name]
    rows = in_order(rows_of(spark, ours))
    assert rows == in_order(tuple(row) for row in expected["rows"]) == in_order(by_query(ours))


@pytest.mark.protocol("writer-row-tracking-25")
def test_delta_spark_goes_on_from_our_compaction_and_we_from_its(
    spark: SparkSession, delta_spark: SparkProcess, base: Path, table: str
) -> None:
    log.copy_table(base, table)
    ids = f"SELECT id, _metadata.row_id FROM delta.`{table}` ORDER BY id"
    before = {row[0]: row[1] for row in spark.sql(ids).collect()}
    spark.sql(f"OPTIMIZE delta.`{table}`")
    theirs = ["DELETE FROM {t} WHERE id = 11", "INSERT INTO {t} VALUES (100, 0, 'x')"]
    delta_spark.run(RUN, statements=[*theirs, "OPTIMIZE {t}"], table=table)
    spark.sql(f"DELETE FROM delta.`{table}` WHERE id = 12")
    spark.sql(f"INSERT INTO delta.`{table}` VALUES (101, 1, 'y')")
    spark.sql(f"OPTIMIZE delta.`{table}`")
    found = delta_spark.run(RUN, statements=["OPTIMIZE {t}"], table=table)
    assert found["metrics"]["numFilesRemoved"] == 0
    assert {row[0] for row in found["rows"]} == (before.keys() - {11, 12}) | {100, 101}
    after = {row[0]: row[1] for row in spark.sql(ids).collect()}
    assert {i: after[i] for i in before if i in after} == {
        i: n for i, n in before.items() if i in after
    }


def test_delta_spark_goes_on_from_a_compaction_that_was_reverted(
    spark: SparkSession, delta_spark: SparkProcess, table: str
) -> None:
    """A DELETE that rewrites files adds the other inputs of a concurrent compaction again."""
    name = f"delta.`{table}`"
    spark.sql(
        f"CREATE TABLE {name} (id INT, v STRING) USING delta"
        " TBLPROPERTIES ('delta.enableChangeDataFeed' = 'true')"
    )
    for first in (0, 10, 20):
        spark.sql(f"INSERT INTO {name} SELECT INT(id), 'a' FROM range({first}, {first + 10}, 1, 1)")
    with committed_meanwhile(lambda: spark.sql(f"OPTIMIZE {name}").collect()):
        spark.sql(f"DELETE FROM {name} WHERE id = 3")
    assert log.newest(table) == 5
    expected = [(i, "a") for i in range(30) if i != 3]
    assert in_order(rows_of(spark, table)) == in_order(by_query(table)) == in_order(expected)
    changes = [
        "SELECT id, _change_type, _commit_version"
        f" FROM table_changes_by_path('{table}', 1) ORDER BY ALL"
    ]
    found = delta_spark.run(ROWS, statements=changes)
    assert found == [[i, "insert", 1 + i // 10] for i in range(3)] + [
        [3, "delete", 5], *([i, "insert", 1 + i // 10] for i in range(3, 30)),
    ]  # fmt: skip
    theirs = ["DELETE FROM {t} WHERE id = 14", "OPTIMIZE {t}"]
    found = delta_spark.run(RUN, statements=theirs, table=table)
    expected.remove((14, "a"))
    assert in_order(tuple(row) for row in found["rows"]) == in_order(expected)
    assert in_order(rows_of(spark, table)) == in_order(expected)
