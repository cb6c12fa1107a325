"""OPTIMIZE: which files it rewrites, what it returns and what it commits."""

from __future__ import annotations

import json
import re
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow.parquet as pq
import pytest
from pyspark.errors import AnalysisException

from deltaic import DeltaTable
from deltaic.exceptions import InvalidArgumentError, TableStateError
from tests.support import log
from tests.support.delta_rs import by_arrow, by_query, in_order
from tests.support.jobs import jobs_of, most_tasks
from tests.support.session_settings import session_settings
from tests.support.table_builder import build_table, rows_of

if TYPE_CHECKING:
    from pyspark.sql import Row, SparkSession

#: Any path through a table of a few rows for each file.
SCHEMA = "id BIGINT, p INT, s STRING"
FILES = [[(n * 10 + i, i % 2, f"text {n * 10 + i}") for i in range(10)] for n in range(6)]


def optimize(spark: SparkSession, table: str, rest: str = "") -> Row:
    (result,) = spark.sql(f"OPTIMIZE delta.`{table}` {rest}").collect()
    assert result.path == f"file:{table}"
    metrics: Row = result.metrics
    return metrics


def files_of(table: str) -> list[dict[str, Any]]:
    return list(log.active_files(table))


def stored_ids(table: str, add: dict[str, Any]) -> list[int]:
    ids: list[int] = pq.read_table(log.data_path(table, add)).column("id").to_pylist()
    return ids


@pytest.mark.protocol("add-file-and-remove-file-3", "add-file-and-remove-file-4")
@pytest.mark.protocol("dv-new-add-action-format-1", "dv-new-remove-action-format-1")
def test_small_files_become_one_and_keep_their_rows(spark: SparkSession, table: str) -> None:
    build_table(spark, table, SCHEMA, FILES, deletion_vectors=False)
    before = rows_of(spark, table)
    metrics = optimize(spark, table)
    assert (metrics.numFilesAdded, metrics.numFilesRemoved) == (1, 6)
    (add,) = files_of(table)
    assert metrics.filesAdded.asDict() == {
        "min": add["size"], "max": add["size"], "avg": add["size"],
        "totalFiles": 1, "totalSize": add["size"],
    }  # fmt: skip
    assert rows_of(spark, table) == before
    assert by_arrow(table) == in_order(before)
    stats = json.loads(add["stats"])
    assert stats["numRecords"] == 60
    assert stats["minValues"] == {"id": 0, "p": 0, "s": "text 0"}
    assert stats["maxValues"] == {"id": 59, "p": 1, "s": "text 9"}
    assert stats["nullCount"] == {"id": 0, "p": 0, "s": 0}
    info = log.commit_info(table, 1)
    assert info["operation"] == "OPTIMIZE"
    assert info["operationParameters"] == {
        "predicate": "[]", "zOrderBy": "[]", "clusterBy": "[]", "auto": False,
    }  # fmt: skip
    assert info["isolationLevel"] == "SnapshotIsolation"
    assert info["isBlindAppend"] is False
    actions = log.actions(table, 1, "add") + log.actions(table, 1, "remove")
    assert {action["dataChange"] for action in actions} == {False}


def test_second_run_changes_nothing(spark: SparkSession, table: str) -> None:
    build_table(spark, table, SCHEMA, FILES)
    optimize(spark, table)
    metrics = optimize(spark, table)
    assert (metrics.numFilesAdded, metrics.numFilesRemoved) == (0, 0)
    assert (metrics.totalConsideredFiles, metrics.totalFilesSkipped) == (1, 1)
    assert metrics.filesAdded.min is None
    assert log.versions(table) == [0, 1]


@pytest.mark.protocol("dv-functional-4")
def test_rows_keep_the_order_of_their_files(spark: SparkSession, table: str) -> None:
    files = [[(i, 0, "") for i in (7, 3, 9)], [(i, 0, "") for i in (2, 8, 1)]]
    build_table(spark, table, SCHEMA, files)
    spark.sql(f"DELETE FROM delta.`{table}` WHERE id = 3")
    optimize(spark, table)
    (add,) = files_of(table)
    assert stored_ids(table, add) in ([7, 9, 2, 8, 1], [2, 8, 1, 7, 9])


