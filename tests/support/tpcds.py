"""TPC-DS as Spark's own tests have it: the text of its queries and the columns of its tables."""

from __future__ import annotations

import json
import re
import struct
import uuid
import zipfile
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

from tests.support import log
from tests.support.paths import ROOT

_JARS = ROOT / ".tools" / "tpc"
_SCHEMA_CLASS = "org/apache/spark/sql/TPCDSSchema.class"

#: Bytes that follow the tag of an entry of a class file's constant pool; strings have their length.
_ENTRY_BYTES = {3: 4, 4: 4, 5: 8, 6: 8, 7: 2, 8: 2, 15: 3, 16: 2, 19: 2, 20: 2}


@dataclass(frozen=True)
class Layout:
    """What the log of a table says at some scale.

    Attributes
    ----------
    sorted_columns
        Columns by which the files are in order; of the other numbers, each file has all.
    """

    rows: int
    files: int
    file_bytes: int
    sorted_columns: tuple[str, ...]


#: Scale factor 100, in files of 64 MB, or of fewer where 16 tasks have written a smaller table.
SCALE_100 = {
    "store_sales": Layout(288_000_000, 200, 64 << 20, ("ss_sold_date_sk", "ss_ticket_number")),
    "store_returns": Layout(28_800_000, 30, 64 << 20, ("sr_returned_date_sk", "sr_ticket_number")),
    "catalog_sales": Layout(144_000_000, 150, 64 << 20, ("cs_sold_date_sk", "cs_order_number")),
    "catalog_returns": Layout(14_400_000, 20, 64 << 20, ("cr_returned_date_sk", "cr_order_number")),
    "web_sales": Layout(72_000_000, 80, 64 << 20, ("ws_sold_date_sk", "ws_order_number")),
    "web_returns": Layout(7_200_000, 16, 32 << 20, ("wr_returned_date_sk", "wr_order_number")),
    "inventory": Layout(399_000_000, 40, 64 << 20, ("inv_date_sk",)),
    "customer": Layout(2_000_000, 16, 8 << 20, ("c_customer_sk",)),
    "customer_address": Layout(1_000_000, 16, 2 << 20, ("ca_address_sk",)),
    "customer_demographics": Layout(1_920_800, 16, 1 << 20, ("cd_demo_sk",)),
    "item": Layout(204_000, 16, 1 << 20, ("i_item_sk",)),
    "time_dim": Layout(86_400, 1, 1 << 20, ("t_time_sk",)),
    "date_dim": Layout(73_049, 1, 1 << 20, ("d_date_sk",)),
}
_SMALL = Layout(1_000, 1, 64 << 10, ())


def query(name: str) -> str:
    """Return the text of a query, such as ``q14a``."""
    with zipfile.ZipFile(_jar()) as jar:
        return jar.read(f"tpcds/{name}.sql").decode()


@cache
def columns() -> Mapping[str, str]:
    """Return the columns of each table as DDL."""
    with zipfile.ZipFile(_jar()) as jar:
        strings = list(_strings(jar.read(_SCHEMA_CLASS)))
    found = {}
    name = ""
    for text in strings:
        if re.fullmatch("[a-z_]+", text):
            name = text
        elif text.startswith("\n") and "|`" in text:
            ddl = " ".join(line.strip(" |") for line in text.strip().splitlines())
            found[name] = re.sub(r"(VAR)?CHAR\(\d+\)", "STRING", ddl)
    assert len(found) == 24, sorted(found)
    return found


def partition_column(table: str) -> str | None:
    """Return the date by which a table of facts is partitioned."""
    layout = SCALE_100.get(table, _SMALL)
    first = layout.sorted_columns[:1]
    return first[0] if layout.rows > 5_000_000 and first else None


def write_log(path: Path, table: str, schema: str, partitioned: bool) -> None:
    """Write the log of a table at scale factor 100, whose files are not there: enough to plan.

    Parameters
    ----------
    schema
        The columns as the log has them, JSON.
    """
    layout = SCALE_100.get(table, _SMALL)
    partition = partition_column(table) if partitioned else None
    numbers = re.findall(r"`(\w+)` (?:INT|BIGINT)\b", columns()[table])
    path.joinpath("_delta_log").mkdir(parents=True)
    metadata = {
        "id": str(uuid.uuid4()),
        "format": {"provider": "parquet", "options": {}},
        "schemaString": schema,
        "partitionColumns": [partition] if partition else [],
        "configuration": {},
    }
    adds: Iterator[dict[str, Any]] = (
        {
            "add": {
                "path": f"part-{file:05d}.parquet",
                "partitionValues": {partition: str(2_450_816 + file)} if partition else {},
                "size": layout.file_bytes,
                "modificationTime": 1,
                "dataChange": True,
                "stats": json.dumps(_statistics(layout, numbers, partition, file)),
            }
        }
        for file in range(layout.files)
    )
    log.write_commit(
        path,
        0,
        {"protocol": {"minReaderVersion": 1, "minWriterVersion": 2}},
        {"metaData": metadata},
        *adds,
    )


def _statistics(
    layout: Layout, numbers: list[str], partition: str | None, file: int
) -> dict[str, object]:
    rows = layout.rows // layout.files
    least: dict[str, int] = {}
    greatest: dict[str, int] = {}
    for column in numbers:
        if column == partition:
            continue
        # Partitions are in order of dates, and so are tickets and orders.
        is_sorted = column in layout.sorted_columns
        least[column] = file * rows + 1 if is_sorted else 1
        greatest[column] = (file + 1) * rows if is_sorted else layout.rows
    return {
        "numRecords": rows,
        "minValues": least,
        "maxValues": greatest,
        "nullCount": dict.fromkeys(numbers, 0),
    }


def _jar() -> Path:
    found = sorted(_JARS.glob("spark-sql_*-tests.jar"))
    if not found:
        raise FileNotFoundError(f"no jar of Spark's tests in {_JARS}: run `make test-py` first")
    return found[0]


def _strings(class_file: bytes) -> Iterator[str]:
    """Read the strings in a class file, in their order."""
    (count,) = struct.unpack_from(">H", class_file, 8)
    at, entry = 10, 1
    while entry < count:
        tag = class_file[at]
        if tag == 1:
            (length,) = struct.unpack_from(">H", class_file, at + 1)
            yield class_file[at + 3 : at + 3 + length].decode("utf-8", "replace")
            at += 3 + length
        else:
            at += 1 + _ENTRY_BYTES.get(tag, 4)
        # Numbers of eight bytes take two entries.
        entry += 2 if tag in (5, 6) else 1
