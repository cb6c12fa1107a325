"""Lists of data files for engines that read no log, as delta-spark 4.4.0 makes them."""

from __future__ import annotations

from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from tests.support.maintenance import await_maintenance
from tests.support.spark_process import SparkProcess

LISTED = "TBLPROPERTIES ('delta.compatibility.symlinkFormatManifest.enabled' = 'true')"

GENERATE = """
spark.sql(f"GENERATE symlink_format_manifest FOR TABLE delta.`{path}`")
result = None
"""

TABLES = {
    "without partitions": [
        f"CREATE TABLE delta.`{{t}}` USING delta {LISTED} AS SELECT id FROM range(10)",
        "INSERT INTO delta.`{t}` SELECT id FROM range(10, 20)",
        "DELETE FROM delta.`{t}` WHERE id = 3",
    ],
    "partitions that come, change and go": [
        f"CREATE TABLE delta.`{{t}}` (id BIGINT, p STRING, d DATE) USING delta "
        f"PARTITIONED BY (p, d) {LISTED}",
        "INSERT INTO delta.`{t}` VALUES (1, 'a/b c=%', DATE '2024-02-29'), (2, null, null), "
        "(3, 'ü', null), (4, '', DATE '1969-12-31')",
        "INSERT INTO delta.`{t}` VALUES (5, 'ü', null), (6, 'new', null)",
        "DELETE FROM delta.`{t}` WHERE id = 1",
        "UPDATE delta.`{t}` SET p = 'moved' WHERE id = 6",
    ],
}


def lists(table: str) -> dict[str, set[str]]:
    """Return the paths listed, by the folder of the list."""
    root = Path(table, "_symlink_format_manifest")
    return {
        str(file.parent.relative_to(root)): set(file.read_text().splitlines())
        for file in root.rglob("manifest")
    }


@pytest.mark.parametrize("statements", TABLES.values(), ids=TABLES.keys())
def test_lists_after_each_commit_are_those_that_delta_spark_makes_of_the_table(
    spark: SparkSession, delta_spark: SparkProcess, table: str, statements: list[str]
) -> None:
    for statement in statements:
        spark.sql(statement.replace("{t}", table))
    await_maintenance(spark)
    ours = lists(table)
    assert ours
    delta_spark.run(GENERATE, path=table)
    assert ours == lists(table)
