"""What a scenario uses inside a worker: one session, one engine, and paths for its tables."""

from __future__ import annotations

import gc
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from statistics import median
from typing import Any, TypeVar

from pyspark.sql import DataFrame, SparkSession

from bench.engines import Engine
from bench.settings import Settings
from bench.storage import Storage

T = TypeVar("T")

Answer = list[list[str]]


def stopwatch(action: Callable[[], T]) -> tuple[float, T]:
    """Run an action and return its duration in seconds and its result."""
    started = time.perf_counter()
    result = action()
    return time.perf_counter() - started, result


def collect(df: DataFrame) -> Answer:
    """Run a query and return its rows as strings, so that all engines can be compared."""
    return [[str(value) for value in row] for row in df.collect()]


@dataclass(frozen=True, slots=True)
class Lab:
    """The interface of scenarios to an engine.

    Attributes
    ----------
    began_s
        When the start of the session began, by `time.perf_counter`.
    """

    spark: SparkSession
    engine: Engine
    settings: Settings
    storage: Storage
    began_s: float

    def timed(self, action: Callable[[], T]) -> tuple[float, T]:
        """Time an action in a warm session, after a garbage collection."""
        jvm = self.spark.sparkContext._jvm
        assert jvm is not None
        jvm.java.lang.System.gc()
        return stopwatch(action)

    def timed_often(self, action: Callable[[], T], times: int = 3) -> tuple[float, T]:
        """Time an action that changes nothing several times; return the median."""
        runs = [self.timed(action) for _ in range(times)]
        return median(seconds for seconds, _ in runs), runs[-1][1]

    def heap_bytes(self) -> int:
        """Return how much heap is in use after garbage collection.

        Py4J's objects have reference cycles. Until Python collects them, they keep objects of
        earlier queries alive in the JVM, which releases them a little later.
        """
        jvm = self.spark.sparkContext._jvm
        assert jvm is not None
        runtime = jvm.java.lang.Runtime.getRuntime()
        used = []
        for _ in range(5):
            gc.collect()
            time.sleep(0.3)
            jvm.java.lang.System.gc()
            used.append(int(runtime.totalMemory() - runtime.freeMemory()))
        return min(used)

    def held_bytes(self, path: str) -> int:
        """Return the subject's own estimate of the size of a table's newest snapshot in memory."""
        return int(self._log(path).latest().retainedBytes())

    def forget(self, path: str) -> None:
        """Invalidate the subject's cache of a table that is about to be deleted."""
        jvm = self.spark.sparkContext._jvm
        assert jvm is not None
        jvm.io.deltaic.replay.DeltaLog.invalidate(jvm.org.apache.hadoop.fs.Path(path))

    def _log(self, path: str) -> Any:
        jvm = self.spark.sparkContext._jvm
        assert jvm is not None
        conf = self.spark.sparkContext._jsc.hadoopConfiguration()
        return jvm.io.deltaic.replay.DeltaLog.forTable(jvm.org.apache.hadoop.fs.Path(path), conf)

    def prepared_path(self, name: str) -> str:
        """Return the path of a table that is created once and then only read. No I/O."""
        return f"{self.settings.data}/tables/{self.engine.tables}/{name}"

    def prepared(self, name: str, make: Callable[[str], None]) -> str:
        """Return the path of such a table; create it if it is missing or of another build."""
        path = self.prepared_path(name)
        marker = f"{path}.made"
        made_by = self.engine.version()
        if self.storage.read_text(marker) != made_by:
            self.storage.delete(marker)
            self.storage.delete(path)
            make(path)
            self.storage.write_text(marker, made_by)
        return path

    def uploaded(self, folder: Path, name: str) -> str:
        """Return the path where engines read generated files: local, or uploaded to the tables."""
        if self.settings.is_local:
            return folder.as_uri()
        target = f"{self.settings.data}/generated/{name}"
        marker = f"{target}.made"
        if self.storage.read_text(marker) is None:
            self.storage.delete(target)
            self.storage.copy(folder.as_uri(), target)
            self.storage.write_text(marker, "uploaded")
        return target

    def scratch(self, name: str) -> str:
        """Return an empty path for a table that only this engine uses."""
        path = f"{self.settings.data}/scratch/{self.engine.name}/{name}"
        self.storage.delete(path)
        return path

    def sql_name(self, path: str) -> str:
        """Return the SQL name of the table at a path."""
        return f"{self.engine.source}.`{path}`"

    def create(self, path: str, schema: str) -> None:
        """Create an empty table with deletion vectors enabled; a no-op for plain Parquet."""
        if self.engine.is_delta:
            self.spark.sql(
                f"CREATE TABLE {self.sql_name(path)} ({schema}) USING delta "
                "TBLPROPERTIES ('delta.enableDeletionVectors' = 'true')"
            )

    def append(self, df: DataFrame, path: str) -> None:
        """Append rows to the table at a path."""
        df.write.format(self.engine.source).mode("append").save(path)

    def read(self, path: str, schema: str) -> DataFrame:
        """Read the table at a path; plain Parquet gets its schema, so that it reads no footer."""
        reader = self.spark.read.format(self.engine.source)
        if not self.engine.is_delta:
            reader = reader.schema(schema)
        return reader.load(path)
