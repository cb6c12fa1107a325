"""What a commit records, and that a write which fails leaves no trace."""

from __future__ import annotations

import json
import shutil
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from pyspark.sql import functions as F
from pyspark.sql.types import LongType

from deltaic import __version__
from deltaic.exceptions import ConcurrentWriteException, DeltaError
from tests.support import log
from tests.support.interleave import committed_meanwhile
from tests.support.session_settings import session_settings

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

ROWS = "SELECT id, id % 3 AS p FROM range(0, 30, 1, 2)"

# What is run on a table with the rows of ROWS, partitioned by p; then operation, parameters and
# metrics that commitInfo must hold, sizes and times aside.
OPERATIONS: dict[str, tuple[str, str, dict[str, Any], dict[str, str]]] = {
    "append": (
        "spark.sql(rows).write.format('delta').mode('append').save(path)",
        "WRITE",
        {"mode": "Append", "partitionBy": "[]"},
        {"numFiles": "6", "numOutputRows": "30"},
    ),
    "overwrite": (
        "spark.sql(rows).write.format('delta').mode('overwrite').partitionBy('p').save(path)",
        "WRITE",
        {"mode": "Overwrite", "partitionBy": '["p"]'},
        {"numFiles": "6", "numOutputRows": "30", "numRemovedFiles": "6"},
    ),
    "INSERT INTO": (
        "spark.sql(f'INSERT INTO {t} VALUES (1, 1), (2, 1)')",
        "WRITE",
        {"mode": "Append"},
        {"numOutputRows": "2"},
    ),
    "INSERT OVERWRITE": (
        "spark.sql(f'INSERT OVERWRITE {t} VALUES (1, 1)')",
        "WRITE",
        {"mode": "Overwrite"},
        {"numFiles": "1", "numOutputRows": "1", "numRemovedFiles": "6"},
    ),
    "DELETE by vector": (
        "spark.sql(f'DELETE FROM {t} WHERE id = 4')",
        "DELETE",
        {"predicate": '["(id = 4)"]'},
        {
            "numDeletedRows": "1",
            "numDeletionVectorsAdded": "1",
            "numDeletionVectorsRemoved": "0",
            "numAddedFiles": "0",
            "numRemovedFiles": "0",
            "numCopiedRows": "0",
        },
    ),
    "DELETE of a partition": (
        "spark.sql(f'DELETE FROM {t} WHERE p = 2')",
        "DELETE",
        {"predicate": '["(p = 2)"]'},
        {"numDeletedRows": "10", "numRemovedFiles": "2", "numDeletionVectorsAdded": "0"},
    ),
}


@pytest.mark.parametrize("name", OPERATIONS)
def test_commit_begins_with_what_was_done_and_what_it_came_to(
    spark: SparkSession, table: str, name: str
):
    code, operation, parameters, metrics = OPERATIONS[name]
    writer = spark.sql(ROWS).write.format("delta").partitionBy("p")
    writer.option("delta.enableDeletionVectors", "true").save(table)
    before_ms = time.time() * 1000
    exec(code, {"spark": spark, "path": table, "t": f"delta.`{table}`", "rows": ROWS})
    info = log.commit_info(table)
    assert info["operation"] == operation
    assert parameters.items() <= info["operationParameters"].items()
    assert metrics.items() <= info["operationMetrics"].items()
    assert all(isinstance(v, str) for v in info["operationMetrics"].values())
    assert before_ms - 1000 <= info["timestamp"] <= time.time() * 1000 + 1000
    assert info["readVersion"] == 0
    assert info["isBlindAppend"] is (name in ("append", "INSERT INTO"))
    assert info["engineInfo"] == f"Deltaic/{__version__} Apache-Spark/{spark.version}"
    assert info["txnId"]


