"""A statement that reads its own table, in subqueries or a source, reads the version it changes."""

from __future__ import annotations

import itertools
from collections import Counter
from collections.abc import Iterator
from contextlib import nullcontext
from typing import TYPE_CHECKING

import pytest

from deltaic import DeltaTable
from deltaic.exceptions import (
    ConcurrentAppendException,
    ConcurrentDeleteDeleteException,
    ConcurrentDeleteReadException,
)
from tests.support import log
from tests.support.interleave import committed_meanwhile
from tests.support.late_execution import run_after_analysis
from tests.support.session_settings import session_settings
from tests.support.table_builder import build_table, rows_of

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

SCHEMA = "id INT, v INT"
FILES = [[(row, 0) for row in range(5)], [(row, 0) for row in range(5, 10)]]
BASE = {row: 0 for rows in FILES for row, _ in rows}

#: Statements whose outcome depends on all rows of their own table, and what they make of the base.
STATEMENTS = {
    "delete": (
        "DELETE FROM {t} WHERE id IN (SELECT max(id) FROM {t})",
        dict.fromkeys(range(9), 0),
    ),
    "update": ("UPDATE {t} SET v = 7 WHERE id = (SELECT max(id) FROM {t})", BASE | {9: 7}),
    "update of a value": (
        "UPDATE {t} SET v = (SELECT count(*) FROM {t}) WHERE id = 3",
        BASE | {3: 10},
    ),
    "merge": (
        "MERGE INTO {t} t USING (SELECT id + 1 AS id, v FROM {t}) s ON t.id = s.id"
        " WHEN MATCHED THEN UPDATE SET v = 1 WHEN NOT MATCHED THEN INSERT (id, v) VALUES (s.id, 2)",
        {0: 0, **dict.fromkeys(range(1, 10), 1), 10: 2},
    ),
    "merge that inserts": (
        "MERGE INTO {t} t USING (SELECT id + 1 AS id, 2 AS v FROM {t}) s ON t.id = s.id"
        " WHEN NOT MATCHED THEN INSERT *",
        BASE | {10: 2},
    ),
    "merge with a subquery": (
        "WITH s AS (SELECT max(id) AS top FROM {t}) MERGE INTO {t} t USING s"
        " ON t.id = s.top WHEN MATCHED THEN DELETE",
        dict.fromkeys(range(9), 0),
    ),
}

CONFLICTS = (
    ConcurrentAppendException,
    ConcurrentDeleteReadException,
    ConcurrentDeleteDeleteException,
)


@pytest.fixture(autouse=True)
def _write_serializable(spark: SparkSession) -> Iterator[None]:
    """Let a statement commit beside an append that it has not read: by default it conflicts."""
    with session_settings(spark, {"spark.deltaic.isolationLevel": "WriteSerializable"}):
        yield


def named(table: str) -> str:
    return f"delta.`{table}`"


@pytest.mark.parametrize("kind", STATEMENTS)
def test_rows_that_another_appends_after_the_analysis_are_seen_by_no_part_of_a_change(
    spark: SparkSession, table: str, kind: str
) -> None:
    """A blind append may come after the change, but not in the middle of it."""
    build_table(spark, table, SCHEMA, FILES, deletion_vectors=True)
    statement, expected = STATEMENTS[kind]
    run_after_analysis(
        spark,
        statement.replace("{t}", named(table)),
        lambda: spark.sql(f"INSERT INTO {named(table)} VALUES (100, 0), (101, 0)"),
    )
    assert log.newest(table) == 2
    assert dict(rows_of(spark, table)) == expected | {100: 0, 101: 0}


@pytest.mark.parametrize("kind", STATEMENTS)
def test_commit_after_the_analysis_conflicts_where_it_changes_what_a_change_read_of_its_table(
    spark: SparkSession, table: str, kind: str
) -> None:
    build_table(spark, table, SCHEMA, FILES, deletion_vectors=True)
    with pytest.raises(CONFLICTS):
        run_after_analysis(
            spark,
            STATEMENTS[kind][0].replace("{t}", named(table)),
            lambda: spark.sql(f"UPDATE {named(table)} SET id = id + 100 WHERE id = 8"),
        )
    assert log.newest(table) == 1
    assert dict(rows_of(spark, table)) == {(108 if id == 8 else id): 0 for id in range(10)}


