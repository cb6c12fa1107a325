"""Logs of large tables, written without any engine, so that all engines read the same logs.

Their data files do not exist: measurements end when the query is planned.
"""

from __future__ import annotations

import hashlib
import json
from functools import partial

from bench.engines import SUBJECT
from bench.lab import Answer, Lab

SCHEMA = "id BIGINT, day STRING, amount DOUBLE, name STRING"

_ROWS_PER_FILE = 1_000
#: The number of partitions.
DAYS = 365
_CHECKPOINT_VERSION = 10
#: The newest version of a log that `write_checkpointed` writes.
NEWEST_VERSION = _CHECKPOINT_VERSION + 1

_SCHEMA_STRING = json.dumps(
    {
        "type": "struct",
        "fields": [
            {"name": name, "type": kind, "nullable": True, "metadata": {}}
            for name, kind in (
                ("id", "long"),
                ("day", "string"),
                ("amount", "double"),
                ("name", "string"),
            )
        ],
    }
)

_PROTOCOL = {"minReaderVersion": 1, "minWriterVersion": 2}
_METADATA = {
    "id": "5fba94ed-9794-4965-ba6e-6ee3c0d22af9",
    "format": {"provider": "parquet", "options": {}},
    "schemaString": _SCHEMA_STRING,
    "partitionColumns": ["day"],
    "configuration": {},
    "createdTime": 1_700_000_000_000,
}

# File number `id` holds the rows from id * 1000; its name is as long as those of real writers.
_ADD = f"""
named_struct(
  'path', concat('day=', day, '/part-', lpad(id, 7, '0'), '-', md5(cast(id AS STRING)),
                 '-0000.c000.snappy.parquet'),
  'partitionValues', map('day', day),
  'size', 40000000 + id % 1000003,
  'modificationTime', 1700000000000 + id,
  'dataChange', false,
  'stats', format_string(
    '{{"numRecords":%d,"minValues":{{"id":%d,"amount":%d.25,"name":"name-%010d"}},' ||
    '"maxValues":{{"id":%d,"amount":%d.75,"name":"name-%010d"}},' ||
    '"nullCount":{{"id":0,"amount":0,"name":0}}}}',
    {_ROWS_PER_FILE}L, id * {_ROWS_PER_FILE}, id, id * {_ROWS_PER_FILE},
    id * {_ROWS_PER_FILE} + {_ROWS_PER_FILE - 1}, id + 7, id * {_ROWS_PER_FILE + 1})
) AS add"""


def prepared_name(files: int) -> str:
    """Return the name of the prepared log of a table of so many files, which scenarios share."""
    return f"files-{files}"


def prepare_checkpointed(lab: Lab, files: int) -> None:
    """Prepare the log that `write_checkpointed` writes."""
    lab.prepared(prepared_name(files), partial(write_checkpointed, lab, files=files))


def write_checkpointed(lab: Lab, path: str, files: int) -> None:
    """Write the log of a table whose classic checkpoint, one Parquet file, has `files` files."""
    non_file_actions = lab.spark.createDataFrame(
        [(_PROTOCOL, None), (None, _METADATA)],
        "protocol struct<minReaderVersion: int, minWriterVersion: int>, "
        "metaData struct<id: string, name: string, description: string, "
        "format: struct<provider: string, options: map<string, string>>, schemaString: string, "
        "partitionColumns: array<string>, configuration: map<string, string>, createdTime: bigint>",
    )
    adds = lab.spark.range(0, files, 1, 1).selectExpr(
        "id", f"concat('2026-', lpad(id % {DAYS}, 3, '0')) AS day"
    )
    rows = non_file_actions.unionByName(adds.selectExpr(_ADD), allowMissingColumns=True)
    log = f"{path}/_delta_log"
    rows.coalesce(1).write.mode("overwrite").parquet(f"{path}/_written")
    lab.storage.move_only_file(
        f"{path}/_written/*.parquet", f"{log}/{_CHECKPOINT_VERSION:020d}.checkpoint.parquet"
    )
    lab.storage.delete(f"{path}/_written")
    for version in (_CHECKPOINT_VERSION, _CHECKPOINT_VERSION + 1):
        write_commit(lab, path, version, [])
    lab.storage.write_text(
        f"{log}/_last_checkpoint", json.dumps({"version": _CHECKPOINT_VERSION, "size": files + 2})
    )


