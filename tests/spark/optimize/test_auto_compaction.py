"""Auto compaction: after which commits it runs, what it compacts, and that it fails nobody."""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from deltaic import DeltaTable
from deltaic.exceptions import ConcurrentModificationError
from tests.support import change_feed, log
from tests.support.checkpoint import write_checkpoint
from tests.support.delta_rs import by_query, in_order
from tests.support.interleave import before_compaction_commits, committed_meanwhile
from tests.support.jvm_log import jvm_log
from tests.support.maintenance import await_maintenance, log_files
from tests.support.session_settings import session_settings
from tests.support.streams import run_stream, stream_of
from tests.support.table_builder import append_file, build_table, rows_of

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

SCHEMA = "id BIGINT, p INT, s STRING"
ON = {"delta.autoOptimize.autoCompact": "true"}
INLINE = "spark.deltaic.maintenance.background"
MIN_FILES = "spark.deltaic.autoCompact.minNumFiles"


def files(count: int, p: int = 0) -> list[list[tuple[int, int, str]]]:
    return [[(100 * p + 10 * n + i, p, f"text {i}") for i in range(3)] for n in range(count)]


def compactions(table: str) -> list[int]:
    """Return the versions that auto compaction has committed."""
    found = []
    for version in log.versions(table):
        info = log.commit_info(table, version)
        if info["operation"] == "OPTIMIZE" and info["operationParameters"]["auto"]:
            found.append(version)
    return found


def partitions_of(table: str) -> list[str]:
    return sorted(add["partitionValues"].get("p", "") for add in log.active_files(table))


def append(spark: SparkSession, table: str, p: int = 0, count: int = 1) -> None:
    for number in range(1000, 1000 + count):
        append_file(spark, table, SCHEMA, [(number, p, "new")])


def test_small_files_are_compacted_in_the_background_when_there_are_enough(
    spark: SparkSession, table: str
) -> None:
    build_table(spark, table, SCHEMA, files(2), properties=ON)
    with session_settings(spark, {MIN_FILES: "4"}):
        append(spark, table)
        await_maintenance(spark)
        assert compactions(table) == [] and len(log.active_files(table)) == 3
        append(spark, table)
        await_maintenance(spark)
    assert compactions(table) == [3]
    (add,) = log.active_files(table)
    assert add["dataChange"] is False and log.statistics(add)["numRecords"] == 8
    assert {remove["dataChange"] for remove in log.actions(table, 3, "remove")} == {False}
    info = log.commit_info(table, 3)
    assert info["operationParameters"] == {
        "predicate": "[]", "zOrderBy": "[]", "clusterBy": "[]", "auto": True,
    }  # fmt: skip
    assert info["operationMetrics"]["numRemovedFiles"] == "4"
    assert rows_of(spark, table) == rows_of(spark, table, 2)
    assert in_order(by_query(table)) == rows_of(spark, table)


@pytest.mark.thorough
def test_it_costs_a_statement_less_than_20_ms(spark: SparkSession, table: str) -> None:
    """Appends to a table with auto compaction and to one without take turns, 150 times."""
    tables = {"on": f"{table}-on", "off": f"{table}-off"}
    for value, path in tables.items():
        build_table(spark, path, SCHEMA, files(1), properties=ON if value == "on" else None)
    times: dict[str, list[float]] = {"on": [], "off": []}
    for turn in range(150):
        for value in sorted(tables, reverse=turn % 2 == 0):
            started = time.perf_counter()
            append(spark, tables[value])
            times[value].append(time.perf_counter() - started)
    assert len(compactions(tables["on"])) >= 2
    assert not compactions(tables["off"])
    cost = statistics.median(times["on"]) - statistics.median(times["off"])
    assert cost < 0.020, f"{cost * 1000:.1f} ms"


def test_commit_waits_where_nothing_runs_in_the_background(spark: SparkSession, table: str) -> None:
    build_table(spark, table, SCHEMA, files(2), properties=ON)
    with session_settings(spark, {MIN_FILES: "3", INLINE: "false"}):
        append(spark, table)
        assert compactions(table) == [2]
        last = spark.conf.get("spark.databricks.delta.lastCommitVersionInSession")
    assert last == "1", "the session has not committed the compaction itself"


def test_only_partitions_with_new_and_with_enough_small_files_are_compacted(
    spark: SparkSession, table: str
) -> None:
    given = [*files(4, p=0), *files(4, p=1), *files(2, p=2)]
    build_table(spark, table, SCHEMA, given, partition_by=["p"], properties=ON)
    before = rows_of(spark, table)
    with session_settings(spark, {MIN_FILES: "4", INLINE: "false"}):
        rows = spark.createDataFrame([(7, 0, "new"), (8, 2, "new")], SCHEMA).coalesce(1)
        rows.write.format("delta").mode("append").save(table)
    assert compactions(table) == [1 + 1]
    assert partitions_of(table) == ["0", *["1"] * 4, *["2"] * 3]
    assert rows_of(spark, table) == in_order([*before, (7, 0, "new"), (8, 2, "new")])