#: Writes that replace rows by what they make of the table, and what they make of the base.
REPLACEMENTS = {
    "INSERT OVERWRITE {t} SELECT id, 5 FROM {t}": dict.fromkeys(range(10), 5),
    "INSERT INTO {t} REPLACE WHERE id > 4 SELECT id + 10, v FROM {t} WHERE id > 4": {
        row + 10 * (row > 4): 0 for row in range(10)
    },
    "INSERT INTO {t} REPLACE USING (id) SELECT id, 6 FROM {t} WHERE id > 4": {
        row: 6 * (row > 4) for row in range(10)
    },
}


@pytest.mark.parametrize("replacement", REPLACEMENTS)
def test_write_that_replaces_what_it_reads_does_not_read_what_another_appends_meanwhile(
    spark: SparkSession, table: str, replacement: str
) -> None:
    build_table(spark, table, SCHEMA, FILES)
    run_after_analysis(
        spark,
        replacement.replace("{t}", named(table)),
        lambda: spark.sql(f"INSERT INTO {named(table)} VALUES (100, 0), (101, 0)"),
    )
    expected = REPLACEMENTS[replacement] | {100: 0, 101: 0}
    assert Counter(rows_of(spark, table)) == Counter(expected.items())


def test_dynamic_overwrite_of_what_it_reads_leaves_what_another_appends_meanwhile(
    spark: SparkSession, table: str
) -> None:
    build_table(spark, table, "id INT, p INT", [[(1, 0), (2, 1)]], partition_by=["p"])
    with session_settings(spark, {"spark.sql.sources.partitionOverwriteMode": "dynamic"}):
        run_after_analysis(
            spark,
            f"INSERT OVERWRITE {named(table)} SELECT id + 10, p FROM {named(table)}",
            lambda: spark.sql(f"INSERT INTO {named(table)} VALUES (3, 1), (4, 2)"),
        )
    assert Counter(rows_of(spark, table)) == Counter([(11, 0), (12, 1), (3, 1), (4, 2)])


@pytest.mark.parametrize("replacement", REPLACEMENTS)
def test_write_that_replaces_what_it_reads_conflicts_where_another_changes_that_meanwhile(
    spark: SparkSession, table: str, replacement: str
) -> None:
    build_table(spark, table, SCHEMA, FILES)
    with pytest.raises(CONFLICTS):
        run_after_analysis(
            spark,
            replacement.replace("{t}", named(table)),
            lambda: spark.sql(f"UPDATE {named(table)} SET id = id + 100 WHERE id = 8"),
        )
    assert log.newest(table) == 1


def test_change_that_matches_nothing_commits_nothing_whatever_is_committed_meanwhile(
    spark: SparkSession, table: str
) -> None:
    """It is as if it had run at the version that it read."""
    build_table(spark, table, SCHEMA, FILES)
    for statement in (
        "DELETE FROM {t} WHERE id IN (SELECT max(id) + 1 FROM {t})",
        "MERGE INTO {t} t USING (SELECT max(id) + 1 AS id FROM {t}) s ON t.id = s.id"
        " WHEN MATCHED THEN DELETE",
    ):
        before = log.newest(table)
        top = 10 * (before + 1)
        run_after_analysis(
            spark,
            statement.replace("{t}", named(table)),
            lambda top=top: spark.sql(f"INSERT INTO {named(table)} VALUES ({top}, 0)"),  # type: ignore[misc]
        )
        assert log.newest(table) == before + 1


_names = itertools.count()


@pytest.fixture
def name(spark: SparkSession, table: str) -> Iterator[str]:
    build_table(spark, table, SCHEMA, FILES, deletion_vectors=True)
    found = f"one_version_{next(_names)}"
    spark.sql(f"CREATE TABLE {found} USING delta LOCATION '{table}'")
    yield found
    spark.catalog.clearCache()
    spark.sql(f"DROP TABLE {found}")


