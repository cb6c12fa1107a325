"""Batches that are committed while others commit, and batches that run again."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from pyspark.errors import PySparkException
from pyspark.sql import functions as F

from deltaic import DeltaTable
from tests.support import log
from tests.support.interleave import committed_meanwhile
from tests.support.jobs import job_descriptions
from tests.support.jvm_log import jvm_log
from tests.support.streams import forget_batch, last_batch, stream_of, write_stream
from tests.support.table_builder import append_file, build_table, in_order, rows_of

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession
    from pyspark.sql.streaming.query import StreamingQuery

SCHEMA = "id INT, n INT"


@pytest.fixture
def source(spark: SparkSession, tmp_path: Path) -> str:
    path = str(tmp_path / "source")
    build_table(spark, path, SCHEMA, [[(7, 0)]])
    return path


def counted(rows: DataFrame) -> DataFrame:
    return rows.groupBy("id").agg(F.count("*").cast("int").alias("n"))


def jobs_of(spark: SparkSession, query: StreamingQuery) -> list[str]:
    """What the jobs of a run of a query are called."""
    return job_descriptions(spark, str(query.runId))


#: What happens beside a batch, and the rows that it leaves of (1, 0), (2, 0).
BESIDE: dict[str, tuple[str, list[tuple[int, int]]]] = {
    "INSERT": ("INSERT INTO {t} VALUES (3, 0)", [(1, 0), (2, 0), (3, 0)]),
    "DELETE": ("DELETE FROM {t} WHERE id = 1", [(2, 0)]),
    "UPDATE": ("UPDATE {t} SET n = 5 WHERE id = 1", [(1, 5), (2, 0)]),
    "MERGE": (
        "MERGE INTO {t} t USING (SELECT 1 AS id) s ON t.id = s.id WHEN MATCHED THEN DELETE",
        [(2, 0)],
    ),
    "OPTIMIZE": ("OPTIMIZE {t}", [(1, 0), (2, 0)]),
}


@pytest.mark.parametrize("other", BESIDE)
def test_batch_that_lost_a_race_is_committed_without_another_job(
    spark: SparkSession, source: str, table: str, tmp_path: Path, other: str
) -> None:
    text, left = BESIDE[other]

    def write(target: str) -> tuple[int, int]:
        """The jobs of a batch, and how many commits came between its snapshot and its own."""
        query = write_stream(stream_of(spark, source), target, tmp_path / f"{Path(target).name}.c")
        info = log.commit_info(target)
        assert info["operation"] == "STREAMING UPDATE"
        # The statement beside runs on the thread of the query, and so do its jobs.
        jobs = [text for text in jobs_of(spark, query) if "STREAMING UPDATE" in text]
        return len(jobs), log.newest(target) - info["readVersion"] - 1

    targets = [f"{table} alone", f"{table} beside"]
    for target in targets:
        build_table(spark, target, SCHEMA, [[(1, 0)], [(2, 0)]])
    alone, between = write(targets[0])
    assert between == 0 and alone > 0
    with committed_meanwhile(lambda: spark.sql(text.format(t=f"delta.`{targets[1]}`"))):
        beside, _ = write(targets[1])
    assert beside == alone
    assert log.newest(targets[1]) == 2
    assert rows_of(spark, targets[1]) == [*left, (7, 0)]


@pytest.mark.parametrize("other", BESIDE)
def test_batch_beside_a_statement_does_not_conflict(
    spark: SparkSession, source: str, table: str, tmp_path: Path, other: str
) -> None:
    text, left = BESIDE[other]
    build_table(spark, table, SCHEMA, [[(1, 0)], [(2, 0)]])
    df = stream_of(spark, source)
    with committed_meanwhile(lambda: write_stream(df, table, tmp_path / "checkpoint")):
        spark.sql(text.format(t=f"delta.`{table}`"))
    assert rows_of(spark, table) == [*left, (7, 0)]
    assert log.newest(table) == 2


def test_two_queries_into_one_table_do_not_conflict(
    spark: SparkSession, source: str, table: str, tmp_path: Path
) -> None:
    build_table(spark, table, SCHEMA, [[(1, 0)]])
    df = stream_of(spark, source)
    with committed_meanwhile(lambda: write_stream(df, table, tmp_path / "one")):
        write_stream(df, table, tmp_path / "two")
    assert rows_of(spark, table) == [(1, 0), (7, 0), (7, 0)]
    ids = {log.actions(table, version, "txn")[0]["appId"] for version in (1, 2)}
    assert len(ids) == 2


#: What happens beside a batch in complete mode that has counted 7 twice: the isolation level of
#: the table, the statement, the error of the batch, and the rows that are left if it has none.
BESIDE_OVERWRITE: dict[str, tuple[str, str, str | None, list[tuple[int, int]]]] = {
    "INSERT": ("Serializable", "INSERT INTO {t} VALUES (9, 9)", "CONCURRENT_APPEND", []),
    "INSERT that may be ordered after it": (
        "WriteSerializable",
        "INSERT INTO {t} VALUES (9, 9)",
        None,
        [(7, 2), (9, 9)],
    ),
    "INSERT that has read the table": (
        "WriteSerializable",
        "INSERT INTO {t} SELECT id + 1, n FROM {t}",
        "CONCURRENT_APPEND",
        [],
    ),
    "DELETE": ("Serializable", "DELETE FROM {t} WHERE id = 7", "CONCURRENT_DELETE_DELETE", []),
    "UPDATE": ("Serializable", "UPDATE {t} SET n = 5", "CONCURRENT_DELETE_DELETE", []),
    "overwrite": (
        "Serializable",
        "INSERT OVERWRITE {t} VALUES (9, 9)",
        "CONCURRENT_DELETE_DELETE",
        [],
    ),
    "OPTIMIZE": ("Serializable", "OPTIMIZE {t}", None, [(7, 2)]),
}


@pytest.mark.parametrize("vectors", [True, False], ids=["vectors", "no vectors"])
@pytest.mark.parametrize("case", BESIDE_OVERWRITE)
def test_overwrite_beside_a_statement_replaces_what_it_has_read_or_is_run_again(
    spark: SparkSession, source: str, table: str, tmp_path: Path, case: str, vectors: bool
) -> None:
    level, text, problem, left = BESIDE_OVERWRITE[case]
    properties = {"delta.isolationLevel": level}
    rows: list[list[tuple[Any, ...]]] = [[(100, 0)], [(101, 0)]]
    build_table(spark, table, SCHEMA, rows, properties=properties, deletion_vectors=vectors)
    checkpoint = tmp_path / "checkpoint"
    counts = counted(stream_of(spark, source))
    write_stream(counts, table, checkpoint, mode="complete")
    append_file(spark, table, SCHEMA, [(7, 100)])
    append_file(spark, source, SCHEMA, [(7, 0)])
    before = log.newest(table)

    def race() -> None:
        with committed_meanwhile(lambda: spark.sql(text.format(t=f"delta.`{table}`"))):
            write_stream(counts, table, checkpoint, mode="complete")

    if problem is None:
        race()
        assert rows_of(spark, table) == left
        assert log.newest(table) == before + 2
        append_file(spark, source, SCHEMA, [(8, 0)])
        left = [(7, 2), (8, 1)]
    else:
        with pytest.raises(PySparkException, match=problem):
            race()
        assert log.newest(table) == before + 1
        assert log.commit_info(table)["operation"] != "STREAMING UPDATE"
        left = [(7, 2)]
    write_stream(counts, table, checkpoint, mode="complete")
    assert rows_of(spark, table) == left
    batches = [log.actions(table, version, "txn") for version in log.versions(table)]
    numbers = [txn["version"] for found in batches for txn in found]
    assert numbers == list(range(len(numbers)))
    assert last_batch(checkpoint) == numbers[-1]


DEFINED_MEANWHILE = {
    "ADD COLUMNS (w STRING)": "DELTAIC_METADATA_CHANGED",
    "SET TBLPROPERTIES ('team' = 'us')": "DELTAIC_METADATA_CHANGED",
    "ADD CONSTRAINT c CHECK (id > 0)": "DELTAIC_PROTOCOL_CHANGED",
}


@pytest.mark.parametrize("mode", ["append", "complete"])
@pytest.mark.parametrize("change", DEFINED_MEANWHILE)
def test_batch_beside_a_change_of_the_definition_fails_and_is_run_again_at_the_next_start(
    spark: SparkSession, source: str, table: str, tmp_path: Path, mode: str, change: str
) -> None:
    build_table(spark, table, SCHEMA, [[(1, 0)]])
    df = stream_of(spark, source)
    if mode == "complete":
        df = counted(df)
    with (
        pytest.raises(PySparkException, match=DEFINED_MEANWHILE[change]),
        committed_meanwhile(lambda: spark.sql(f"ALTER TABLE delta.`{table}` {change}")),
    ):
        write_stream(df, table, tmp_path / "checkpoint", mode=mode)
    assert log.versions(table) == [0, 1]
    write_stream(df, table, tmp_path / "checkpoint", mode=mode)
    assert log.versions(table) == [0, 1, 2]
    rows = [row[:2] for row in rows_of(spark, table)]
    assert rows == ([(1, 0), (7, 0)] if mode == "append" else [(7, 1)])


@pytest.mark.parametrize(("target", "by"), [("path", []), ("path", ["n"]), ("name", [])])
def test_two_queries_that_create_one_table_append_to_it(
    spark: SparkSession, source: str, table: str, tmp_path: Path, target: str, by: list[str]
) -> None:
    df = stream_of(spark, source)
    into = table if target == "path" else "created_twice"

    def run(name: str) -> None:
        write_stream(df, into, tmp_path / name, partition_by=by)

    try:
        with committed_meanwhile(lambda: run("one")):
            run("two")
        named = f"delta.`{table}`" if target == "path" else into
        assert in_order(map(tuple, spark.table(named).collect())) == [(7, 0), (7, 0)]
        append_file(spark, source, SCHEMA, [(8, 0)])
        for name in ("one", "two"):
            run(name)
        expected = [(7, 0), (7, 0), (8, 0), (8, 0)]
        assert in_order(map(tuple, spark.table(named).collect())) == expected
    finally:
        spark.sql("DROP TABLE IF EXISTS created_twice")


@pytest.mark.parametrize("other", ["columns", "partitions"])
def test_query_that_creates_a_table_otherwise_fails_and_appends_at_its_next_start(
    spark: SparkSession, source: str, table: str, tmp_path: Path, other: str
) -> None:
    df = stream_of(spark, source)
    theirs = df.withColumn("w", F.lit("w")) if other == "columns" else df
    by = ["n"] if other == "partitions" else []
    with (
        pytest.raises(PySparkException, match="DELTAIC_TABLE_CREATED_CONCURRENTLY"),
        committed_meanwhile(lambda: write_stream(theirs, table, tmp_path / "1", partition_by=by)),
    ):
        write_stream(df, table, tmp_path / "2")
    assert log.versions(table) == [0]
    live = {add["path"].rpartition("/")[2] for add in log.active_files(table)}
    assert log.files_in(table, ".parquet") == live, "the files of the failed batch are deleted"
    write_stream(df, table, tmp_path / "2")
    assert [row[:2] for row in rows_of(spark, table)] == [(7, 0), (7, 0)]
    assert log.versions(table) == [0, 1]


def test_overwrite_that_creates_a_table_does_not_replace_one_that_it_has_not_read(
    spark: SparkSession, source: str, table: str, tmp_path: Path
) -> None:
    counts = stream_of(spark, source).groupBy("id").count()
    with (
        pytest.raises(PySparkException, match="DELTAIC_TABLE_CREATED_CONCURRENTLY"),
        committed_meanwhile(lambda: write_stream(counts, table, tmp_path / "one", mode="complete")),
    ):
        write_stream(counts, table, tmp_path / "two", mode="complete")
    assert log.versions(table) == [0]
    write_stream(counts, table, tmp_path / "two", mode="complete")
    assert rows_of(spark, table) == [(7, 1)]
    assert log.versions(table) == [0, 1]
    ids = {log.actions(table, version, "txn")[0]["appId"] for version in (0, 1)}
    assert len(ids) == 2


@pytest.mark.parametrize("mode", ["append", "complete"])
def test_batch_that_another_run_commits_meanwhile_is_written_once(
    spark: SparkSession, source: str, table: str, tmp_path: Path, mode: str
) -> None:
    checkpoint = tmp_path / "checkpoint"
    df, kind, written = stream_of(spark, source), "append", [(8, 0)]
    if mode == "complete":
        df, kind, written = counted(df), "overwrite", [(7, 1), (8, 1)]
    query = write_stream(df, table, checkpoint, mode=mode)
    append_file(spark, source, SCHEMA, [(8, 0)])

    def other_run() -> None:
        rows = spark.createDataFrame(written, SCHEMA).write.format("delta").mode(kind)
        rows.option("txnAppId", str(query.id)).option("txnVersion", 1).save(table)

    with (
        pytest.raises(PySparkException, match="CONCURRENT_TRANSACTION"),
        committed_meanwhile(other_run),
    ):
        write_stream(df, table, checkpoint, mode=mode)
    write_stream(df, table, checkpoint, mode=mode)
    assert rows_of(spark, table) == ([(7, 0), (8, 0)] if mode == "append" else written)
    assert log.newest(table) == 1
    append_file(spark, source, SCHEMA, [(8, 0)])
    write_stream(df, table, checkpoint, mode=mode)
    expected = [(7, 0), (8, 0), (8, 0)] if mode == "append" else [(7, 1), (8, 2)]
    assert rows_of(spark, table) == expected


def test_batches_older_than_the_recorded_one_are_skipped(
    spark: SparkSession, source: str, table: str, tmp_path: Path
) -> None:
    checkpoint = tmp_path / "checkpoint"
    for n in (8, 9):
        append_file(spark, source, SCHEMA, [(n, 0)])
    df = stream_of(spark, source, maxFilesPerTrigger=1, startingVersion=0)
    write_stream(df, table, checkpoint)
    assert log.newest(table) == 2
    for batch in (1, 2):
        forget_batch(checkpoint, batch)
    (checkpoint / "offsets" / "2").unlink()
    (checkpoint / "offsets" / ".2.crc").unlink()
    with jvm_log(spark) as lines:
        write_stream(df, table, checkpoint)
    skipped = [line for line in lines if line.startswith("WARN") and "is skipped" in line]
    assert ["txnVersion 1" in skipped[0], "txnVersion 2" in skipped[1]] == [True, True], skipped
    assert log.newest(table) == 2
    assert rows_of(spark, table) == [(7, 0), (8, 0), (9, 0)]


def test_query_with_state_goes_on_after_a_batch_that_is_skipped(
    spark: SparkSession, table: str, tmp_path: Path
) -> None:
    source = str(tmp_path / "events")
    schema = "at TIMESTAMP, id INT"

    def event(minute: int) -> tuple[datetime, int]:
        return datetime(2026, 1, 1, minute // 60, minute % 60), minute

    build_table(spark, source, schema, [[event(1)]])
    append_file(spark, source, schema, [event(2), event(25)])

    def counts() -> DataFrame:
        events = stream_of(spark, source, maxFilesPerTrigger=1, startingVersion=0)
        events = events.withWatermark("at", "5 minutes")
        windows = events.groupBy(F.window("at", "10 minutes")).count()
        return windows.selectExpr("window.start AS start", "count")

    queries = {f"{table} {name}": tmp_path / f"query {name}" for name in ("killed", "whole")}
    for target, checkpoint in queries.items():
        write_stream(counts(), target, checkpoint)
    killed = tmp_path / "query killed"
    forget_batch(killed, last_batch(killed))
    write_stream(counts(), f"{table} killed", killed)
    append_file(spark, source, schema, [event(31), event(59)])
    for target, checkpoint in queries.items():
        write_stream(counts(), target, checkpoint)
    expected = [(datetime(2026, 1, 1, 0, 0), 2), (datetime(2026, 1, 1, 0, 20), 1)]
    found = {target: rows_of(spark, target) for target in queries}
    assert found[f"{table} whole"][:2] == expected
    assert found[f"{table} killed"] == found[f"{table} whole"]


def test_jobs_are_described_by_query_batch_and_phase(
    spark: SparkSession, source: str, table: str, tmp_path: Path
) -> None:
    append_file(spark, source, SCHEMA, [(8, 0)])
    df = stream_of(spark, source, maxFilesPerTrigger=1, startingVersion=0)
    writer = df.writeStream.format("delta").queryName("copy of the source")
    writer = writer.option("checkpointLocation", str(tmp_path / "checkpoint"))
    query = writer.trigger(availableNow=True).start(table)
    query.awaitTermination()
    descriptions = jobs_of(spark, query)
    for batch in (0, 1):
        found = [text for text in descriptions if f"batch = {batch}" in text]
        assert found, descriptions
        for text in found:
            assert "copy of the source" in text
            assert f"deltaic STREAMING UPDATE: write the rows, file:{table}" in text
    assert all(text.count("batch = ") == 1 for text in descriptions)


def increment(spark: SparkSession, table: str) -> dict[str, Callable[[Any, int], None]]:
    """Ways to count the rows of a batch once; each would count them again in another run."""

    def by_builder(batch: DataFrame, number: int) -> None:
        target = DeltaTable.forPath(batch.sparkSession, table).alias("t")
        merge = target.merge(batch.alias("s"), "t.id = s.id").whenMatchedUpdate(
            set={"n": "t.n + 1"}
        )
        merge.idempotent("count", number).execute()

    def by_settings(batch: DataFrame, number: int) -> None:
        session = batch.sparkSession
        session.conf.set("spark.databricks.delta.write.txnAppId", "count")
        session.conf.set("spark.databricks.delta.write.txnVersion", str(number))
        batch.createOrReplaceTempView("batch")
        session.sql(
            f"MERGE INTO delta.`{table}` t USING batch s ON t.id = s.id"
            " WHEN MATCHED THEN UPDATE SET n = t.n + 1"
        )

    def by_write(batch: DataFrame, number: int) -> None:
        rows = batch.write.format("delta").mode("append")
        rows.option("txnAppId", "count").option("txnVersion", number).save(table)

    return {"builder": by_builder, "settings": by_settings, "write": by_write}


@pytest.mark.parametrize("way", ["builder", "settings", "write"])
def test_batch_that_runs_again_is_merged_once(
    spark: SparkSession, source: str, table: str, tmp_path: Path, way: str
) -> None:
    build_table(spark, table, SCHEMA, [[(7, 0)], [(8, 0)]])
    append_file(spark, source, SCHEMA, [(8, 0)])
    checkpoint = tmp_path / "checkpoint"

    def run() -> None:
        df = stream_of(spark, source, maxFilesPerTrigger=1, startingVersion=0)
        writer = df.writeStream.foreachBatch(increment(spark, table)[way])
        writer = writer.option("checkpointLocation", str(checkpoint))
        writer.trigger(availableNow=True).start().awaitTermination()

    run()
    expected = [(7, 0), (7, 0), (8, 0), (8, 0)] if way == "write" else [(7, 1), (8, 1)]
    assert rows_of(spark, table) == expected
    forget_batch(checkpoint, 1)
    run()
    assert rows_of(spark, table) == expected
    shutil.rmtree(checkpoint)
    run()
    assert rows_of(spark, table) == expected
