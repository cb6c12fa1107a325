"""What commits say of themselves, beside what delta-spark's say after the same statements."""

from __future__ import annotations

from typing import Any

import pytest
from pyspark.sql import SparkSession

from tests.support import log
from tests.support.spark_process import SparkProcess

STATEMENTS = {
    "CTAS": "CREATE TABLE {t} USING delta PARTITIONED BY (p) TBLPROPERTIES"
    " ('delta.enableDeletionVectors' = 'true')"
    " AS SELECT /*+ COALESCE(1) */ id, id DIV 6 AS p, 'a' AS v FROM range(12)",
    "insert": "INSERT INTO {t} SELECT /*+ COALESCE(1) */ id, 9, 'b' FROM range(20, 24)",
    "insert of nothing": "INSERT INTO {t} SELECT id, 9, 'b' FROM range(0)",
    "insert from itself": "INSERT INTO {t} SELECT /*+ COALESCE(1) */ id + 100, 8, v FROM {t}"
    " WHERE p = 9",
    "delete of rows": "DELETE FROM {t} WHERE id IN (1, 7)",
    "delete of a partition": "DELETE FROM {t} WHERE p = 8",
    "update": "UPDATE {t} SET v = 'c' WHERE id BETWEEN 2 AND 3",
    "merge": "MERGE INTO {t} t USING (SELECT /*+ COALESCE(1) */ id FROM range(3, 5)"
    " UNION ALL SELECT 50L AS id) s ON t.id = s.id WHEN MATCHED AND t.id = 3 THEN DELETE"
    " WHEN MATCHED THEN UPDATE SET v = 'm' WHEN NOT MATCHED THEN INSERT (id, p, v)"
    " VALUES (s.id, 0, 'm')",
    "overwrite of a partition": "INSERT OVERWRITE {t} PARTITION (p = 9) SELECT 90L, 'o'",
    "overwrite": "INSERT OVERWRITE {t} SELECT 99L, 1L, 'all'",
}

#: Rows and files that do not depend on how an engine spreads a query over tasks.
COUNTS = {
    "numOutputRows",
    "numDeletedRows",
    "numUpdatedRows",
    "numTargetRowsInserted",
    "numTargetRowsUpdated",
    "numTargetRowsDeleted",
    "numTargetRowsMatchedUpdated",
    "numTargetRowsMatchedDeleted",
    "numRemovedFiles",
    "numDeletionVectorsAdded",
    "numTargetDeletionVectorsAdded",
}


@pytest.fixture(scope="module")
def commits(
    spark: SparkSession, delta_spark: SparkProcess, tmp_path_factory: pytest.TempPathFactory
) -> dict[str, tuple[dict[str, Any], dict[str, Any]]]:
    """Run the statements on both engines; return each one's commitInfo, ours first."""
    folder = tmp_path_factory.mktemp("commits")
    mine, theirs = str(folder / "mine"), str(folder / "theirs")
    found = {}
    for version, (name, statement) in enumerate(STATEMENTS.items()):
        spark.sql(statement.replace("{t}", f"delta.`{mine}`"))
        delta_spark.run(
            "spark.sql(statement)\nresult = None",
            statement=statement.replace("{t}", f"delta.`{theirs}`"),
        )
        found[name] = (log.commit_info(mine, version), log.commit_info(theirs, version))
    return found


@pytest.mark.parametrize("name", STATEMENTS)
@pytest.mark.parametrize("field", ["operation", "isBlindAppend", "readVersion", "isolationLevel"])
def test_commit_says_what_delta_sparks_says(
    commits: dict[str, tuple[dict[str, Any], dict[str, Any]]], name: str, field: str
) -> None:
    mine, theirs = commits[name]
    assert mine.get(field) == theirs.get(field)


@pytest.mark.parametrize("name", STATEMENTS)
def test_parameters_have_the_names_of_delta_sparks(
    commits: dict[str, tuple[dict[str, Any], dict[str, Any]]], name: str
) -> None:
    mine, theirs = commits[name]
    assert set(mine["operationParameters"]) == set(theirs["operationParameters"])


@pytest.mark.parametrize("name", STATEMENTS)
def test_metrics_have_the_names_and_the_counts_of_delta_sparks(
    commits: dict[str, tuple[dict[str, Any], dict[str, Any]]], name: str
) -> None:
    mine, theirs = (info["operationMetrics"] for info in commits[name])
    assert set(theirs) <= set(mine)
    for count in COUNTS & set(theirs):
        assert mine[count] == theirs[count], count
