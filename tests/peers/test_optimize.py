"""OPTIMIZE and REORG beside those of delta-spark, on copies of one table."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import deltalake
import pyarrow as pa
import pytest
from pyspark.sql import SparkSession

from tests.support import log
from tests.support.delta_rs import by_query, in_order
from tests.support.interleave import committed_meanwhile
from tests.support.quick import quick_and_thorough
from tests.support.session_settings import session_settings
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


#: Ways in which files are rewritten, each with what it needs before.
REWRITES: dict[str, list[str]] = {
    "z-order": ["OPTIMIZE {t} ZORDER BY (v, id)"],
    "purge": ["REORG TABLE {t} APPLY (PURGE)"],
    "auto clustering": [
        "ALTER TABLE {t} CLUSTER BY (v, id)",
        "INSERT INTO {t} VALUES (90, 1, 'n')",
    ],
    "rebased compaction": ["OPTIMIZE {t}"],
    "rebased z-order": ["OPTIMIZE {t} ZORDER BY (id, v)"],
}


@pytest.fixture(scope="module")
def unpartitioned(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Build a table of three files, two with deleted rows."""
    path = tmp_path_factory.mktemp("bases") / "unpartitioned"
    spark.sql(
        f"CREATE TABLE delta.`{path}` (id INT, p INT, v STRING) USING delta TBLPROPERTIES ("
        "'delta.enableDeletionVectors' = 'true', 'delta.enableRowTracking' = 'true')"
    )
    insert_three_times(spark, path)
    spark.sql(f"DELETE FROM delta.`{path}` WHERE id IN (3, 8, 23)")
    return path


@pytest.mark.protocol("dv-functional-3", "writer-row-tracking-24")
@pytest.mark.parametrize("case", quick_and_thorough(REWRITES, "z-order", "rebased compaction"))
def test_peers_go_on_from_each_rewrite_and_we_from_theirs(
    spark: SparkSession, delta_spark: SparkProcess, unpartitioned: Path, table: str, case: str
) -> None:
    """delta-rs appends and deletes, delta-spark appends, deletes and compacts; row IDs stay."""
    log.copy_table(unpartitioned, table)
    name = f"delta.`{table}`"
    statements = [one.replace("{t}", name) for one in REWRITES[case]]
    meanwhile = f"DELETE FROM {name} WHERE id IN (4, 30)"
    ids = f"SELECT id, _metadata.row_id FROM {name}"
    before = {row[0]: row[1] for row in spark.sql(ids).collect()}
    if case.startswith("rebased"):
        with committed_meanwhile(lambda: spark.sql(meanwhile).collect()):
            spark.sql(statements[0])
        moved = [a for a in log.last_actions(table, "add") if "deletionVector" in a]
        assert sum(add["deletionVector"]["cardinality"] for add in moved) == 2
    elif case == "auto clustering":
        settings = {
            "spark.deltaic.autoCompact.enabled": "true",
            "spark.deltaic.autoCompact.minNumFiles": "4",
            "spark.deltaic.maintenance.background": "false",
        }
        with session_settings(spark, settings):
            for one in statements:
                spark.sql(one)
        assert log.commit_info(table)["operationParameters"]["auto"] is True
    else:
        spark.sql(statements[0])
    kept = rows_of(spark, table)
    assert in_order(by_query(table)) == in_order(kept)
    theirs = [
        "DELETE FROM {t} WHERE id IN (5, 41)",
        "INSERT INTO {t} VALUES (100, 0, 'x')",
        "OPTIMIZE {t}",
    ]
    found = delta_spark.run(RUN, statements=theirs, table=table)
    expected = [row for row in kept if row[0] not in (5, 41)] + [(100, 0, "x")]
    assert in_order(map(tuple, found["rows"])) == in_order(expected)
    assert in_order(rows_of(spark, table)) == in_order(by_query(table)) == in_order(expected)
    after = {row[0]: row[1] for row in spark.sql(ids).collect()}
    assert {i: n for i, n in after.items() if i in before} == {
        i: n for i, n in before.items() if i in after
    }
    spark.sql(f"DELETE FROM {name} WHERE id = 6")
    spark.sql(f"OPTIMIZE {name} {'' if 'clustering' in case else 'ZORDER BY (v)'}")
    expected = [row for row in expected if row[0] != 6]
    found = delta_spark.run(RUN, statements=["DELETE FROM {t} WHERE id = 7"], table=table)
    assert in_order(map(tuple, found["rows"])) == in_order(r for r in expected if r[0] != 7)


@pytest.mark.parametrize("case", ["z-order", "purge"])
def test_delta_rs_goes_on_from_our_rewrites_and_we_from_its(
    spark: SparkSession, table: str, case: str
) -> None:
    """A table without deletion vectors or row tracking, which delta-rs can write."""
    name = f"delta.`{table}`"
    spark.sql(
        f"CREATE TABLE {name} (id INT, p INT, v STRING) USING delta"
        " TBLPROPERTIES ('delta.columnMapping.mode' = 'none')"
    )
    insert_three_times(spark, Path(table))
    if case == "purge":
        spark.sql(f"ALTER TABLE {name} SET TBLPROPERTIES ('delta.enableDeletionVectors' = 'true')")
        spark.sql(f"DELETE FROM {name} WHERE id IN (3, 25)")
    spark.sql(REWRITES[case][0].replace("{t}", name))
    expected = list(rows_of(spark, table))
    assert in_order(by_query(table)) == in_order(expected)
    new = pa.table({"id": pa.array([200], pa.int32()), "p": pa.array([1], pa.int32()), "v": ["n"]})
    deltalake.write_deltalake(table, new, mode="append")
    expected.append((200, 1, "n"))
    if case == "z-order":
        theirs = deltalake.DeltaTable(table)
        theirs.delete("id = 7")
        theirs.optimize.compact()
        expected = [row for row in expected if row[0] != 7]
    assert in_order(rows_of(spark, table)) == in_order(expected)
    spark.sql(f"DELETE FROM {name} WHERE id = 9")
    spark.sql(f"OPTIMIZE {name} ZORDER BY (id)")
    expected = [row for row in expected if row[0] != 9]
    assert in_order(rows_of(spark, table)) == in_order(by_query(table)) == in_order(expected)
