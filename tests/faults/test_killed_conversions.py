"""A driver that is killed during CONVERT TO DELTA leaves a folder of Parquet files, or a table."""

from __future__ import annotations

from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from tests.support import log
from tests.support.faulty import ARM, FaultyProcesses, is_alive
from tests.support.spark_process import SparkProcessError
from tests.support.table_builder import in_order, rows_of

_CONVERT = "CONVERT TO DELTA parquet.`{table}`"
_ENTRY = r"/_delta_log/0{20}\.json$"
_TEMPORARY = r"/\.0{20}\.json\.[^/]*\.tmp$"


@pytest.mark.parametrize(
    ("call", "path", "when"),
    [
        ("create", _TEMPORARY, "before"),
        ("write", _TEMPORARY, "before"),
        ("link", _ENTRY, "before"),
        ("link", _ENTRY, "after"),
    ],
)
def test_folder_is_as_before_or_a_whole_table(
    spark: SparkSession,
    processes: FaultyProcesses,
    table: str,
    call: str,
    path: str,
    when: str,
) -> None:
    spark.range(0, 20, 1, 3).selectExpr("id", "id % 2 AS p").write.partitionBy("p").parquet(table)
    files = sorted(Path(table).rglob("*.parquet"))
    rows = in_order(tuple(row) for row in spark.read.parquet(table).collect())
    fault = [call, path, 1, f"kill {when}"]
    with processes.take() as (process, pid), pytest.raises(SparkProcessError):
        process.run(ARM + f"spark.sql(f'{_CONVERT}')", table=table, fault=fault)
    assert not is_alive(pid), "it was not killed"
    committed = when == "after"
    assert log.versions(table) == ([0] if committed else [])
    assert sorted(Path(table).rglob("*.parquet")) == files
    assert in_order(tuple(row) for row in spark.read.parquet(table).collect()) == rows
    assert spark.sql(_CONVERT.format(table=table)).count() == (0 if committed else 1)
    assert rows_of(spark, table) == rows
    assert log.versions(table) == [0]