@pytest.mark.parametrize("name", ["append", "overwrite", "INSERT INTO"])
def test_metrics_of_bytes_and_files_are_those_of_the_files(
    spark: SparkSession, table: str, name: str
):
    spark.sql(ROWS).write.format("delta").save(table)
    exec(
        OPERATIONS[name][0].replace(".partitionBy('p')", ""),
        {"spark": spark, "path": table, "t": f"delta.`{table}`", "rows": ROWS},
    )
    adds = log.last_actions(table, "add")
    metrics = log.commit_info(table)["operationMetrics"]
    sizes = [log.data_path(table, add).stat().st_size for add in adds]
    assert [add["size"] for add in adds] == sizes
    assert metrics["numOutputBytes"] == str(sum(sizes))
    assert metrics["numFiles"] == str(len(adds))
    assert metrics["numOutputRows"] == str(sum(log.statistics(a)["numRecords"] for a in adds))


def test_rows_of_an_append_that_lost_a_race_are_computed_and_written_once(
    spark: SparkSession, table: str
) -> None:
    spark.range(3).write.format("delta").save(table)
    computed = spark.sparkContext.accumulator(0)

    def seen(value: int) -> int:
        computed.add(1)
        return value

    files: list[Path] = []

    def theirs() -> None:
        files.extend(log.stored_files(table))
        spark.range(100, 102).write.format("delta").mode("append").save(table)

    rows = spark.range(10, 30, 1, 2).select(F.udf(seen, "bigint")("id").alias("id"))
    with committed_meanwhile(theirs):
        rows.write.format("delta").mode("append").save(table)
    assert computed.value == 20
    assert log.newest(table) == 2
    ours = {log.data_path(table, add) for add in log.actions(table, 2, "add")}
    assert ours and ours <= set(files), "written before the race was lost"
    assert spark.read.format("delta").load(table).count() == 25


@pytest.mark.protocol("change-metadata-1")
def test_first_commit_holds_protocol_and_metadata_once_and_later_ones_neither(
    spark: SparkSession, table: str
):
    for _ in range(3):
        spark.range(3).write.format("delta").mode("append").save(table)
    for kind in ("commitInfo", "protocol", "metaData"):
        per_version = [len(log.actions(table, v, kind)) for v in range(3)]
        assert per_version == ([1, 1, 1] if kind == "commitInfo" else [1, 0, 0])
    assert log.actions(table, 0, "protocol") == [{"minReaderVersion": 1, "minWriterVersion": 2}]
    metadata = log.metadata(table)
    assert metadata["format"] == {"provider": "parquet", "options": {}}
    assert json.loads(metadata["schemaString"])["type"] == "struct"


@pytest.mark.protocol("deletion-vectors-2", "protocol-evolution-2")
def test_table_with_vectors_asks_readers_for_the_feature(spark: SparkSession, table: str):
    writer = spark.range(3).write.format("delta")
    writer.option("delta.enableDeletionVectors", "true").save(table)
    (protocol,) = log.actions(table, 0, "protocol")
    assert protocol["readerFeatures"] == ["deletionVectors"]
    assert "deletionVectors" in protocol["writerFeatures"]
    assert log.metadata(table)["configuration"]["delta.enableDeletionVectors"] == "true"


def test_user_metadata_is_recorded(spark: SparkSession, table: str):
    writer = spark.range(3).write.format("delta").option("userMetadata", "nightly ä")
    writer.save(table)
    assert log.commit_info(table)["userMetadata"] == "nightly ä"


def test_commit_files_are_never_touched_again(spark: SparkSession, table: str):
    name = f"delta.`{table}`"
    spark.sql(ROWS).write.format("delta").option("delta.enableDeletionVectors", "true").save(table)
    seen: dict[Path, tuple[int, bytes]] = {}
    for statement in (
        f"INSERT INTO {name} VALUES (100, 1)",
        f"DELETE FROM {name} WHERE id = 3",
        f"INSERT OVERWRITE {name} {ROWS}",
        f"DELETE FROM {name} WHERE p = 1",
    ):
        for version in log.versions(table):
            path = log.commit_path(table, version)
            state = (path.stat().st_ino, path.read_bytes())
            assert seen.setdefault(path, state) == state
        spark.sql(statement)
    assert log.versions(table) == list(range(5))