def test_sizes_say_what_is_small_and_how_large_new_files_are(
    spark: SparkSession, table: str
) -> None:
    build_table(spark, table, SCHEMA, files(5), properties=ON)
    size = max(add["size"] for add in log.active_files(table))
    settings = {INLINE: "false", MIN_FILES: "2"}
    smaller = {"spark.deltaic.autoCompact.minFileSize": str(size // 2)}
    with session_settings(spark, {**settings, **smaller}):
        append(spark, table)
        assert compactions(table) == []
    # By default files are small if they have less than half of the size of new ones.
    halved = {"spark.databricks.delta.autoCompact.maxFileSize": str(size)}
    with session_settings(spark, {**settings, **halved}):
        append(spark, table)
        assert compactions(table) == []
    pairs = {
        "spark.databricks.delta.autoCompact.maxFileSize": str(2 * size + size // 2),
        "spark.databricks.delta.autoCompact.minFileSize": str(2 * size),
    }
    with session_settings(spark, {**settings, **pairs}):
        append(spark, table)
    assert compactions(table) == [4]
    assert len(log.active_files(table)) == 4, "two small files fit into each"


@pytest.mark.parametrize(
    ("setting", "properties", "expected"),
    [
        ({"spark.databricks.delta.autoCompact.enabled": "true"}, {}, [2]),
        ({"spark.deltaic.autoCompact.enabled": "false"}, ON, []),
        ({}, {"delta.autoOptimize": "true"}, [2]),
        ({}, {}, []),
    ],
)
def test_setting_of_the_session_takes_precedence_over_the_property(
    spark: SparkSession,
    table: str,
    setting: dict[str, str],
    properties: dict[str, str],
    expected: list[int],
) -> None:
    build_table(spark, table, SCHEMA, files(2), properties=properties)
    minimum = {"spark.databricks.delta.autoCompact.minNumFiles": "2"}
    with session_settings(spark, {INLINE: "false", **minimum, **setting}):
        append(spark, table)
    assert compactions(table) == expected


def test_commits_without_new_rows_in_new_files_start_none(spark: SparkSession, table: str) -> None:
    build_table(spark, table, SCHEMA, files(3), properties=ON)
    name = f"delta.`{table}`"
    with session_settings(spark, {INLINE: "false", MIN_FILES: "2"}):
        rows = spark.read.format("delta").load(table).repartition(4)
        rearranged = rows.write.format("delta").mode("overwrite").option("dataChange", "false")
        rearranged.save(table)
        spark.sql(f"DELETE FROM {name} WHERE id = 2")
        spark.sql(f"ALTER TABLE {name} SET TBLPROPERTIES ('a' = 'b')")
        with session_settings(spark, {"spark.deltaic.optimize.maxFileSize": "4k"}):
            spark.sql(f"OPTIMIZE {name}")
        assert compactions(table) == []
        spark.sql(f"UPDATE {name} SET s = 'new' WHERE id = 1")
        assert compactions(table) == [log.newest(table)]


@pytest.mark.parametrize("way", ["sink", "foreachBatch"])
def test_batches_of_streams_start_it(
    spark: SparkSession, table: str, tmp_path: Path, way: str
) -> None:
    source = str(tmp_path / "source")
    build_table(spark, source, SCHEMA, files(3))
    build_table(spark, table, SCHEMA, files(1), properties=ON)

    def write(batch: Any, number: int) -> None:
        batch.coalesce(1).write.format("delta").mode("append").save(table)

    with session_settings(spark, {MIN_FILES: "3"}):
        stream = stream_of(spark, source, maxFilesPerTrigger=1).writeStream
        if way == "sink":
            stream = stream.format("delta").option("path", table)
        else:
            stream = stream.foreachBatch(write)
        checkpoint = stream.option("checkpointLocation", str(tmp_path / "checkpoint"))
        checkpoint.trigger(availableNow=True).start().awaitTermination()
        await_maintenance(spark)
    assert compactions(table)
    assert len(rows_of(spark, table)) == 12
    found = run_stream(stream_of(spark, table), tmp_path / "all")
    assert sorted(row for batch in found for row in batch) == sorted(rows_of(spark, table))


def test_table_that_cannot_be_compacted_is_logged_once(spark: SparkSession, table: str) -> None:
    build_table(spark, table, SCHEMA, files(2), properties=ON)
    write_checkpoint(table, "classic")
    jvm = spark._jvm
    assert jvm is not None
    jvm.io.deltaic.replay.DeltaLog.invalidate(jvm.org.apache.hadoop.fs.Path(table))
    distributed = {"spark.deltaic.snapshot.distributedThresholdBytes": "0", MIN_FILES: "2"}
    with jvm_log(spark) as lines, session_settings(spark, distributed):
        append(spark, table, count=2)
        await_maintenance(spark)
    (line,) = (line for line in lines if "auto compaction" in line)
    assert line.startswith("WARN") and table in line and "distributedThresholdBytes" in line
    assert compactions(table) == []


def test_invalid_setting_fails_no_commit_and_is_logged(
    spark: SparkSession, table: str, caplog: pytest.LogCaptureFixture
) -> None:
    build_table(spark, table, SCHEMA, files(2), properties=ON)
    with caplog.at_level("WARNING"), session_settings(spark, {MIN_FILES: "many"}):
        append(spark, table)
        await_maintenance(spark)
    (record,) = caplog.records
    assert table in record.getMessage() and MIN_FILES in caplog.text
    assert compactions(table) == []
    assert len(log_files(table, "*.crc")) == 2, "other maintenance is done"


@pytest.mark.parametrize("vectors", [True, False])
def test_it_gives_way_to_a_statement_that_commits_first(
    spark: SparkSession, table: str, vectors: bool
) -> None:
    build_table(spark, table, SCHEMA, files(2), deletion_vectors=vectors, properties=ON)

    def theirs() -> None:
        with session_settings(spark, {"spark.deltaic.autoCompact.enabled": "false"}):
            spark.sql(f"INSERT OVERWRITE delta.`{table}` VALUES (1, 0, 'theirs')")

    settings = {INLINE: "false", MIN_FILES: "3"}
    with (
        jvm_log(spark) as lines,
        session_settings(spark, settings),
        before_compaction_commits(theirs),
    ):
        append(spark, table)
    assert rows_of(spark, table) == [(1, 0, "theirs")]
    if not vectors:
        assert compactions(table) == []
        assert any("OPTIMIZE leaves out 3 files" in line for line in lines)
        assert len(log.files_in(table, ".parquet")) == 2 + 1 + 1, "its own file is deleted"


Rows = dict[int, str]
#: Statements that rewrite or remove files, and what becomes of the rows of `files(2)`.
STATEMENTS: dict[str, tuple[str, Callable[[Rows], Rows]]] = {
    "delete": (
        "DELETE FROM {t} WHERE id = 1",
        lambda rows: {i: s for i, s in rows.items() if i != 1},
    ),
    "delete files": (
        "DELETE FROM {t} WHERE id < 10",
        lambda rows: {i: s for i, s in rows.items() if i >= 10},
    ),
    "update": (
        "UPDATE {t} SET s = 'u' WHERE id IN (2, 11)",
        lambda rows: {i: "u" if i in (2, 11) else s for i, s in rows.items()},
    ),
    "merge": (
        "MERGE INTO {t} t USING (SELECT id FROM VALUES (2L), (500L) s(id)) s ON t.id = s.id"
        " WHEN MATCHED THEN UPDATE SET s = 'm'"
        " WHEN NOT MATCHED THEN INSERT (id, p, s) VALUES (s.id, 0, 'new')",
        lambda rows: {i: "m" if i == 2 else s for i, s in rows.items()} | {500: "new"},
    ),
}


@pytest.mark.parametrize("kind", STATEMENTS)
def test_statement_that_rewrites_files_takes_back_a_compaction_that_commits_first(
    spark: SparkSession, table: str, kind: str
) -> None:
    """A table without deletion vectors, to which a file is added and compacted meanwhile."""
    properties = {**ON, "delta.enableChangeDataFeed": "true", "delta.enableRowTracking": "true"}
    build_table(spark, table, SCHEMA, files(2), deletion_vectors=False, properties=properties)
    ids = {row[0]: row[1] for row in row_ids(spark, table)}
    base = {row[0]: row[2] for row in rows_of(spark, table)}
    statement, change = STATEMENTS[kind]

    def others() -> None:
        with session_settings(spark, {INLINE: "false", MIN_FILES: "3"}):
            append_file(spark, table, SCHEMA, [(300, 0, "added")])

    with committed_meanwhile(others):
        spark.sql(statement.replace("{t}", f"delta.`{table}`"))
    await_maintenance(spark)
    assert compactions(table) == [2] and log.newest(table) == 3
    (compacted,) = (add["path"] for add in log.actions(table, 2, "add"))
    assert compacted in {remove["path"] for remove in log.actions(table, 3, "remove")}
    expected = {**change(base), 300: "added"}
    assert {row[0]: row[2] for row in rows_of(spark, table)} == expected
    assert len(rows_of(spark, table)) == len(expected)
    assert in_order(by_query(table)) == in_order(rows_of(spark, table))
    now = {row[0]: row[1] for row in row_ids(spark, table)}
    assert {i: n for i, n in now.items() if i in ids} == {i: n for i, n in ids.items() if i in now}
    told = {row.id for row in change_feed.changes(spark, table, startingVersion=3).collect()}
    assert told == {i for i in {*base, *change(base)} if base.get(i) != change(base).get(i)}
    assert rows_of(spark, table, 2) == in_order([*rows_of(spark, table, 0), (300, 0, "added")])


@pytest.mark.parametrize(
    "kind",
    [
        "UPDATE {t} SET s = 'u' WHERE id % 100 = 1",
        "DELETE FROM {t} WHERE id % 100 = 1",
        "MERGE INTO {t} t USING (SELECT id FROM VALUES (1L) s(id)) s ON t.id % 100 = s.id"
        " WHEN MATCHED THEN UPDATE SET s = 'm'",
    ],
    ids=lambda text: text.split()[0],
)
def test_appended_row_that_is_compacted_before_the_statement_commits_is_a_conflict(
    spark: SparkSession, table: str, kind: str
) -> None:
    """The statement takes the compaction back, and has not read the row that was appended."""
    build_table(spark, table, SCHEMA, files(2), deletion_vectors=False)

    def others() -> None:
        append_file(spark, table, SCHEMA, [(301, 0, "added")])
        spark.sql(f"OPTIMIZE delta.`{table}`").collect()

    before = rows_of(spark, table)
    with (
        committed_meanwhile(others),
        pytest.raises(ConcurrentModificationError, match="CONCURRENT_APPEND"),
    ):
        spark.sql(kind.replace("{t}", f"delta.`{table}`"))
    assert rows_of(spark, table) == in_order([*before, (301, 0, "added")])


def row_ids(spark: SparkSession, table: str) -> list[Any]:
    return spark.sql(f"SELECT id, _metadata.row_id FROM delta.`{table}`").collect()


def test_overwrite_takes_back_nothing_that_it_removes_itself(
    spark: SparkSession, table: str
) -> None:
    build_table(spark, table, SCHEMA, files(3), properties=ON)

    def others() -> None:
        with session_settings(spark, {INLINE: "false", MIN_FILES: "2"}):
            spark.sql(f"UPDATE delta.`{table}` SET s = 'lost' WHERE id = 500 OR p = 9")
            DeltaTable.forPath(spark, table).optimize().executeCompaction()

    with committed_meanwhile(others):
        spark.sql(f"INSERT OVERWRITE delta.`{table}` VALUES (1, 0, 'all')")
    assert rows_of(spark, table) == [(1, 0, "all")]
    assert len(log.active_files(table)) == 1


def test_two_statements_take_back_the_same_compaction(spark: SparkSession, table: str) -> None:
    """The second finds the compaction taken back already; each changes a file of its own."""
    build_table(spark, table, SCHEMA, files(3), deletion_vectors=False, properties=ON)
    base = {row[0]: row[2] for row in rows_of(spark, table)}

    def compact() -> None:
        with session_settings(spark, {INLINE: "false", MIN_FILES: "3"}):
            append_file(spark, table, SCHEMA, [(300, 0, "added")])

    def first() -> None:
        with committed_meanwhile(compact):
            spark.sql(f"DELETE FROM delta.`{table}` WHERE id = 1")

    with committed_meanwhile(first):
        spark.sql(f"UPDATE delta.`{table}` SET s = 'u' WHERE id = 21")
    expected = {i: "u" if i == 21 else s for i, s in base.items() if i != 1} | {300: "added"}
    found = rows_of(spark, table)
    assert {row[0]: row[2] for row in found} == expected and len(found) == len(expected)
    assert in_order(by_query(table)) == in_order(found)


def test_table_is_dropped_while_it_waits(spark: SparkSession) -> None:
    name = "compacted_and_dropped"
    with session_settings(spark, {MIN_FILES: "2"}):
        spark.sql(
            f"CREATE TABLE {name} (id BIGINT, p INT, s STRING) USING delta"
            " TBLPROPERTIES ('delta.autoOptimize.autoCompact' = 'true')"
        )
        path = DeltaTable.forName(spark, name).detail().first().location.removeprefix("file:")  # type: ignore[union-attr]
        for n in range(3):
            spark.sql(f"INSERT INTO {name} VALUES ({n}, 0, 'x')")
        spark.sql(f"DROP TABLE {name}")
        await_maintenance(spark)
    assert not Path(path).exists()
