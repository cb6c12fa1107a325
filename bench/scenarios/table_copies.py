"""Tables of existing files: CONVERT TO DELTA, and CLONE."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path
from typing import ClassVar

from bench import table_log
from bench.lab import Answer, Lab, collect
from bench.scenarios.many_files import ManyFiles
from bench.scenarios.scenario import OWN_BASELINE, Measure, Measurement, Scenario, Target
from bench.settings import Settings
from bench.storage import local_path

_ROWS_PER_FILE = 100
_PARTITIONS = 20


class Convert(Scenario):
    """CONVERT TO DELTA of a partitioned folder of Parquet files, with statistics."""

    name: ClassVar[str] = "convert"
    rounds: ClassVar[int] = 3

    def measures(self, settings: Settings) -> tuple[Measure, ...]:
        """Return the one row."""
        title = f"CONVERT TO DELTA of {_parquet_files(settings):,} Parquet files"
        return (Measure("convert", title, targets=(Target("delta", 1 / 3),)),)

    def prepare(self, lab: Lab) -> None:
        """Write the files."""
        if lab.engine.is_delta:
            lab.prepared(_folder_name(lab.settings), lambda path: _write_parquet(lab, path))

    def measure(self, lab: Lab, repetition: int) -> Measurement:
        """Convert a copy of the folder, and delete it."""
        if not lab.engine.is_delta:
            return Measurement(timings={}, answers={})
        path = lab.scratch(f"convert-{repetition}")
        lab.storage.clone(lab.prepared_path(_folder_name(lab.settings)), path)
        statement = f"CONVERT TO DELTA parquet.`{path}` PARTITIONED BY (p INT)"
        seconds, _ = lab.timed(lambda: lab.spark.sql(statement).collect())
        rows = lab.spark.read.format("delta").load(path)
        answer = collect(rows.selectExpr("count(*)", "sum(id)", "sum(p)", "max(name)"))
        lab.storage.delete(path)
        return Measurement(timings={"convert": seconds}, answers={"content": answer})


def _parquet_files(settings: Settings) -> int:
    return 100 if settings.quick else 10_000


def _folder_name(settings: Settings) -> str:
    return f"parquet-{_parquet_files(settings)}"


def _write_parquet(lab: Lab, path: str) -> None:
    files = _parquet_files(lab.settings)
    rows = lab.spark.range(0, files * _ROWS_PER_FILE, 1, files).selectExpr(
        "id",
        "concat('name ', id % 1000) AS name",
        "id / 3 AS amount",
        "timestamp_seconds(1700000000 + id) AS time",
        f"CAST(id DIV {_ROWS_PER_FILE} % {_PARTITIONS} AS INT) AS p",
    )
    # Spark would otherwise write timestamps as INT96, which have no statistics.
    lab.spark.conf.set("spark.sql.parquet.outputTimestampType", "TIMESTAMP_MICROS")
    try:
        rows.write.partitionBy("p").parquet(path)
    finally:
        lab.spark.conf.unset("spark.sql.parquet.outputTimestampType")


class ShallowClone(ManyFiles):
    """A shallow clone of a table with very many files."""

    name: ClassVar[str] = "shallow-clone"

    def measures(self, settings: Settings) -> tuple[Measure, ...]:
        """Return the one row."""
        title = f"SHALLOW CLONE of a table of {self.files(settings):,} files"
        return (Measure("shallow-clone", title, targets=(Target("delta", 0.2),)),)

    def measure_clone(self, lab: Lab, path: str) -> Measurement:
        """Clone the table, whose snapshot is not cached."""
        target = lab.scratch(f"{self.name}-target")
        statement = f"CREATE TABLE {lab.sql_name(target)} SHALLOW CLONE {lab.sql_name(path)}"
        seconds, _ = lab.timed(lambda: lab.spark.sql(statement).collect())
        answer = _added(lab, target)
        lab.storage.delete(target)
        return Measurement(timings={"shallow-clone": seconds}, answers={"added": answer})


def _added(lab: Lab, path: str) -> Answer:
    """Return the number of files that the first commit adds, and the least and greatest of them."""
    entries = lab.spark.read.json(f"{path}/_delta_log/{0:020d}.json").where("add IS NOT NULL")
    name = "substring_index(add.path, '/', -2)"
    return collect(entries.selectExpr("count(*)", f"min({name})", f"max({name})"))


class DeepClone(Scenario):
    """A deep clone beside a copy of the folder by the operating system; delta-spark has none."""

    name: ClassVar[str] = "deep-clone"
    rounds: ClassVar[int] = 3

    def measures(self, settings: Settings) -> tuple[Measure, ...]:
        """Return a row each for the copy, the clone, and the clone of 1 % new files."""
        size = f"{self._files(settings)} files of {self._file_bytes(settings) >> 20} MiB"
        return (
            Measure("copy", f"cp -r of {size}"),
            Measure(
                "deep-clone",
                f"DEEP CLONE of {size}",
                baseline="copy",
                targets=(Target(OWN_BASELINE, 1.2, free_s=0.5),),
            ),
            Measure(
                "deep-clone-again",
                "DEEP CLONE again after 1 % new files",
                baseline="deep-clone",
                targets=(Target(OWN_BASELINE, 0.01, free_s=0.5),),
            ),
        )

    def prepare(self, lab: Lab) -> None:
        """No engine shares the tables."""

    def measure(self, lab: Lab, repetition: int) -> Measurement:
        """Copy and clone a table of files that are never read, and hence may have any content."""
        if lab.engine.name != "deltaic" or not lab.settings.is_local:
            return Measurement(timings={}, answers={})
        files = self._files(lab.settings)
        path = lab.scratch("deep-clone-source")
        table_log.write_definition(lab, path, _SCHEMA)
        self._append(lab, path, 1, range(files))
        copied = lab.scratch("deep-clone-copy")
        copy, _ = lab.timed(lambda: _run("cp", "-r", local_path(path), local_path(copied)))
        lab.storage.delete(copied)
        target = lab.scratch("deep-clone-target")
        words = f"CREATE OR REPLACE TABLE {lab.sql_name(target)} DEEP CLONE {lab.sql_name(path)}"
        clone, _ = lab.timed(lambda: lab.spark.sql(words).collect())
        self._append(lab, path, 2, range(files, files + files // 100))
        again, rows = lab.timed(lambda: lab.spark.sql(words).collect())
        result = rows[0]
        lab.storage.delete(path)
        lab.storage.delete(target)
        return Measurement(
            timings={"copy": copy, "deep-clone": clone, "deep-clone-again": again},
            answers={"copied again": [[str(result.num_copied_files)]]},
            metrics={"copied_again_share": result.copied_files_size / result.source_table_size},
        )

    def _files(self, settings: Settings) -> int:
        return 100 if settings.quick else 400

    def _file_bytes(self, settings: Settings) -> int:
        return 1 << 20 if settings.quick else 8 << 20

    def _append(self, lab: Lab, path: str, version: int, numbers: range) -> None:
        size = self._file_bytes(lab.settings)
        for number in numbers:
            with open(local_path(path) / f"part-{number:05d}.parquet", "wb") as file:
                file.write(number.to_bytes(8, "big") * (size // 8))
        actions: list[dict[str, object]] = [
            {
                "add": {
                    "path": f"part-{number:05d}.parquet",
                    "partitionValues": {},
                    "size": size,
                    "modificationTime": 1,
                    "dataChange": True,
                }
            }
            for number in numbers
        ]
        table_log.write_commit(lab, path, version, actions)


_SCHEMA = json.dumps(
    {
        "type": "struct",
        "fields": [{"name": "id", "type": "long", "nullable": True, "metadata": {}}],
    }
)


def _run(*words: str | Path) -> None:
    subprocess.run(words, check=True)