def test_partitions_are_selected_and_not_mixed(spark: SparkSession, table: str) -> None:
    build_table(spark, table, SCHEMA, FILES, deletion_vectors=False, partition_by=["p"])
    before = rows_of(spark, table)
    metrics = optimize(spark, table, "WHERE p = 1 AND p + 1 > 1")
    assert (metrics.numFilesRemoved, metrics.partitionsOptimized) == (6, 1)
    assert (metrics.totalConsideredFiles, metrics.totalFilesSkipped) == (6, 0)
    parameters = log.commit_info(table, 1)["operationParameters"]
    assert json.loads(parameters["predicate"]) == ["((p = 1) AND ((p + 1) > 1))"]
    builder = DeltaTable.forPath(spark, table).optimize()
    (result,) = builder.where("p >= 0").where("p < 2").executeCompaction().collect()
    assert result.metrics.numFilesRemoved == 6
    assert sorted(add["partitionValues"]["p"] for add in files_of(table)) == ["0", "1"]
    assert rows_of(spark, table) == before == [tuple(r) for r in in_order(by_arrow(table))]


@pytest.mark.parametrize(
    ("condition", "reason"),
    [
        ("id > 3", "it references id, and the table is partitioned by p"),
        ("p > 0 AND s = 'x'", "references s"),
        ("nowhere = 1", "nowhere"),
        ("p IN (SELECT 1)", "one row"),
        ("rand() > 0.5 OR p = 1", "deterministic"),
        ("p + 1", "BOOLEAN"),
    ],
)
def test_other_conditions_are_refused(
    spark: SparkSession, table: str, condition: str, reason: str
) -> None:
    build_table(spark, table, SCHEMA, FILES[:1], partition_by=["p"])
    with pytest.raises(AnalysisException) as raised:
        optimize(spark, table, f"WHERE {condition}")
    assert isinstance(raised.value, InvalidArgumentError)
    assert raised.value.condition == "DELTAIC_INVALID_PARTITION_PREDICATE"
    assert reason in str(raised.value)
    with pytest.raises(InvalidArgumentError):
        DeltaTable.forPath(spark, table).optimize().where(condition).executeCompaction()


def test_full_is_for_clustered_tables_alone(spark: SparkSession, table: str) -> None:
    build_table(spark, table, SCHEMA, FILES[:1])
    with pytest.raises(InvalidArgumentError, match="FULL clusters all rows"):
        optimize(spark, table, "FULL")
    spark.sql(f"ALTER TABLE delta.`{table}` CLUSTER BY (id)")
    assert optimize(spark, table, "FULL").numFilesRemoved == 1


