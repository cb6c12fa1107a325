"""With `spark.testing` set, Spark refuses to give settings to the thread of its scheduler."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.support.spark_process import SparkProcess

#: Every kind of write, change and read, on both kinds of tables, with keys of several types.
STATEMENTS = """
for vectors in ("true", "false"):
    t = f"delta.`{base}/{vectors}`"
    spark.sql(
        f"CREATE TABLE {t} (id BIGINT, s STRING, d DOUBLE, n DECIMAL(20, 2), day DATE, p INT)"
        f" USING delta PARTITIONED BY (p) TBLPROPERTIES"
        f" ('delta.enableDeletionVectors' = '{vectors}', 'delta.enableChangeDataFeed' = 'true',"
        f"  'delta.checkpointInterval' = '2')"
    )
    columns = "id, CAST(id AS STRING) s, CAST(id AS DOUBLE) d, CAST(id AS DECIMAL(20, 2)) n"
    source = f"SELECT {columns}, DATE'2024-01-01' + CAST(id AS INT) day, CAST(id % 3 AS INT) p"
    spark.sql(f"INSERT INTO {t} {source} FROM range(0, 3000, 1, 4)")
    for key in ("id", "s", "d", "n", "day"):
        spark.sql(
            f"MERGE INTO {t} t USING ({source} FROM range(10, 1500, 1, 3)) s ON t.{key} = s.{key}"
            " WHEN MATCHED AND s.id % 2 = 0 THEN UPDATE SET *"
            " WHEN NOT MATCHED THEN INSERT *"
        )
    spark.sql(f"UPDATE {t} SET s = 'x' WHERE id IN (SELECT id + 5 FROM range(20))")
    spark.sql(f"DELETE FROM {t} WHERE id % 100 = 3")
    spark.sql(f"DELETE FROM {t} WHERE p = 2")
    spark.range(5).selectExpr(
        "id", "'y' s", "1D d", "CAST(1 AS DECIMAL(20, 2)) n", "DATE'2024-01-01' day", "1 p"
    ).write.format("delta").mode("overwrite").option("replaceWhere", "p = 1").save(
        f"{base}/{vectors}"
    )
    spark.sql(f"SELECT count(*) FROM table_changes_by_path('{base}/{vectors}', 0)").collect()
    counts = spark.sql(f"SELECT p, count(*) FROM {t} GROUP BY p ORDER BY p").collect()
    result[vectors] = [list(row) for row in counts]
"""


@pytest.fixture(scope="module")
def testing_spark() -> Iterator[SparkProcess]:
    settings = {"spark.testing": "true", "spark.sql.adaptive.enabled": "true"}
    with SparkProcess(settings, engine="deltaic") as process:
        yield process


def test_spark_is_testing(testing_spark: SparkProcess) -> None:
    assert testing_spark.run("result = spark._jvm.org.apache.spark.util.Utils.isTesting()"), (
        "the setting has no effect"
    )


def test_no_statement_asks_for_settings_on_the_schedulers_thread(
    testing_spark: SparkProcess, tmp_path: Path
) -> None:
    counts = testing_spark.run("result = {}\n" + STATEMENTS, base=str(tmp_path))
    deleted = sum(1 for i in range(3000) if i % 3 == 0 and i % 100 == 3)
    assert counts["true"] == counts["false"] == [[0, 1000 - deleted], [1, 5]]
