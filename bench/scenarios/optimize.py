"""OPTIMIZE, REORG and DROP FEATURE of lineitem: compaction, Z-order, clustering, deleted rows."""

from __future__ import annotations

import datetime as dt
import json
from collections.abc import Iterator
from contextlib import contextmanager
from itertools import pairwise
from typing import ClassVar

from bench import lineitem
from bench.lab import Answer, Lab
from bench.scenarios.scenario import Measure, Measurement, Scenario, Target
from bench.settings import Settings

#: The columns of the order: both are spread over all files of the generated table.
_ORDER = ("l_partkey", "l_shipdate")

#: A hundredth of the table is read by each of these conditions on both columns, if files allow it.
_BOXES = 10

#: The size of ordered files, so that there are enough of them to skip some.
_ORDERED_FILE_BYTES = 8 << 20

#: Engines fill files of that size to different degrees. What queries skip is compared with so many
#: files, into which each engine orders the table by other sizes, as often as it needs to.
_COMPARED_FILES = 24
_MOST_ATTEMPTS = 5


def _small_files(settings: Settings) -> int:
    return 50 if settings.quick else 1_000


class Optimize(Scenario):
    """Each statement once, on a fresh table whose snapshot is cached."""

    name: ClassVar[str] = "optimize"
    rounds: ClassVar[int] = 3
    needs_lineitem: ClassVar[bool] = True

    def measures(self, settings: Settings) -> tuple[Measure, ...]:
        """Return a row per statement."""
        twice, five = (Target("delta", 0.5),), (Target("delta", 0.2),)
        columns = " and ".join(_ORDER)
        return (
            Measure(
                "compaction", f"OPTIMIZE of {_small_files(settings):,} small files", targets=twice
            ),
            Measure("z-order", f"OPTIMIZE ... ZORDER BY {columns}", targets=twice),
            Measure("clustering", f"OPTIMIZE, clustered by {columns}, the first time"),
            Measure("clustering-again", "OPTIMIZE of it after 5 % new rows", targets=five),
        )

    def prepare(self, lab: Lab) -> None:
        """Load lineitem in few files and in many small ones."""
        if lab.engine.is_delta:
            lineitem.prepare(lab)
            lab.prepared(_small(lab.settings), lambda path: _load_small(lab, path))

    def measure(self, lab: Lab, repetition: int) -> Measurement:
        """Run each statement on a table of its own, and read its content."""
        if not lab.engine.is_delta:
            return Measurement(timings={}, answers={})
        run = _Run(lab, repetition)
        run.compact()
        with _ordered_file_size(lab):
            run.z_order()
            run.cluster()
        return Measurement(timings=run.timings, answers=run.answers, metrics=run.metrics)


class DropVectors(Scenario):
    """Both statements that rewrite all files with deleted rows."""

    name: ClassVar[str] = "drop-vectors"
    rounds: ClassVar[int] = 3
    needs_lineitem: ClassVar[bool] = True

    def measures(self, settings: Settings) -> tuple[Measure, ...]:
        """Return a row per statement."""
        twice, deleted = (Target("delta", 0.5),), "after a DELETE of 1 % at random"
        return (
            Measure("purge", f"REORG ... PURGE {deleted}", targets=twice),
            Measure("drop-vectors", f"DROP FEATURE deletionVectors {deleted}", targets=twice),
        )

    def prepare(self, lab: Lab) -> None:
        """Load lineitem."""
        if lab.engine.is_delta:
            lineitem.prepare(lab)

    def measure(self, lab: Lab, repetition: int) -> Measurement:
        """Run each statement on a table of its own, and read its content."""
        if not lab.engine.is_delta:
            return Measurement(timings={}, answers={})
        run = _Run(lab, repetition)
        run.without_vectors("purge", "REORG TABLE {t} APPLY (PURGE)")
        run.without_vectors("drop-vectors", "ALTER TABLE {t} DROP FEATURE deletionVectors")
        return Measurement(timings=run.timings, answers=run.answers)


