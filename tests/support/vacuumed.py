"""What VACUUM must keep of a table, by brute force over its log, and tables of any age."""

from __future__ import annotations

import json
import os
import shutil
import time
import uuid
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING
from urllib.parse import unquote

from tests.support import log
from tests.support.jobs import await_tasks
from tests.support.session_settings import session_settings
from tests.support.table_builder import build_table

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

HOUR_MS = 3_600_000

#: Lets a retention be shorter than the table's.
UNCHECKED = {"spark.deltaic.retentionDurationCheck.enabled": "false"}

_Z85 = "0123456789abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ.-:+=^!/*?&<>()[]{}@%$#"


def changed_table(spark: SparkSession, path: str, **properties: str) -> str:
    """Create a partitioned table of several versions, with vectors and change data."""
    name = f"delta.`{path}`"
    stated = {
        "delta.enableDeletionVectors": "true",
        "delta.enableChangeDataFeed": "true",
        **properties,
    }
    listed = ", ".join(f"'{key}' = '{value}'" for key, value in stated.items())
    settings = {"spark.deltaic.deletionVectors.maxInlineBytes": "0"}
    with session_settings(spark, settings):
        spark.sql(
            f"CREATE TABLE {name} (id BIGINT, _p STRING) USING delta PARTITIONED BY (_p) "
            f"TBLPROPERTIES ({listed})"
        )
        rows = "SELECT id, IF(id % 2 = 0, 'a b', 'c/d') FROM range(0, 20000, 1, 1)"
        spark.sql(f"INSERT INTO {name} {rows}")
        spark.sql(f"DELETE FROM {name} WHERE id % 20 = 3")
        spark.sql(f"UPDATE {name} SET id = -id WHERE id % 20 = 5")
        spark.sql(f"DELETE FROM {name} WHERE id % 20 = 7")
        spark.sql(f"DELETE FROM {name} WHERE _p = 'a b'")
        spark.sql(f"INSERT INTO {name} VALUES (5000, 'a b')")
    return path


#: So many files that VACUUM deletes them, and RESTORE looks for them, by jobs.
COPIES = [f"copy-{n}.parquet" for n in range(1200)]


def table_of_many_files(spark: SparkSession, path: str) -> None:
    """Create a table whose version 1 has 1,201 files of a row, and whose version 2 has none."""
    build_table(spark, path, "id INT", [[(1,)]], deletion_vectors=False)
    (add,) = log.active_files(path)
    for name in COPIES:
        shutil.copy(log.data_path(path, add), Path(path, name))
    await_tasks()
    log.write_commit(path, 1, *({"add": {**add, "path": name}} for name in COPIES))
    spark.sql(f"DELETE FROM delta.`{path}`")


def litter(table: str) -> set[str]:
    """Put files into the directory that belong to no version; return those that may go."""
    garbage = {"stray.parquet", "_p=x/part-0.parquet", "deep/er/stray.bin", "a%20b.parquet"}
    kept = {"_hidden/stray.parquet", ".hidden.parquet", "_SUCCESS", "_p=x/_temporary/part"}
    for name in garbage | kept:
        path = Path(table, name)
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(b"garbage")
    Path(table, "empty/directory").mkdir(parents=True)
    return garbage


def backdate(table: str, hours: float) -> None:
    """Let all data files and directories be that old."""
    then = time.time() - hours * 3600
    for directory, _, files in os.walk(table, topdown=False):
        if "_delta_log" not in directory:
            for name in (*files, "."):
                os.utime(Path(directory, name), (then, then))