def write_long(lab: Lab, path: str, commits: int) -> None:
    """Write a log without a checkpoint, in which every commit adds a file and some remove one."""
    for version in range(commits):
        actions: list[dict[str, object]] = []
        if version == 0:
            actions += [{"protocol": _PROTOCOL}, {"metaData": _METADATA}]
        if version % 10 == 9:
            actions.append({"remove": _remove(version - 1)})
        actions.append({"add": _add(version)})
        write_commit(lab, path, version, actions)


def plan(lab: Lab, path: str, file: int) -> Answer:
    """Plan a query that selects one file, down to the partitions of its RDD."""
    wanted = file * _ROWS_PER_FILE + 17
    df = lab.read(path, SCHEMA).where(f"id = {wanted}").selectExpr("amount", "name")
    return [[str(df._jdf.queryExecution().toRdd().getNumPartitions())]]


def checkpoint(lab: Lab, path: str) -> None:
    """Write a checkpoint of the newest version of a log that `write_checkpointed` wrote."""
    jvm = lab.spark.sparkContext._jvm
    session = lab.spark._jsparkSession
    assert jvm is not None
    if lab.engine.name == SUBJECT:
        request = {"background": False, "tasks": [{"task": "classicCheckpoint"}]}
        jvm.io.deltaic.spark.PythonApi.maintenanceOfTable(
            session, path, _CHECKPOINT_VERSION + 1, json.dumps(request)
        )
    else:
        jvm.org.apache.spark.sql.delta.DeltaLog.forTable(session, path).checkpoint()


def next_checkpoint(path: str) -> str:
    """Return the path of the checkpoint that `checkpoint` writes."""
    return f"{path}/_delta_log/{_CHECKPOINT_VERSION + 1:020d}.checkpoint.parquet"


def day(file: int) -> str:
    """Return the partition of a file."""
    return f"2026-{file % DAYS:03d}"


def checkpointed_path(file: int) -> str:
    """Return the path of a data file of a log that `write_checkpointed` wrote."""
    digest = hashlib.md5(str(file).encode(), usedforsecurity=False).hexdigest()
    return f"day={day(file)}/part-{file:07d}-{digest}-0000.c000.snappy.parquet"


def write_definition(lab: Lab, path: str, schema_json: str) -> None:
    """Write version 0 of a table without partitions and files."""
    metadata = {**_METADATA, "schemaString": schema_json, "partitionColumns": []}
    write_commit(lab, path, 0, [{"protocol": _PROTOCOL}, {"metaData": metadata}])


def write_commit(lab: Lab, path: str, version: int, actions: list[dict[str, object]]) -> None:
    """Write a commit that appends, with these actions besides its commitInfo."""
    info = {
        "timestamp": 1_700_000_000_000 + version,
        "operation": "WRITE",
        "operationParameters": {"mode": "Append", "partitionBy": "[]"},
        "isBlindAppend": True,
    }
    lines = [json.dumps(action) for action in [{"commitInfo": info}, *actions]]
    lab.storage.write_text(f"{path}/_delta_log/{version:020d}.json", "\n".join(lines) + "\n")


def _path(file: int) -> str:
    return f"day={day(file)}/part-{file:07d}-4d3a9a51-3c5b-4f5f-9d4e-2d2f1a0e7c11-0000.parquet"


def _add(file: int) -> dict[str, object]:
    first = file * _ROWS_PER_FILE
    last = first + _ROWS_PER_FILE - 1
    stats = {
        "numRecords": _ROWS_PER_FILE,
        "minValues": {"id": first, "amount": file + 0.25, "name": f"name-{first:010d}"},
        "maxValues": {"id": last, "amount": file + 7.75, "name": f"name-{last:010d}"},
        "nullCount": {"id": 0, "amount": 0, "name": 0},
    }
    return {
        "path": _path(file),
        "partitionValues": {"day": day(file)},
        "size": 40_000_000 + file,
        "modificationTime": 1_700_000_000_000 + file,
        "dataChange": True,
        "stats": json.dumps(stats, separators=(",", ":")),
    }


def _remove(file: int) -> dict[str, object]:
    return {
        "path": _path(file),
        "deletionTimestamp": 1_700_000_000_000 + file,
        "dataChange": True,
        "extendedFileMetadata": True,
        "partitionValues": {"day": day(file)},
        "size": 40_000_000 + file,
    }
