"""Histories and descriptions of tables whose logs or files are damaged, or need what we lack."""

from __future__ import annotations

import json
import os
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from deltaic.tables import DeltaTable

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from tests.support.spark_process import SparkProcess

MAKE = """
spark.sql(f"CREATE TABLE delta.`{path}` (id BIGINT) USING delta {properties}")
for i in range(5):
    spark.sql(f"INSERT INTO delta.`{path}` VALUES ({i})")
result = None
"""
HISTORY = """
result = [
    [row.version, row.timestamp.timestamp(), row.operation, row.readVersion, row.isBlindAppend]
    for row in spark.sql(f"DESCRIBE HISTORY delta.`{path}` {limit}").collect()
]
"""
UNKNOWN = {
    "protocol": {
        "minReaderVersion": 3,
        "minWriterVersion": 7,
        "readerFeatures": ["martianRows"],
        "writerFeatures": ["martianRows"],
    }
}


def commit(table: Path, version: int) -> Path:
    return table / "_delta_log" / f"{version:020}.json"


def edit(file: Path, change: Callable[[list[dict[str, Any]]], list[dict[str, Any]]]) -> None:
    actions = change([json.loads(line) for line in file.read_text().splitlines()])
    file.write_text("".join(json.dumps(action) + "\n" for action in actions))


def without(kind: str) -> Callable[[Path], None]:
    def apply(table: Path) -> None:
        edit(commit(table, 3), lambda actions: [a for a in actions if kind not in a])

    return apply


def lose(*versions: int) -> Callable[[Path], None]:
    def apply(table: Path) -> None:
        for version in versions:
            commit(table, version).unlink()

    return apply


def break_checkpoint(table: Path) -> None:
    for file in (table / "_delta_log").glob("*.checkpoint*.parquet"):
        file.write_bytes(b"PAR1 nothing PAR1")


def step_back(table: Path) -> None:
    for version in range(6):
        os.utime(commit(table, version), (1.7e9 - version * 100,) * 2)


def need_unknown_feature(table: Path) -> None:
    edit(commit(table, 5), lambda actions: [*actions, UNKNOWN])


def lose_data(table: Path) -> None:
    for file in table.glob("*.parquet"):
        file.unlink()


def make(delta_spark: SparkProcess, table: Path, properties: str = "") -> None:
    delta_spark.run(MAKE, path=str(table), properties=properties)
    for version in range(6):
        os.utime(commit(table, version), (1.7e9 + version * 10,) * 2)


def damaged(table: Path, damage: Callable[[Path], None]) -> None:
    times = {file: file.stat().st_mtime for file in (table / "_delta_log").glob("*.json")}
    damage(table)
    if damage is not step_back:
        for file, time in times.items():
            if file.exists():
                os.utime(file, (time, time))
    # What checksum files say is no longer so.
    for file in (table / "_delta_log").glob("*.crc"):
        file.unlink()


def ours(spark: SparkSession, table: Path, limit: str = "") -> list[list[Any]]:
    scope: dict[str, Any] = {"spark": spark, "path": str(table), "limit": limit}
    exec(HISTORY, scope)
    found: list[list[Any]] = scope["result"]
    return found


@pytest.mark.parametrize(
    ("damage", "properties"),
    [
        (without("commitInfo"), ""),
        (step_back, ""),
        (lose_data, ""),
        (lose(2), "TBLPROPERTIES ('delta.checkpointInterval' = '4')"),
        (lose(0, 1), "TBLPROPERTIES ('delta.checkpointInterval' = '4')"),
        (without("add"), "TBLPROPERTIES ('delta.enableInCommitTimestamps' = 'true')"),
    ],
    ids=[
        "no commitInfo",
        "times step back",
        "no data files",
        "a gap before a checkpoint",
        "no beginning",
        "in-commit timestamps",
    ],
)
def test_history_is_that_of_the_peer(
    spark: SparkSession,
    delta_spark: SparkProcess,
    tmp_path: Path,
    damage: Callable[[Path], None],
    properties: str,
) -> None:
    table = tmp_path / "table"
    make(delta_spark, table, properties)
    damaged(table, damage)
    expected = delta_spark.run(HISTORY, path=str(table), limit="")
    assert ours(spark, table) == expected
    assert ours(spark, table, "LIMIT 2") == expected[:2]


