"""Whether delta-spark and delta-rs read the tables that a test has left as Deltaic does."""

from __future__ import annotations

import json
from collections import Counter
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow.parquet as pq

from tests.support.delta_rs import by_query, in_order
from tests.support.log import active_files, data_path
from tests.support.spark_process import SparkProcess, SparkProcessError
from tests.support.valid_logs import is_wholly_ours

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

#: More rows than this are only compared by delta-spark, as a sum of hashes.
_MOST_ROWS_LISTED = 2_000

_CONTENT = "CAST(struct(*) AS STRING)"

#: What DESCRIBE returns for a table and its versions, at any path and in either engine.
_DETAIL = (
    *("format", "id", "name", "description", "createdAt", "partitionColumns", "clusteringColumns"),
    *("numFiles", "sizeInBytes", "properties", "minReaderVersion", "minWriterVersion"),
    "tableFeatures",
)
_HISTORY = (
    *("version", "timestamp", "operation", "operationParameters", "readVersion", "isolationLevel"),
    *("isBlindAppend", "operationMetrics", "userMetadata", "engineInfo"),
)

_AS_DELTA_SPARK_SEES_IT = f"""
def plain(value):
    if isinstance(value, dict):
        return sorted((str(k), str(v)) for k, v in value.items())
    return str(sorted(value)) if isinstance(value, list) else str(value)

table = f"delta.`{{path}}`"
found = spark.read.format("delta").load(path)
detail = spark.sql(f"DESCRIBE DETAIL {{table}}").collect()[0]
versions = spark.sql(f"DESCRIBE HISTORY {{table}}").collect()
listed = found.selectExpr("{_CONTENT}").limit({_MOST_ROWS_LISTED} + 1).collect()
count, hashes = len(listed), None
if count > {_MOST_ROWS_LISTED}:
    count, hashes = found.selectExpr(
        "count(*)", "sum(CAST(xxhash64({_CONTENT}) AS DECIMAL(38, 0)))"
    ).collect()[0]
    listed = []
result = {{
    "columns": found.columns,
    "count": count,
    "hashes": str(hashes),
    "rows": sorted(str(row[0]) for row in listed),
    "detail": {{name: plain(detail[name]) for name in {_DETAIL}}},
    "history": [{{name: plain(row[name]) for name in {_HISTORY}}} for row in versions],
}}
"""

#: delta-spark caches each table for an hour, which takes too much memory for all of them.
_FORGETTING = "spark._jvm.org.apache.spark.sql.delta.DeltaLog.clearCache()"

#: Parts of a path at which delta-rs looks for the table elsewhere.
_MISREAD_BY_DELTA_RS = ("%", "\\")

#: What delta-rs says of what it does not know, such as fields added to structs in maps. A table
#: with that is counted, not compared.
_UNKNOWN_TO_DELTA_RS = (
    *("not yet supported", "unsupported", "Unsupported", "not supported"),
    "to type Map(",
    # Variants that Spark has written to Parquet.
    "unmasked nulls for non-nullable StructArray",
)

#: In the footer of a file whose dates or times are of the Julian calendar, which delta-rs ignores.
_JULIAN = {b"org.apache.spark.legacyDateTime", b"org.apache.spark.legacyINT96"}


@dataclass(slots=True)
class PeerReads:
    """Has both peers read tables, and counts the outcomes."""

    spark: SparkSession
    delta_spark: SparkProcess
    counts: Counter[str] = field(default_factory=Counter)
    seen: set[Path] = field(default_factory=set)

    def require(self, folder: Path) -> None:
        """Fail if a peer reads a new table below the folder otherwise than we, or not at all.

        Tables that other engines wrote or a test has damaged are left out: those we do not read.
        """
        for directory in sorted(folder.rglob("_delta_log")):
            path = str(directory.parent)
            if directory in self.seen:
                continue
            self.seen.add(directory)
            if not is_wholly_ours(directory.parent):
                continue
            if _is_damaged(directory.parent):
                self.counts["tables that a test has damaged"] += 1
                continue
            if _has_checkpoint_of_a_test(directory):
                self.counts["tables with a checkpoint that a test has written"] += 1
                continue
            try:
                ours = self._seen_by(path)
            except Exception:
                self.counts["tables that we do not read"] += 1
                continue
            self.counts["tables"] += 1
            self._require_delta_spark(path, ours)
            self._require_delta_rs(path, int(ours["count"]))

    def _seen_by(self, path: str) -> dict[str, Any]:
        names: dict[str, Any] = {"spark": self.spark, "path": path}
        exec(_AS_DELTA_SPARK_SEES_IT, names)
        return dict(names["result"])

    def _require_delta_spark(self, path: str, ours: dict[str, Any]) -> None:
        try:
            theirs = self.delta_spark.run(_AS_DELTA_SPARK_SEES_IT + _FORGETTING, path=path)
        except SparkProcessError as problem:
            raise AssertionError(f"delta-spark does not read {path}: {problem}") from None
        assert theirs == json.loads(json.dumps(ours)), f"delta-spark reads {path} differently"

    def _require_delta_rs(self, path: str, count: int) -> None:
        if count > _MOST_ROWS_LISTED:
            self.counts["tables too large to list for delta-rs"] += 1
            return
        if any(text in path for text in _MISREAD_BY_DELTA_RS):
            self.counts["tables at paths that delta-rs does not find"] += 1
            return
        if _has_old_timestamps(Path(path)):
            self.counts["tables with dates of the Julian calendar or timestamps of INT96"] += 1
            return
        try:
            theirs = by_query(path)
        except Exception as problem:
            if any(text in str(problem) for text in _UNKNOWN_TO_DELTA_RS):
                self.counts["tables that delta-rs refuses"] += 1
                return
            raise AssertionError(f"delta-rs does not read {path}: {problem}") from None
        ours = in_order(self.spark.read.format("delta").load(path).collect())
        assert theirs == ours, f"delta-rs reads {path} differently"


def _is_damaged(table: Path) -> bool:
    """Whether a test has deleted what peers need, and Deltaic may still have in memory.

    That is all deletion vectors, or the sizes of files in the log; or a file outside of the table,
    of which it is a shallow clone, was written again.
    """
    files = active_files(table)
    vectors = [add["deletionVector"] for add in files if "deletionVector" in add]
    is_stored = any(vector["storageType"] == "u" for vector in vectors)
    lacks_vectors = is_stored and not any(table.rglob("*.bin"))
    stored = [(data_path(table, add), add["size"]) for add in files]
    outside = [(path, size) for path, size in stored if not path.is_relative_to(table)]
    is_other = any(path.is_file() and path.stat().st_size != size for path, size in outside)
    return lacks_vectors or is_other or any(size == 0 for _, size in stored)


def _has_old_timestamps(table: Path) -> bool:
    """Whether files may have days of the Julian calendar, or timestamps of INT96.

    delta-rs reads the days as those of today's calendar, and INT96 as nanoseconds in 64 bits, which
    begin in 1677.
    """
    paths = [data_path(table, add) for add in active_files(table)]
    footers = [pq.read_metadata(path) for path in paths if path.is_file()]
    return any(
        _JULIAN & (footer.metadata or {}).keys()
        or any(column.physical_type == "INT96" for column in footer.schema)
        for footer in footers
    )


def _has_checkpoint_of_a_test(log: Path) -> bool:
    """Whether tests have written a checkpoint by themselves: not all forms suit delta-spark."""
    return any(
        "arrow" in (pq.read_metadata(file).created_by or "") for file in log.rglob("*.parquet")
    )
