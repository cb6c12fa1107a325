"""A stream with a tracked schema goes on in the other engine, before and after each change."""

from __future__ import annotations

import re
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from tests.support.streams import run_in_either
from tests.support.table_builder import build_table
from tests.support.tracked_streams import entries

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from tests.support.spark_process import SparkProcess

#: Reads to the end, or to the next change of the schema.
PROGRAM = """
found, failure = [], None


def keep(batch, _):
    rows = [[v for v in row if isinstance(v, (int, str))] for row in batch.collect()]
    found.extend([batch.columns, row] for row in rows)


options = {**options, "schemaTrackingLocation": checkpoint}
writer = spark.readStream.format("delta").options(**options).load(path).writeStream
query = (
    writer.foreachBatch(keep).option("checkpointLocation", checkpoint)
    .trigger(availableNow=True).start()
)
try:
    query.awaitTermination()
except Exception as problem:
    failure = str(problem)
result = [found, failure]
"""

CHANGES = [
    ("RENAME COLUMN v TO w", ["id", "w"], (2, "b")),
    ("ADD COLUMNS (n INT)", ["id", "w", "n"], (3, "c", 30)),
    ("DROP COLUMN w", ["id", "n"], (4, 40)),
    ("SET TBLPROPERTIES ('delta.appendOnly' = 'false')", ["id", "n"], (5, 50)),
    ("ALTER COLUMN n TYPE BIGINT", ["id", "n"], (6, 60_000_000_000)),
]


@pytest.mark.parametrize("feed", [False, True], ids=["rows", "changes"])
@pytest.mark.parametrize("first", ["ours", "theirs"])
def test_engines_take_turns_at_each_start(
    spark: SparkSession,
    delta_spark: SparkProcess,
    table: str,
    tmp_path: Path,
    first: str,
    feed: bool,
) -> None:
    checkpoint = tmp_path / "checkpoint"
    options = {"startingVersion": "0", "maxFilesPerTrigger": "1"}
    options |= {f"allowSourceColumn{kind}": "always" for kind in ("Rename", "Drop", "TypeChange")}
    if feed:
        options["readChangeFeed"] = "true"
    arguments: dict[str, Any] = {
        "path": table, "checkpoint": str(checkpoint), "options": options
    }  # fmt: skip

    properties = {"delta.columnMapping.mode": "name", "delta.enableChangeDataFeed": "true"}
    properties["delta.enableTypeWidening"] = "true"
    build_table(spark, table, "id INT, v STRING", [[(1, "a")]], properties=properties)
    expected: list[list[Any]] = [[["id", "v"], [1, "a"]]]
    for change, columns, row in CHANGES:
        spark.sql(f"ALTER TABLE delta.`{table}` {change}")
        spark.sql(f"INSERT INTO delta.`{table}` VALUES {row}")
        expected.append([columns, list(row)])

    engines = [first, "theirs" if first == "ours" else "ours"]
    found: list[list[Any]] = []
    for turn in range(15):
        rows, failure = run_in_either(spark, delta_spark, engines[turn % 2], PROGRAM, **arguments)
        found += rows
        if failure is None:
            break
        assert "METADATA_EVOLUTION" in failure or "DELTAIC_STREAM_SCHEMA_TRACK" in failure
    read = [[c[: len(c) - 3] if feed else c, r[: len(c) - 3] if feed else r] for c, r in found]
    assert read == expected
    assert turn == 1 + len(CHANGES), "each change fails one run"
    recorded = entries(checkpoint)
    assert [entry["deltaCommitVersion"] for entry in recorded] == [0, 1, 3, 5, 7, 9]
    assert len({frozenset(entry) for entry in recorded}) == 1, "entries have the same fields"
    paths = {entry["sourceMetadataPath"] for entry in recorded}
    assert len(paths) == 1 and paths.pop().endswith(f"{checkpoint}/sources/0")


def test_settings_of_one_source_have_the_same_names(
    spark: SparkSession, delta_spark: SparkProcess, table: str, tmp_path: Path
) -> None:
    arguments = {"path": table, "checkpoint": str(tmp_path / "checkpoint"), "options": {}}
    properties = {"delta.columnMapping.mode": "name", "delta.enableTypeWidening": "true"}
    build_table(spark, table, "id INT, v STRING", [[(1, "a")]], properties=properties)
    assert run_in_either(spark, delta_spark, "ours", PROGRAM, **arguments) == [
        [[["id", "v"], [1, "a"]]],
        None,
    ]
    for change in ("RENAME COLUMN v TO w", "ALTER COLUMN id TYPE BIGINT"):
        spark.sql(f"ALTER TABLE delta.`{table}` {change}")
    _, changed = run_in_either(spark, delta_spark, "ours", PROGRAM, **arguments)
    assert changed is not None and "DELTAIC_STREAM_SCHEMA_TRACKED" in changed
    names = []
    for engine in ("theirs", "ours"):
        _, failure = run_in_either(spark, delta_spark, engine, PROGRAM, **arguments)
        assert failure is not None
        assert "allowSourceColumnRename" in failure and "allowSourceColumnTypeChange" in failure
        names.append(set(re.findall(r"ckpt_-?\d+", failure)))
    assert names[0] == names[1] and len(names[0]) == 1