def test_size_settings_select_files_and_size_the_new_ones(spark: SparkSession, table: str) -> None:
    build_table(spark, table, SCHEMA, FILES)
    size = max(add["size"] for add in files_of(table))
    with session_settings(spark, {"spark.deltaic.optimize.minFileSize": str(size // 2)}):
        assert optimize(spark, table).numFilesRemoved == 0
    name = "spark.databricks.delta.optimize.maxFileSize"
    with session_settings(spark, {name: str(size + size // 2)}):
        assert optimize(spark, table).numFilesRemoved == 0, "each file is full"
    with session_settings(spark, {"spark.deltaic.optimize.maxDecodedFileSize": "1"}):
        assert optimize(spark, table).numFilesRemoved == 0
    for prefix in ("spark.deltaic", "spark.databricks.delta"):
        for wrong in ("0", "-1", "much"):
            key = f"{prefix}.optimize.maxFileSize"
            with (
                session_settings(spark, {key: wrong}),
                pytest.raises(InvalidArgumentError, match=re.escape(key)),
            ):
                optimize(spark, table)


@pytest.mark.protocol("dv-functional-3", "dv-functional-4", "dv-step-4-full-compaction-1")
def test_heavily_deleted_file_is_rewritten_alone(spark: SparkSession, table: str) -> None:
    build_table(spark, table, SCHEMA, [[(i, 0, "") for i in range(100)]])
    spark.sql(f"DELETE FROM delta.`{table}` WHERE id < 5")
    assert optimize(spark, table).numFilesRemoved == 0, "the share of deleted rows is not above 5 %"
    with session_settings(spark, {"spark.deltaic.optimize.maxDeletedRowsRatio": "0.04"}):
        metrics = optimize(spark, table)
    assert (metrics.numFilesRemoved, metrics.numFilesAdded) == (1, 1)
    assert metrics.deletionVectorStats.asDict() == {
        "numDeletionVectorsRemoved": 1,
        "numDeletionVectorRowsRemoved": 5,
    }
    (add,) = files_of(table)
    assert "deletionVector" not in add
    assert stored_ids(table, add) == list(range(5, 100))
    assert log.commit_info(table, 2)["operationMetrics"]["numDeletionVectorsRemoved"] == "1"


def test_files_that_may_be_encrypted_are_not_joined(spark: SparkSession, table: str) -> None:
    """The factory encrypts no file, since no key is set."""
    rows = spark.range(0, 60_000, 1, 20).selectExpr("id", "sha2(STRING(id), 256) AS s")
    rows.write.format("delta").save(table)
    factory = "org.apache.parquet.crypto.keytools.PropertiesDrivenCryptoFactory"
    settings = {
        "parquet.crypto.factory.class": factory,
        "spark.deltaic.optimize.maxFileSize": "1m",
        "spark.deltaic.optimize.minFileSize": "600k",
        "spark.deltaic.optimize.minTaskSize": "64k",
    }
    with session_settings(spark, settings):
        assert jobs_of(spark, lambda: optimize(spark, table)) == 1, "no job joins parts"
        assert 3 <= len(log.active_files(table)) < 10
        assert optimize(spark, table).numFilesRemoved == 0
    assert spark.read.format("delta").load(table).exceptAll(rows).isEmpty()


def require_sizes(metrics: dict[str, str], added: list[int], table: str) -> None:
    """Require that the history has the sizes of the files, by brute force."""
    ordered, removed = sorted(added), log.last_actions(table, "remove")
    shares = {"min": 0, "p25": 25, "p50": 50, "p75": 75}
    expected = {f"{n}FileSize": ordered[len(ordered) * s // 100] for n, s in shares.items()}
    expected |= {
        "maxFileSize": ordered[-1],
        "numAddedFiles": len(added),
        "numAddedBytes": sum(added),
        "numRemovedFiles": len(removed),
        "numRemovedBytes": sum(remove["size"] for remove in removed),
        "numDeletionVectorsRemoved": sum("deletionVector" in remove for remove in removed),
    }
    assert {name: int(metrics[name]) for name in expected} == expected


def test_one_partition_is_written_by_several_tasks(spark: SparkSession, table: str) -> None:
    """The parts are joined to files close to the size asked for, with exact statistics."""
    rows = spark.range(0, 400_000, 1, 40).selectExpr(
        "id", "CAST(hash(id) AS STRING) AS s", "IF(id % 3 = 0, NULL, id / 7) AS d",
        "named_struct('a', id DIV 1000, 'b', IF(id < 200000, NULL, DATE'2024-01-01')) AS n",
        "CAST(id AS DECIMAL(20, 3)) AS m", "array(id) AS arr",
    )  # fmt: skip
    rows.write.format("delta").option("delta.enableDeletionVectors", "true").save(table)
    spark.sql(f"DELETE FROM delta.`{table}` WHERE id BETWEEN 60000 AND 130000 OR id % 97 = 0")
    before = spark.read.format("delta").load(table).selectExpr("sum(hash(*))", "count(*)").first()
    target = 1 << 20
    settings = {
        "spark.deltaic.optimize.maxFileSize": str(target),
        "spark.deltaic.optimize.minFileSize": "1g",
        "spark.deltaic.optimize.minTaskSize": "64k",
    }
    with session_settings(spark, settings):
        found: list[Row] = []
        assert most_tasks(spark, lambda: found.append(optimize(spark, table))) > 8
    adds = log.last_actions(table, "add")
    assert found[0].numFilesAdded == len(adds) > 3
    sizes = [add["size"] for add in adds]
    assert all(0.8 * target <= size <= 1.2 * target for size in sizes), sizes
    require_sizes(log.commit_info(table)["operationMetrics"], sizes, table)
    after = spark.read.format("delta").load(table)
    assert after.selectExpr("sum(hash(*))", "count(*)").first() == before
    assert before is not None
    assert len(by_query(table)) == before[1]
    on_disk = {path.name for path in Path(table).glob("*.parquet")}
    earlier = {add["path"] for add in log.actions(table, 0, "add")}
    assert on_disk == {add["path"] for add in adds} | earlier, "the parts are deleted"
    for add in adds:
        require_exact_statistics(spark, table, add)


def require_exact_statistics(spark: SparkSession, table: str, add: dict[str, Any]) -> None:
    """Compare with the rows of the file; a string's upper bound may be longer than its prefix."""
    stats = json.loads(add["stats"])
    found = spark.read.parquet(str(log.data_path(table, add)))
    exact = found.selectExpr(
        "count(*) AS rows", "min(id)", "max(id)", "min(s) AS s", "max(s) AS t", "min(d)", "max(d)",
        "count_if(d IS NULL) AS d", "min(n.a) AS a", "max(n.a) AS z", "min(m)", "max(m)",
        "count_if(n.b IS NULL) AS b", "CAST(max(n.b) AS STRING) AS date",
    ).first()  # fmt: skip
    assert exact is not None
    (rows, low, high, s, t, d_low, d_high, d, a, z, m_low, m_high, b, date) = exact
    lower, upper, nulls = stats["minValues"], stats["maxValues"], stats["nullCount"]
    assert (stats["numRecords"], lower["id"], upper["id"]) == (rows, low, high)
    assert (lower["s"], upper["s"]) == (s, t)
    assert (lower["d"], upper["d"]) == pytest.approx((d_low, d_high))
    assert (lower["m"], upper["m"]) == pytest.approx((float(m_low), float(m_high)))
    assert (lower["n"]["a"], upper["n"]["a"]) == (a, z)
    assert upper["n"].get("b") == date
    assert (nulls["d"], nulls["n"]["b"], nulls["arr"]) == (d, b, 0)


@pytest.mark.protocol("reader-row-tracking-2", "reader-row-tracking-6", "writer-row-tracking-23")
@pytest.mark.protocol("writer-row-tracking-28", "writer-row-tracking-32")
def test_row_ids_and_commit_versions_stay(spark: SparkSession, table: str) -> None:
    properties = {"delta.enableRowTracking": "true"}
    build_table(spark, table, SCHEMA, FILES[:3], partition_by=["p"], properties=properties)
    spark.sql(f"UPDATE delta.`{table}` SET s = 'new' WHERE id % 10 = 4")
    ids = partial(
        spark.sql,
        "SELECT id, _metadata.row_id, _metadata.row_commit_version"
        f" FROM delta.`{table}` ORDER BY id",
    )
    before = ids().collect()
    assert optimize(spark, table).numFilesRemoved > 3
    assert ids().collect() == before
    assert log.commit_info(table, 2)["tags"] == {"delta.rowTracking.preserved": "true"}


@pytest.mark.parametrize("mode", ["name", "id"])
def test_column_mapping_widened_types_and_added_columns(
    spark: SparkSession, table: str, mode: str
) -> None:
    properties = {"delta.columnMapping.mode": mode, "delta.enableTypeWidening": "true"}
    build_table(spark, table, SCHEMA, FILES[:2], partition_by=["p"], properties=properties)
    name = f"delta.`{table}`"
    spark.sql(f"ALTER TABLE {name} RENAME COLUMN s TO text")
    spark.sql(f"ALTER TABLE {name} ALTER COLUMN p TYPE BIGINT")
    spark.sql(f"ALTER TABLE {name} ADD COLUMNS (small SMALLINT, v VARIANT)")
    spark.sql(f"INSERT INTO {name} VALUES (100, 1, 'x', 7, parse_json('{{\"a\": 1}}'))")
    spark.sql(f"ALTER TABLE {name} ALTER COLUMN small TYPE INT")
    spark.sql(f"INSERT INTO {name} VALUES (101, 1, 'y', 70000, NULL)")
    query = f"SELECT id, p, text, small, to_json(v) FROM {name} ORDER BY id"
    before = spark.sql(query).collect()
    assert optimize(spark, table).numFilesAdded == 2
    assert spark.sql(query).collect() == before


def test_void_columns_stay_void(spark: SparkSession, table: str) -> None:
    name = f"delta.`{table}`"
    spark.sql(f"CREATE TABLE {name} (id INT, nothing VOID, n STRUCT<a: INT, b: VOID>) USING delta")
    for i in range(3):
        spark.sql(f"INSERT INTO {name} VALUES ({i}, NULL, named_struct('a', {i}, 'b', NULL))")
    before = rows_of(spark, table)
    assert optimize(spark, table).numFilesRemoved == 3
    assert rows_of(spark, table) == before


def test_files_without_rows_leave_none(spark: SparkSession, table: str) -> None:
    """delta-spark leaves a file all of whose rows a vector deletes; here it is one in the log."""
    build_table(spark, table, SCHEMA, FILES[:2])
    spark.sql(f"DELETE FROM delta.`{table}` WHERE id BETWEEN 1 AND 9")
    (add,) = (a for a in files_of(table) if "deletionVector" in a)
    with session_settings(spark, {"spark.deltaic.optimize.minFileSize": "1"}):
        metrics = optimize(spark, table)
    assert (metrics.numFilesRemoved, metrics.numFilesAdded) == (1, 1)
    assert add["path"] not in {a["path"] for a in files_of(table)}
    assert {row[0] for row in rows_of(spark, table)} == {0, *range(10, 20)}


def test_progress_of_an_application_stays(spark: SparkSession, table: str) -> None:
    """Compactions are no writes: the settings for idempotent writes are not used by them."""
    build_table(spark, table, SCHEMA, FILES)
    settings = {"spark.deltaic.write.txnAppId": "app", "spark.deltaic.write.txnVersion": "1"}
    with session_settings(spark, settings):
        optimize(spark, table)
        assert log.versions(table) == [0, 1]
        assert not log.actions(table, 1, "txn")
        spark.sql(f"INSERT INTO delta.`{table}` VALUES (100, 0, 'new')")
    assert (100, 0, "new") in rows_of(spark, table)


def test_change_feed_has_no_changes(spark: SparkSession, table: str) -> None:
    build_table(spark, table, SCHEMA, FILES, properties={"delta.enableChangeDataFeed": "true"})
    optimize(spark, table)
    changes = spark.read.format("delta").option("readChangeFeed", "true")
    assert changes.option("startingVersion", 1).load(table).count() == 0


@pytest.mark.parametrize(
    "setting", ["spark.sql.parquet.enableVectorizedReader", "spark.sql.codegen.wholeStage"]
)
def test_rows_are_copied_without_batches(spark: SparkSession, table: str, setting: str) -> None:
    build_table(spark, table, SCHEMA, FILES, properties={"delta.enableRowTracking": "true"})
    spark.sql(f"DELETE FROM delta.`{table}` WHERE id % 10 = 4")
    before = rows_of(spark, table)
    with session_settings(spark, {setting: "false"}):
        assert optimize(spark, table).numFilesAdded == 1
    assert rows_of(spark, table) == before


@pytest.mark.protocol("add-file-and-remove-file-4", "dv-new-remove-action-format-1")
def test_skipped_files_are_not_lost(spark: SparkSession, table: str) -> None:
    build_table(spark, table, SCHEMA, FILES)
    log.data_path(table, files_of(table)[0]).write_bytes(b"no Parquet file")
    with (
        session_settings(spark, {"spark.sql.files.ignoreCorruptFiles": "true"}),
        pytest.raises(TableStateError, match="10 rows by the log, and 0 were read"),
    ):
        optimize(spark, table)
    assert log.versions(table) == [0]


def test_failed_commit_leaves_no_files(spark: SparkSession, table: str) -> None:
    build_table(spark, table, SCHEMA, FILES)
    before = {path.name for path in Path(table).glob("*.parquet")}
    log.data_path(table, files_of(table)[0]).write_bytes(b"no Parquet file")
    with pytest.raises(Exception, match=r"(?i)parquet"):
        optimize(spark, table)
    assert {path.name for path in Path(table).glob("*.parquet")} == before
    assert log.versions(table) == [0]