def aged_copy(table: str | Path, target: str | Path, hours: Mapping[int, float]) -> str:
    """Copy a table so that each version, with the files that it wrote, is that many hours old.

    Checkpoints are left out: the times of their tombstones would be others. Files of no version
    are as old as the oldest version.
    """
    log.copy_table(table, target)
    now_ms = int(time.time() * 1000)
    for path in Path(target, "_delta_log").iterdir():
        if "checkpoint" in path.name or path.suffix == ".crc":
            path.unlink()
    oldest = now_ms - max(hours.values(), default=0) * HOUR_MS
    for path in log.stored_files(target):
        _set_time(path, oldest)
    for version in log.versions(target):
        then_ms = int(now_ms - hours[version] * HOUR_MS)
        for action in (*log.actions(target, version, "add"), *log.actions(target, version, "cdc")):
            for name in files_of(action):
                if Path(target, name).exists() and not _is_known(target, version, name):
                    _set_time(Path(target, name), then_ms)
        _rewrite(log.commit_path(target, version), then_ms)
    return str(target)


def _is_known(table: str | Path, version: int, name: str) -> bool:
    """Whether an earlier version has added the file."""
    return any(
        name in files_of(add)
        for earlier in range(version)
        for add in log.actions(table, earlier, "add")
    )


def _set_time(path: Path, then_ms: float) -> None:
    os.utime(path, (then_ms / 1000, then_ms / 1000))


def _rewrite(path: Path, then_ms: int) -> None:
    lines = []
    for line in path.read_text(encoding="utf-8").splitlines():
        action = json.loads(line)
        if "remove" in action:
            action["remove"]["deletionTimestamp"] = then_ms
        if "commitInfo" in action:
            action["commitInfo"]["timestamp"] = then_ms
        lines.append(json.dumps(action) + "\n")
    path.unlink()
    path.write_text("".join(lines), encoding="utf-8")
    _set_time(path, then_ms)


def files_of(action: log.Action) -> Iterator[str]:
    """Return the files of an action, relative to the table; those of relative paths only."""
    yield unquote(action["path"])
    vector = action.get("deletionVector")
    if vector is not None and vector["storageType"] == "u":
        yield vector_file(vector["pathOrInlineDv"])


def vector_file(text: str) -> str:
    """Return the file of a deletion vector (Protocol § Derived Fields)."""
    prefix, encoded = text[:-20], text[-20:]
    data = b""
    for i in range(0, 20, 5):
        value = 0
        for character in encoded[i : i + 5]:
            value = value * 85 + _Z85.index(character)
        data += value.to_bytes(4, "big")
    name = f"deletion_vector_{uuid.UUID(bytes=data)}.bin"
    return f"{prefix}/{name}" if prefix else name


def needed(table: str | Path, retention_hours: float) -> set[str]:
    """Return the files that any version needs which was the newest within the retention."""
    cutoff = time.time() - retention_hours * 3600
    live: dict[tuple[str, str | None], log.Action] = {}
    found: set[str] = set()
    for version in log.versions(table):
        is_within = log.commit_path(table, version).stat().st_mtime >= cutoff
        if is_within:
            found |= {name for add in live.values() for name in files_of(add)}
            found |= {n for cdc in log.actions(table, version, "cdc") for n in files_of(cdc)}
        for remove in log.actions(table, version, "remove"):
            live.pop((remove["path"], log.dv_id(remove)), None)
        for add in log.actions(table, version, "add"):
            live[add["path"], log.dv_id(add)] = add
    return found | {name for add in live.values() for name in files_of(add)}


def stored(table: str | Path) -> set[str]:
    """Return all files of the table's directory but the log's, relative to it."""
    return {str(path.relative_to(table)) for path in log.stored_files(table)}


def young(table: str | Path, retention_hours: float) -> set[str]:
    """Return the files that were modified within the retention."""
    cutoff = time.time() - retention_hours * 3600
    found = log.stored_files(table)
    return {str(p.relative_to(table)) for p in found if p.stat().st_mtime >= cutoff}


def hidden(table: str | Path) -> set[str]:
    """Return the files with a hidden name on their path, partitions and change data aside."""

    def is_hidden(part: str) -> bool:
        return part[0] in "_." and not part.startswith("_change_data") and "=" not in part

    return {name for name in stored(table) if any(map(is_hidden, Path(name).parts))}