def test_table_under_another_name_in_a_view_or_cached_is_read_at_the_same_version(
    spark: SparkSession, table: str, name: str
) -> None:
    """Files are read even where the table is cached: the check for conflicts must know of them."""
    spark.sql(f"CREATE OR REPLACE TEMPORARY VIEW tops AS SELECT max(id) AS top FROM {name}")
    delete = f"DELETE FROM {named(table)} WHERE id IN (SELECT top FROM tops)"
    run_after_analysis(
        spark, delete, lambda: spark.sql(f"INSERT INTO {named(table)} VALUES (100, 0)")
    )
    assert dict(rows_of(spark, table)) == {**dict.fromkeys(range(9), 0), 100: 0}
    spark.sql(f"CACHE TABLE {name}")
    with (
        committed_meanwhile(lambda: spark.sql(f"UPDATE {name} SET id = 101 WHERE id = 3")),
        pytest.raises(CONFLICTS),
    ):
        spark.sql(f"DELETE FROM {name} WHERE id = (SELECT max(id) FROM {name})")
    assert max(row[0] for row in rows_of(spark, table)) == 101


def test_cached_rows_made_of_the_table_stay_as_they_are(
    spark: SparkSession, table: str, name: str
) -> None:
    df = spark.table(name).selectExpr("id", "INT(rand() * 1e9) + 1 AS v").cache()
    df.createOrReplaceTempView("drawn")
    drawn = {row.id: row.v for row in df.collect()}
    spark.sql(
        f"MERGE INTO {name} t USING drawn s ON t.id = s.id WHEN MATCHED THEN UPDATE SET v = s.v"
    )
    assert dict(rows_of(spark, table)) == drawn
    spark.sql("DROP VIEW drawn")


@pytest.mark.parametrize("appended", [False, True])
def test_builder_reads_a_dataframe_of_the_table_at_the_version_it_changes(
    spark: SparkSession, table: str, appended: bool
) -> None:
    """The DataFrame is older than the version; commits during the statement conflict."""
    build_table(spark, table, SCHEMA, FILES, deletion_vectors=True)
    own = DeltaTable.forPath(spark, table)
    source = own.toDF().selectExpr("id + 1 AS id", "5 AS v")
    spark.sql(f"INSERT INTO {named(table)} VALUES (20, 0)")
    merge = own.alias("t").merge(source.alias("s"), "t.id = s.id")
    merge = merge.whenMatchedUpdate(set={"v": "s.v"}).whenNotMatchedInsertAll()

    def theirs() -> None:
        if appended:
            spark.sql(f"INSERT INTO {named(table)} VALUES (40, 0)")
        else:
            spark.sql(f"DELETE FROM {named(table)} WHERE id = 20")

    raised = nullcontext() if appended else pytest.raises(ConcurrentDeleteReadException)
    with committed_meanwhile(theirs), raised:
        merge.execute()
    changed = [(0, 0), *((id, 5) for id in range(1, 11)), (20, 0), (21, 5), (40, 0)]
    left = changed if appended else BASE.items()
    assert Counter(rows_of(spark, table)) == Counter(left)


def test_changes_of_the_table_are_read_up_to_the_version_that_is_changed(
    spark: SparkSession, table: str
) -> None:
    build_table(spark, table, SCHEMA, FILES, properties={"delta.enableChangeDataFeed": "true"})
    run_after_analysis(
        spark,
        f"MERGE INTO {named(table)} t USING (SELECT id + 50 AS id, v FROM"
        f" table_changes_by_path('{table}', 0)) s ON t.id = s.id WHEN NOT MATCHED THEN INSERT *",
        lambda: spark.sql(f"INSERT INTO {named(table)} VALUES (20, 0)"),
    )
    expected = BASE | {id + 50: 0 for id in BASE} | {20: 0}
    assert dict(rows_of(spark, table)) == expected
