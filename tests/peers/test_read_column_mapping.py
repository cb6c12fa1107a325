"""Tables with mapped columns, written and changed by delta-spark, show what delta-spark shows."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from tests.support import log
from tests.support.oracle_reads import READ_QUERIES, RUN, assert_same_reads, our_rows
from tests.support.plans import scanned_files
from tests.support.session_settings import session_settings

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from tests.support.spark_process import SparkProcess

COLUMNS = (
    "id INT COMMENT 'the key', name STRING, old DOUBLE,"
    " s STRUCT<a: INT, b: STRING, c: STRUCT<d: DATE, e: DECIMAL(10, 2)>>,"
    " arr ARRAY<STRUCT<x: INT, y: STRING>>,"
    " m MAP<STRING, STRUCT<k: INT, l: ARRAY<STRUCT<z: INT>>>>, p STRING, q DATE"
)

FIRST_ROWS = [
    "(1, 'one', 1.5, named_struct('a', 10, 'b', 'bee', 'c', named_struct('d', DATE'2024-01-01',"
    " 'e', 1.25BD)), array(named_struct('x', 1, 'y', 'y1'), NULL), map('key', named_struct('k', 7,"
    " 'l', array(named_struct('z', 26)))), 'left', DATE'2024-01-01')",
    "(2, 'two', 2.5, named_struct('a', NULL, 'b', NULL, 'c', NULL), array(), map(), NULL, NULL)",
    "(3, NULL, NULL, NULL, NULL, NULL, '', DATE'2024-02-29')",
    "(4, 'four', 4.5, named_struct('a', 40, 'b', 'b4', 'c', named_struct('d', DATE'2024-06-01',"
    " 'e', -3.00BD)), array(named_struct('x', NULL, 'y', 'y4')), map('key', NULL), 'a b/c%41',"
    " DATE'2024-02-29')",
]

CHANGES = [
    "RENAME COLUMN name TO `full name`",
    "RENAME COLUMN s.b TO bee",
    "RENAME COLUMN s.c.d TO day",
    "RENAME COLUMN arr.element.x TO ex",
    "RENAME COLUMN m.value.k TO kay",
    "DROP COLUMN old",
    "ADD COLUMN old STRING",
    "DROP COLUMN s.a",
    "ADD COLUMN s.a BIGINT FIRST",
    "ADD COLUMN arr.element.w STRUCT<deep: INT>",
    "ADD COLUMN m.value.l.element.new STRING",
    "RENAME COLUMN p TO `part, of`",
    "RENAME COLUMN id TO swapped",
    "RENAME COLUMN `full name` TO ID",
]

LATER_ROWS = [
    "(5, 'five', named_struct('a', 50, 'bee', 'b5', 'c', named_struct('day', DATE'2025-01-01',"
    " 'e', 9.99BD)), array(named_struct('ex', 5, 'y', 'y5', 'w', named_struct('deep', 55))),"
    " map('key', named_struct('kay', 5, 'l', array(named_struct('z', 5, 'new', 'n5')))),"
    " 'left', DATE'2025-01-01', 'old again')",
    "(6, NULL, NULL, NULL, NULL, 'right', NULL, NULL)",
]

#: `{w}` stands for a condition.
QUERIES = [
    "SELECT * FROM {t}",
    "SELECT count(*), count(ID), count(s.bee), count(old) FROM {t}",
    "SELECT swapped, s.c.day, s.bee FROM {t}",
    "SELECT s.a, arr.ex, arr.w.deep, m['key'].kay, m['key'].l.new FROM {t}",
    "SELECT arr[0].w, m['key'].l[0].z, `part, of` FROM {t}",
    "SELECT `part, of`, count(*), max(q) FROM {t} GROUP BY ALL",
    "SELECT q FROM {t}",
    *(
        f"SELECT swapped, ID, s FROM {{t}} WHERE {condition}"
        for condition in (
            "swapped = 4",
            "swapped > 4",
            "ID = 'four'",
            "ID IS NULL",
            "id LIKE 'f%'",
            "s.bee = 'b4'",
            "s.bee IS NULL",
            "s.a = 50",
            "s.a IS NULL",
            "s.c.day >= DATE'2024-06-01'",
            "s.c.e IN (1.25, 9.99)",
            "old IS NULL",
            "old = 'old again'",
            "`part, of` = 'left'",
            "`part, of` IS NULL",
            "`part, of` = 'a b/c%41' AND swapped = 4",
            "q < DATE'2024-12-31' OR ID = 'five'",
            "arr[0].ex = 5",
            "m['key'].kay = 7",
        )
    ),
]

#: What is asked in every way of reading; the rest is asked once.
READER_QUERIES = [
    QUERIES[0],
    *(q for q in QUERIES if "deep" in q or "l[0].z" in q or "s.bee = " in q or "ID IS NULL" in q),
]

READERS = {
    "default": {},
    "row-based reader": {"spark.sql.parquet.enableVectorizedReader": "false"},
    "row-based nested columns": {"spark.sql.parquet.enableNestedColumnVectorizedReader": "false"},
    "unpruned": {"spark.sql.optimizer.nestedSchemaPruning.enabled": "false"},
    "case-sensitive": {"spark.sql.caseSensitive": "true"},
    "session looks for field ids": {
        "spark.sql.parquet.fieldId.read.enabled": "true",
        "spark.sql.parquet.fieldId.read.ignoreMissing": "false",
    },
}


def insert(rows: list[str]) -> str:
    return f"INSERT INTO delta.`{{t}}` VALUES {', '.join(rows)}"


def create(mode: str, *, vectors: bool) -> str:
    return (
        f"CREATE TABLE delta.`{{t}}` ({COLUMNS}) USING delta PARTITIONED BY (p, q) TBLPROPERTIES"
        f" ('delta.columnMapping.mode' = '{mode}',"
        f" 'delta.enableDeletionVectors' = '{str(vectors).lower()}')"
    )


@pytest.fixture(scope="module", params=[("name", False), ("id", True)], ids=["name", "id, vectors"])
def changed(
    request: pytest.FixtureRequest,
    delta_spark: SparkProcess,
    tmp_path_factory: pytest.TempPathFactory,
) -> tuple[str, list[list[str]]]:
    """A table that was renamed, dropped from and added to, and what delta-spark answers."""
    mode, vectors = request.param
    path = str(tmp_path_factory.mktemp("mapped") / "table")
    statements = [
        create(mode, vectors=vectors),
        insert(FIRST_ROWS[:2]),
        insert(FIRST_ROWS[2:]),
        *(f"ALTER TABLE delta.`{{t}}` {change}" for change in CHANGES),
        insert(LATER_ROWS),
        "DELETE FROM delta.`{t}` WHERE swapped IN (2, 6)",
    ]
    delta_spark.run(RUN, statements=[s.replace("{t}", path) for s in statements])
    return path, delta_spark.run(READ_QUERIES, path=path, queries=QUERIES)


@pytest.mark.protocol("reader-column-mapping-8")
@pytest.mark.thorough
@pytest.mark.parametrize("reader", READERS)
def test_changed_columns_read_as_delta_spark_reads_them(
    spark: SparkSession, changed: tuple[str, list[list[str]]], reader: str
) -> None:
    path, expected = changed
    with session_settings(spark, READERS[reader]):
        for query, rows in zip(QUERIES, expected, strict=True):
            if reader == "default" or query in READER_QUERIES:
                assert our_rows(spark, path, query) == rows, query


@pytest.mark.thorough
def test_schema_shows_nothing_of_the_mapping(
    spark: SparkSession, delta_spark: SparkProcess, changed: tuple[str, list[list[str]]]
) -> None:
    path, _ = changed
    ours = spark.read.format("delta").load(path).schema
    theirs = delta_spark.run(
        "result = spark.read.format('delta').load(path).schema.json()", path=path
    )
    assert ours.json() == theirs
    assert ours.fields[0].metadata == {"comment": "the key"}


@pytest.mark.thorough
def test_older_versions_keep_their_names(
    spark: SparkSession, delta_spark: SparkProcess, changed: tuple[str, list[list[str]]]
) -> None:
    path, _ = changed
    queries = [f"SELECT * FROM {{t}} VERSION AS OF {version}" for version in (2, 5, 10)]
    assert_same_reads(spark, delta_spark, path, queries)


@pytest.mark.thorough
def test_copy_of_a_mapped_table_is_mapped_no_more(
    spark: SparkSession, changed: tuple[str, list[list[str]]], table: str
) -> None:
    path, _ = changed
    columns = "ID, s.bee, s.c.day, arr.ex AS xs, `part, of` AS p"
    spark.sql(
        f"CREATE TABLE delta.`{table}` USING delta AS SELECT {columns}, s.c FROM delta.`{path}`"
    )
    assert "columnMapping" not in str(log.metadata(table)["schemaString"])
    spark.read.format("delta").load(path).selectExpr("s AS whole").write.format("delta").save(
        f"{table}-saved"
    )
    assert "columnMapping" not in str(log.metadata(f"{table}-saved")["schemaString"])


@pytest.mark.protocol("reader-column-mapping-5")
@pytest.mark.thorough
@pytest.mark.parametrize("condition", ["swapped > 4", "s.bee = 'b5'", "s.c.day > DATE'2024-12-31'"])
def test_renamed_columns_skip_files_by_their_statistics(
    spark: SparkSession, changed: tuple[str, list[list[str]]], condition: str
) -> None:
    path, _ = changed
    df = spark.sql(f"SELECT swapped FROM delta.`{path}` WHERE {condition}")
    assert len(scanned_files(df)) < len(scanned_files(spark.read.format("delta").load(path)))


@pytest.mark.protocol("reader-column-mapping-4")
@pytest.mark.thorough
def test_renamed_partition_columns_prune(
    spark: SparkSession, changed: tuple[str, list[list[str]]]
) -> None:
    path, _ = changed
    df = spark.sql(f"SELECT swapped FROM delta.`{path}` WHERE `part, of` = 'a b/c%41'")
    assert len(scanned_files(df)) == 1
    assert [row[0] for row in df.collect()] == [4]


@pytest.mark.protocol("reader-column-mapping-8")
def test_table_that_was_mapped_later_reads_files_from_before(
    spark: SparkSession, delta_spark: SparkProcess, table: str
) -> None:
    statements = [
        "CREATE TABLE delta.`{t}` (id INT, s STRUCT<a: INT, b: INT>, p INT) USING delta"
        " PARTITIONED BY (p)",
        "INSERT INTO delta.`{t}` VALUES (1, named_struct('a', 1, 'b', 2), 1)",
        "ALTER TABLE delta.`{t}` SET TBLPROPERTIES ('delta.columnMapping.mode' = 'name')",
        "ALTER TABLE delta.`{t}` RENAME COLUMN s.a TO aa",
        "ALTER TABLE delta.`{t}` RENAME COLUMN p TO pp",
        "ALTER TABLE delta.`{t}` DROP COLUMN id",
        "ALTER TABLE delta.`{t}` ADD COLUMN id INT",
        "INSERT INTO delta.`{t}` VALUES (named_struct('aa', 3, 'b', 4), 2, 2)",
    ]
    delta_spark.run(RUN, statements=[s.replace("{t}", table) for s in statements])
    queries = [
        "SELECT * FROM {t}",
        "SELECT s.aa FROM {t} WHERE pp = 1",
        "SELECT * FROM {t} WHERE id IS NULL",
        "SELECT * FROM {t} WHERE id = 2",
    ]
    assert_same_reads(spark, delta_spark, table, queries)


@pytest.mark.protocol("reader-column-mapping-3", "reader-column-mapping-4")
@pytest.mark.protocol("reader-column-mapping-7")
def test_columns_mapped_by_id_are_read_after_they_were_changed(
    spark: SparkSession, delta_spark: SparkProcess, table: str
) -> None:
    statements = [
        "CREATE TABLE delta.`{t}` (id INT, s STRUCT<a: INT, b: STRING>, old DOUBLE, p INT) USING"
        " delta PARTITIONED BY (p) TBLPROPERTIES ('delta.columnMapping.mode' = 'id')",
        "INSERT INTO delta.`{t}` VALUES (1, named_struct('a', 1, 'b', 'one'), 1.5, 1)",
        "ALTER TABLE delta.`{t}` RENAME COLUMN id TO number",
        "ALTER TABLE delta.`{t}` RENAME COLUMN s.a TO aa",
        "ALTER TABLE delta.`{t}` DROP COLUMN old",
        "ALTER TABLE delta.`{t}` ADD COLUMN old DOUBLE",
        "INSERT INTO delta.`{t}` VALUES (2, named_struct('aa', 2, 'b', 'two'), 2, 2.5)",
    ]
    delta_spark.run(RUN, statements=[s.replace("{t}", table) for s in statements])
    queries = [
        "SELECT * FROM {t}",
        "SELECT s.aa, old FROM {t} WHERE number = 1",
        "SELECT number FROM {t} WHERE old IS NULL",
        "SELECT number FROM {t} WHERE s.aa = 2 AND p = 2",
    ]
    theirs = assert_same_reads(spark, delta_spark, table, queries)
    assert [len(rows) for rows in theirs] == [2, 1, 1, 1]
    with session_settings(spark, READERS["row-based reader"]):
        assert [our_rows(spark, table, query) for query in queries] == theirs


@pytest.mark.thorough
def test_checkpoint_of_a_mapped_table_is_read_by_physical_names(
    spark: SparkSession, delta_spark: SparkProcess, table: str
) -> None:
    statements = [
        "CREATE TABLE delta.`{t}` (id INT, p INT) USING delta PARTITIONED BY (p) TBLPROPERTIES"
        " ('delta.columnMapping.mode' = 'name', 'delta.checkpointInterval' = '3',"
        " 'delta.checkpoint.writeStatsAsJson' = 'false',"
        " 'delta.checkpoint.writeStatsAsStruct' = 'true')",
        *(f"INSERT INTO delta.`{{t}}` VALUES ({n}, {n % 2}), (NULL, 7)" for n in range(4)),
        "ALTER TABLE delta.`{t}` RENAME COLUMN id TO renamed",
    ]
    delta_spark.run(RUN, statements=[s.replace("{t}", table) for s in statements])
    for version in range(3):
        Path(log.commit_path(table, version)).unlink()
    queries = ["SELECT * FROM {t}", "SELECT * FROM {t} WHERE renamed = 2 AND p = 0"]
    assert_same_reads(spark, delta_spark, table, queries)
