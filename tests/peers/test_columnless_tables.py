"""Tables that have no columns yet: both engines do the same with them, but that ours reads them."""

from __future__ import annotations

import json

import pytest
from pyspark.sql import SparkSession

from deltaic import DeltaTable
from tests.peers.test_delta_spark import shown
from tests.support import log
from tests.support.session_settings import session_settings
from tests.support.spark_process import SparkProcess

#: What is done to a table without columns, and whether it then has some; or why it fails.
STEPS = {
    "DESCRIBE TABLE {t}": "",
    "SHOW COLUMNS IN {t}": "",
    "INSERT INTO {t} SELECT 1 AS a": "MISMATCH",
    "REPLACE TABLE {t} USING delta": "SCHEMA_EMPTY|SCHEMA_NOT_PROVIDED",
    "ALTER TABLE {t} SET TBLPROPERTIES ('x' = 'y')": "",
    "CREATE TABLE IF NOT EXISTS {t} USING delta": "",
    "DELETE FROM {t}": "",
    "INSERT WITH SCHEMA EVOLUTION INTO {t} SELECT 1 AS a": "",
    "SELECT a FROM {t}": "",
    "ALTER TABLE {t} ADD COLUMNS (b STRING)": "",
}

#: What only delta-spark refuses: the protocol does not ask for a column.
READS = ["SELECT * FROM {t}", "SELECT count(*) AS n FROM {t}"]

TAKE = """
import re
result = []
for statement, expected in steps:
    try:
        spark.sql(statement).collect()
        found = ""
    except Exception as problem:
        found = str(problem)
    if bool(found) != bool(expected) or (expected and not re.search(expected, found)):
        result.append([statement, found])
"""


def steps_on(path: str) -> list[tuple[str, str]]:
    return [(statement.format(t=f"delta.`{path}`"), found) for statement, found in STEPS.items()]


def test_both_engines_do_the_same_with_a_table_that_has_no_columns(
    spark: SparkSession, delta_spark: SparkProcess, table: str
) -> None:
    ours, theirs = f"{table}-ours", f"{table}-theirs"
    spark.sql(f"CREATE TABLE delta.`{ours}` USING delta")
    delta_spark.run("spark.sql(f'CREATE TABLE delta.`{path}` USING delta')", path=theirs)
    for path in (ours, theirs):
        df = spark.read.format("delta").load(path)
        assert (df.columns, log.metadata(path)["schemaString"]) == (
            [],
            '{"type":"struct","fields":[]}',
        )
        refused = [(read.format(t=f"delta.`{path}`"), "WITHOUT_COLUMNS") for read in READS]
        assert delta_spark.run(TAKE, steps=refused) == []
        everything, count = (spark.sql(statement).collect() for statement, _ in refused)
        assert (everything, [row.n for row in count]) == ([], [0])
    # Each engine goes on with what the other has begun.
    found = {
        "spark": spark,
        "steps": [(k.format(t=f"delta.`{theirs}`"), v) for k, v in STEPS.items()],
    }
    exec(TAKE, found)
    steps = [(k.format(t=f"delta.`{ours}`"), v) for k, v in STEPS.items()]
    assert found["result"] == delta_spark.run(TAKE, steps=steps) == []
    for path in (ours, theirs):
        assert shown(spark.read.format("delta").load(path)) == ["Row(a=1, b=None)"]


def test_columns_come_with_the_first_rows(spark: SparkSession, table: str) -> None:
    created = DeltaTable.create(spark).location(table).execute()
    assert created.toDF().columns == []
    write = spark.range(2).write.format("delta").mode("append")
    with pytest.raises(Exception, match="SCHEMA_MISMATCH"):
        write.save(table)
    write.option("mergeSchema", "true").save(table)
    assert spark.read.format("delta").load(table).count() == 2
    assert spark.sql(f"SELECT * FROM delta.`{table}` VERSION AS OF 0").collect() == []
    older = {"spark.databricks.delta.createEmptySchemaTable.enabled": "false"}
    with session_settings(spark, older), pytest.raises(Exception, match="SCHEMA_EMPTY"):
        spark.sql(f"CREATE TABLE delta.`{table}-2` USING delta")
    with pytest.raises(Exception, match="partitioning"):
        spark.sql(f"CREATE TABLE delta.`{table}-2` USING delta PARTITIONED BY (a)")


def test_rows_of_a_table_that_has_only_void_columns_are_counted(
    spark: SparkSession, table: str
) -> None:
    spark.range(3).write.format("delta").save(table)
    void = {"name": "v", "type": "void", "nullable": True, "metadata": {}}
    within = {**void, "name": "s", "type": {"type": "struct", "fields": [void]}}
    metadata = log.metadata(table)
    metadata["schemaString"] = json.dumps({"type": "struct", "fields": [void, within]})
    log.write_commit(table, 1, {"metaData": metadata})
    df = spark.read.format("delta").load(table)
    assert (df.columns, df.count()) == (["v", "s"], 3)
    assert df.select("v").collect() == df.select("s.v").collect() == [(None,)] * 3
    assert df.collect() == [(None, None)] * 3
    assert df.selectExpr("1 AS one").collect() == [(1,)] * 3