def test_version_that_another_writer_took_meanwhile_is_not_overwritten(
    spark: SparkSession, table: str
):
    spark.range(3).write.format("delta").save(table)
    taken = log.commit_path(table, 1)

    @F.udf(LongType())
    def take_version(value: int) -> int:
        # Runs in a task of the append, so after it has read version 0.
        if not taken.exists():
            taken.write_text('{"commitInfo":{"timestamp":1,"operation":"WRITE"}}\n')
        return value

    spark.range(0, 3, 1, 1).select(take_version("id").alias("id")).write.format("delta").mode(
        "append"
    ).save(table)
    assert taken.read_text() == '{"commitInfo":{"timestamp":1,"operation":"WRITE"}}\n'
    assert log.versions(table) == [0, 1, 2]
    assert spark.read.format("delta").load(table).count() == 6


# Rows whose computation fails in the last of several tasks, when the others are done.
FAILURES = {
    "division by zero": "id + 10 DIV (id - 11777)",
    "raise_error": "IF(id = 11777, raise_error('told to fail'), id)",
    "cast": "CAST(IF(id = 11777, 'x', CAST(id AS STRING)) AS BIGINT)",
    "Python function": "fail_late(id)",
}
DESTINATIONS = ["new table", "append", "overwrite", "partitioned", "INSERT", "CTAS", "RTAS"]


def failing(spark: SparkSession, failure: str) -> DataFrame:
    def fail_late(value: int) -> int:
        if value == 11_777:
            raise ValueError("told to fail")
        return value

    spark.udf.register("fail_late", fail_late, LongType())
    rows = spark.range(0, 12_000, 1, 5)
    return rows.selectExpr(f"{FAILURES[failure]} AS id", "id % 5 AS p")


def write_failing(spark: SparkSession, table: str, rows: DataFrame, destination: str) -> None:
    rows.createOrReplaceTempView("failing_rows")
    name = f"delta.`{table}`"
    if destination == "new table":
        rows.write.format("delta").save(table)
    elif destination in ("append", "overwrite"):
        # Many files for each task, so that some are complete when it fails.
        writer = rows.write.format("delta").mode(destination).option("maxRecordsPerFile", 100)
        writer.save(table)
    elif destination == "partitioned":
        rows.write.format("delta").mode("append").partitionBy("p").save(table)
    elif destination == "INSERT":
        spark.sql(f"INSERT INTO {name} SELECT * FROM failing_rows")
    elif destination == "CTAS":
        spark.sql(f"CREATE TABLE failing USING delta LOCATION '{table}' AS TABLE failing_rows")
    else:
        spark.sql(f"CREATE OR REPLACE TABLE {name} USING delta AS SELECT * FROM failing_rows")


@pytest.mark.parametrize(
    ("failure", "destination"),
    [("raise_error", destination) for destination in DESTINATIONS]
    + [(failure, "append") for failure in FAILURES if failure != "raise_error"]
    + [("Python function", "partitioned")],
)
def test_write_whose_task_fails_leaves_the_table_as_it_was_and_no_file(
    spark: SparkSession, table: str, failure: str, destination: str
):
    exists = destination not in ("new table", "CTAS")
    if exists:
        writer = spark.sql("SELECT id, id % 5 AS p FROM range(10)").write.format("delta")
        writer.partitionBy(*(["p"] if destination == "partitioned" else [])).save(table)
    before = log.contents(table)
    with (
        session_settings(spark, {"spark.sql.ansi.enabled": "true"}),
        pytest.raises(Exception, match=r"(?i)told to fail|DIVIDE_BY_ZERO|CAST_INVALID_INPUT"),
    ):
        write_failing(spark, table, failing(spark, failure), destination)
    spark.catalog.dropTempView("failing_rows")
    assert log.contents(table) == before
    if not exists:
        assert not spark.catalog.tableExists("failing")
        assert not Path(table, "_delta_log").exists()


