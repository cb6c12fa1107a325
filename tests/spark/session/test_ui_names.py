"""How Spark's UI and DESCRIBE EXTENDED name our statements and show our plans."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import pytest

from deltaic import DeltaTable
from tests.support.table_builder import build_table

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

SCHEMA = "id INT, v INT"
FILES = [[(10 * file + row, 0) for row in range(10)] for file in range(2)]
MERGE = "MERGE INTO {t} t USING (SELECT 3 AS k) s ON t.id = s.k WHEN MATCHED THEN UPDATE SET v = 1"

Action = Callable[["SparkSession", str], object]
ACTIONS: dict[str, Action] = {
    "DELETE": lambda spark, t: spark.sql(f"DELETE FROM delta.`{t}` WHERE id % 7 = 3"),
    "DELETE of whole files": lambda spark, t: spark.sql(f"DELETE FROM delta.`{t}` WHERE id >= 0"),
    "UPDATE": lambda spark, t: spark.sql(f"UPDATE delta.`{t}` SET v = 2 WHERE id % 7 = 3"),
    "MERGE": lambda spark, t: spark.sql(MERGE.format(t=f"delta.`{t}`")),
    "delete": lambda spark, t: DeltaTable.forPath(spark, t).delete("id % 7 = 3"),
    "update": lambda spark, t: DeltaTable.forPath(spark, t).update("id = 3", {"v": "2"}),
    "merge": lambda spark, t: (
        DeltaTable.forPath(spark, t)
        .alias("t")
        .merge(spark.range(3).alias("s"), "t.id = s.id")
        .whenMatchedUpdate(set={"v": "3"})
        .execute()
    ),
    "append": lambda spark, t: (
        spark.range(3)
        .selectExpr("CAST(id AS INT) id", "1 v")
        .write.format("delta")
        .mode("append")
        .save(t)
    ),
}

#: A line of our own sources, or of Spark's, in the place of what the user called.
LINE_OF_OURS = re.compile(r"\w+\$? at (?!Native|<)\w+\.(scala|java):[1-9]")


def executions(spark: SparkSession) -> list[Any]:
    spark.sparkContext._jsc.sc().listenerBus().waitUntilEmpty()
    found = spark._jsparkSession.sharedState().statusStore().executionsList()
    return [found.apply(i) for i in range(found.size())]


@pytest.mark.parametrize("action", ACTIONS)
def test_statement_has_a_readable_name(spark: SparkSession, table: str, action: str) -> None:
    build_table(spark, table, SCHEMA, FILES, deletion_vectors=True)
    before = {e.executionId() for e in executions(spark)}
    ACTIONS[action](spark, table)
    mine = [e for e in executions(spark) if e.executionId() not in before]
    names = [e.description() for e in mine]
    assert names and not [n for n in names if LINE_OF_OURS.search(n)], names
    plans = "\n".join(e.physicalPlanDescription() for e in mine)
    assert "AffectedRowsReport" not in plans and "DescribedChange" not in plans


def test_describe_extended_shows_no_column_of_ours(spark: SparkSession, table: str) -> None:
    properties = {"delta.enableRowTracking": "true"}
    build_table(spark, table, SCHEMA, FILES, deletion_vectors=True, properties=properties)
    for statement in ("DESCRIBE EXTENDED", "DESCRIBE TABLE EXTENDED", "DESCRIBE"):
        rows = spark.sql(f"{statement} delta.`{table}`").collect()
        names = [row.col_name for row in rows]
        assert names[:2] == ["id", "v"]
        assert not [name for name in names if name.startswith(("_", "# Metadata"))], names
    assert "Location" in [
        r.col_name for r in spark.sql(f"DESCRIBE EXTENDED delta.`{table}`").collect()
    ]
