"""delta-rs compacts, orders, restores and vacuums what we did, and we go on from what it did."""

from __future__ import annotations

from collections.abc import Callable

import pyarrow as pa
import pytest
from deltalake import DeltaTable as DeltaRsTable
from deltalake import write_deltalake
from pyspark.sql import SparkSession

from tests.support import log
from tests.support.delta_rs import by_query, in_order
from tests.support.session_settings import session_settings
from tests.support.table_builder import build_table, rows_of
from tests.support.vacuumed import UNCHECKED

FILES = [[(10 * n + i, n % 2, f"v{i}") for i in range(10)] for n in range(4)]
APPENDED = [(100 + i, 0, "r") for i in range(5)]

#: What we run, and the files that are left of four in two partitions.
OURS: dict[str, tuple[str, int]] = {
    "compaction": ("OPTIMIZE {t}", 2),
    "z-order": ("OPTIMIZE {t} ZORDER BY (v, id)", 2),
    "restore": ("RESTORE TABLE {t} TO VERSION AS OF 0", 4),
    "vacuum": ("VACUUM {t} RETAIN 0 HOURS", 5),
    "vacuum lite": ("VACUUM {t} LITE RETAIN 0 HOURS", 5),
}

#: What delta-rs runs, and whether rows that it appended are left.
THEIRS: dict[str, tuple[Callable[[DeltaRsTable], object], bool]] = {
    "compact": (lambda table: table.optimize.compact(), True),
    "z_order": (lambda table: table.optimize.z_order(["v", "id"]), True),
    "restore": (lambda table: table.restore(table.version() - 1), False),
    "vacuum": (
        lambda table: table.vacuum(0, dry_run=False, enforce_retention_duration=False, full=True),
        True,
    ),
}


@pytest.mark.parametrize("theirs", THEIRS)
@pytest.mark.parametrize("ours", OURS)
def test_each_engine_goes_on_where_the_other_stopped(
    spark: SparkSession, table: str, ours: str, theirs: str
) -> None:
    build_table(
        spark, table, "id INT, p INT, v STRING", FILES, deletion_vectors=False, partition_by=["p"]
    )
    name = f"delta.`{table}`"
    expected = rows_of(spark, table)
    statement, num_files = OURS[ours]
    if ours != "compaction":
        spark.sql(f"UPDATE {name} SET v = 'u' WHERE id = 3")
        if ours != "restore":
            expected = rows_of(spark, table)
    with session_settings(spark, UNCHECKED):
        spark.sql(statement.replace("{t}", name))
    assert len(log.active_files(table)) == num_files
    assert rows_of(spark, table) == expected

    ids, partitions, values = zip(*APPENDED, strict=True)
    columns = {"id": pa.array(ids, pa.int32()), "p": pa.array(partitions, pa.int32())}
    write_deltalake(table, pa.table({**columns, "v": list(values)}), mode="append")
    run, keeps_appended = THEIRS[theirs]
    run(DeltaRsTable(table))
    if keeps_appended:
        expected = in_order([*expected, *APPENDED])
    assert in_order(rows_of(spark, table)) == in_order(expected) == in_order(by_query(table))
    DeltaRsTable(table).delete("id = 8 OR id = 101")
    expected = [row for row in expected if row[0] not in (8, 101)]
    assert in_order(rows_of(spark, table)) == in_order(expected) == in_order(by_query(table))

    spark.sql(f"OPTIMIZE {name}")
    spark.sql(f"DELETE FROM {name} WHERE id = 7")
    with session_settings(spark, UNCHECKED):
        spark.sql(f"VACUUM {name} RETAIN 0 HOURS")
    left = in_order([row for row in expected if row[0] != 7])
    assert in_order(rows_of(spark, table)) == left == in_order(by_query(table))
    assert len(log.active_files(table)) == 2