def test_task_that_runs_on_when_another_fails_cleans_up_after_itself(
    spark: SparkSession, table: str
):
    spark.range(10).write.format("delta").save(table)
    before = log.contents(table)
    rows = spark.range(0, 20_000_000, 1, 2)
    with pytest.raises(Exception, match="told to fail"):
        rows.selectExpr("IF(id = 500000, raise_error('told to fail'), id) AS id").write.format(
            "delta"
        ).mode("append").option("maxRecordsPerFile", 100_000).save(table)
    assert log.contents(table) == before


def test_delete_whose_task_fails_leaves_the_table_as_it_was(spark: SparkSession, table: str):
    writer = spark.range(0, 12_000, 1, 4).write.format("delta")
    writer.option("delta.enableDeletionVectors", "true").save(table)
    before = log.contents(table)
    with pytest.raises(Exception, match="told to fail"):
        spark.sql(
            f"DELETE FROM delta.`{table}` WHERE IF(id = 7777, raise_error('told to fail'), id > 5)"
        )
    assert log.contents(table) == before


@pytest.mark.protocol("append-only-tables-3")
def test_write_refused_by_the_plan_writes_no_file(spark: SparkSession, table: str):
    spark.range(5).write.format("delta").option("delta.appendOnly", "true").save(table)
    before = log.contents(table)
    with pytest.raises(Exception, match="DELTAIC_APPEND_ONLY"):
        spark.range(9).write.format("delta").mode("overwrite").save(table)
    with pytest.raises(Exception, match="DELTAIC_APPEND_ONLY"):
        spark.sql(f"DELETE FROM delta.`{table}` WHERE id = 1")
    assert log.contents(table) == before


@pytest.mark.parametrize(
    ("name", "value", "condition"),
    [
        ("delta.noSuchProperty", "1", "DELTAIC_UNKNOWN_TABLE_PROPERTY"),
        ("delta.appendOnly", "perhaps", "DELTAIC_INVALID_TABLE_PROPERTY"),
        ("replaceWhere", "id = 1", "DELTAIC_REPLACE_WHERE_REFUSED"),
        ("maxRecordsPerFile", "many", "DELTAIC_INVALID_WRITE_OPTION"),
    ],
)
def test_option_that_means_nothing_is_refused_before_anything_is_written(
    spark: SparkSession, table: str, name: str, value: str, condition: str
):
    with pytest.raises(Exception, match=condition):
        spark.range(5).write.format("delta").option(name, value).save(table)
    assert not Path(table).exists() or log.contents(table) == {}


def test_session_setting_that_is_no_number_is_refused_before_anything_is_written(
    spark: SparkSession, table: str
):
    with (
        session_settings(spark, {"spark.deltaic.maxCommitAttempts": "several"}),
        pytest.raises(DeltaError, match="maxCommitAttempts") as caught,
    ):
        spark.range(5).write.format("delta").save(table)
    assert caught.value.condition == "DELTAIC_INVALID_SESSION_SETTING"
    assert not Path(table).exists() or log.contents(table) == {}


@pytest.mark.parametrize("versions", [0, 2, 3], ids=["gone", "as long", "longer"])
def test_a_table_that_was_dropped_meanwhile_does_not_come_back(
    spark: SparkSession, table: str, versions: int
) -> None:
    """Whatever stands at its place then is another table, or none, and stays as it is."""

    def append(rows: int) -> None:
        spark.range(rows).coalesce(1).write.format("delta").mode("append").save(table)

    def theirs() -> None:
        shutil.rmtree(table)
        for _ in range(versions):
            append(3)

    append(1)
    append(1)
    with pytest.raises(ConcurrentWriteException) as caught, committed_meanwhile(theirs):
        append(1)
    assert caught.value.condition == "DELTAIC_TABLE_REPLACED"
    if versions:
        assert log.newest(table) == versions - 1
        assert spark.read.format("delta").load(table).count() == 3 * versions
        assert len(list(Path(table).glob("*.parquet"))) == versions
    else:
        assert not Path(table).exists()
