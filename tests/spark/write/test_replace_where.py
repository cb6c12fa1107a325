"""Writes that replace the rows which meet a condition, and no others."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING

import pytest
from pyspark.sql import functions as F

from tests.support import log
from tests.support.interleave import committed_meanwhile
from tests.support.session_settings import session_settings
from tests.support.table_builder import rows_of

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

CHECK = "spark.databricks.delta.replaceWhere.constraintCheck.enabled"


def rows(spark: SparkSession, start: int, end: int, mark: str = "old") -> DataFrame:
    columns = ["id", "CAST(id % 3 AS INT) AS p", f"concat('{mark}', id) AS s"]
    return spark.range(start, end, 1, 2).selectExpr(*columns)


def create(spark: SparkSession, table: str, *, vectors: bool) -> None:
    writer = rows(spark, 0, 12).write.format("delta").partitionBy("p")
    writer.option("delta.enableDeletionVectors", str(vectors).lower()).save(table)


def save(table: str, df: DataFrame, condition: str) -> None:
    df.write.format("delta").mode("overwrite").option("replaceWhere", condition).save(table)


def insert(table: str, df: DataFrame, condition: str) -> None:
    df.createOrReplaceTempView("replacement")
    df.sparkSession.sql(
        f"INSERT INTO delta.`{table}` REPLACE WHERE {condition} SELECT * FROM replacement"
    )


def overwrite(table: str, df: DataFrame, condition: str) -> None:
    df.writeTo(f"delta.`{table}`").overwrite(F.expr(condition))


def insert_into(table: str, df: DataFrame, condition: str) -> None:
    writer = df.write.format("delta").mode("overwrite").option("replaceWhere", condition)
    writer.insertInto(f"delta.`{table}`")


Write = Callable[[str, "DataFrame", str], None]
WRITES = pytest.mark.parametrize("write", [save, insert, overwrite, insert_into])


@pytest.mark.parametrize(
    ("condition", "vectors"),
    [
        ("P = 1", True),
        ("p IS NULL OR p > 5", False),
        ("p = 1 AND id < 5", False),
        ("S LIKE 'old1%'", True),
        ("id % 2 = 0 OR upper(s) = 'OLD3'", False),
        ("id % 2 = 0 OR upper(s) = 'OLD3'", True),
        ("false", True),
        ("true", False),
    ],
)
def test_rows_that_meet_the_condition_are_replaced_and_all_others_stay(
    spark: SparkSession, table: str, condition: str, vectors: bool
) -> None:
    create(spark, table, vectors=vectors)
    meet = rows(spark, 0, 12).where(condition)
    others = rows(spark, 0, 12).where(f"NOT coalesce({condition}, false)")
    # Twice, so that rows that were replaced differ from those that stayed.
    save(table, meet.union(meet), condition)
    expected = [tuple(row) for row in others.union(meet).union(meet).collect()]
    assert rows_of(spark, table) == sorted(expected, key=repr)
    assert log.versions(table) == [0, 1]


@WRITES
def test_every_write_api_replaces_the_same_rows_and_records_it_in_the_history(
    spark: SparkSession, table: str, write: Write
) -> None:
    create(spark, table, vectors=True)
    write(table, rows(spark, 2, 5, "new"), "id > 1 AND id < 5")
    write(table, rows(spark, 1, 2, "new").union(rows(spark, 4, 5, "new")), "p = 1")
    expected = [
        *((n, n % 3, f"old{n}") for n in (0, 5, 6, 8, 9, 11)),
        *((n, n % 3, f"new{n}") for n in (1, 2, 3, 4)),
    ]
    assert rows_of(spark, table) == sorted(expected, key=repr)
    first, second = log.commit_info(table, 1), log.commit_info(table, 2)
    assert first["operation"] == second["operation"] == "WRITE"
    assert first["operationParameters"]["mode"] == "Overwrite"
    assert "id" in first["operationParameters"]["predicate"]
    metrics = first["operationMetrics"]
    assert (metrics["numDeletedRows"], metrics["numCopiedRows"]) == ("3", "0")
    assert metrics["numOutputRows"] == "3"
    assert not first["isBlindAppend"]


@WRITES
def test_rows_outside_of_the_condition_are_refused_unless_the_session_lets_them_in(
    spark: SparkSession, table: str, write: Write
) -> None:
    create(spark, table, vectors=True)
    before = log.contents(table)
    for condition in ("id < 3", "p = 0"):
        with pytest.raises(Exception, match="DELTAIC_REPLACE_WHERE_MISMATCH") as caught:
            write(table, rows(spark, 0, 5, "new"), condition)
        assert condition.split()[0] in str(caught.value)
    # A condition that is null is not met.
    unknown = spark.sql("SELECT CAST(NULL AS BIGINT) AS id, 0 AS p, 'new' AS s")
    with pytest.raises(Exception, match="DELTAIC_REPLACE_WHERE_MISMATCH"):
        write(table, unknown, "id < 3")
    assert log.contents(table) == before
    with session_settings(spark, {CHECK: "false"}):
        write(table, unknown, "id < 11")
    assert [row[0] for row in rows_of(spark, table)] == [11, None]


@WRITES
@pytest.mark.parametrize("condition", ["1 = 1", "id IS NOT NULL OR p = 7"])
def test_condition_that_can_only_be_true_replaces_every_row(
    spark: SparkSession, table: str, write: Write, condition: str
) -> None:
    columns = "id BIGINT NOT NULL, p INT, s STRING"
    spark.sql(f"CREATE TABLE delta.`{table}` ({columns}) USING delta PARTITIONED BY (p)")
    rows(spark, 0, 12).write.format("delta").mode("append").save(table)
    write(table, rows(spark, 2, 4, "new"), condition)
    assert rows_of(spark, table) == [(2, 2, "new2"), (3, 0, "new3")]
    info = log.commit_info(table)
    assert (info["operationParameters"]["mode"], info["isBlindAppend"]) == ("Overwrite", False)
    assert info["operationMetrics"]["numDeletedRows"] == "12"
    assert info["operationParameters"]["predicate"]


@WRITES
@pytest.mark.parametrize("partition_by", [[], ["c"]], ids=str)
def test_char_is_compared_as_it_is_stored(
    spark: SparkSession, table: str, write: Write, partition_by: list[str]
) -> None:
    by = f"PARTITIONED BY ({', '.join(partition_by)})" if partition_by else ""
    spark.sql(f"CREATE TABLE delta.`{table}` (id INT, c CHAR(4)) USING delta {by}")
    spark.sql(f"INSERT INTO delta.`{table}` VALUES (1, 'a'), (2, 'b'), (3, 'a')")
    new = spark.sql("SELECT 4 AS id, 'a' AS c")
    for condition in ("c = 'a'", "C IN ('a', 'x')"):
        write(table, new, condition)
        assert rows_of(spark, table) == [(2, "b   "), (4, "a   ")]


def test_rows_rewritten_beside_those_replaced_are_counted_and_copied(
    spark: SparkSession, table: str
) -> None:
    writer = spark.range(0, 10, 1, 1).write.format("delta")
    writer.save(table)
    save(table, spark.range(0, 2, 1, 1), "id < 2")
    metrics = log.commit_info(table)["operationMetrics"]
    assert (metrics["numDeletedRows"], metrics["numCopiedRows"]) == ("2", "8")
    assert (metrics["numFiles"], metrics["numRemovedFiles"]) == ("2", "1")
    assert [row[0] for row in rows_of(spark, table)] == list(range(10))


def test_table_that_is_not_there_is_created_with_rows_that_meet_the_condition(
    spark: SparkSession, table: str
) -> None:
    with pytest.raises(Exception, match="DELTAIC_REPLACE_WHERE_MISMATCH"):
        save(table, rows(spark, 0, 3), "id < 2")
    save(table, rows(spark, 0, 2), "id < 2")
    assert [row[0] for row in rows_of(spark, table)] == [0, 1]


@pytest.fixture
def names(spark: SparkSession) -> Iterator[list[str]]:
    """Names of tables that are not there, or no longer when the test is over."""
    free = [f"replaced_where_{i}" for i in range(3)]
    yield free
    for name in free:
        spark.sql(f"DROP TABLE IF EXISTS {name}")


def test_table_of_a_name_that_is_not_there_is_created_alike(
    spark: SparkSession, names: list[str]
) -> None:
    def save_as(name: str, **options: str) -> None:
        writer = rows(spark, 0, 2).write.format("delta").mode("overwrite").partitionBy("p")
        writer.options(**options).saveAsTable(name)

    new, newer, _ = names
    for condition, says in (
        ("id < 1", "DELTAIC_REPLACE_WHERE_MISMATCH"),
        ("nowhere = 1", "DELTAIC_REPLACE_WHERE_REFUSED.*nowhere"),
        ("rand() < 0.5", "DELTAIC_REPLACE_WHERE_REFUSED.*deterministic"),
    ):
        with pytest.raises(Exception, match=f"(?s){says}"):
            save_as(new, replaceWhere=condition)
        assert not spark.catalog.tableExists(new)
    for name, options in zip(
        names,
        (
            {"replaceWhere": "id < 2", "delta.appendOnly": "false"},
            {"replaceUsing": "id"},
            {"replaceOn": "t.id = id", "targetAlias": "t"},
        ),
        strict=True,
    ):
        save_as(name, **options)
        assert sorted(row.id for row in spark.table(name).collect()) == [0, 1]
        assert spark.sql(f"DESCRIBE DETAIL {name}").first().partitionColumns == ["p"]  # type: ignore[union-attr]
    writer = rows(spark, 1, 2, "again").write.format("delta").mode("overwrite")
    writer.option("replaceWhere", "id = 1").saveAsTable(new)
    assert sorted(row.s for row in spark.table(new).collect()) == ["again1", "old0"]
    location = spark.sql(f"DESCRIBE DETAIL {newer}").collect()[0].location
    with pytest.raises(Exception, match="DELTAIC_REPLACE_WHERE_REFUSED"):
        save_as("replaced_where_named", replaceWhere="id < 2", path=location)
    assert spark.table(newer).count() == 2, "a table that only lacks this name stays"


@pytest.mark.parametrize(
    ("options", "says"),
    [
        ({"replaceWhere": "id <"}, "DELTAIC_REPLACE_WHERE_REFUSED"),
        ({"replaceWhere": "nowhere = 1"}, "nowhere"),
        ({"replaceWhere": "id < (SELECT max(id) FROM range(2))"}, "(?i)subquer"),
        ({"replaceWhere": "rand() < 0.5"}, "(?i)deterministic"),
        (
            {"replaceWhere": "id = 1", "partitionOverwriteMode": "dynamic"},
            "DELTAIC_REPLACE_WHERE_REFUSED",
        ),
        ({"replaceWhere": "id = 1", "dataChange": "false"}, "dataChange=false"),
        ({"replaceUsing": "nowhere"}, "nowhere"),
        ({"replaceUsing": "id", "replaceWhere": "id = 1"}, "replaceUsing"),
    ],
)
def test_what_cannot_be_replaced_is_refused_before_anything_is_written(
    spark: SparkSession, table: str, options: dict[str, str], says: str
) -> None:
    create(spark, table, vectors=True)
    before = log.contents(table)
    with pytest.raises(Exception, match=says):
        rows(spark, 1, 2).write.format("delta").mode("overwrite").options(**options).save(table)
    assert log.contents(table) == before


@pytest.mark.parametrize(
    ("condition", "says"),
    [
        ("region = 'eu'", "column region"),
        ("s.x = 1", "field x"),
        ("array_contains(l.x, 1)", "field x"),
    ],
)
def test_condition_on_what_comes_with_the_rows_is_refused_before_anything_is_written(
    spark: SparkSession, table: str, condition: str, says: str
) -> None:
    old = spark.sql("SELECT named_struct('a', 1) AS s, array(named_struct('a', 1)) AS l")
    old.write.format("delta").save(table)
    before = log.contents(table)
    new = "SELECT named_struct('a', 1, 'x', 1) AS s, array(s) AS l, 'eu' AS region"
    writer = spark.sql(new).write.format("delta").mode("overwrite").option("mergeSchema", "true")
    into = f"INSERT WITH SCHEMA EVOLUTION INTO delta.`{table}`"
    refused = f"(?s)DELTAIC_REPLACE_WHERE_REFUSED.*{says}"
    with pytest.raises(Exception, match=refused):
        writer.option("replaceWhere", condition).save(table)
    with pytest.raises(Exception, match=refused):
        spark.sql(f"{into} BY NAME REPLACE WHERE {condition} {new}")
    assert log.contents(table) == before


def test_rows_of_the_table_itself_can_replace_others(spark: SparkSession, table: str) -> None:
    create(spark, table, vectors=True)
    own = spark.read.format("delta").load(table).where("id < 2").withColumn("s", F.lit("again"))
    save(table, own, "id < 3")
    assert sum(row[2] == "again" for row in rows_of(spark, table)) == 2
    assert len(rows_of(spark, table)) == 11


def test_write_that_fails_leaves_nothing_behind(spark: SparkSession, table: str) -> None:
    create(spark, table, vectors=True)
    before = log.contents(table)
    condition = "IF(id = 10, raise_error('told to fail'), id < 5)"
    with session_settings(spark, {CHECK: "false"}), pytest.raises(Exception, match="told to fail"):
        save(table, rows(spark, 1, 3, "new"), condition)
    assert log.contents(table) == before


def test_change_feed_has_replaced_rows_where_they_can_be_derived(
    spark: SparkSession, table: str
) -> None:
    for vectors in (True, False):
        path = f"{table}-{vectors}"
        writer = spark.range(0, 10, 1, 1).write.format("delta")
        writer.option("delta.enableChangeDataFeed", "true").save(path)
        # A file keeps the vector that it has.
        spark.sql(f"DELETE FROM delta.`{path}` WHERE id = 3")
        setting = f"'delta.enableDeletionVectors' = '{str(vectors).lower()}'"
        spark.sql(f"ALTER TABLE delta.`{path}` SET TBLPROPERTIES ({setting})")
        save(path, spark.range(2, 3), "id BETWEEN 2 AND 4")
        spark.sql(f"INSERT INTO delta.`{path}` REPLACE USING (id) VALUES (7), (70)")
        reader = spark.read.format("delta").option("readChangeFeed", "true")
        changes = reader.option("startingVersion", 3).load(path).collect()
        assert sorted((row._commit_version, row._change_type, row.id) for row in changes) == [
            (3, "delete", 2),
            (3, "delete", 4),
            (3, "insert", 2),
            (4, "delete", 7),
            (4, "insert", 7),
            (4, "insert", 70),
        ]
        recorded = [bool(log.actions(path, version, "cdc")) for version in (3, 4)]
        assert recorded == [not vectors, not vectors]


@pytest.mark.protocol("writer-row-tracking-23")
@pytest.mark.parametrize("vectors", ["true", "false"])
def test_rows_that_stay_keep_their_ids(spark: SparkSession, table: str, vectors: str) -> None:
    writer = (
        spark.range(0, 10, 1, 1).write.format("delta").option("delta.enableRowTracking", "true")
    )
    writer.option("delta.enableDeletionVectors", vectors).save(table)

    def tracked() -> dict[int, tuple[int, int]]:
        ids = "id", "_metadata.row_id", "_metadata.row_commit_version"
        found = spark.read.format("delta").load(table).select(*ids).collect()
        return {row[0]: (row[1], row[2]) for row in found}

    before = tracked()
    save(table, spark.range(2, 4), "id BETWEEN 2 AND 4")
    after = tracked()
    assert {key: after[key] for key in after if key not in (2, 3)} == {
        key: before[key] for key in before if key not in (2, 3, 4)
    }
    assert all(after[key] > (9, 0) for key in (2, 3))
    assert log.commit_info(table)["tags"]["delta.rowTracking.preserved"] == "true"


@pytest.mark.parametrize(
    ("condition", "theirs", "conflict"),
    [
        ("id < 3", "INSERT INTO {t} VALUES (100, 1, 'x')", None),
        ("id < 3", "DELETE FROM {t} WHERE id = 11", None),
        ("id < 3", "DELETE FROM {t} WHERE id = 1", "CONCURRENT_DELETE"),
        ("p = 1", "DELETE FROM {t} WHERE p = 2", None),
        ("p = 1", "DELETE FROM {t} WHERE p = 1", "CONCURRENT_DELETE"),
        ("p = 1", "UPDATE {t} SET p = 1 WHERE p = 2", "CONCURRENT_APPEND"),
        ("id < 3", "UPDATE {t} SET id = 2 WHERE id = 11", "CONCURRENT_APPEND"),
    ],
)
def test_only_changes_of_rows_that_it_replaces_conflict(
    spark: SparkSession, table: str, condition: str, theirs: str, conflict: str | None
) -> None:
    df = rows(spark, 0, 12).repartitionByRange(4, "id")
    writer = df.write.format("delta").partitionBy("p")
    writer.option("delta.enableDeletionVectors", "true").save(table)
    new = rows(spark, 0, 12, "new").where(condition)
    with committed_meanwhile(lambda: spark.sql(theirs.format(t=f"delta.`{table}`"))):
        if conflict is None:
            save(table, new, condition)
        else:
            with pytest.raises(Exception, match=conflict):
                save(table, new, condition)
    assert len(log.versions(table)) == (2 if conflict else 3)


@pytest.mark.parametrize("vectors", [False, True], ids=["rewriting", "deletion vectors"])
def test_rows_that_match_a_new_one_are_replaced(
    spark: SparkSession, table: str, vectors: bool
) -> None:
    name = f"delta.`{table}`"
    create(spark, table, vectors=vectors)
    spark.sql(f"INSERT INTO {name} VALUES (NULL, 5, 'null')")
    new = (
        "SELECT * FROM VALUES (1, 2, 'a'), (1, 2, 'b'), (50, 5, 'c'), (NULL, 5, 'd') AS r(id, p, s)"
    )
    spark.sql(f"INSERT INTO {name} REPLACE USING (ID) {new}")
    kept = [(n, n % 3, f"old{n}") for n in range(12) if n != 1]
    # Nothing is equal to null.
    added = [(1, 2, "a"), (1, 2, "b"), (50, 5, "c"), (None, 5, "d"), (None, 5, "null")]
    assert rows_of(spark, table) == sorted([*kept, *added], key=repr)
    info = log.commit_info(table)
    assert (info["operation"], info["operationMetrics"]["numDeletedRows"]) == ("WRITE", "1")
    spark.sql(
        f"INSERT INTO {name} AS t BY NAME REPLACE ON t.id <=> n.id OR t.s = concat('old', n.p)"
        " (SELECT 'n' AS s, 3 AS p, CAST(NULL AS BIGINT) AS id) AS n"
    )
    expected = [row for row in [*kept, *added] if row[0] not in (None, 3)]
    assert rows_of(spark, table) == sorted([*expected, (None, 3, "n")], key=repr)
    before = log.contents(table)
    for statement, says in (
        (f"INSERT INTO {name} REPLACE USING (nowhere) {new}", "nowhere"),
        (f"INSERT INTO {name} AS t REPLACE ON t.id = rand() {new}", "(?i)deterministic"),
        (f"INSERT INTO {name} BY NAME REPLACE USING (id) SELECT 1L AS id, 2 AS more", "more"),
    ):
        with pytest.raises(Exception, match=says):
            spark.sql(statement)
    assert log.contents(table) == before
    spark.sql(f"INSERT INTO {name} REPLACE USING (id) SELECT * FROM {name} WHERE false")
    assert len(rows_of(spark, table)) == len(expected) + 1


@pytest.mark.parametrize("vectors", [False, True], ids=["rewriting", "deletion vectors"])
def test_columns_that_come_with_rows_which_replace_others_are_committed_with_them(
    spark: SparkSession, table: str, vectors: bool
) -> None:
    name = f"delta.`{table}`"
    create(spark, table, vectors=vectors)
    spark.sql(f"ALTER TABLE {name} SET TBLPROPERTIES ('delta.enableTypeWidening' = 'true')")
    version = log.newest(table)
    into = f"INSERT WITH SCHEMA EVOLUTION INTO {name}"
    more = "SELECT 'n' AS s, 1 AS p, 1L AS id, 7 AS more"
    spark.sql(f"EXPLAIN {into} BY NAME REPLACE USING (id) {more}")
    assert log.newest(table) == version, "explaining changes nothing"
    spark.sql(f"{into} BY NAME REPLACE USING (id) {more}")
    kept = [(n, n % 3, f"old{n}", None) for n in range(12) if n != 1]
    assert rows_of(spark, table) == sorted([*kept, (1, 1, "n", 7)], key=repr)
    assert log.newest(table) == version + 1, "columns and rows are one version"
    info = log.commit_info(table)
    assert (info["operation"], info["operationMetrics"]["numDeletedRows"]) == ("WRITE", "1")
    # By position, with a column that becomes wider, and that the condition is about.
    wide = "(SELECT 2L AS a, 2 AS b, 'pos' AS c, (1L << 40) + 8 AS d, array(1) AS deep) AS n"
    spark.sql(f"{into} AS t REPLACE ON t.id = n.a OR t.more = n.d - (1L << 40) - 1 {wide}")
    expected = [row for row in kept if row[0] != 2] + [(2, 2, "pos", (1 << 40) + 8)]
    assert [row[:4] for row in rows_of(spark, table)] == sorted(expected, key=repr)
    before = log.contents(table)
    with pytest.raises(Exception, match="DELTAIC_COLUMN_NOT_FOUND"):
        spark.sql(f"{into} BY NAME REPLACE USING (newest) SELECT 1L AS id, 3 AS newest")
    assert log.contents(table) == before


def test_rows_that_match_one_of_a_dataframe_are_replaced(spark: SparkSession, table: str) -> None:
    create(spark, table, vectors=True)

    def save_by(df: DataFrame, **options: str) -> dict[str, str]:
        df.write.format("delta").mode("overwrite").options(**options).save(table)
        return dict(log.commit_info(table)["operationParameters"])

    parameters = save_by(rows(spark, 1, 3, "new"), replaceUsing="ID, p")
    assert parameters["replaceUsingCols"] == "(ID, p)"
    condition = "t.id + 1 = s.id"
    parameters = save_by(rows(spark, 8, 9, "more").alias("s"), replaceOn=condition, targetAlias="t")
    assert parameters["replaceOnCond"] == condition
    expected = [(n, n % 3, f"old{n}") for n in (0, 3, 4, 5, 6, 8, 9, 10, 11)]
    expected += [(1, 1, "new1"), (2, 2, "new2"), (8, 2, "more8")]
    assert rows_of(spark, table) == sorted(expected, key=repr)


def test_rows_appended_meanwhile_conflict_with_rows_that_match_new_ones(
    spark: SparkSession, table: str
) -> None:
    name = f"delta.`{table}`"
    create(spark, table, vectors=True)
    statement = f"INSERT INTO {name} REPLACE USING (id) VALUES (1, 1, 'x')"
    with (
        pytest.raises(Exception, match=r"CONCURRENT_DELETE|CONCURRENT_APPEND"),
        committed_meanwhile(lambda: spark.sql(f"UPDATE {name} SET s = 'u' WHERE id = 11")),
    ):
        spark.sql(statement)


@pytest.mark.parametrize("feed", ["false", "true"])
def test_a_condition_on_the_new_rows_partition_alone_applies(
    spark: SparkSession, table: str, feed: str
) -> None:
    name = f"delta.`{table}`"
    spark.sql(
        f"CREATE TABLE {name} (k INT, v STRING, p STRING) USING delta PARTITIONED BY (p)"
        f" TBLPROPERTIES ('delta.enableChangeDataFeed' = '{feed}')"
    )
    spark.sql(f"INSERT INTO {name} VALUES (1, 'old', 'a'), (2, 'old', 'a')")
    spark.sql(
        f"INSERT INTO {name} AS t REPLACE ON t.k = s.k AND s.p = 'a'"
        " (SELECT * FROM VALUES (1, 'new', 'a'), (2, 'new', 'b') AS r(k, v, p)) AS s"
    )
    assert rows_of(spark, table) == [(1, "new", "a"), (2, "new", "b"), (2, "old", "a")]
    assert log.commit_info(table)["operationMetrics"]["numDeletedRows"] == "1"


@WRITES
@pytest.mark.parametrize("mode", ["static", "dynamic"])
def test_a_condition_that_is_always_true_replaces_all_partitions(
    spark: SparkSession, table: str, write: Write, mode: str
) -> None:
    create(spark, table, vectors=True)
    with session_settings(spark, {"spark.sql.sources.partitionOverwriteMode": mode}):
        write(table, rows(spark, 2, 3, "new"), "true")
    assert rows_of(spark, table) == [(2, 2, "new2")]


def test_a_condition_that_is_always_true_leaves_columns_where_they_are(
    spark: SparkSession, table: str
) -> None:
    rows = spark.sql("SELECT 1 AS a, 2 AS b, 'x' AS p")
    rows.write.format("delta").partitionBy("p").save(table)
    writer = rows.select("b", "p", "a").write.format("delta").mode("overwrite")
    writer.option("replaceWhere", "true").option("overwriteSchema", "true").save(table)
    assert spark.read.format("delta").load(table).columns == ["a", "b", "p"]
    assert rows_of(spark, table) == [(1, 2, "x")]
    assert log.metadata(table)["partitionColumns"] == ["p"]
