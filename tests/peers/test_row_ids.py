"""Row tracking switched on late, beside delta-spark 4.4.0 (Protocol § Row Tracking)."""

from __future__ import annotations

import pytest
from pyspark.sql import SparkSession

from tests.support import log
from tests.support.spark_process import SparkProcess

MAKE = [
    "CREATE TABLE delta.`{t}` (id BIGINT, p INT) USING delta PARTITIONED BY (p) "
    "TBLPROPERTIES ('delta.enableDeletionVectors' = '{vectors}')",
    "INSERT INTO delta.`{t}` SELECT id, CAST(id % 3 AS INT) FROM range(0, 30, 1, 1)",
    "INSERT INTO delta.`{t}` SELECT id, 1 FROM range(30, 40, 1, 1)",
    "DELETE FROM delta.`{t}` WHERE id IN (4, 31)",
]
ENABLE = "ALTER TABLE delta.`{t}` SET TBLPROPERTIES ('delta.enableRowTracking' = 'true')"
AFTER = [
    "INSERT INTO delta.`{t}` SELECT id, 2 FROM range(40, 50, 1, 1)",
    "DELETE FROM delta.`{t}` WHERE id = 5",
]

IDS = "SELECT id, _metadata.row_id, _metadata.row_commit_version FROM delta.`{t}` ORDER BY id"

SHOW = """
result = [list(row) for row in spark.sql(query).collect()]
"""

RUN = """
for statement in statements:
    spark.sql(statement)
result = None
"""


def operations(table: str) -> list[str]:
    return [log.commit_info(table, v)["operation"] for v in log.versions(table)]


@pytest.mark.protocol("add-file-and-remove-file-1", "reader-row-tracking-4", "row-ids-1")
@pytest.mark.protocol("writer-row-tracking-18", "writer-row-tracking-19")
@pytest.mark.parametrize("vectors", ["true", "false"], ids=["vectors", "rewrite"])
def test_rows_of_a_table_that_enables_row_tracking_have_one_id_each_for_both_engines(
    spark: SparkSession, delta_spark: SparkProcess, table: str, vectors: str
) -> None:
    def said(statement: str) -> str:
        return statement.replace("{t}", table).replace("{vectors}", vectors)

    for statement in [*MAKE, ENABLE, AFTER[0]]:
        spark.sql(said(statement))
    ours = [list(row) for row in spark.sql(said(IDS)).collect()]
    assert len({row_id for _, row_id, _ in ours}) == len(ours) == 48
    assert delta_spark.run(SHOW, query=said(IDS)) == ours
    # A deletion vector of either writer leaves every other row where it is.
    if vectors == "true":
        spark.sql(said(AFTER[1]))
        left = [row for row in ours if row[0] != 5]
        assert delta_spark.run(SHOW, query=said(IDS)) == left

    other = f"{table}-of-delta-spark"
    theirs = [said(s).replace(table, other) for s in [*MAKE, ENABLE]]
    delta_spark.run(RUN, statements=theirs)
    made = len(operations(other))
    assert operations(table)[:made] == operations(other)
