"""ALTER TABLE of columns, by name and by path: its effects on rows, files and statements."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from pyspark.errors import AnalysisException
from pyspark.sql import SparkSession

from deltaic.exceptions import DeltaError, InvalidArgumentError
from tests.support import log
from tests.support.session_settings import session_settings
from tests.support.table_builder import in_order, rows_of

MAPPED = (
    "TBLPROPERTIES ('delta.columnMapping.mode' = 'name', 'delta.enableDeletionVectors' = 'true')"
)
Alter = Callable[[str], object]


@pytest.fixture
def altered(spark: SparkSession, table: str) -> Iterator[Alter]:
    """Runs statements on a table of the catalog whose files are at `table`, called {t}."""
    yield lambda statement: spark.sql(statement.format(t="altered_table"))
    spark.sql("DROP TABLE IF EXISTS altered_table")


def create(altered: Alter, table: str) -> None:
    altered(
        "CREATE TABLE {t} (id INT, s STRUCT<x: INT, y: STRING>, a ARRAY<STRUCT<e: INT>>,"
        f" m MAP<STRING, STRUCT<v: INT>>, p STRING) USING delta PARTITIONED BY (p) {MAPPED}"
        f" LOCATION '{table}'"
    )
    altered(
        "INSERT INTO {t} VALUES (1, named_struct('x', 1, 'y', 'a'), array(named_struct('e', 1)),"
        " map('k', named_struct('v', 1)), 'p'), (2, NULL, NULL, NULL, 'q')"
    )


def test_rows_from_before_and_after_columns_came_and_went_are_read_together(
    spark: SparkSession, table: str, altered: Alter
) -> None:
    create(altered, table)
    for change in (
        "ADD COLUMNS (n INT COMMENT 'new', f STRING FIRST)",
        "ADD COLUMN s.z INT FIRST",
        "ADD COLUMN a.element.f INT",
        "ADD COLUMN m.value.w STRING",
        "RENAME COLUMN p TO q",
        "RENAME COLUMN s.x TO xx",
        "RENAME COLUMN a TO b",
    ):
        altered(f"ALTER TABLE {{t}} {change}")
    altered(
        "INSERT INTO {t} BY NAME SELECT 3 AS id, 'g' AS f, 9 AS n, 'p' AS q,"
        " named_struct('z', 3, 'xx', 4, 'y', 'b') AS s, array(named_struct('e', 5, 'f', 6)) AS b,"
        " map('k', named_struct('v', 7, 'w', 'h')) AS m"
    )
    altered("UPDATE {t} SET n = 1, s.z = 8 WHERE id = 1")
    altered("DELETE FROM {t} WHERE id = 2")
    expected = [
        (None, 1, (8, 1, "a"), [(1, None)], {"k": (1, None)}, "p", 1),
        ("g", 3, (3, 4, "b"), [(5, 6)], {"k": (7, "h")}, "p", 9),
    ]
    assert rows_of(spark, table) == in_order(expected)
    assert spark.sql("SELECT id FROM altered_table WHERE q = 'p' AND s.xx > 1").collect() == [(3,)]
    altered("ALTER TABLE {t} DROP COLUMNS (f, s.xx, m)")
    altered("ALTER TABLE {t} ADD COLUMN m STRING")
    altered("ALTER TABLE {t} ALTER COLUMN m COMMENT 'anew', n FIRST")
    kept = [(1, 1, (8, "a"), [(1, None)], "p", None), (9, 3, (3, "b"), [(5, 6)], "p", None)]
    assert rows_of(spark, table) == in_order(kept)
    df = spark.table("altered_table")
    assert df.columns == ["n", "id", "s", "b", "q", "m"]
    assert df.schema["m"].metadata == {"comment": "anew"}
    assert spark.sql(f"SELECT count(*) FROM delta.`{table}@v1`").first() == (2,)
    assert log.metadata(table)["partitionColumns"] == ["q"]


@pytest.mark.protocol("default-columns-1")
def test_table_without_mapping_takes_columns_and_comments(spark: SparkSession, table: str) -> None:
    name = f"delta.`{table}`"
    spark.sql("SELECT 1L AS id, named_struct('x', 1) AS s").write.format("delta").save(table)
    df = spark.read.format("delta").load(table)
    spark.sql(f"ALTER TABLE {name} ADD COLUMNS (s.y STRING, v VARCHAR(3), `Kind` INT AFTER id)")
    spark.sql(f"ALTER TABLE {name} ALTER COLUMN v TYPE VARCHAR(5)")
    spark.sql(
        f"ALTER TABLE {name} REPLACE COLUMNS (v VARCHAR(5), id BIGINT COMMENT 'k', s STRUCT<y:"
        " STRING, x: INT>, Kind INT, more DATE)"
    )
    spark.sql(f"INSERT INTO {name} VALUES ('12345', 2, named_struct('y', 'a', 'x', 3), 4, NULL)")
    rows = [(None, 1, (None, 1), None, None), ("12345", 2, ("a", 3), 4, None)]
    assert rows_of(spark, table) == in_order(rows)
    with pytest.raises(Exception, match="EXCEED_LIMIT_LENGTH"):
        spark.sql(f"INSERT INTO {name} (v) VALUES ('123456')")
    assert in_order(map(tuple, df.collect())) == [(1, (1,)), (2, (3,))], "it keeps its columns"
    refused: list[tuple[str, type[Exception], str]] = [
        ("RENAME COLUMN id TO k", InvalidArgumentError, "MAPPING_NEEDED"),
        ("DROP COLUMN id", InvalidArgumentError, "MAPPING_NEEDED"),
        ("REPLACE COLUMNS (id BIGINT)", InvalidArgumentError, "MAPPING_NEEDED"),
        ("ADD COLUMN n INT NOT NULL", InvalidArgumentError, "COLUMN_NOT_ADDED"),
        ("ADD COLUMN n INT DEFAULT 1", InvalidArgumentError, "COLUMN_NOT_ADDED"),
        ("ADD COLUMN ID INT", AnalysisException, "FIELD_ALREADY_EXISTS"),
        ("ADD COLUMN nowhere.n INT", AnalysisException, "UNRESOLVED_COLUMN"),
        ("ADD COLUMN n INT AFTER nowhere", AnalysisException, "FIELD_NOT_FOUND"),
        ("ADD COLUMN `a b` INT", InvalidArgumentError, "INVALID_COLUMN_NAME"),
        ("ALTER COLUMN id SET NOT NULL", AnalysisException, "nullable"),
        ("ALTER COLUMN id TYPE STRING", InvalidArgumentError, "COLUMN_CHANGE"),
        (
            "DROP FEATURE deletionVectors TRUNCATE HISTORY",
            InvalidArgumentError,
            "FEATURE_NOT_PRESENT",
        ),
        ("ALTER COLUMN id SYNC IDENTITY", InvalidArgumentError, "NOT_IDENTITY"),
    ]
    version = log.versions(table)[-1]
    for change, kind, match in refused:
        with pytest.raises(kind, match=match):
            spark.sql(f"ALTER TABLE {name} {change}")
    assert log.versions(table)[-1] == version


def test_columns_specified_again_take_longer_strings(spark: SparkSession, table: str) -> None:
    name = f"delta.`{table}`"
    spark.sql(f"CREATE TABLE {name} (id INT, v VARCHAR(3)) USING delta")
    spark.sql(f"INSERT INTO {name} VALUES (1, 'abc')")
    spark.sql(f"ALTER TABLE {name} REPLACE COLUMNS (v VARCHAR(5), id INT)")
    spark.sql(f"INSERT INTO {name} VALUES ('abcde', 2)")
    assert rows_of(spark, table) == in_order([("abc", 1), ("abcde", 2)])
    with pytest.raises(InvalidArgumentError, match="DELTAIC_UNSUPPORTED_COLUMN_CHANGE"):
        spark.sql(f"ALTER TABLE {name} REPLACE COLUMNS (v VARCHAR(4), id INT)")
    spark.sql(f"ALTER TABLE {name} REPLACE COLUMNS (v STRING, id INT)")
    spark.sql(f"INSERT INTO {name} VALUES ('abcdefg', 3)")


@pytest.mark.parametrize(
    "feature", ["checkConstraints", "'checkConstraints'", '"checkConstraints"']
)
def test_feature_is_dropped_by_a_name_or_a_string(
    spark: SparkSession, table: str, feature: str
) -> None:
    supported = "TBLPROPERTIES ('delta.feature.checkConstraints' = 'supported')"
    spark.sql(f"CREATE TABLE delta.`{table}` (id INT) USING delta {supported}")
    spark.sql(f"ALTER TABLE delta.`{table}` DROP FEATURE {feature}")
    [protocol] = log.last_actions(table, "protocol")
    assert protocol == {"minReaderVersion": 1, "minWriterVersion": 2}


def test_names_that_scans_reserve_are_refused(spark: SparkSession, table: str) -> None:
    name = f"delta.`{table}`"
    spark.sql(f"CREATE TABLE {name} (id INT, v INT) USING delta {MAPPED}")
    for change in ("ADD COLUMN __deltaic_x INT", "RENAME COLUMN v TO __DELTAIC_x"):
        with pytest.raises(InvalidArgumentError, match="DELTAIC_RESERVED_COLUMN_NAME"):
            spark.sql(f"ALTER TABLE {name} {change}")


@pytest.mark.protocol("check-constraints-3")
def test_columns_that_the_table_computes_from_stay(spark: SparkSession, table: str) -> None:
    name = f"delta.`{table}`"
    spark.sql(
        f"CREATE TABLE {name} (d DATE, s STRUCT<x: INT, y: INT>, year INT GENERATED ALWAYS AS"
        f" (year(d)), CONSTRAINT c CHECK (s.x > 0)) USING delta {MAPPED}"
    )
    for change in (
        "DROP COLUMN d",
        "RENAME COLUMN d TO e",
        "RENAME COLUMN s TO e",
        "DROP COLUMN s.x",
    ):
        with pytest.raises(InvalidArgumentError, match="DELTAIC_COLUMN_DEPENDED_ON"):
            spark.sql(f"ALTER TABLE {name} {change}")
    spark.sql(f"ALTER TABLE {name} RENAME COLUMN s.y TO z")
    # The function in the expression has the column's name, which is no reason to keep that.
    spark.sql(f"ALTER TABLE {name} RENAME COLUMN year TO y")
    spark.sql(f"INSERT INTO {name} (d, s) VALUES (DATE'2024-01-01', named_struct('x', 1, 'z', 2))")
    assert rows_of(spark, table)[0][2] == 2024
    spark.sql(f"ALTER TABLE {name} DROP COLUMNS (d, y)")
    assert rows_of(spark, table) == [((1, 2),)]


@pytest.mark.parametrize(
    ("check", "structs"),
    [
        ("arr.x[0] > 0", ["arr.element"]),
        ("arr[0].x > 0", ["arr.element"]),
        ("element_at(arr, 1).x > 0", ["arr.element"]),
        ("m['k'].x > 0", ["m.value"]),
        ("coalesce(element_at(m, 'k').x, s.arr[0].x) > 0", ["m.value", "s.arr.element"]),
        ("arr[m['k'].x % 1].x > 0", ["m.value", "arr.element"]),
    ],
)
def test_fields_within_arrays_and_maps_that_the_table_computes_from_stay(
    spark: SparkSession, table: str, check: str, structs: list[str]
) -> None:
    create_nested(spark, table, check)
    name = f"delta.`{table}`"
    for struct in structs:
        for change in (f"DROP COLUMN {struct}.x", f"RENAME COLUMN {struct}.x TO z"):
            with pytest.raises(InvalidArgumentError, match="DELTAIC_COLUMN_DEPENDED_ON"):
                spark.sql(f"ALTER TABLE {name} {change}")
        spark.sql(f"ALTER TABLE {name} RENAME COLUMN {struct}.y TO z")
    insert = f"INSERT INTO {name} SELECT array(e), map('k', e), struct(array(e)) FROM"
    spark.sql(f"{insert} (SELECT struct(1, 2) e)")
    with pytest.raises(Exception, match="DELTAIC_CHECK_VIOLATED"):
        spark.sql(f"{insert} (SELECT struct(0, 2) e)")


def test_function_of_elements_keeps_all_their_fields(spark: SparkSession, table: str) -> None:
    create_nested(spark, table, "exists(arr, e -> e.x > 0)")
    for field in ("x", "y"):
        with pytest.raises(InvalidArgumentError, match="DELTAIC_COLUMN_DEPENDED_ON"):
            spark.sql(f"ALTER TABLE delta.`{table}` DROP COLUMN arr.element.{field}")


def create_nested(spark: SparkSession, table: str, check: str) -> None:
    element = "STRUCT<x: INT, y: INT>"
    spark.sql(
        f"CREATE TABLE delta.`{table}` (arr ARRAY<{element}>, m MAP<STRING, {element}>,"
        f" s STRUCT<arr: ARRAY<{element}>>, CONSTRAINT c CHECK ({check})) USING delta {MAPPED}"
    )


@pytest.mark.protocol("check-constraints-3")
def test_expression_that_does_not_fit_keeps_the_columns_that_it_names(
    spark: SparkSession, table: str
) -> None:
    name = f"delta.`{table}`"
    spark.sql(
        f"CREATE TABLE {name} (s STRUCT<x: INT>, v INT, u INT, CONSTRAINT c CHECK (v > 0))"
        f" USING delta {MAPPED}"
    )
    metadata = log.metadata(table)
    configuration = metadata["configuration"] | {"delta.constraints.c": "foreign(s.x) > v"}
    log.write_commit(table, 1, {"metaData": metadata | {"configuration": configuration}})
    for column in ("s.x", "v"):
        with pytest.raises(InvalidArgumentError, match="DELTAIC_COLUMN_DEPENDED_ON"):
            spark.sql(f"ALTER TABLE {name} RENAME COLUMN {column} TO z")
    spark.sql(f"ALTER TABLE {name} RENAME COLUMN u TO z")


def test_identity_column_continues_after_the_values_of_the_table(
    spark: SparkSession, table: str
) -> None:
    name = f"delta.`{table}`"
    identity = "GENERATED BY DEFAULT AS IDENTITY (START WITH 10 INCREMENT BY -3)"
    spark.sql(f"CREATE TABLE {name} (`n n` BIGINT {identity}, v INT) USING delta {MAPPED}")
    spark.sql(f"ALTER TABLE {name} CHANGE COLUMN `n n` SYNC IDENTITY")
    spark.range(1).selectExpr("-5L AS `n n`", "1 AS v").coalesce(1).write.format("delta").mode(
        "append"
    ).save(table)
    spark.sql(f"ALTER TABLE {name} ALTER COLUMN `n n` SYNC IDENTITY")
    spark.sql(f"INSERT INTO {name} (v) VALUES (2)")
    assert sorted(row[0] for row in rows_of(spark, table)) == [-8, -5]


def test_location_of_a_name_is_changed_for_a_table_of_the_same_columns(
    spark: SparkSession, table: str, tmp_path: Path, altered: Alter
) -> None:
    other, third = f"{tmp_path}/other", f"{tmp_path}/third"
    spark.sql("SELECT 1 AS id, 'a' AS p").write.format("delta").partitionBy("p").save(table)
    spark.sql("SELECT 2 AS id, 'b' AS p").write.format("delta").partitionBy("p").save(other)
    spark.sql("SELECT 3 AS id, 'b' AS p").write.format("delta").save(third)
    altered(f"CREATE TABLE {{t}} USING delta LOCATION '{table}'")
    assert spark.table("altered_table").first() == (1, "a")
    altered(f"ALTER TABLE {{t}} SET LOCATION '{other}'")
    assert spark.table("altered_table").first() == (2, "b")
    with pytest.raises(InvalidArgumentError, match=r"LOCATION_DIFFERS.*partitioning.*\(p\)"):
        altered(f"ALTER TABLE {{t}} SET LOCATION '{third}'")
    spark.sql(f"ALTER TABLE delta.`{third}` ADD COLUMN n INT")
    with pytest.raises(InvalidArgumentError, match=r"LOCATION_DIFFERS.*schema"):
        altered(f"ALTER TABLE {{t}} SET LOCATION '{third}'")
    with session_settings(spark, {"spark.deltaic.alterLocation.bypassSchemaCheck": "true"}):
        altered(f"ALTER TABLE {{t}} SET LOCATION '{third}'")
    assert "n" in spark.table("altered_table").columns
    altered(f"ALTER TABLE {{t}} SET LOCATION '{third}'")  # where it is already
    with session_settings(spark, {"spark.deltaic.alterLocation.bypassSchemaCheck": "true"}):
        altered(f"ALTER TABLE {{t}} SET LOCATION '{other}'")
    with pytest.raises(DeltaError, match="NOT_A_TABLE"):
        altered(f"ALTER TABLE {{t}} SET LOCATION '{tmp_path}/none'")
    with pytest.raises(InvalidArgumentError, match="PATH_HAS_NO_CATALOG_ENTRY"):
        spark.sql(f"ALTER TABLE delta.`{table}` SET LOCATION '{other}'")
    altered("INSERT INTO {t} VALUES (4, 'c')")
    assert rows_of(spark, other) == [(2, "b"), (4, "c")] and rows_of(spark, table) == [(1, "a")]


def test_name_whose_table_was_moved_is_registered_again(
    spark: SparkSession, table: str, tmp_path: Path, altered: Alter
) -> None:
    altered(f"CREATE TABLE {{t}} USING delta LOCATION '{table}' AS SELECT 1 AS id")
    moved = Path(table).rename(tmp_path / "moved")
    with pytest.raises(DeltaError, match=r"(?s)NOT_A_TABLE.*DROP TABLE.*CREATE TABLE"):
        altered(f"ALTER TABLE {{t}} SET LOCATION '{moved}'")
    altered("DROP TABLE {t}")
    altered(f"CREATE TABLE {{t}} USING delta LOCATION '{moved}'")
    assert spark.table("altered_table").first() == (1,)
