"""Commands of delta-spark that are not supported yet: refused by name, with an alternative."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from pyspark.errors import AnalysisException

from deltaic import DeltaTable
from deltaic.exceptions import InvalidArgumentError
from tests.support import log
from tests.support.table_builder import build_table

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

STATEMENTS = {
    "REORG TABLE {t} APPLY (UPGRADE UNIFORM (ICEBERG_COMPAT_VERSION = 2))": (
        "REORG ... UPGRADE UNIFORM"
    ),
    "/* why */ REORG TABLE -- not\n {t} APPLY (UPGRADE UNIFORM (ICEBERG_COMPAT_VERSION = 2))": (
        "REORG ... UPGRADE UNIFORM"
    ),
}


def require_refusal(raised: pytest.ExceptionInfo[AnalysisException], command: str) -> None:
    problem = raised.value
    assert isinstance(problem, InvalidArgumentError)
    assert "ParseException" not in type(problem).__name__
    assert problem.condition == "DELTAIC_UNSUPPORTED_COMMAND"
    assert problem.getSqlState() == "0A000"
    assert problem.parameters["command"] == command
    assert len(problem.parameters["instead"]) > 40, "it says what works"


@pytest.mark.parametrize("statement", STATEMENTS)
def test_statement_is_refused_by_name(spark: SparkSession, table: str, statement: str) -> None:
    build_table(spark, table, "id INT, v INT", [[(1, 1)]], deletion_vectors=False)
    with pytest.raises(AnalysisException) as raised:
        spark.sql(statement.format(t=f"delta.`{table}`", path=table))
    require_refusal(raised, STATEMENTS[statement])
    assert log.versions(table) == [0]


def test_names_that_are_words_of_these_statements_stay_names(spark: SparkSession) -> None:
    for name in ("optimize", "vacuum", "clone", "delta", "restore", "`convert`"):
        spark.sql(f"CREATE TABLE {name} (shallow INT, `to` INT) USING delta")
        try:
            spark.sql(f"INSERT INTO {name} VALUES (1, 2)")
            assert spark.sql(f"SELECT shallow, generate.`to` FROM {name} generate").count() == 1
            assert spark.sql(f"DESCRIBE HISTORY {name}").count() == 2
        finally:
            spark.sql(f"DROP TABLE {name}")


def test_what_the_errors_advise_works(spark: SparkSession, table: str) -> None:
    files = [[(file, 0)] for file in range(4)]
    build_table(spark, table, "id INT, v INT", files, deletion_vectors=False)
    rows = spark.read.format("delta").load(table)
    compacted = rows.repartition(1).write.format("delta").mode("overwrite")
    compacted.option("dataChange", "false").save(table)
    assert DeltaTable.forPath(spark, table).detail().collect()[0].numFiles == 1
    DeltaTable.forPath(spark, table).delete("id > 1")
    older = spark.read.format("delta").option("versionAsOf", 0).load(table)
    restored = older.write.format("delta").mode("overwrite").option("overwriteSchema", "true")
    restored.save(table)
    assert spark.read.format("delta").load(table).count() == 4
    copy = f"CREATE TABLE delta.`{table}-copy` USING delta AS SELECT * FROM delta.`{table}`"
    spark.sql(f"{copy} VERSION AS OF 2")
    assert spark.read.format("delta").load(f"{table}-copy").count() == 2