class _Run:
    """The statements of one measurement."""

    def __init__(self, lab: Lab, repetition: int) -> None:
        self._lab = lab
        self._repetition = repetition
        self.timings: dict[str, float] = {}
        self.answers: dict[str, Answer] = {}
        self.metrics: dict[str, float] = {}

    def compact(self) -> None:
        path = self._lab.scratch(f"optimize-small-{self._repetition}")
        self._lab.storage.clone(self._lab.prepared_path(_small(self._lab.settings)), path)
        self._lab.read(path, lineitem.SCHEMA).where("l_orderkey < 0").count()
        self._time("compaction", path, "OPTIMIZE {t}")
        self._lab.storage.delete(path)

    def z_order(self) -> None:
        path = lineitem.clone(self._lab, f"optimize-z-order-{self._repetition}")
        statement = f"OPTIMIZE {{t}} ZORDER BY ({', '.join(_ORDER)})"
        self._time("z-order", path, statement)
        self._measure_files("z-order", path)
        self._compare_skipping("z-order", path, statement)
        self._lab.storage.delete(path)

    def cluster(self) -> None:
        path = self._lab.scratch(f"optimize-clustering-{self._repetition}")
        self._lab.spark.sql(
            f"CREATE TABLE {self._lab.sql_name(path)} ({lineitem.SCHEMA}) USING delta"
            f" CLUSTER BY ({', '.join(_ORDER)})"
            " TBLPROPERTIES ('delta.enableDeletionVectors' = 'true')"
        )
        lineitem.append(self._lab, path)
        self._time("clustering", path, "OPTIMIZE {t}")
        self._measure_files("clustering", path)
        before = self._lab.storage.size(path).size_bytes
        new = lineitem.generated_rows(self._lab).where("pmod(l_orderkey, 20) = 0")
        self._lab.append(new.coalesce(2), path)
        appended = self._lab.storage.size(path).size_bytes
        self._time("clustering-again", path, "OPTIMIZE {t}")
        written = self._lab.storage.size(path).size_bytes - appended
        self.metrics["clustering_again_written_per_new_byte"] = written / (appended - before)
        self._measure_files("clustering-again", path)
        self._compare_skipping("clustering", path, "OPTIMIZE {t} FULL")
        self._lab.storage.delete(path)

    def without_vectors(self, key: str, statement: str) -> None:
        path = lineitem.clone(self._lab, f"optimize-{key}-{self._repetition}")
        table = self._lab.sql_name(path)
        self._lab.spark.sql(f"DELETE FROM {table} WHERE {lineitem.RANDOM_ROWS}").collect()
        self._time(key, path, statement)
        self._lab.storage.delete(path)

    def _time(self, key: str, path: str, statement: str) -> None:
        sql = statement.replace("{t}", self._lab.sql_name(path))
        self.timings[key], _ = self._lab.timed(lambda: self._lab.spark.sql(sql).collect())
        self.answers[key] = lineitem.content(self._lab.read(path, lineitem.SCHEMA))

    def _measure_files(self, key: str, path: str) -> None:
        files = _statistics(self._lab, path)
        self.metrics[f"{key.replace('-', '_')}_files"] = len(files)

    def _compare_skipping(self, key: str, path: str, statement: str) -> None:
        """Measure the share of so many files that box queries have to read, by their statistics."""
        wanted = _COMPARED_FILES if not self._lab.settings.quick else 1
        size = float(_ORDERED_FILE_BYTES)
        tried: dict[int, float] = {}
        for attempt in range(_MOST_ATTEMPTS):
            files = [_ranges(stats) for stats in _statistics(self._lab, path)]
            tried[len(files)] = _share_read(files)
            if len(files) == wanted or attempt == _MOST_ATTEMPTS - 1:
                break
            size *= len(files) / wanted
            with _ordered_file_size(self._lab, int(size)):
                self._lab.spark.sql(statement.replace("{t}", self._lab.sql_name(path))).collect()
        nearest = min(tried, key=lambda count: abs(count - wanted))
        name = key.replace("-", "_")
        self.metrics[f"{name}_files_compared"] = nearest
        self.metrics[f"{name}_share_of_files_read"] = tried[nearest]


Range = tuple[int, int]


def _ranges(stats: str) -> tuple[Range, Range]:
    """Return the ranges of a file's values in the columns of the order, dates as days."""
    parsed = json.loads(stats)
    low, high = parsed["minValues"], parsed["maxValues"]
    part, date = _ORDER
    days = (dt.date.fromisoformat(bound[date]).toordinal() for bound in (low, high))
    return (low[part], high[part]), (next(days), next(days))


def _share_read(files: list[tuple[Range, Range]]) -> float:
    """Return the share of the files that box queries have to read on average."""
    parts, dates = (_intervals([file[axis] for file in files]) for axis in (0, 1))
    read = sum(
        _overlap(file[0], part) and _overlap(file[1], date)
        for part in parts
        for date in dates
        for file in files
    )
    return read / len(files) / _BOXES**2


def _intervals(ranges: list[Range]) -> list[Range]:
    """Cut the range of all values into intervals of the same length."""
    low, high = min(r[0] for r in ranges), max(r[1] for r in ranges)
    edges = [low + (high - low) * i // _BOXES for i in range(_BOXES + 1)]
    return list(pairwise(edges))


def _overlap(one: Range, other: Range) -> bool:
    return one[0] <= other[1] and other[0] <= one[1]


def _statistics(lab: Lab, path: str) -> list[str]:
    """Return the statistics of the files of a table without checkpoints."""
    log = lab.spark.read.json(f"{path}/_delta_log/*.json")
    removed = log.where("remove IS NOT NULL").select("remove.path")
    added = log.where("add IS NOT NULL").select("add.path", "add.stats")
    return [row.stats for row in added.join(removed, "path", "left_anti").collect()]


def _small(settings: Settings) -> str:
    return lineitem.table_name(settings, f"{_small_files(settings)}-files")


def _load_small(lab: Lab, path: str) -> None:
    lab.create(path, lineitem.SCHEMA)
    lab.append(lineitem.generated_rows(lab).repartition(_small_files(lab.settings)), path)


@contextmanager
def _ordered_file_size(lab: Lab, size_bytes: int = _ORDERED_FILE_BYTES) -> Iterator[None]:
    setting = "spark.databricks.delta.optimize.maxFileSize"
    before = lab.spark.conf.get(setting, None)
    lab.spark.conf.set(setting, str(size_bytes))
    try:
        yield
    finally:
        if before is None:
            lab.spark.conf.unset(setting)
        else:
            lab.spark.conf.set(setting, before)
