"""MERGE leaves the rows, the columns and the history that delta-spark's leaves."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

from tests.support import log

if TYPE_CHECKING:
    from pathlib import Path

    from pyspark.sql import SparkSession

    from tests.support.spark_process import SparkProcess

CREATE = (
    "CREATE TABLE {t} (id INT, v INT, st STRUCT<a: INT, b: STRUCT<x: INT, y: INT>>) USING delta "
    "TBLPROPERTIES ('delta.enableDeletionVectors' = 'true')"
)
INSERT = (
    "INSERT INTO {t} VALUES (1, 10, named_struct('a', 1, 'b', named_struct('x', 1, 'y', 1))),"
    " (2, 20, NULL), (3, NULL, named_struct('a', 3, 'b', NULL)), (4, 40, NULL)"
)
SOURCE = (
    "(SELECT 'e' AS extra, id, named_struct('b', named_struct('z', id * 10, 'x', id), 'c', 'c')"
    " AS st FROM VALUES (1), (2), (7), (8) s(id))"
)
MERGE = f"MERGE WITH SCHEMA EVOLUTION INTO {{t}} t USING {SOURCE} s ON t.id = s.id "
CASES = [
    "WHEN MATCHED THEN UPDATE SET *",
    "WHEN NOT MATCHED THEN INSERT *",
    "WHEN MATCHED AND t.v = 10 THEN UPDATE SET * WHEN NOT MATCHED AND s.id > 7 THEN INSERT *",
    "WHEN MATCHED THEN UPDATE SET v = s.id + 1 WHEN NOT MATCHED THEN INSERT (id) VALUES (s.id)",
    "WHEN MATCHED THEN UPDATE SET extra = s.extra WHEN NOT MATCHED BY SOURCE AND t.v IS NULL"
    " THEN DELETE WHEN NOT MATCHED BY SOURCE THEN UPDATE SET v = t.v + 1",
    "WHEN MATCHED THEN DELETE WHEN NOT MATCHED THEN INSERT (id, extra) VALUES (-s.id, s.extra)",
    "WHEN MATCHED THEN UPDATE SET st = s.st",
    "WHEN MATCHED THEN UPDATE SET missing = 1",
]
RUN = """
result = []
for path, case in cases:
    name = f"delta.`{path}`"
    for statement in (create, insert):
        spark.sql(statement.replace("{t}", name))
    try:
        spark.sql((merge + case).replace("{t}", name))
    except Exception as problem:
        print(case, str(problem)[:500], flush=True)
        result.append(None)
        continue
    df = spark.read.format("delta").load(path)
    result.append([df.schema.simpleString(), sorted(df.toJSON().collect())])
"""
#: What the history shows, as far as it must be the same: times and numbers of files may differ.
METRICS = (
    "numSourceRows",
    "numTargetRowsInserted",
    "numTargetRowsUpdated",
    "numTargetRowsDeleted",
    "numTargetRowsMatchedUpdated",
    "numTargetRowsMatchedDeleted",
    "numTargetRowsNotMatchedBySourceUpdated",
    "numTargetRowsNotMatchedBySourceDeleted",
    "numTargetRowsCopied",
    "numOutputRows",
)


def history(table: Path) -> tuple[Any, ...]:
    info = log.commit_info(table, log.newest(table))
    parameters = info["operationParameters"]
    kinds = [
        [clause["actionType"] for clause in json.loads(parameters[name])]
        for name in ("matchedPredicates", "notMatchedPredicates", "notMatchedBySourcePredicates")
    ]
    metrics = {name: info["operationMetrics"][name] for name in METRICS}
    return (info["operation"], sorted(parameters), kinds, metrics)


def test_merges_with_schema_evolution_leave_the_same(
    spark: SparkSession, delta_spark: SparkProcess, tmp_path: Path
) -> None:
    answers = {}
    for engine in ("ours", "theirs"):
        cases = [[str(tmp_path / engine / str(n)), case] for n, case in enumerate(CASES)]
        arguments = {"cases": cases, "create": CREATE, "insert": INSERT, "merge": MERGE}
        if engine == "theirs":
            answers[engine] = delta_spark.run(RUN, **arguments)
        else:
            names: dict[str, Any] = {"spark": spark, **arguments}
            exec(RUN, names)
            answers[engine] = names["result"]
    for n, case in enumerate(CASES):
        assert answers["ours"][n] == answers["theirs"][n], case
        if answers["ours"][n] is not None:
            ours, theirs = (history(tmp_path / engine / str(n)) for engine in ("ours", "theirs"))
            assert ours == theirs, case
    assert answers["ours"][-1] is None
