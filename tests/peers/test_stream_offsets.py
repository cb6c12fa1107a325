"""A stream that one engine has begun goes on in the other: their offsets name the same files."""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from tests.support import log
from tests.support.change_feed import changes
from tests.support.streams import run_in_either
from tests.support.table_builder import append_file, build_table

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from tests.support.spark_process import SparkProcess

#: Reads until some batches are done and the next one is about to be, or to the end.
PROGRAM = """
found = []


def keep(batch, _):
    rows = [[value for value in row if isinstance(value, (int, str))] for row in batch.collect()]
    if stop_after is not None and len(found) == stop_after:
        raise RuntimeError("stopped on purpose")
    found.append(sorted(rows))


reader = spark.readStream.format("delta").option("maxFilesPerTrigger", files).options(**options)
writer = reader.load(path).writeStream.foreachBatch(keep)
query = writer.option("checkpointLocation", checkpoint).trigger(availableNow=True).start()
try:
    query.awaitTermination()
except Exception as problem:
    assert "stopped on purpose" in str(problem), problem
result = found
"""

#: Where the first engine stops: in the snapshot that the stream begins with, or in a commit after
#: that; with how many files in a batch, and after how many batches.
STOPS = [("snapshot", 2, 0), ("snapshot", 8, 0), ("snapshot", 2, 1), ("commit", 2, 1)]


@pytest.mark.parametrize(("where", "files", "stop_after"), STOPS)
@pytest.mark.parametrize("first", ["ours", "theirs"])
def test_each_engine_goes_on_where_the_other_stopped(
    spark: SparkSession,
    delta_spark: SparkProcess,
    table: str,
    tmp_path: Path,
    first: str,
    where: str,
    files: int,
    stop_after: int,
) -> None:
    def run(engine: str, stop_after: int | None) -> list[list[list[int]]]:
        arguments = {"path": table, "checkpoint": checkpoint, "files": files, "options": {}}
        arguments["stop_after"] = stop_after
        return run_in_either(spark, delta_spark, engine, PROGRAM, **arguments)  # type: ignore[no-any-return]

    checkpoint = str(tmp_path / "checkpoint")
    second = "theirs" if first == "ours" else "ours"
    build_table(spark, table, "id INT", [[(i,), (-i - 1,)] for i in range(5)])
    spark.sql(f"DELETE FROM delta.`{table}` WHERE id < -2")
    done = run(first, None) if where == "commit" else []
    three = spark.range(10, 13, 1, 3).selectExpr("CAST(id AS INT) AS id")
    three.write.format("delta").mode("append").save(table)
    began = run(first, stop_after)
    assert len(began) == stop_after
    append_file(spark, table, "id INT", [(20,)])
    went_on = run(second, None)
    assert went_on
    read = sorted(row[0] for batch in done + began + went_on for row in batch)
    assert read == [-2, -1, 0, 1, 2, 3, 4, 10, 11, 12, 20]
    again = run(first, None)
    assert [batch for batch in again if batch] == []


@pytest.mark.parametrize("stop_after", [0, 1, 2, 3])
@pytest.mark.parametrize("first", ["ours", "theirs"])
@pytest.mark.parametrize("start", [{}, {"startingVersion": 0}])
def test_each_engine_goes_on_with_the_changes_that_the_other_has_not_read(
    spark: SparkSession,
    delta_spark: SparkProcess,
    table: str,
    tmp_path: Path,
    first: str,
    start: dict[str, int],
    stop_after: int,
) -> None:
    """The order of a commit's files is the same, and so is what belongs together."""

    def run(engine: str, stop_after: int | None) -> list[list[list[Any]]]:
        options = {"readChangeFeed": "true", **start}
        arguments = {"path": table, "checkpoint": checkpoint, "files": 2, "options": options}
        arguments["stop_after"] = stop_after
        found = run_in_either(spark, delta_spark, engine, PROGRAM, **arguments)
        return [[row[:3] for row in batch] for batch in found]

    checkpoint = str(tmp_path / "checkpoint")
    files = [[(i,), (-i - 1,)] for i in range(5)]
    build_table(spark, table, "id INT", files, properties={"delta.enableChangeDataFeed": "true"})
    before = log.newest(table)
    if not start:
        assert run(first, None)
    spark.sql(f"DELETE FROM delta.`{table}` WHERE id IN (-1, 1, 3)")
    spark.range(10, 13, 1, 3).selectExpr("CAST(id AS INT) AS id").write.format("delta").mode(
        "append"
    ).save(table)
    spark.sql(f"UPDATE delta.`{table}` SET id = id + 1000 WHERE id >= 10")
    spark.sql(f"DELETE FROM delta.`{table}` WHERE true")
    began = run(first, stop_after)
    assert len(began) == stop_after
    went_on = run("theirs" if first == "ours" else "ours", None)
    assert went_on
    batches = [*began, *went_on]
    expected = changes(spark, table, startingVersion=0 if start else before + 1).collect()
    assert sorted(row for batch in batches for row in batch) == sorted(
        [row.id, row._change_type, row._commit_version] for row in expected
    )
    for batch in batches:
        kinds = Counter(row[1] for row in batch)
        assert kinds["update_preimage"] == kinds["update_postimage"]


@pytest.mark.parametrize(("files", "stop_after"), [(2, 0), (1, 1), (2, 1), (2, 2), (2, 3)])
@pytest.mark.parametrize("first", ["ours", "theirs"])
def test_each_engine_goes_on_within_the_rows_that_a_change_feed_begins_with(
    spark: SparkSession,
    delta_spark: SparkProcess,
    table: str,
    tmp_path: Path,
    first: str,
    files: int,
    stop_after: int,
) -> None:
    def run(engine: str, stop_after: int | None) -> list[list[list[Any]]]:
        arguments = {"path": table, "checkpoint": str(tmp_path / "checkpoint"), "files": files}
        options = {"readChangeFeed": "true"}
        arguments |= {"stop_after": stop_after, "options": options}
        found = run_in_either(spark, delta_spark, engine, PROGRAM, **arguments)
        return [[row[:3] for row in batch] for batch in found]

    rows = [[(i,), (-i - 1,)] for i in range(5)]
    build_table(spark, table, "id INT", rows, properties={"delta.enableChangeDataFeed": "true"})
    spark.sql(f"DELETE FROM delta.`{table}` WHERE id < -2")
    start = log.newest(table)
    began = run(first, stop_after)
    assert len(began) == stop_after
    spark.sql(f"UPDATE delta.`{table}` SET id = id + 1000 WHERE id >= 3")
    append_file(spark, table, "id INT", [(20,)])
    went_on = run("theirs" if first == "ours" else "ours", None)
    read = sorted(row for batch in [*began, *went_on] for row in batch)
    later = changes(spark, table, startingVersion=start + 1).collect()
    expected = [[id, "insert", start] for id in (-2, -1, 0, 1, 2, 3, 4)]
    expected += [[row.id, row._change_type, row._commit_version] for row in later]
    assert read == sorted(expected)
    assert [batch for batch in run(first, None) if batch] == []
