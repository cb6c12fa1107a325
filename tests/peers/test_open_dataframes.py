"""DataFrames and temporary views of a path whose table's columns change: as in delta-spark."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from tests.support.spark_process import SparkProcess

#: The steps that change a table. A DataFrame and a view made right before a step read its result.
STEPS: dict[str, list[str]] = {
    "schema merged": ["SELECT 9 AS n, 2 AS id, named_struct('y', 3, 'x', 2) AS s, 'q' AS p"],
    "columns moved and added": [
        "ALTER TABLE {t} ALTER COLUMN s.y FIRST",
        "ALTER TABLE {t} ADD COLUMN m STRING FIRST",
        "INSERT INTO {t} VALUES ('m', 3, named_struct('y', 4, 'x', 3), 'p', 8)",
    ],
    "commented": ["ALTER TABLE {t} ALTER COLUMN id COMMENT 'key'"],
    "mapped": [
        "ALTER TABLE {t} SET TBLPROPERTIES ('delta.columnMapping.mode' = 'name',"
        " 'delta.enableTypeWidening' = 'true')"
    ],
    "made nullable": ["ALTER TABLE {t} ALTER COLUMN id DROP NOT NULL"],
    "retyped": ["ALTER TABLE {t} ALTER COLUMN id TYPE BIGINT"],
    "renamed in a struct": ["ALTER TABLE {t} RENAME COLUMN s.x TO z"],
    "renamed": ["ALTER TABLE {t} RENAME COLUMN m TO k"],
    "dropped": ["ALTER TABLE {t} DROP COLUMN n"],
    "dropped and added": [
        "ALTER TABLE {t} DROP COLUMN k",
        "ALTER TABLE {t} ADD COLUMN k STRING",
    ],
}

PROGRAM = """

def shown(df):
    try:
        return sorted(str(tuple(row)) for row in df.collect())
    except Exception as problem:
        assert "CHANGE" in str(problem), str(problem)
        return None

sql = lambda text: spark.sql(text.replace("{t}", f"delta.`{path}`"))
sql("CREATE TABLE {t} (id INT NOT NULL, s STRUCT<x: INT>, p STRING) USING delta PARTITIONED BY (p)")
sql("INSERT INTO {t} VALUES (1, named_struct('x', 1), 'p')")
result = {}
for step, changes in steps.items():
    df = spark.read.format("delta").load(path)
    df.createOrReplaceTempView("open")
    for change in changes:
        if change.startswith("SELECT"):
            writer = sql(change).write.format("delta").mode("append")
            writer.option("mergeSchema", "true").save(path)
        else:
            sql(change)
    result[step] = [shown(df), shown(spark.sql("SELECT s, id FROM open WHERE p <> 'q'"))]
"""


def test_open_dataframes_show_what_those_of_delta_spark_show(
    spark: SparkSession, delta_spark: SparkProcess, tmp_path: Path
) -> None:
    ours: dict[str, Any] = {"spark": spark, "path": str(tmp_path / "ours"), "steps": STEPS}
    exec(PROGRAM, ours)
    theirs = delta_spark.run(PROGRAM, path=str(tmp_path / "theirs"), steps=STEPS)
    assert ours["result"] == theirs
