"""The same writes in delta-spark and in Deltaic: the same rows and the same commitInfo."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from tests.support import log
from tests.support.table_builder import in_order

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from tests.support.spark_process import SparkProcess

#: Each program makes one commit on the table at `path`, which `FIRST` has made.
FIRST = """
from pyspark.sql import functions as F
rows = lambda a, b, step=1: spark.range(a, b, 1, 1).selectExpr("id", "id % 3 AS p", "'x' AS s")
save = lambda df, mode, **options: (
    df.write.format("delta").mode(mode).options(**options).save(path))
t = f"delta.`{path}`"
"""
READ = """
result = []
for version in versions:
    df = spark.read.format('delta').option('versionAsOf', version).load(path)
    result.append([[str(value) for value in row] for row in df.collect()])
"""
CREATE = """
rows(0, 12).write.format("delta").partitionBy("p").option(
    "delta.enableDeletionVectors", vectors).save(path)
"""
PROGRAMS = {
    "merge schema, append": "save(rows(12, 14).selectExpr('*', 'id AS new', 'struct(s) AS st'),"
    " 'append', mergeSchema='true')",
    "merge schema, narrow numbers": "save(spark.range(1).selectExpr('id', 'id % 3 AS p', '7S AS n',"
    " 'array(1Y) AS arr'), 'append', mergeSchema='true')",
    "merge schema, wider numbers": "save(spark.range(1, 2).selectExpr('id', 'id % 3 AS p',"
    " '70000 AS n', 'array(300) AS arr'), 'append', mergeSchema='true')",
    "merge schema, overwrite": "save(rows(12, 14).selectExpr('id', 'p', 'id AS new'),"
    " 'overwrite', mergeSchema='true')",
    "insert with schema evolution": "spark.sql(f'INSERT WITH SCHEMA EVOLUTION INTO {t} BY NAME"
    " SELECT 1L AS id, 7 AS new')",
    "replace partitions": "save(rows(0, 6).where('p = 1'), 'overwrite', replaceWhere='p = 1')",
    "replace rows": "save(rows(0, 5), 'overwrite', replaceWhere='id < 5')",
    "replace rows by SQL": "spark.sql(f'INSERT INTO {t} BY NAME REPLACE WHERE id < 2 AND p = 1"
    " SELECT 1L AS id, 1L AS p')",
    "rearrange": "save(rows(0, 12), 'overwrite', dataChange='false')",
    "overwrite": "save(rows(0, 2), 'overwrite')",
    "overwrite partitions": "save(rows(4, 5), 'overwrite', partitionOverwriteMode='dynamic')",
    "INSERT": "spark.sql(f'INSERT INTO {t} (id, p) VALUES (30, 0), (31, 1)')",
    "INSERT OVERWRITE": "spark.sql(f'INSERT OVERWRITE {t} BY NAME SELECT 1L AS id, 2L AS p')",
    "writer, append": "rows(3, 5).writeTo(t).append()",
    "writer, replace rows": "rows(3, 4).writeTo(t).overwrite(F.col('p') == 0)",
    "writer, replace partitions": "rows(3, 4).writeTo(t).overwritePartitions()",
}


def by_sql(statement: str) -> str:
    return f"spark.sql({statement!r}.replace('{{t}}', t))"


_PARTS = "SELECT id, id % 3 AS p FROM range(9)"

#: Each makes one commit that defines the table `t` as well.
DEFINITIONS = {
    "CTAS": by_sql(
        "CREATE TABLE {t} USING delta PARTITIONED BY (p) TBLPROPERTIES ('a' = 'b') AS " + _PARTS
    ),
    "REPLACE TABLE": by_sql("REPLACE TABLE {t} (id BIGINT, s STRING) USING delta"),
    "RTAS": by_sql("REPLACE TABLE {t} USING delta COMMENT 'c' AS SELECT id FROM range(5)"),
    "CREATE OR REPLACE AS": by_sql(
        "CREATE OR REPLACE TABLE {t} USING delta PARTITIONED BY (p) AS " + _PARTS
    ),
    "insertInto": "spark.range(2).selectExpr('id', 'id AS p').write.insertInto(t)",
    "insertInto, overwrite": "spark.range(2).selectExpr('id', 'id AS p').write.insertInto(t, True)",
    "saveAsTable, append": "spark.range(2).selectExpr('id', 'id AS p').write.format('delta')"
    ".mode('append').partitionBy('p').saveAsTable(t)",
    "saveAsTable, overwrite": "spark.range(2).selectExpr('id', 'id AS p').write.format('delta')"
    ".mode('overwrite').partitionBy('p').saveAsTable(t)",
    "writer, replace": "rows(0, 2).writeTo(t).using('delta').replace()",
    "writer, create or replace": "rows(0, 3).writeTo(t).using('delta').partitionedBy('p')"
    ".createOrReplace()",
}


def run_ours(spark: SparkSession, code: str, **arguments: Any) -> None:
    exec(FIRST + code, {"spark": spark, **arguments})


@pytest.mark.parametrize("vectors", ["true", "false"], ids=["vectors", "rewriting"])
def test_both_engines_write_the_same(
    spark: SparkSession, delta_spark: SparkProcess, tmp_path: Path, vectors: str
) -> None:
    require_same_commits(
        spark, delta_spark, tmp_path, {"create": CREATE, **PROGRAMS}, vectors=vectors
    )


def test_both_engines_define_and_write_the_same(
    spark: SparkSession, delta_spark: SparkProcess, tmp_path: Path
) -> None:
    require_same_commits(spark, delta_spark, tmp_path, DEFINITIONS)


def require_same_commits(
    spark: SparkSession,
    delta_spark: SparkProcess,
    tmp_path: Path,
    programs: dict[str, str],
    **arguments: str,
) -> None:
    """Run programs that make a commit each on both engines, and compare all versions."""
    theirs, ours = str(tmp_path / "theirs"), str(tmp_path / "ours")
    code = "\n".join(programs.values())
    delta_spark.run(FIRST + code + "\nresult = None", path=theirs, **arguments)
    run_ours(spark, code, path=ours, **arguments)
    versions = list(range(len(programs)))
    expected = delta_spark.run(READ, path=theirs, versions=versions)
    scope: dict[str, Any] = {"spark": spark, "path": ours, "versions": versions}
    exec(READ, scope)
    for version, name in enumerate(programs):
        assert recorded(ours, version) == recorded(theirs, version), name
        assert in_order(scope["result"][version]) == in_order(expected[version]), name
    (newest,) = delta_spark.run(READ, path=ours, versions=versions[-1:])
    assert in_order(newest) == in_order(expected[-1])
    history = "result = spark.sql(f'DESCRIBE HISTORY delta.`{path}`').count()"
    assert delta_spark.run(history, path=ours) == len(programs)


#: What delta-spark alone says: that there is none of a thing, and that a save overwrote a table.
_NOTHING = [("description", None), ("clusterBy", "[]")]
_KINDS_OF_OVERWRITE = ("isV1SaveAsTableOverwrite",)


def recorded(table: str, version: int) -> dict[str, Any]:
    """Return what a commit says of itself, without what differs between runs and layouts."""
    info = log.commit_info(table, version)
    metrics = info.get("operationMetrics", {})
    # A table with deletion vectors has no rows copied by us, and some by delta-spark.
    new_rows = int(metrics.get("numOutputRows", 0)) - int(metrics.get("numCopiedRows", 0))
    return {
        "operation": info["operation"],
        "parameters": {
            name: value
            for name, value in info["operationParameters"].items()
            if (name, value) not in _NOTHING and name not in _KINDS_OF_OVERWRITE
        },
        "isBlindAppend": info["isBlindAppend"],
        "metrics": sorted(metrics),
        "rows": (new_rows, metrics.get("numDeletedRows")),
        "dataChange": {
            action["dataChange"]
            for kind in ("add", "remove")
            for action in log.actions(table, version, kind)
        },
    }
