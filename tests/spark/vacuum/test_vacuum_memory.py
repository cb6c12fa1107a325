"""VACUUM of a table with millions of files, in a small heap: log and inventory are generated."""

from __future__ import annotations

import hashlib
import json
import os
import tempfile
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from tests.support import log
from tests.support.spark_process import SparkProcess

#: With ten million files and 2 GiB it takes minutes: DELTAIC_VACUUM_FILES=10000000 and
#: DELTAIC_VACUUM_HEAP=2g.
FILES = int(os.environ.get("DELTAIC_VACUUM_FILES", "2000000"))
HEAP = os.environ.get("DELTAIC_VACUUM_HEAP", "512m")
GARBAGE = 20_000
ROW_GROUP = 100_000
#: The version of the checkpoint.
VERSION = 10

_STRINGS = pa.map_(pa.string(), pa.string())
_ADD = {
    "path": pa.string(),
    "partitionValues": _STRINGS,
    "size": pa.int64(),
    "modificationTime": pa.int64(),
    "dataChange": pa.bool_(),
}
_PROTOCOL = {"minReaderVersion": pa.int32(), "minWriterVersion": pa.int32()}
_METADATA = {
    "id": pa.string(),
    "format": pa.struct({"provider": pa.string(), "options": _STRINGS}),
    "schemaString": pa.string(),
    "partitionColumns": pa.list_(pa.string()),
    "configuration": _STRINGS,
}
_SCHEMA = pa.schema(
    {
        "add": pa.struct(_ADD),
        "protocol": pa.struct(_PROTOCOL),
        "metaData": pa.struct(_METADATA),
    }
)
_FIELD = {"name": "id", "type": "long", "nullable": True, "metadata": {}}
_DEFINITION = {
    "protocol": {"minReaderVersion": 1, "minWriterVersion": 2},
    "metaData": {
        "id": "5fba94ed-9794-4965-ba6e-6ee3c0d22af9",
        "format": {"provider": "parquet", "options": {}},
        "schemaString": json.dumps({"type": "struct", "fields": [_FIELD]}),
        "partitionColumns": [],
        "configuration": {},
    },
}

VACUUM = """
beans = spark._jvm.java.lang.management.ManagementFactory.getMemoryPoolMXBeans()
pools = [bean for bean in beans if bean.getType().name() == "HEAP"]
paths = "concat('part-', lpad(id, 8, '0'), '-', md5(CAST(id AS STRING)), '.parquet')"
spark.range(0, files, 1, 100).selectExpr(
    f"{paths} AS path", "1L AS length", "false AS isDir", "0L AS modificationTime"
).createOrReplaceTempView("inventory")
spark.table("inventory").selectExpr(
    "concat('unused-', path) AS path", "length", "isDir", "modificationTime"
).createOrReplaceTempView("unused")
spark._jvm.System.gc()
for pool in pools:
    pool.resetPeakUsage()
statement = f"VACUUM delta.`{table}` USING INVENTORY"
all_unused = spark.sql(f"{statement} unused DRY RUN")
all_unused.show()
counts = [all_unused.count(), all_unused.where("path LIKE '%.parquet'").count()]
del all_unused
shown = spark.sql(f"{statement} inventory DRY RUN").count()
spark.sql(f"{statement} inventory").collect()
result = {
    "shown": shown,
    "all_unused": counts,
    "peak_mb": sum(pool.getPeakUsage().getUsed() for pool in pools) >> 20,
    "max_mb": spark._jvm.Runtime.getRuntime().maxMemory() >> 20,
}
"""


def name_of(n: int) -> str:
    digest = hashlib.md5(str(n).encode(), usedforsecurity=False).hexdigest()
    return f"part-{n:08d}-{digest}.parquet"


def write_log(table: Path, files: int) -> None:
    """Write the log of a table whose checkpoint has so many files, and replaces older commits."""
    directory = table / "_delta_log"
    directory.mkdir(parents=True)
    info = {"timestamp": 1, "operation": "WRITE", "operationParameters": {}}
    log.write_commit(table, VERSION, {"commitInfo": info})
    path = directory / f"{VERSION:020d}.checkpoint.parquet"
    with pq.ParquetWriter(path, _SCHEMA) as writer:
        rows = [{kind: value} for kind, value in _DEFINITION.items()]
        writer.write_table(pa.Table.from_pylist(rows, _SCHEMA))
        for start in range(0, files, ROW_GROUP):
            writer.write_table(_adds(range(start, min(files, start + ROW_GROUP))))
    hint = {"version": VERSION, "size": files + 2}
    (directory / "_last_checkpoint").write_text(json.dumps(hint), encoding="utf-8")


def _adds(numbers: range) -> pa.Table:
    count = len(numbers)
    columns = [
        pa.array([name_of(n) for n in numbers]),
        pa.MapArray.from_arrays([0] * (count + 1), pa.array([], "string"), pa.array([], "string")),
        pa.array(numbers, pa.int64()),
        pa.array([1] * count, pa.int64()),
        pa.array([False] * count),
    ]
    adds = pa.StructArray.from_arrays(columns, names=list(_ADD))
    others = [pa.nulls(count, _SCHEMA.field(kind).type) for kind in _DEFINITION]
    return pa.Table.from_arrays([adds, *others], schema=_SCHEMA)


@pytest.mark.thorough
def test_table_of_millions_of_files_is_vacuumed_in_a_small_heap() -> None:
    """The heap is that of driver and tasks together."""
    with tempfile.TemporaryDirectory() as folder:
        table = Path(folder, "table")
        write_log(table, FILES)
        live = [table / name_of(n) for n in range(0, FILES, FILES // 10)]
        garbage = [table / name_of(FILES + n) for n in range(0, GARBAGE, GARBAGE // 10)]
        for path in live + garbage:
            path.touch()
        settings = {"spark.driver.memory": HEAP}
        with SparkProcess(settings, engine="deltaic", timeout_s=1800) as process:
            found = process.run(VACUUM, table=str(table), files=FILES + GARBAGE)
        print(found)
        assert found["shown"] == GARBAGE
        assert found["all_unused"] == [FILES + GARBAGE] * 2
        assert all(path.exists() for path in live)
        assert not any(path.exists() for path in garbage)
        start, end = (log.commit_info(table, VERSION + n)["operationMetrics"] for n in (1, 2))
        assert start["numFilesToDelete"] == str(GARBAGE)
        assert end["numDeletedFiles"] == str(len(garbage))
