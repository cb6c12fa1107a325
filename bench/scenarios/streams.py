"""Streams: small batches into a table, catching up with a long log, and a copy of a large table."""

from __future__ import annotations

import json
import time
from collections.abc import Mapping, Sequence
from functools import partial
from typing import TYPE_CHECKING, ClassVar

from bench import lineitem, table_log
from bench.lab import Lab, collect
from bench.scenarios import small_table
from bench.scenarios.scenario import OWN_BASELINE, Measure, Measurement, Scenario, Target
from bench.settings import Settings

if TYPE_CHECKING:
    from pyspark.sql.streaming.query import StreamingQuery
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
    warmup_rounds: ClassVar[int] = 0

    def measures(self, settings: Settings) -> tuple[Measure, ...]:
        """Return the one row."""
        title = f"stream of {_batches(settings)} batches of {_ROWS_PER_BATCH} rows into a table"
        return (Measure("batches", title, targets=(Target("delta", 1 / 3),)),)

    def prepare(self, lab: Lab) -> None:
        """Write one Parquet file for each batch."""
        lab.prepared(_files_name(lab.settings), partial(_write_files, lab))

    def measure(self, lab: Lab, repetition: int) -> Measurement:
        """Read one file in each batch."""
        if not lab.engine.is_delta:
            return Measurement(timings={}, answers={})
        path, checkpoint = lab.scratch("stream-sink"), lab.scratch("stream-sink-checkpoint")
        rows = lab.spark.readStream.schema(small_table.SCHEMA).option("maxFilesPerTrigger", 1)
        writer = (
            rows.parquet(lab.prepared_path(_files_name(lab.settings)))
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
    return 5 if settings.quick else 60


def _files_name(settings: Settings) -> str:
    return f"stream-files-{_batches(settings)}"


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
        lab.prepared(_source_name(lab.settings), partial(_write_source, lab))

    def measure(self, lab: Lab, repetition: int) -> Measurement:
        """Read all commits, a thousand files in each batch."""
        if not lab.engine.is_delta:
            return Measurement(timings={}, answers={})
        path = lab.prepared_path(_source_name(lab.settings))
        checkpoint = lab.scratch("catch-up-checkpoint")
        rows = lab.spark.readStream.format(lab.engine.source).option("startingVersion", 1)
        writer = rows.load(path).writeStream.format("noop")
        seconds, batches = lab.timed(partial(_run, writer, checkpoint))
        lab.storage.delete(checkpoint)
        return Measurement(timings={"read": seconds}, answers={"read": [[str(batches)]]})


def _commits(settings: Settings) -> int:
    return 20 if settings.quick else 1000


def _source_name(settings: Settings) -> str:
    return f"stream-source-{_commits(settings)}"


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
        return (
            Measure("copy", "stream lineitem to a new table", targets=(Target("delta", 1 / 1.3),)),
        )

    def prepare(self, lab: Lab) -> None:
        """Write the source."""
        if lab.engine.is_delta:
            lab.prepared(_copied_name(lab.settings), partial(_write_lineitem, lab))

    def measure(self, lab: Lab, repetition: int) -> Measurement:
        """Copy all rows in one batch."""
        if not lab.engine.is_delta:
            return Measurement(timings={}, answers={})
        path, checkpoint = lab.scratch("stream-copy"), lab.scratch("stream-copy-checkpoint")
        source = lab.engine.source
        prepared = lab.prepared_path(_copied_name(lab.settings))
        rows = lab.spark.readStream.format(source).load(prepared)
        writer = rows.writeStream.format(source).option("path", path)
        seconds, _ = lab.timed(partial(_run, writer, checkpoint))
        answer = collect(
            lab.read(path, lineitem.SCHEMA).selectExpr("count(*)", "sum(l_orderkey)", "max(l_tax)")
        )
        lab.storage.delete(path)
        lab.storage.delete(checkpoint)
        return Measurement(timings={"copy": seconds}, answers={"copy": answer})


def _copied_name(settings: Settings) -> str:
    return f"stream-{lineitem.table_name(settings)}"


def _write_lineitem(lab: Lab, path: str) -> None:
    lab.create(path, lineitem.SCHEMA)
    lineitem.append(lab, path)


#: A stream whose heap grows by more than this in thousands of batches would run out of memory.
_MAX_HEAP_GROWTH = 64 << 20


class StreamLongRun(Scenario):
    """Thousands of small batches, with auto compaction: whether the last take longer."""

    name: ClassVar[str] = "stream-long-run"
    rounds: ClassVar[int] = 1
    warmup_rounds: ClassVar[int] = 0
    by_name_only: ClassVar[bool] = True

    def measures(self, settings: Settings) -> tuple[Measure, ...]:
        """Return a row for the second hundred of the batches and one for the last."""
        count, share = _long_run(settings)
        return (
            Measure("early", f"batches {share + 1} to {2 * share} of {count} of a stream"),
            Measure(
                "late",
                f"batches {count - share + 1} to {count} of {count} of a stream",
                baseline="early",
                targets=(Target(OWN_BASELINE, 1.2),),
            ),
        )

    def prepare(self, lab: Lab) -> None:
        """Do nothing: the source generates its rows."""

    def measure(self, lab: Lab, repetition: int) -> Measurement:
        """Run the batches; measure the heap after the early ones and at the end."""
        if not lab.engine.is_delta:
            return Measurement(timings={}, answers={})
        count, share = _long_run(lab.settings)
        path, checkpoint = lab.scratch("long-run"), lab.scratch("long-run-checkpoint")
        lab.spark.conf.set("spark.sql.streaming.numRecentProgressUpdates", str(count + 1000))
        rows = lab.spark.readStream.format("rate-micro-batch").option("rowsPerBatch", 100)
        writer = rows.option("numPartitions", 1).load().writeStream.format(lab.engine.source)
        writer = writer.option("delta.autoOptimize.autoCompact", "true").option("path", path)
        writer = writer.option("checkpointLocation", checkpoint)
        query = writer.trigger(processingTime="0 seconds").start()
        _wait_for(query, 2 * share)
        early_heap = lab.heap_bytes()
        _wait_for(query, count)
        late_heap = lab.heap_bytes()
        query.stop()
        assert late_heap < early_heap + _MAX_HEAP_GROWTH, "the heap grows"
        phases = [progress["durationMs"] for progress in query.recentProgress][:count]
        laps = [phase["triggerExecution"] / 1000 for phase in phases]
        answer = collect(lab.read(path, "timestamp TIMESTAMP, value LONG").selectExpr(
            "count(*) = max(value) + 1", "count(DISTINCT value) = count(*)"
        ))  # fmt: skip
        files = lab.read(path, "value LONG").select("_metadata.file_path").distinct().count()
        lab.spark.conf.unset("spark.sql.streaming.numRecentProgressUpdates")
        lab.storage.delete(path)
        lab.storage.delete(checkpoint)
        return Measurement(
            timings={"early": sum(laps[share : 2 * share]), "late": sum(laps[-share:])},
            answers={"early": answer},
            laps={"batches": laps},
            metrics={
                "files_left": files,
                "early_heap_bytes": early_heap,
                "late_heap_bytes": late_heap,
                **_mean_phases("early", phases[share : 2 * share]),
                **_mean_phases("late", phases[-share:]),
            },
        )


def _long_run(settings: Settings) -> tuple[int, int]:
    """Return the number of batches, and how many of them are one measure."""
    return (30, 10) if settings.quick else (5000, 100)


def _mean_phases(part: str, phases: Sequence[Mapping[str, int]]) -> dict[str, float]:
    """Return how long each phase of a batch takes on average, in milliseconds."""
    names = sorted({name for durations in phases for name in durations})
    return {
        f"{part}_{name}_ms": sum(durations.get(name, 0) for durations in phases) / len(phases)
        for name in names
    }


def _wait_for(query: StreamingQuery, batches: int) -> None:
    """Wait until a query has done some batches; fail if it fails."""
    while query.lastProgress is None or query.lastProgress["batchId"] + 1 < batches:
        assert query.isActive, query.exception()
        time.sleep(0.2)


SCENARIOS = (StreamSmallBatches, StreamCatchUp, StreamCopy, StreamLongRun)
