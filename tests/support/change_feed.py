"""Tables with a change data feed, and what their feeds say.

`enable_feed` edits the log of a table that was written without a feed, as if it had had one from
the start: its commits have no ``cdc`` files, so all changes follow from adds, removes and deletion
vectors.
"""

from __future__ import annotations

import json
import os
from collections import Counter
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from tests.support import log

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

PROPERTY = "delta.enableChangeDataFeed"

#: The columns that a feed has besides the table's.
COLUMNS = ["_change_type", "_commit_version", "_commit_timestamp"]


def enable_feed(spark: SparkSession, path: str, *, first_time_s: int | None = None) -> None:
    """Set the property in every metaData of the log, and let the protocol support it.

    Parameters
    ----------
    first_time_s
        When version 0 was committed, in seconds since the epoch; the others follow by minutes.
    """
    for version in log.versions(path):
        set_property(path, version, PROPERTY, "true")
        _support_feed(path, version)
        if first_time_s is not None:
            # However old the versions are, their files are there.
            set_property(path, version, "delta.deletedFileRetentionDuration", "interval 10000 days")
            time = first_time_s + 60 * version
            os.utime(log.commit_path(path, version), (time, time))
    forget(spark, path)


def set_property(path: str, version: int, name: str, value: str) -> None:
    """Set a table property in the metaData of a commit, if it has one."""

    def change(action: log.Action) -> None:
        if "metaData" in action:
            action["metaData"]["configuration"][name] = value

    _rewrite(path, version, change)


def _support_feed(path: str, version: int) -> None:
    def change(action: log.Action) -> None:
        protocol = action.get("protocol")
        if protocol is None:
            return
        if "writerFeatures" in protocol:
            features = {*protocol["writerFeatures"], "changeDataFeed"}
            protocol["writerFeatures"] = sorted(features)
        else:
            protocol["minWriterVersion"] = max(4, protocol["minWriterVersion"])

    _rewrite(path, version, change)


def _rewrite(path: str, version: int, change: Callable[[log.Action], None]) -> None:
    file = log.commit_path(path, version)
    lines = [json.loads(line) for line in file.read_text().split("\n") if line]
    for action in lines:
        change(action)
    file.write_text("".join(json.dumps(action) + "\n" for action in lines))
    file.with_name(f".{file.name}.crc").unlink(missing_ok=True)
    # They say what the table was; delta-spark believes them.
    for checksum in file.parent.glob("[0-9]*.crc"):
        checksum.unlink()


def forget(spark: SparkSession, path: str) -> None:
    """Let the engine drop what it has cached of a table whose log was edited."""
    jvm: Any = spark._jvm
    jvm.io.deltaic.replay.DeltaLog.invalidate(jvm.org.apache.hadoop.fs.Path("file:" + path))


def changes(spark: SparkSession, path: str, **options: object) -> DataFrame:
    reader = spark.read.format("delta").option("readChangeFeed", "true")
    return reader.options(**options).load(path)  # type: ignore[arg-type]


def apply_changes(rows: Counter[str], feed: DataFrame) -> Counter[str]:
    """Return the rows after the changes; a row that is deleted must be there."""
    after = Counter(rows)
    for change in feed.drop(*COLUMNS[1:]).collect():
        *row, kind = change
        if kind in ("insert", "update_postimage"):
            after[repr(tuple(row))] += 1
        else:
            assert kind in ("delete", "update_preimage"), kind
            after[repr(tuple(row))] -= 1
    assert all(count >= 0 for count in after.values()), "a row was deleted that was not there"
    return +after


def rows_at(spark: SparkSession, path: str, version: int) -> Counter[str]:
    df = spark.read.format("delta").option("versionAsOf", version).load(path)
    return Counter(repr(tuple(row)) for row in df.collect())


def kinds(df: DataFrame) -> dict[int, dict[str, int]]:
    """Count the rows of each kind in each version."""
    found: dict[int, dict[str, int]] = {}
    counts = df.groupBy("_commit_version", "_change_type").count()
    for version, kind, count in counts.collect():
        found.setdefault(version, {})[kind] = count
    return found
