"""Statements that change rows of the same file at the same time (docs/decisions/0021)."""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from contextlib import nullcontext
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from deltaic.exceptions import (
    ConcurrentAppendException,
    ConcurrentDeleteDeleteException,
    ConcurrentDeleteReadException,
)
from deltaic.spark.ports import JvmPreparedCommit
from tests.support import change_feed, log
from tests.support.interleave import committed_meanwhile
from tests.support.jobs import jobs_of
from tests.support.session_settings import session_settings
from tests.support.table_builder import rows_of

#: Statements on the rows whose ids are in a list, and what becomes of the value of such a row.
STATEMENTS = {
    "delete": ("DELETE FROM {t} WHERE id IN ({ids})", None),
    "update": ("UPDATE {t} SET v = v + 1 WHERE id IN ({ids})", 1),
    "merge": (
        "MERGE INTO {t} t USING (SELECT explode(array({ids})) AS key) s ON t.id = s.key"
        " WHEN MATCHED THEN UPDATE SET v = v + 10"
        " WHEN NOT MATCHED THEN INSERT (id, v) VALUES (s.key, 0)",
        10,
    ),
}
PAIRS = list(itertools.product(STATEMENTS, repeat=2))
IDS = range(10)


@pytest.fixture(scope="module")
def base(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Build a table with row tracking, a change feed and one file with one deleted row."""
    path = tmp_path_factory.mktemp("bases") / "base"
    properties = ("enableDeletionVectors", "enableChangeDataFeed", "enableRowTracking")
    spark.sql(
        f"CREATE TABLE delta.`{path}` (id INT, v INT) USING delta TBLPROPERTIES ("
        + ", ".join(f"'delta.{name}' = 'true'" for name in properties)
        + ")"
    )
    spark.sql(f"INSERT INTO delta.`{path}` SELECT INT(id), 0 FROM range(0, {len(IDS) + 1}, 1, 1)")
    spark.sql(f"DELETE FROM delta.`{path}` WHERE id = {len(IDS)}")
    return path


def run(spark: SparkSession, table: str, kind: str, ids: tuple[int, ...]) -> None:
    listed = ", ".join(map(str, ids))
    spark.sql(STATEMENTS[kind][0].replace("{t}", f"delta.`{table}`").replace("{ids}", listed))


def applied(rows: dict[int, int], kind: str, ids: tuple[int, ...]) -> dict[int, int]:
    plus = STATEMENTS[kind][1]
    if plus is None:
        return {i: v for i, v in rows.items() if i not in ids}
    return {i: v + plus if i in ids else v for i, v in rows.items()}


@pytest.mark.parametrize(("mine", "theirs"), PAIRS)
def test_pair_that_changes_other_rows_of_one_file_does_not_conflict(
    spark: SparkSession, base: Path, table: str, mine: str, theirs: str
) -> None:
    """The rows are interleaved, so that statistics do not help."""
    log.copy_table(base, table)
    with committed_meanwhile(lambda: run(spark, table, theirs, (1, 5))):
        run(spark, table, mine, (2, 4))
    expected = applied(applied(dict.fromkeys(IDS, 0), theirs, (1, 5)), mine, (2, 4))
    assert dict(rows_of(spark, table)) == expected
    assert log.newest(table) == 4
    assert log.files_in(table, ".bin") == set(), "so few rows are stored in the log"
    if mine == "merge":
        feed = change_feed.changes(spark, table, startingVersion=4)
        before = change_feed.rows_at(spark, table, 3)
        assert change_feed.apply_changes(before, feed) == change_feed.rows_at(spark, table, 4)


@pytest.mark.parametrize(("mine", "theirs"), PAIRS)
def test_pair_that_changes_the_same_rows_conflicts_and_says_which(
    spark: SparkSession, base: Path, table: str, mine: str, theirs: str
) -> None:
    log.copy_table(base, table)
    (file,) = log.active_files(table)
    with (
        committed_meanwhile(lambda: run(spark, table, theirs, (1, 2, 3))),
        pytest.raises(ConcurrentDeleteDeleteException) as caught,
    ):
        run(spark, table, mine, (2, 3, 4))
    assert f"2 rows of the file {file['path']}" in str(caught.value)
    assert log.newest(table) == 3
    assert dict(rows_of(spark, table)) == applied(dict.fromkeys(IDS, 0), theirs, (1, 2, 3))
    written = {
        file["path"]
        for version in log.versions(table)
        for kind in ("add", "cdc")
        for file in log.actions(table, version, kind)
    }
    assert {str(path.relative_to(table)) for path in log.stored_files(table)} == written


def test_row_that_a_winner_changed_to_meet_the_condition_is_a_conflict(
    spark: SparkSession, base: Path, table: str
) -> None:
    log.copy_table(base, table)
    named = f"delta.`{table}`"
    with (
        committed_meanwhile(lambda: spark.sql(f"UPDATE {named} SET v = 7 WHERE id = 1")),
        pytest.raises(ConcurrentAppendException),
    ):
        spark.sql(f"DELETE FROM {named} WHERE v = 7 OR id = 3")


CONDITIONAL = (
    "MERGE INTO {t} t USING {s} s ON t.id = s.id WHEN MATCHED AND s.v > 0 THEN UPDATE SET v = 5"
    " WHEN NOT MATCHED THEN INSERT *"
)
UPSERT = CONDITIONAL.replace(" AND s.v > 0", "")
MATCHED = UPSERT.partition(" WHEN NOT")[0]


@pytest.mark.parametrize(
    ("mine", "theirs", "conflict"),
    [
        # Row 1 matches and stays as it is: without it, a row would be inserted.
        (CONDITIONAL, "DELETE FROM {t} WHERE id = 1", ConcurrentDeleteReadException),
        (UPSERT, "DELETE FROM {t} WHERE id = 5", None),
        (UPSERT, "UPDATE {t} SET v = 9 WHERE id IN (4, 5)", None),
        (MATCHED, "UPDATE {t} SET v = 9 WHERE id IN (4, 5)", None),
        (MATCHED, "UPDATE {t} SET id = 2 WHERE id = 5", ConcurrentAppendException),
        # The row is there now that would be inserted.
        (UPSERT, "UPDATE {t} SET id = 77 WHERE id = 5", ConcurrentAppendException),
    ],
)
def test_merge_with_a_table_does_not_conflict_with_what_does_not_touch_its_matches(
    spark: SparkSession,
    base: Path,
    table: str,
    mine: str,
    theirs: str,
    conflict: type[Exception] | None,
) -> None:
    log.copy_table(base, table)
    source = f"{table}-source"
    spark.sql("SELECT * FROM VALUES (1, 0), (2, 1), (77, 1) AS s(id, v)").coalesce(1).write.format(
        "delta"
    ).save(source)
    named, other = f"delta.`{table}`", f"delta.`{source}`"
    spark.sql(f"INSERT INTO {named} VALUES (100, 0)")  # a file to leave out
    raised = pytest.raises(conflict) if conflict else nullcontext()
    with committed_meanwhile(lambda: spark.sql(theirs.replace("{t}", named))), raised:
        spark.sql(mine.replace("{t}", named).replace("{s}", other))
    assert log.newest(table) == (4 if conflict else 5)
    if conflict is None:
        left: dict[int, int] = dict(rows_of(spark, table))
        inserted = {77: 1} if "INSERT" in mine else {}
        assert {i: left[i] for i in (1, 2, 77) if i in left} == {1: 5, 2: 5, **inserted}


@pytest.mark.parametrize(
    "change",
    [
        "DELETE FROM {t} WHERE id IN (SELECT id FROM {s}) AND v < 5",
        "DELETE FROM {t} WHERE id IN (SELECT id FROM {s}) AND v < 5"
        " AND v <> (SELECT max(id) FROM {s})",
        "UPDATE {t} t SET v = 5 WHERE v < 5 AND EXISTS (SELECT 1 FROM {s} s WHERE s.id = t.id)",
    ],
)
@pytest.mark.parametrize(
    ("theirs", "conflict"),
    [
        ("UPDATE {t} SET v = 1 WHERE id IN (4, 5)", None),
        ("INSERT INTO {t} SELECT 50 + count(*), 0 FROM {t}", None),
        ("INSERT INTO {t} SELECT 67 + count(*), 9 FROM {t}", None),
        ("INSERT INTO {t} SELECT 67 + count(*), 0 FROM {t}", ConcurrentAppendException),
        ("UPDATE {t} SET id = 2 WHERE id = 5", ConcurrentAppendException),
        ("UPDATE {t} SET v = 1 WHERE id = 1", ConcurrentDeleteDeleteException),
    ],
)
def test_change_by_a_subquery_does_not_conflict_with_rows_the_subquery_lacks(
    spark: SparkSession,
    base: Path,
    table: str,
    change: str,
    theirs: str,
    conflict: type[Exception] | None,
) -> None:
    log.copy_table(base, table)
    source = f"{table}-source"
    spark.sql("SELECT * FROM VALUES (1), (2), (77) AS s(id)").write.format("delta").save(source)
    named, other = f"delta.`{table}`", f"delta.`{source}`"
    raised = pytest.raises(conflict) if conflict else nullcontext()
    with committed_meanwhile(lambda: spark.sql(theirs.replace("{t}", named))), raised:
        spark.sql(change.replace("{t}", named).replace("{s}", other))
    assert log.newest(table) == (3 if conflict else 4)
    if conflict is None:
        left: dict[int, int] = dict(rows_of(spark, table))
        sought = {id: v for id, v in left.items() if id in (1, 2)}
        assert sought == ({} if "DELETE" in change else {1: 5, 2: 5})


def test_update_rebases_onto_three_winners_in_files_with_old_vectors_and_null_partitions(
    spark: SparkSession, table: str
) -> None:
    """Every row keeps its row ID and its row commit version."""
    named = f"delta.`{table}`"
    spark.sql(
        f"CREATE TABLE {named} (id BIGINT, p INT, v STRING) USING delta PARTITIONED BY (p)"
        " TBLPROPERTIES ('delta.enableDeletionVectors' = 'true',"
        " 'delta.enableRowTracking' = 'true', 'delta.enableChangeDataFeed' = 'true')"
    )
    spark.sql(
        f"INSERT INTO {named} SELECT id, IF(id < 5000, NULL, 1), IF(id % 7 = 0, NULL, 'a')"
        " FROM range(0, 10000, 1, 1)"
    )
    with session_settings(spark, {"spark.deltaic.deletionVectors.maxInlineBytes": "0"}):
        spark.sql(f"DELETE FROM {named} WHERE id % 5 = 4 AND hash(id) % 2 = 0")
    assert log.files_in(table, ".bin"), "a vector too large for the log"
    query = f"SELECT id, _metadata.row_id, _metadata.row_commit_version FROM {named}"
    before = {row[0]: (row[1], row[2]) for row in spark.sql(query).collect()}

    def winners() -> None:
        spark.sql(f"DELETE FROM {named} WHERE id % 5 = 1")
        spark.sql(f"UPDATE {named} SET v = 'b' WHERE id % 5 = 2")
        spark.sql(f"DELETE FROM {named} WHERE p IS NULL AND id % 50 = 40")

    with committed_meanwhile(winners):
        spark.sql(f"UPDATE {named} SET v = 'c' WHERE v IS NULL AND id % 5 = 3")
    expected = {}
    for i in before:
        if i % 5 == 1 or (i < 5000 and i % 50 == 40):
            continue
        value = None if i % 7 == 0 else "a"
        if i % 5 == 2:
            value = "b"
        elif i % 5 == 3 and value is None:
            value = "c"
        expected[i] = value
    values_left = {row[0]: row[2] for row in rows_of(spark, table)}
    assert values_left == expected
    after = {row[0]: (row[1], row[2]) for row in spark.sql(query).collect()}
    versions = {"b": 4, "c": 6}
    assert after == {
        i: (before[i][0], versions.get(value or "", before[i][1])) for i, value in expected.items()
    }
    referred = {log.dv_id(add) for v in log.versions(table) for add in log.actions(table, v, "add")}
    assert len(log.files_in(table, ".bin")) <= len(referred - {None})
    metrics = log.commit_info(table)["operationMetrics"]
    changed = sum(value == "c" for value in expected.values())
    assert int(metrics["numUpdatedRows"]) == changed
    assert (metrics["numDeletionVectorsUpdated"], metrics["numRemovedFiles"]) == ("2", "0")
    feed = change_feed.changes(spark, table, startingVersion=6)
    assert feed.count() == 2 * changed
    assert change_feed.apply_changes(
        change_feed.rows_at(spark, table, 5), feed
    ) == change_feed.rows_at(spark, table, 6)


@pytest.mark.parametrize("statement", ["merge", "update"])
@pytest.mark.parametrize("meets", [None, 4])
def test_rows_of_all_winners_are_read_in_one_query(
    spark: SparkSession,
    base: Path,
    table: str,
    monkeypatch: pytest.MonkeyPatch,
    statement: str,
    meets: int | None,
) -> None:
    """Each appends rows around those that the statement reads, so that bounds do not help."""
    log.copy_table(base, table)
    looks: list[tuple[list[int], int]] = []
    look = JvmPreparedCommit.has_matching_row

    def counted(self: JvmPreparedCommit, versions: Sequence[int]) -> bool:
        found: list[bool] = []
        jobs = jobs_of(spark, lambda: found.append(look(self, versions)))
        looks.append(([*versions], jobs))
        return found[0]

    monkeypatch.setattr(JvmPreparedCommit, "has_matching_row", counted)

    def append(*ids: int) -> None:
        listed = ", ".join(map(str, ids))
        spark.sql(f"INSERT INTO delta.`{table}` SELECT explode(array({listed})), 0")

    def winners() -> None:
        for n in range(6):
            append(-n - 1, 50 + n, 3 if n == meets else 60 + n)

    if meets is None:
        with committed_meanwhile(winners):
            run(spark, table, statement, (2, 3, 4))
        with committed_meanwhile(lambda: append(-9, 99)):
            run(spark, table, statement, (2, 3, 4))
        (versions, jobs_for_six), (_, jobs_for_one) = looks
        assert versions == [*range(3, 9)]
        assert jobs_for_six <= jobs_for_one + 1, "Spark tries few tasks before the others"
    else:
        with committed_meanwhile(winners), pytest.raises(ConcurrentAppendException) as caught:
            run(spark, table, statement, (2, 3, 4))
        assert f"version {3 + meets}" in str(caught.value)
        assert looks[0][0] == [*range(3, 9)]
        assert len(looks) <= 4


@pytest.mark.parametrize("conflicts", [False, True])
def test_rows_that_several_winners_delete_from_one_file_are_all_read(
    spark: SparkSession, table: str, conflicts: bool
) -> None:
    """The second one deletes the whole file, or one row that the statement has not found."""
    named = f"delta.`{table}`"
    spark.sql(
        f"CREATE TABLE {named} (id INT, v INT) USING delta"
        " TBLPROPERTIES ('delta.enableDeletionVectors' = 'true')"
    )
    spark.sql(f"INSERT INTO {named} SELECT INT(id), 0 FROM range(0, 10, 1, 1)")

    def winners() -> None:
        spark.sql(f"DELETE FROM {named} WHERE id = 1")
        spark.sql(f"DELETE FROM {named} WHERE id {'<>' if conflicts else '='} 2")

    outcome = pytest.raises(ConcurrentDeleteReadException) if conflicts else nullcontext()
    with committed_meanwhile(winners), outcome:
        spark.sql(
            f"MERGE INTO {named} t USING (SELECT explode(array(5, 50)) AS id) s ON t.id = s.id"
            " WHEN NOT MATCHED THEN INSERT (id, v) VALUES (s.id, 7)"
        )
    ids = {row.id for row in spark.sql(f"SELECT id FROM {named}").collect()}
    assert ids == ({2} if conflicts else {0, *range(3, 10), 50})
