"""What a scenario works with inside a worker: one session, one engine, places for its tables."""

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
    """Run an action and return the seconds it took beside its result."""
    started = time.perf_counter()
    result = action()
    return time.perf_counter() - started, result


def collect(frame: DataFrame) -> Answer:
    """Run a query and return its rows as text, so that answers of all engines can be compared."""
    return [[str(value) for value in row] for row in frame.collect()]


@dataclass(frozen=True, slots=True)
class Lab:
    """The one place where scenarios meet an engine.

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
        """Time an action in a warm session, with the garbage of earlier work out of its way."""
        jvm = self.spark.sparkContext._jvm
        assert jvm is not None
        jvm.java.lang.System.gc()
        return stopwatch(action)

    def timed_often(self, action: Callable[[], T], times: int = 3) -> tuple[float, T]:
        """Time an action that changes nothing several times; return the middle time."""
        runs = [self.timed(action) for _ in range(times)]
        return median(seconds for seconds, _ in runs), runs[-1][1]

    def heap_bytes(self) -> int:
        """Return how much heap is in use once garbage is gone.

        Py4J's objects refer to themselves, so Python keeps those of earlier queries, and with them
        the JVM their tables, until it looks for cycles; the JVM hears of it a little later.
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
        """Return how many bytes the subject says that it holds of a table's newest version."""
        return int(self._log(path).latest().retainedBytes())

    def forget(self, path: str) -> None:
        """Make the subject forget a table that is about to be deleted."""
        jvm = self.spark.sparkContext._jvm
        assert jvm is not None
        jvm.io.deltaic.replay.DeltaLog.invalidate(jvm.org.apache.hadoop.fs.Path(path))

    def _log(self, path: str) -> Any:
        jvm = self.spark.sparkContext._jvm
        assert jvm is not None
        conf = self.spark.sparkContext._jsc.hadoopConfiguration()
        return jvm.io.deltaic.replay.DeltaLog.forTable(jvm.org.apache.hadoop.fs.Path(path), conf)

    def prepared_path(self, name: str) -> str:
        """Return where a table lies that is made once and only read afterwards. No I/O."""
        return f"{self.settings.data}/tables/{self.engine.tables}/{name}"

    def prepared(self, name: str, make: Callable[[str], None]) -> str:
        """Return the path of such a table; make it when it is missing or of another build."""
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
        """Return where all engines read generated files: here, or where the tables are."""
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
        """Return an empty place for a table that this engine alone may change."""
        path = f"{self.settings.data}/scratch/{self.engine.name}/{name}"
        self.storage.delete(path)
        return path

    def sql_name(self, path: str) -> str:
        """Return how SQL names the table at a path."""
        return f"{self.engine.source}.`{path}`"

    def create(self, path: str, schema: str) -> None:
        """Create an empty table with deletion vectors switched on; plain Parquet needs none."""
        if self.engine.is_delta:
            self.spark.sql(
                f"CREATE TABLE {self.sql_name(path)} ({schema}) USING delta "
                "TBLPROPERTIES ('delta.enableDeletionVectors' = 'true')"
            )

    def append(self, frame: DataFrame, path: str) -> None:
        """Append rows to the table at a path."""
        frame.write.format(self.engine.source).mode("append").save(path)

    def read(self, path: str, schema: str) -> DataFrame:
        """Open the table at a path; plain Parquet is told its schema and so reads no footer."""
        reader = self.spark.read.format(self.engine.source)
        if not self.engine.is_delta:
            reader = reader.schema(schema)
        return reader.load(path)
