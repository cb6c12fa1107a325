"""CHECK constraints, invariants and NOT NULL: rows of every write API must meet them."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path

import pytest
from pyspark.sql import SparkSession
from pyspark.sql.types import (
    ArrayType,
    DataType,
    IntegerType,
    MapType,
    StringType,
    StructField,
    StructType,
)

from deltaic.exceptions import DeltaError, InvalidArgumentError, TableStateError
from tests.support import log
from tests.support.session_settings import session_settings
from tests.support.table_builder import build_table, in_order, rows_of

SCHEMA = "id INT, v INT, p STRING"
ROWS = [(1, 10, "a"), (2, 20, "b"), (3, 30, "a")]


def add(spark: SparkSession, table: str, name: str, condition: str) -> None:
    spark.sql(f"ALTER TABLE delta.`{table}` ADD CONSTRAINT {name} CHECK ({condition})")


@pytest.fixture(params=[True, False], ids=["vectors", "rewrite"])
def checked(request: pytest.FixtureRequest, spark: SparkSession, table: str) -> str:
    build_table(
        spark,
        table,
        SCHEMA,
        [ROWS],
        partition_by=["p"],
        deletion_vectors=bool(request.param),
    )
    add(spark, table, "small", "v < 100")
    return table


def save(mode: str) -> Callable[[SparkSession, str, str], None]:
    def run(spark: SparkSession, table: str, row: str) -> None:
        df = spark.sql(f"SELECT * FROM VALUES {row} r(id, v, p)")
        df.write.format("delta").mode(mode).save(table)

    return run


def sql(statement: str) -> Callable[[SparkSession, str, str], None]:
    def run(spark: SparkSession, table: str, row: str) -> None:
        spark.sql(statement.format(t=f"delta.`{table}`", row=row))

    return run


#: Ways to write a row `(id, v, p)`.
WRITE_APIS: dict[str, Callable[[SparkSession, str, str], None]] = {
    "save append": save("append"),
    "save overwrite": save("overwrite"),
    "insert": sql("INSERT INTO {t} VALUES {row}"),
    "insert overwrite": sql("INSERT OVERWRITE {t} VALUES {row}"),
    "update": sql("UPDATE {t} SET v = (SELECT max(v) FROM VALUES {row} r(i, v, p)) WHERE id = 1"),
    "merge update": sql(
        "MERGE INTO {t} t USING (SELECT * FROM VALUES {row} r(id, v, p)) s ON t.p = 'b' "
        "WHEN MATCHED THEN UPDATE SET v = s.v"
    ),
    "merge insert": sql(
        "MERGE INTO {t} t USING (SELECT * FROM VALUES {row} r(id, v, p)) s ON t.id = -s.id "
        "WHEN MATCHED THEN DELETE WHEN NOT MATCHED THEN INSERT *"
    ),
    "merge insert only": sql(
        "MERGE INTO {t} t USING (SELECT * FROM VALUES {row} r(id, v, p)) s ON t.id = -s.id "
        "WHEN NOT MATCHED THEN INSERT *"
    ),
}


@pytest.mark.protocol("check-constraints-10", "check-constraints-11", "check-constraints-12")
@pytest.mark.protocol("check-constraints-4", "check-constraints-5")
@pytest.mark.parametrize("write_api", WRITE_APIS)
@pytest.mark.parametrize("value", ["100", "CAST(NULL AS INT)"])
def test_row_that_breaks_a_constraint_is_refused_and_nothing_is_written(
    spark: SparkSession, checked: str, write_api: str, value: str
) -> None:
    with pytest.raises(Exception, match="DELTAIC_CHECK_VIOLATED") as caught:
        WRITE_APIS[write_api](spark, checked, f"(7, {value}, 'a')")
    shown = "NULL" if value != "100" else "100"
    for part in (checked, "CHECK constraint small", "v < 100", f"v = {shown}"):
        assert part in str(caught.value)
    assert log.newest(checked) == 1
    assert rows_of(spark, checked) == in_order(ROWS)


@pytest.mark.parametrize("write_api", WRITE_APIS)
def test_row_that_meets_a_constraint_is_written(
    spark: SparkSession, checked: str, write_api: str
) -> None:
    WRITE_APIS[write_api](spark, checked, "(7, 99, 'a')")
    assert log.newest(checked) == 2
    assert 99 in [v for _, v, _ in rows_of(spark, checked)]


def test_delete_does_not_hold_rows_that_stay_against_constraints(
    spark: SparkSession, checked: str
) -> None:
    metadata = log.metadata(checked)
    metadata["configuration"]["delta.constraints.small"] = "v < 15"
    log.write_commit(checked, 2, {"metaData": metadata})
    spark.sql(f"DELETE FROM delta.`{checked}` WHERE id = 1")
    assert rows_of(spark, checked) == in_order(ROWS[1:])


@pytest.mark.protocol("check-constraints-4", "check-constraints-5", "check-constraints-7")
@pytest.mark.protocol("check-constraints-8", "check-constraints-9")
@pytest.mark.parametrize("condition", ["v > 10", "v > CASE WHEN id > 1 THEN 0 END"])
def test_constraint_that_a_row_of_the_table_breaks_is_not_added(
    spark: SparkSession, checked: str, condition: str
) -> None:
    with pytest.raises(TableStateError, match="id = 1") as caught:
        add(spark, checked, "wrong", condition)
    assert caught.value.condition == "DELTAIC_CONSTRAINT_VIOLATED_BY_DATA"
    assert log.newest(checked) == 1


@pytest.mark.protocol("check-constraints-2", "check-constraints-3")
@pytest.mark.parametrize("condition", ["v + 1", "v > rand()", "max(v) > 1", "w > 1"])
def test_what_is_no_condition_on_rows_is_refused(
    spark: SparkSession, checked: str, condition: str
) -> None:
    with pytest.raises(
        Exception,
        match=r"DELTAIC_INVALID_CONSTRAINT|DATATYPE_MISMATCH|UNRESOLVED_COLUMN|INVALID_NON_DET"
        r"|UNSUPPORTED_EXPR",
    ):
        add(spark, checked, "wrong", condition)
    assert log.newest(checked) == 1


def test_constraint_of_a_name_that_is_there_is_refused(spark: SparkSession, checked: str) -> None:
    with pytest.raises(InvalidArgumentError, match="already has a constraint"):
        add(spark, checked, "SMALL", "v > 0")


def test_older_version_is_not_altered(spark: SparkSession, checked: str) -> None:
    with pytest.raises(DeltaError, match="older version 0"):
        spark.sql(f"ALTER TABLE delta.`{checked}@v0` SET TBLPROPERTIES ('a' = 'b')")
    assert log.newest(checked) == 1


@pytest.mark.protocol("check-constraints-5")
@pytest.mark.parametrize("of", ["STRING", "BINARY", "VARCHAR(3)"])
def test_empty_value_of_a_partition_is_checked_as_the_null_that_is_stored(
    spark: SparkSession, table: str, of: str
) -> None:
    name = f"delta.`{table}`"
    columns = f"id INT, p {of}, s {of}"
    spark.sql(f"CREATE TABLE {name} ({columns}) USING delta PARTITIONED BY (p)")
    add(spark, table, "either", "p IS NOT NULL OR id < 0")
    add(spark, table, "inside", "s IS NOT NULL")
    empty = "CAST('' AS BINARY)" if of == "BINARY" else "''"
    spark.sql(f"INSERT INTO {name} SELECT -1, {empty}, {empty}")
    for statement in (
        f"INSERT INTO {name} SELECT 1, {empty}, {empty}",
        f"INSERT OVERWRITE {name} SELECT 1, {empty}, {empty}",
        f"UPDATE {name} SET id = 1, p = {empty}",
        f"MERGE INTO {name} USING (SELECT 2 AS k) ON id = k"
        f" WHEN NOT MATCHED THEN INSERT (id, p, s) VALUES (2, {empty}, {empty})",
    ):
        with pytest.raises(Exception, match=r"DELTAIC_CHECK_VIOLATED.* p = NULL"):
            spark.sql(statement)
    found = spark.sql(f"SELECT id, p IS NULL, length(s) FROM {name}").collect()
    assert [tuple(row) for row in found] == [(-1, True, 0)]


def test_dropped_constraint_no_longer_holds(spark: SparkSession, checked: str) -> None:
    spark.sql(f"ALTER TABLE delta.`{checked}` DROP CONSTRAINT Small")
    WRITE_APIS["insert"](spark, checked, "(7, 100, 'a')")
    assert len(rows_of(spark, checked)) == 4
    spark.sql(f"ALTER TABLE delta.`{checked}` DROP CONSTRAINT IF EXISTS small")
    with pytest.raises(InvalidArgumentError, match="has no constraint small"):
        spark.sql(f"ALTER TABLE delta.`{checked}` DROP CONSTRAINT small")


def test_session_may_drop_constraints_that_are_not_there(spark: SparkSession, table: str) -> None:
    build_table(spark, table, SCHEMA, [ROWS])
    assumes = "spark.databricks.delta.constraints.assumesDropIfExists.enabled"
    with session_settings(spark, {assumes: "true"}):
        spark.sql(f"ALTER TABLE delta.`{table}` DROP CONSTRAINT nosuch")
    assert log.newest(table) == 0


@pytest.mark.protocol("check-constraints-1", "check-constraints-6")
def test_adding_a_constraint_upgrades_the_protocol_by_what_it_needs(
    spark: SparkSession, checked: str
) -> None:
    (before,) = log.actions(checked, 0, "protocol")
    (after,) = log.actions(checked, 1, "protocol")
    if before["minWriterVersion"] == 2:
        assert after == {"minReaderVersion": 1, "minWriterVersion": 3}
    else:
        assert set(after["writerFeatures"]) == {*before["writerFeatures"], "checkConstraints"}
    (info,) = log.actions(checked, 1, "commitInfo")
    assert info["operation"] == "ADD CONSTRAINT"
    assert info["operationParameters"] == {"name": "small", "expr": "v < 100"}


def test_constraints_are_created_with_the_table(spark: SparkSession, table: str) -> None:
    spark.sql(
        f"CREATE TABLE delta.`{table}` (id INT CHECK (id > 0), s STRUCT<a: INT>, "
        "CONSTRAINT nested CHECK (s.a <> 3)) USING delta"
    )
    spark.sql(f"INSERT INTO delta.`{table}` VALUES (1, named_struct('a', 1))")
    with pytest.raises(Exception, match=r"nested: s.a <> 3 .* s.a = 3"):
        spark.sql(f"INSERT INTO delta.`{table}` VALUES (1, named_struct('a', 3))")
    with pytest.raises(Exception, match="id > 0"):
        spark.sql(f"INSERT INTO delta.`{table}` VALUES (0, named_struct('a', 1))")
    with pytest.raises(DeltaError, match="DELTAIC_UNSUPPORTED_CONSTRAINT"):
        spark.sql(f"ALTER TABLE delta.`{table}` ADD CONSTRAINT k PRIMARY KEY (id)")


def test_other_providers_do_not_lose_constraints_in_silence(
    spark: SparkSession, tmp_path: object
) -> None:
    with pytest.raises(Exception, match="support CONSTRAINT"):
        spark.sql(
            "CREATE TABLE with_a_check (id INT, CONSTRAINT c CHECK (id > 0)) USING parquet "
            f"LOCATION '{tmp_path}/p'"
        )


@pytest.mark.protocol("column-invariants-2", "column-invariants-3", "column-invariants-5")
def test_invariants_hold_at_the_top_and_in_structs(spark: SparkSession, table: str) -> None:
    def invariant(sql: str) -> dict[str, str]:
        return {"delta.invariants": f'{{"expression": {{"expression": "{sql}"}}}}'}

    inner = StructType([StructField("n", IntegerType(), True, invariant("s.n <> 5"))])
    schema = StructType(
        [
            StructField("x", IntegerType(), True, invariant("x > 3")),
            StructField("s", inner, True),
        ]
    )
    spark.createDataFrame([(4, (1,))], schema).write.format("delta").save(table)
    for row, broken in (((3, (1,)), "x > 3"), ((None, (1,)), "x > 3"), ((4, (5,)), "s.n <> 5")):
        with pytest.raises(Exception, match=f"DELTAIC_CHECK_VIOLATED.*{broken}"):
            plain = spark.createDataFrame([row], "x INT, s STRUCT<n: INT>")
            plain.write.format("delta").mode("append").save(table)
    assert log.newest(table) == 0


@pytest.mark.parametrize(
    ("kind", "column"),
    [
        (lambda inner: ArrayType(inner), "x.element.n"),
        (lambda inner: MapType(StringType(), ArrayType(inner)), "x.value.element.n"),
    ],
)
def test_invariant_of_a_field_in_an_array_or_map_is_refused_by_name(
    spark: SparkSession, table: str, kind: Callable[[StructType], DataType], column: str
) -> None:
    sql = '{"expression": {"expression": "n > 3"}}'
    inner = StructType([StructField("n", IntegerType(), True, {"delta.invariants": sql})])
    schema = StructType([StructField("x", kind(inner), True)])
    with pytest.raises(Exception, match=rf"DELTAIC_INVALID_CONSTRAINT.*{re.escape(column)}"):
        spark.createDataFrame([], schema).write.format("delta").save(table)
    assert not Path(table, "_delta_log").exists() or log.versions(table) == []


@pytest.mark.parametrize(
    ("columns", "row"),
    [
        ("a INT NOT NULL", "CAST(NULL AS INT)"),
        ("s STRUCT<a: INT NOT NULL>", "named_struct('a', CAST(NULL AS INT))"),
    ],
)
def test_not_null_holds_at_the_top_and_in_structs(
    spark: SparkSession, table: str, columns: str, row: str
) -> None:
    spark.sql(f"CREATE TABLE delta.`{table}` (id INT, {columns}) USING delta")
    with pytest.raises(Exception, match="NULL"):
        spark.sql(f"INSERT INTO delta.`{table}` SELECT 1, {row}")
    assert log.newest(table) == 0
