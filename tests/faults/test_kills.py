"""The driver is killed at a point of a write: the table is as before or as after, never between."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from deltaic import DeltaTable
from deltaic.exceptions import DeltaError
from tests.faults.conftest import BASE_ROWS, BASE_VERSIONS, MANY_ROWS, SCHEMA, _Copies, require_kept
from tests.faults.operations import OPERATIONS
from tests.support import log
from tests.support.faulty import ARM, FaultyProcesses, is_alive
from tests.support.maintenance import await_maintenance
from tests.support.spark_process import SparkProcessError
from tests.support.table_builder import append_file, in_order, rows_of

_DATA = r"/part-[^/]*\.parquet$"
_VECTORS = r"/deletion_vector_[^/]*\.bin$"
_VERSION = f"{BASE_VERSIONS:020d}"


def _log_file(name: str) -> str:
    return rf"/_delta_log/{name}$"


def _temporary(name: str) -> str:
    return rf"/\.{name}\.[^/]*\.tmp$"


_ENTRY = rf"{_VERSION}\.json"
_NEXT_ENTRY = rf"{BASE_VERSIONS + 1:020d}\.json"
_CHECKSUM = rf"{_VERSION}\.crc"
_COMPACTION = rf"0{{20}}\.{_VERSION}\.compacted\.json"
_CHECKPOINT = rf"{_VERSION}\.checkpoint\.parquet"
_UUID_CHECKPOINT = rf"{_VERSION}\.checkpoint\.[0-9a-f-]{{36}}\.parquet"
_SIDECAR = rf"_sidecars/{_VERSION}\.checkpoint\.[^/]*\.parquet"
_LIST = r"/_symlink_format_manifest/manifest$"
_FIRST_ENTRY = _log_file(r"0{20}\.json")
_EXPIRED = _log_file(r"0{19}[0-5]\.[^/]*")


@dataclass(frozen=True)
class Point:
    """Where the driver dies: before or after the n-th call of an operation on a path.

    Attributes
    ----------
    commits
        How many versions an operation that makes several of them has made by then.
    """

    name: str
    operation: str
    call: str
    path: str
    nth: int = 1
    when: str = "before"
    committed: bool = True
    commits: int = 1


def _before(name: str, operation: str, call: str, path: str, nth: int = 1) -> Point:
    return Point(name, operation, call, path, nth, "before", committed=False)


POINTS = [
    _before("before the first data file", "append", "create", _DATA),
    _before("with an empty data file", "append", "write", _DATA),
    _before("before the first data file is closed", "append", "close", _DATA),
    _before("between data files", "append", "create", _DATA, 2),
    _before("before the last data file is closed", "append", "close", _DATA, 3),
    _before("before the log entry's temporary file", "append", "create", _temporary(_ENTRY)),
    _before("with an empty temporary file", "append", "write", _temporary(_ENTRY)),
    _before("before the temporary file is on disk", "append", "force", _temporary(_ENTRY)),
    _before("before the log entry has its name", "append", "link", _log_file(_ENTRY)),
    Point("after the log entry has its name", "append", "link", _log_file(_ENTRY), 1, "after"),
    Point("before the temporary name goes", "append", "delete", _temporary(_ENTRY)),
    Point("before the checksum file", "append", "create", _temporary(_CHECKSUM)),
    Point("with an empty checksum file", "append", "write", _temporary(_CHECKSUM)),
    Point("before the checksum file has its name", "append", "link", _log_file(_CHECKSUM)),
    Point("after the checksum file", "append", "link", _log_file(_CHECKSUM), 1, "after"),
    Point("with an empty compaction", "append", "write", _temporary(_COMPACTION)),
    Point("before the compaction has its name", "append", "link", _log_file(_COMPACTION)),
    Point("after the compaction", "append", "link", _log_file(_COMPACTION), 1, "after"),
    Point("with an empty checkpoint", "append", "write", _temporary(_CHECKPOINT)),
    Point("before the checkpoint has its name", "append", "link", _log_file(_CHECKPOINT)),
    Point("after the checkpoint", "append", "link", _log_file(_CHECKPOINT), 1, "after"),
    Point("with an empty hint", "append", "write", _temporary("_last_checkpoint")),
    Point("before the hint has its name", "append", "move", _log_file("_last_checkpoint")),
    Point("after the hint", "append", "move", _log_file("_last_checkpoint"), 1, "after"),
    Point("before cleanup deletes", "append", "delete", _EXPIRED),
    Point("while cleanup deletes", "append", "delete", _EXPIRED, 4),
    Point("after some of cleanup", "append", "delete", _EXPIRED, 7, "after"),
    Point("before a sidecar has its name", "append v2", "link", _log_file(_SIDECAR)),
    Point("after a sidecar", "append v2", "link", _log_file(_SIDECAR), 1, "after"),
    Point("with sidecars alone", "append v2", "link", _log_file(_UUID_CHECKPOINT)),
    Point("after the V2 checkpoint", "append v2", "link", _log_file(_UUID_CHECKPOINT), 1, "after"),
    *(
        point
        for operation in ("create", "CTAS", "saveAsTable, new")
        for point in (
            _before("between data files", operation, "create", _DATA, 2),
            _before("before the first log entry", operation, "link", _FIRST_ENTRY),
            Point("after the first log entry", operation, "link", _FIRST_ENTRY, 1, "after"),
        )
    ),
    _before("before the log entry has its name", "overwrite", "link", _log_file(_ENTRY)),
    Point("after the log entry has its name", "overwrite", "link", _log_file(_ENTRY), 1, "after"),
    _before("before the vectors", "delete many", "create", _VECTORS),
    _before("before the vectors are closed", "delete many", "close", _VECTORS),
    _before("before the log entry has its name", "delete", "link", _log_file(_ENTRY)),
    Point("after the log entry has its name", "delete", "link", _log_file(_ENTRY), 1, "after"),
    _before("before rewritten files", "rewrite", "create", _DATA),
    _before("before the log entry has its name", "rewrite", "link", _log_file(_ENTRY)),
    Point("after the log entry has its name", "rewrite", "link", _log_file(_ENTRY), 1, "after"),
    _before("before the files of new rows are closed", "update", "close", _DATA),
    _before("before the log entry has its name", "update", "link", _log_file(_ENTRY)),
    Point("after the log entry has its name", "update", "link", _log_file(_ENTRY), 1, "after"),
    _before("before rewritten files are closed", "merge", "close", _DATA),
    _before("before the log entry has its name", "merge", "link", _log_file(_ENTRY)),
    Point("after the log entry has its name", "merge", "link", _log_file(_ENTRY), 1, "after"),
    _before("before the log entry has its name", "replaceWhere", "link", _log_file(_ENTRY)),
    Point(
        "after the log entry has its name", "replaceWhere", "link", _log_file(_ENTRY), 1, "after"
    ),
    _before("between data files", "RTAS", "create", _DATA, 2),
    _before("between data files", "dynamic overwrite", "create", _DATA, 2),
    *(
        point
        for operation in (
            "RTAS",
            "TRUNCATE",
            "restore",
            "REPLACE USING",
            "dynamic overwrite",
            "saveAsTable",
            "INSERT by name",
        )
        for point in (
            _before("before the log entry has its name", operation, "link", _log_file(_ENTRY)),
            Point("after the log entry", operation, "link", _log_file(_ENTRY), 1, "after"),
        )
    ),
    *(
        point
        for operation in ("compaction", "z-order")
        for point in (
            _before("before the first part", operation, "create", _DATA),
            _before("between parts", operation, "create", _DATA, 2),
            _before("before the last part is closed", operation, "close", _DATA, 2),
            _before("before the joined file", operation, "create", _DATA, 3),
            _before("before the joined file is closed", operation, "close", _DATA, 3),
            _before("before the log entry has its name", operation, "link", _log_file(_ENTRY)),
            Point("after the log entry", operation, "link", _log_file(_ENTRY), 1, "after"),
        )
    ),
    _before("before the log entry has its name", "alter", "link", _log_file(_ENTRY)),
    Point("after the log entry has its name", "alter", "link", _log_file(_ENTRY), 1, "after"),
    _before("before the feature is supported", "backfill", "link", _log_file(_ENTRY)),
    Point("before rows have ids", "backfill", "link", _log_file(_NEXT_ENTRY)),
    Point("after rows have ids", "backfill", "link", _log_file(_NEXT_ENTRY), 1, "after", commits=2),
    Point("before the first list of files", "append listed", "create", _temporary("manifest")),
    Point("with an empty list of files", "append listed", "write", _temporary("manifest")),
    Point("before the list has its name", "append listed", "move", _LIST),
    Point("after the list has its name", "append listed", "move", _LIST, 1, "after"),
]


@pytest.mark.parametrize("point", POINTS, ids=lambda p: f"{p.operation}: {p.name}")
def test_a_table_whose_writer_is_killed_is_as_before_or_as_after(
    spark: SparkSession,
    processes: FaultyProcesses,
    copy_of: _Copies,
    tmp_path: Path,
    figures: Counter[str],
    point: Point,
) -> None:
    code, kind, after = OPERATIONS[point.operation]
    table = copy_of(kind) if kind else str(tmp_path / "table")
    fault = [point.call, point.path, point.nth, f"kill {point.when}"]
    with processes.take() as (process, pid), pytest.raises(SparkProcessError):
        process.run(ARM + code, table=table, fault=fault)
    assert not is_alive(pid), "it was not killed"
    figures["kills"] += 1
    if kind is None and not point.committed:
        assert log.versions(table) == [] if Path(table, "_delta_log").exists() else True
        expected = []
    else:
        before = MANY_ROWS if kind == "many" else BASE_ROWS
        expected = list(after if point.committed else before)
        found = rows_of(spark, table)
        if point.committed:
            require_kept(figures, found == in_order(expected), point.name)
        assert found == in_order(expected)
        first = 0 if kind is None else {"many": 1}.get(kind, BASE_VERSIONS)
        assert log.newest(table) == first - 1 + point.committed * point.commits
    append_file(spark, table, SCHEMA, [(999, "next")])
    figures["commits"] += 1 + point.committed
    assert rows_of(spark, table) == in_order([*expected, (999, "next")])
    versions = log.versions(table)
    assert versions == list(range(versions[0], versions[-1] + 1)), "versions have gaps"
    FOLLOWED_BY.get(point.operation, lambda *_: None)(spark, table)


def _row_ids_are_given(spark: SparkSession, table: str) -> None:
    """What was begun can be done to the end, and no id is there twice."""
    spark.sql(f"ALTER TABLE delta.`{table}` SET TBLPROPERTIES ('delta.enableRowTracking' = 'true')")
    found = spark.read.format("delta").load(table).select("_metadata.row_id").collect()
    ids = [row[0] for row in found]
    assert None not in ids and len(set(ids)) == len(ids) == len(BASE_ROWS) + 1


def _constraint_is_whole(spark: SparkSession, table: str) -> None:
    """It is there with its feature, or it can be added."""
    properties = DeltaTable.forPath(spark, table).detail().collect()[0]["properties"]
    if "delta.constraints.c" not in properties:
        spark.sql(f"ALTER TABLE delta.`{table}` ADD CONSTRAINT c CHECK (id >= 0)")
    with pytest.raises(DeltaError, match="constraint c"):
        append_file(spark, table, SCHEMA, [(-1, "refused")])


def _files_are_listed(spark: SparkSession, table: str) -> None:
    await_maintenance(spark)
    listed = Path(table, "_symlink_format_manifest", "manifest").read_text().split()
    rows = spark.read.format("delta").load(table).select("_metadata.file_name").distinct()
    found = sorted(row[0] for row in rows.collect())
    assert sorted(Path(path).name for path in listed) == found


def _files_are_compacted(spark: SparkSession, table: str) -> None:
    before, target = rows_of(spark, table), DeltaTable.forPath(spark, table)
    removed = [
        target.optimize().executeCompaction().collect()[0].metrics.numFilesRemoved for _ in range(2)
    ]
    assert removed[0] > removed[1] == 0
    assert rows_of(spark, table) == before


#: What is asked of the table besides, once the next write has succeeded.
FOLLOWED_BY: dict[str, Callable[[SparkSession, str], None]] = {
    "alter": _constraint_is_whole,
    "backfill": _row_ids_are_given,
    "append listed": _files_are_listed,
    "compaction": _files_are_compacted,
    "z-order": _files_are_compacted,
}
