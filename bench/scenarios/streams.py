"""Streams: small batches into a table, catching up with a long log, and a copy of a large table."""

from __future__ import annotations

import json
from functools import partial
from typing import TYPE_CHECKING, ClassVar

from bench import lineitem, table_log
from bench.lab import Lab, collect
from bench.scenarios import small_table
from bench.scenarios.scenario import Measure, Measurement, Scenario, Target
from bench.settings import Settings

if TYPE_CHECKING:
    from pyspark.sql.streaming.readwriter import DataStreamWriter

_ROWS_PER_BATCH = 100
_FILES_PER_COMMIT = 10


def _run(writer: DataStreamWriter, checkpoint: str) -> int:
    """Run a stream until it has read what is there; return the number of its batches."""
    query = writer.option("checkpointLocation", checkpoint).trigger(availableNow=True).start()
    query.awaitTermination()
    progress = query.lastProgress
    return int(progress["batchId"]) + 1 if progress else 0


class StreamSmallBatches(Scenario):
    """Batches of 100 rows from files into a table: what each batch costs."""

    name: ClassVar[str] = "stream-small-batches"
    rounds: ClassVar[int] = 1
    warmup_rounds: ClassVar[int] = 1

    def measures(self, settings: Settings) -> tuple[Measure, ...]:
        """Return the one row."""
        title = f"stream of {_batches(settings)} batches of {_ROWS_PER_BATCH} rows into a table"
        return (Measure("batches", title, targets=(Target("delta", 1 / 3),)),)

    def prepare(self, lab: Lab) -> None:
        """Write one Parquet file for each batch."""
        lab.prepared("stream-files", partial(_write_files, lab))

    def measure(self, lab: Lab, repetition: int) -> Measurement:
        """Read one file in each batch."""
        if not lab.engine.is_delta:
            return Measurement(timings={}, answers={})
        path, checkpoint = lab.scratch("stream-sink"), lab.scratch("stream-sink-checkpoint")
        rows = lab.spark.readStream.schema(small_table.SCHEMA).option("maxFilesPerTrigger", 1)
        writer = (
            rows.parquet(lab.prepared_path("stream-files"))
            .writeStream.format(lab.engine.source)
            .option("path", path)
        )
        seconds, batches = lab.timed(partial(_run, writer, checkpoint))
        assert batches == _batches(lab.settings), batches
        answer = collect(lab.read(path, small_table.SCHEMA).selectExpr("count(*)", "sum(id)"))
        lab.storage.delete(path)
        lab.storage.delete(checkpoint)
        return Measurement(
            timings={"batches": seconds},
            answers={"batches": answer},
            metrics={"batches_per_s": batches / seconds},
        )


def _batches(settings: Settings) -> int:
    return 5 if settings.quick else 100


def _write_files(lab: Lab, path: str) -> None:
    count = _batches(lab.settings)
    rows = small_table.rows(lab.spark, 0, count * _ROWS_PER_BATCH, count)
    rows.write.parquet(path)


class StreamCatchUp(Scenario):
    """A stream that begins with the first of many commits, each of which adds some files."""

    name: ClassVar[str] = "stream-catch-up"
    rounds: ClassVar[int] = 1
    warmup_rounds: ClassVar[int] = 1

    def measures(self, settings: Settings) -> tuple[Measure, ...]:
        """Return the one row."""
        title = f"stream of {_commits(settings)} commits of {_FILES_PER_COMMIT} files"
        return (Measure("read", title, targets=(Target("delta", 0.5),)),)

    def prepare(self, lab: Lab) -> None:
        """Write the files of one commit, copy them for the others, and write the log."""
        lab.prepared("stream-source", partial(_write_source, lab))

    def measure(self, lab: Lab, repetition: int) -> Measurement:
        """Read all commits, a thousand files in each batch."""
        if not lab.engine.is_delta:
            return Measurement(timings={}, answers={})
        path, checkpoint = lab.prepared_path("stream-source"), lab.scratch("catch-up-checkpoint")
        rows = lab.spark.readStream.format(lab.engine.source).option("startingVersion", 1)
        writer = rows.load(path).writeStream.format("noop")
        seconds, batches = lab.timed(partial(_run, writer, checkpoint))
        lab.storage.delete(checkpoint)
        return Measurement(timings={"read": seconds}, answers={"read": [[str(batches)]]})


def _commits(settings: Settings) -> int:
    return 20 if settings.quick else 1000


def _write_source(lab: Lab, path: str) -> None:
    rows = small_table.rows(lab.spark, 0, _FILES_PER_COMMIT * _ROWS_PER_BATCH, _FILES_PER_COMMIT)
    first = f"{path}/commit-1"
    rows.write.parquet(first)
    files = lab.storage.files(first, ".parquet")
    table_log.write_definition(lab, path, rows.schema.json())
    for version in range(1, _commits(lab.settings) + 1):
        folder = f"commit-{version}"
        if version > 1:
            lab.storage.clone(first, f"{path}/{folder}")
        adds = [
            {
                "path": f"{folder}/{name}",
                "partitionValues": {},
                "size": size,
                "modificationTime": 1_700_000_000_000 + version,
                "dataChange": True,
                "stats": json.dumps({"numRecords": _ROWS_PER_BATCH}),
            }
            for name, size in files
        ]
        table_log.write_commit(lab, path, version, [{"add": add} for add in adds])


class StreamCopy(Scenario):
    """A large table streamed into another one."""

    name: ClassVar[str] = "stream-copy"
    rounds: ClassVar[int] = 1
    warmup_rounds: ClassVar[int] = 1
    needs_lineitem: ClassVar[bool] = True

    def measures(self, settings: Settings) -> tuple[Measure, ...]:
        """Return the one row."""
        return (Measure("copy", "stream lineitem to a new table", targets=(Target("delta", 1.0),)),)

    def prepare(self, lab: Lab) -> None:
        """Write the source."""
        if lab.engine.is_delta:
            lab.prepared("stream-lineitem", partial(_write_lineitem, lab))

    def measure(self, lab: Lab, repetition: int) -> Measurement:
        """Copy all rows in one batch."""
        if not lab.engine.is_delta:
            return Measurement(timings={}, answers={})
        path, checkpoint = lab.scratch("stream-copy"), lab.scratch("stream-copy-checkpoint")
        source = lab.engine.source
        rows = lab.spark.readStream.format(source).load(lab.prepared_path("stream-lineitem"))
        writer = rows.writeStream.format(source).option("path", path)
        seconds, _ = lab.timed(partial(_run, writer, checkpoint))
        answer = collect(
            lab.read(path, lineitem.SCHEMA).selectExpr("count(*)", "sum(l_orderkey)", "max(l_tax)")
        )
        lab.storage.delete(path)
        lab.storage.delete(checkpoint)
        return Measurement(timings={"copy": seconds}, answers={"copy": answer})


def _write_lineitem(lab: Lab, path: str) -> None:
    lab.create(path, lineitem.SCHEMA)
    lineitem.append(lab, path)


SCENARIOS = (StreamSmallBatches, StreamCatchUp, StreamCopy)
