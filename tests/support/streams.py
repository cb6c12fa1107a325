"""Runs streams to their end."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from tests.support.table_builder import Row, in_order

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession
    from pyspark.sql.streaming.query import StreamingQuery

    from tests.support.spark_process import SparkProcess


def stream_of(spark: SparkSession, path: str, **options: Any) -> DataFrame:
    reader = spark.readStream.format("delta")
    for name, value in options.items():
        reader = reader.option(name, value)
    return reader.load(path)


def run_stream(
    df: DataFrame,
    checkpoint: Path,
    mode: str = "append",
    after_batch: Callable[[], None] = lambda: None,
) -> list[list[Row]]:
    """Read what is there, and return the rows of each batch, sorted; none of one without rows."""
    batches: list[list[Row]] = []

    def keep(batch: DataFrame, _: int) -> None:
        rows = in_order(tuple(row) for row in batch.collect())
        if rows:
            batches.append(rows)
        after_batch()

    writer = df.writeStream.foreachBatch(keep).option("checkpointLocation", str(checkpoint))
    query = writer.outputMode(mode).trigger(availableNow=True).start()
    try:
        query.awaitTermination()
    finally:
        query.stop()
    return batches


def run_in_either(
    spark: SparkSession, peer: SparkProcess, engine: str, program: str, **arguments: Any
) -> Any:
    """Run the text of a program here (``ours``) or in another engine; return its `result`."""
    if engine != "ours":
        return peer.run(program, **arguments)
    names: dict[str, Any] = {"spark": spark, **arguments}
    exec(program, names)
    return names["result"]


def forget_batch(checkpoint: Path, batch: int) -> None:
    """Delete the commit of a query for a batch, as if the query had been killed before it."""
    commits = checkpoint / "commits"
    (commits / str(batch)).unlink()
    (commits / f".{batch}.crc").unlink(missing_ok=True)


def forget_versions(table: str, below: int) -> None:
    """Delete the log files of the versions below one, as log cleanup does."""
    for version in range(below):
        for file in (Path(table) / "_delta_log").glob(f"*{version:020}.*"):
            file.unlink()


def last_batch(checkpoint: Path) -> int:
    """Return the number of the last batch that a query has committed."""
    return max(int(path.name) for path in (checkpoint / "commits").glob("[0-9]*"))


def write_stream(
    df: DataFrame,
    target: str,
    checkpoint: Path,
    *,
    mode: str = "append",
    partition_by: Sequence[str] = (),
    **options: Any,
) -> StreamingQuery:
    """Write what is there to a table, at a path or by name; return the query, which has ended."""
    writer = df.writeStream.format("delta").outputMode(mode).trigger(availableNow=True)
    writer = writer.option("checkpointLocation", str(checkpoint)).options(**options)
    if partition_by:
        writer = writer.partitionBy(*partition_by)
    query = writer.start(target) if "/" in target else writer.toTable(target)
    try:
        query.awaitTermination()
    finally:
        query.stop()
    return query


def failure_of(df: DataFrame, checkpoint: Path) -> str:
    """Return the error that a stream ends with."""
    from pyspark.errors import PySparkException

    try:
        batches = run_stream(df, checkpoint)
    except PySparkException as problem:
        return str(problem)
    raise AssertionError(f"the stream read {batches}")
