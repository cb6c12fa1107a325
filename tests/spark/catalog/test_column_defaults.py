"""Default columns: what a statement leaves out, or calls DEFAULT (Protocol § Default Columns)."""

from __future__ import annotations

import pytest
from pyspark.sql import SparkSession

from tests.support import log
from tests.support.table_builder import in_order, rows_of


@pytest.fixture
def defaults(spark: SparkSession, table: str) -> str:
    spark.sql(
        f"CREATE TABLE delta.`{table}` (id INT, v INT DEFAULT 3 + 4, s STRING DEFAULT 'none', "
        "n INT) USING delta TBLPROPERTIES ('delta.enableDeletionVectors' = 'true')"
    )
    return table


def run(spark: SparkSession, table: str, *statements: str) -> None:
    for statement in statements:
        spark.sql(statement.format(t=f"delta.`{table}`"))


@pytest.mark.protocol("default-columns-2", "default-columns-3")
def test_defaults_are_in_the_columns_metadata_and_the_protocol_says_so(defaults: str) -> None:
    (protocol,) = log.actions(defaults, 0, "protocol")
    assert "allowColumnDefaults" in protocol["writerFeatures"]
    schema = log.metadata(defaults)["schemaString"]
    assert '"CURRENT_DEFAULT":"3 + 4"' in schema
    # By which Spark's own Parquet reader would fill files that lack the column.
    assert "EXISTS_DEFAULT" not in schema


@pytest.mark.protocol("default-columns-4", "default-columns-5", "default-columns-6")
def test_insert_fills_what_it_leaves_out_or_calls_default(
    spark: SparkSession, defaults: str
) -> None:
    run(
        spark,
        defaults,
        "INSERT INTO {t} VALUES (1, DEFAULT, DEFAULT, DEFAULT)",
        "INSERT INTO {t} (id) VALUES (2)",
        "INSERT INTO {t} (s, id) VALUES (DEFAULT, 3)",
        "INSERT INTO {t} VALUES (4, NULL, NULL, NULL)",
        "INSERT INTO {t} BY NAME SELECT 5 AS id, 'x' AS s",
    )
    assert rows_of(spark, defaults) == in_order(
        [
            (1, 7, "none", None),
            (2, 7, "none", None),
            (3, 7, "none", None),
            (4, None, None, None),
            (5, 7, "x", None),
        ]
    )


@pytest.mark.protocol("default-columns-5")
def test_rows_without_a_column_get_its_default(spark: SparkSession, defaults: str) -> None:
    spark.sql("SELECT 1 id, 2 n").write.format("delta").mode("append").save(defaults)
    assert rows_of(spark, defaults) == [(1, 7, "none", 2)]


@pytest.mark.protocol("default-columns-6")
def test_update_and_merge_set_the_default(spark: SparkSession, defaults: str) -> None:
    run(
        spark,
        defaults,
        "INSERT INTO {t} VALUES (1, 1, 'a', 1), (2, 2, 'b', 2), (3, 3, 'c', 3)",
        "UPDATE {t} SET v = DEFAULT, n = DEFAULT WHERE id = 1",
        "MERGE INTO {t} t USING (SELECT explode(array(2, 9)) k) s ON t.id = s.k "
        "WHEN MATCHED THEN UPDATE SET s = DEFAULT "
        "WHEN NOT MATCHED THEN INSERT (id, v) VALUES (k, DEFAULT)",
    )
    assert rows_of(spark, defaults) == in_order(
        [(1, 7, "a", None), (2, 2, "none", 2), (3, 3, "c", 3), (9, 7, "none", None)]
    )


def test_table_made_of_another_ones_rows_does_not_take_over_its_defaults(
    spark: SparkSession, defaults: str, tmp_path: object
) -> None:
    copies = [f"{tmp_path}/ctas", f"{tmp_path}/saved"]
    run(spark, defaults, "INSERT INTO {t} (id) VALUES (1)")
    spark.sql(f"CREATE TABLE delta.`{copies[0]}` USING delta AS SELECT * FROM delta.`{defaults}`")
    spark.read.format("delta").load(defaults).write.format("delta").save(copies[1])
    for copy in copies:
        assert "DEFAULT" not in log.metadata(copy)["schemaString"]
        assert rows_of(spark, copy) == [(1, 7, "none", None)]


@pytest.mark.protocol("default-columns-4")
@pytest.mark.parametrize("default", ["rand()", "id + 1", "(SELECT 1)", "'text'"])
def test_default_that_is_no_constant_of_the_type_is_refused(
    spark: SparkSession, table: str, default: str
) -> None:
    with pytest.raises(Exception, match="DEFAULT"):
        spark.sql(f"CREATE TABLE delta.`{table}` (id INT, v INT DEFAULT {default}) USING delta")