@pytest.mark.parametrize(
    ("damage", "properties", "error"),
    [
        (lose(2), "", "DELTAIC_LOG_GAP"),
        (lose(0), "", "DELTAIC_LOG_INCOMPLETE"),
        (need_unknown_feature, "", "martianRows"),
        (break_checkpoint, "TBLPROPERTIES ('delta.checkpointInterval' = '4')", None),
    ],
    ids=["a gap", "no beginning", "an unknown reader feature", "a broken checkpoint"],
)
def test_history_lists_every_commit_file_of_a_table_that_cannot_be_read(
    spark: SparkSession,
    delta_spark: SparkProcess,
    tmp_path: Path,
    damage: Callable[[Path], None],
    properties: str,
    error: str | None,
) -> None:
    """The peer refuses most of these, so the answer is that of the whole log, less what is gone."""
    table = tmp_path / "table"
    make(delta_spark, table, properties)
    whole = delta_spark.run(HISTORY, path=str(table), limit="")
    damaged(table, damage)
    expected = [row for row in whole if commit(table, row[0]).exists()]
    assert ours(spark, table) == expected
    history = DeltaTable.forPath(spark, str(table)).history(2).collect()
    assert [row.version for row in history] == [row[0] for row in expected[:2]]
    if error is not None:
        with pytest.raises(Exception, match=error):
            spark.read.format("delta").load(str(table))


@pytest.mark.protocol("table-features-5", "table-features-7")
def test_table_with_an_unknown_reader_feature_is_described_and_not_read(
    spark: SparkSession, delta_spark: SparkProcess, tmp_path: Path
) -> None:
    table = tmp_path / "table"
    make(delta_spark, table)
    read = "result = spark.sql(f'DESCRIBE DETAIL delta.`{path}`').select(*columns).first()[:]"
    columns = ["format", "id", "numFiles", "sizeInBytes", "partitionColumns"]
    expected = delta_spark.run(read, path=str(table), columns=columns)
    damaged(table, need_unknown_feature)
    for target in (f"delta.`{table}`", f"'{table}'"):
        row = spark.sql(f"DESCRIBE DETAIL {target}").first()
        assert row is not None
        assert [row[name] for name in columns] == expected
        assert (row.minReaderVersion, row.minWriterVersion) == (3, 7)
        assert row.tableFeatures == ["martianRows"]
    assert DeltaTable.forPath(spark, str(table)).detail().count() == 1
    with pytest.raises(Exception, match="martianRows"):
        spark.sql(f"SELECT * FROM delta.`{table}`")
    with pytest.raises(Exception, match="martianRows"):
        spark.sql(f"INSERT INTO delta.`{table}` VALUES (1)")


def test_table_of_the_catalog_that_cannot_be_read_is_described_by_its_name(
    spark: SparkSession, delta_spark: SparkProcess, tmp_path: Path
) -> None:
    table = tmp_path / "table"
    make(delta_spark, table)
    spark.sql(f"CREATE TABLE cannot_be_read USING delta LOCATION '{table}'")
    try:
        damaged(table, need_unknown_feature)
        history = spark.sql("DESCRIBE HISTORY cannot_be_read").collect()
        assert [row.version for row in history] == [5, 4, 3, 2, 1, 0]
        row = spark.sql("DESCRIBE DETAIL cannot_be_read").first()
        assert row is not None
        assert (row.name, row.numFiles) == ("spark_catalog.default.cannot_be_read", 5)
        by_name = DeltaTable.forName(spark, "cannot_be_read")
        assert by_name.history(1).count() == by_name.detail().count() == 1
        with pytest.raises(Exception, match="martianRows"):
            by_name.toDF()
        with pytest.raises(Exception, match="martianRows"):
            spark.table("cannot_be_read")
    finally:
        spark.sql("DROP TABLE cannot_be_read")
