"""Net changes of rows between versions: Spark's CHANGES clause on tables with row tracking."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import pytest

from deltaic.exceptions import DeltaError, TableStateError
from tests.support import log

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, Row, SparkSession

#: What a row is but for its key: a value and its partition.
Values = tuple[int, int]
State = dict[int, Values]

#: A statement, the rows that it changes, and what becomes of them; None for a row that it deletes.
Step = tuple[str, Callable[[State], Mapping[int, Values | None]]]


def inserted(first: int, last: int) -> Step:
    rows = {key: (key * 10, key % 3) for key in range(first, last + 1)}
    values = ", ".join(f"({key}, {v}, {p})" for key, (v, p) in rows.items())
    return f"INSERT INTO {{t}} VALUES {values}", lambda state: rows


def updated(assignments: str, condition: str, change: Callable[[int, int], Values]) -> Step:
    return (
        f"UPDATE {{t}} SET {assignments} WHERE {condition}",
        lambda state: {
            key: change(*values)
            for key, values in state.items()
            if eval(condition.replace("=", "==").replace("<==", "<="), {"id": key})
        },
    )


def deleted(*keys: int) -> Step:
    return (
        f"DELETE FROM {{t}} WHERE id IN ({', '.join(map(str, keys))})",
        lambda state: {key: None for key in keys if key in state},
    )


def merged(state: State) -> Mapping[int, Values | None]:
    changes: dict[int, Values | None] = {40: (1, 1), 41: (1, 1)}
    for key in (1, 2, 7, 22):
        if key in state:
            changes[key] = None if key == 7 else (-1, state[key][1])
    return changes


MERGE = (
    "MERGE INTO {t} t USING (SELECT explode(array(1, 2, 7, 22, 40, 41)) AS k) s ON t.id = s.k"
    " WHEN MATCHED AND k = 7 THEN DELETE WHEN MATCHED THEN UPDATE SET v = -1"
    " WHEN NOT MATCHED THEN INSERT (id, v, p) VALUES (k, 1, 1)"
)

STEPS: list[Step] = [
    inserted(0, 19),
    updated("v = v + 100", "id % 4 = 0", lambda v, p: (v + 100, p)),
    deleted(3, 4, 5),
    inserted(20, 29),
    # Of rows that were inserted, updated, or neither before.
    updated("v = v + 1, p = p + 1", "id % 7 = 0", lambda v, p: (v + 1, p + 1)),
    deleted(0, 21, 6),
    (MERGE, merged),
    # Back to what they were.
    updated("v = v - 100", "id % 4 = 0", lambda v, p: (v - 100, p)),
    deleted(40, 12),
]


@dataclass
class Model:
    """The rows of each version, and which of them each version changed."""

    states: list[State] = field(default_factory=lambda: [{}])
    touched: list[set[int]] = field(default_factory=lambda: [set()])

    def apply(self, step: Step) -> None:
        state = dict(self.states[-1])
        changes = step[1](state)
        for key, values in changes.items():
            if values is None:
                del state[key]
            else:
                state[key] = values
        self.states.append(state)
        self.touched.append(set(changes))

    def net(self, first: int, last: int) -> list[tuple[int, str, int, int]]:
        """Return the net changes of a range of versions, both ends included."""
        before, after = self.states[first - 1] if first else {}, self.states[last]
        found: list[tuple[int, str, int, int]] = []
        for key in set().union(*self.touched[first : last + 1]):
            both = key in before and key in after
            if key in before:
                found.append((key, "update_preimage" if both else "delete", *before[key]))
            if key in after:
                found.append((key, "update_postimage" if both else "insert", *after[key]))
        return sorted(found)


def net_changes(
    spark: SparkSession, table: str, first: int, last: int, *, updates: bool = True
) -> DataFrame:
    return spark.sql(
        f"SELECT * FROM delta.`{table}` CHANGES FROM VERSION {first} TO VERSION {last}"
        f" WITH (deduplicationMode = 'netChanges', computeUpdates = '{str(updates).lower()}')"
    )


def rows_of(df: DataFrame) -> list[tuple[int, str, int, int]]:
    return sorted(map(tuple, df.select("id", "_change_type", "v", "p").collect()))


KINDS = {
    "copied": "",
    "deletion vectors": ", 'delta.enableDeletionVectors' = 'true'",
    "change data feed": ", 'delta.enableChangeDataFeed' = 'true'",
    "mapped columns": (
        ", 'delta.enableDeletionVectors' = 'true', 'delta.columnMapping.mode' = 'name',"
        " 'delta.enableChangeDataFeed' = 'true'"
    ),
}


@pytest.fixture(
    scope="module",
    params=[*itertools.product(KINDS, (False, True))],
    ids=lambda p: f"{p[0]}{', partitioned' if p[1] else ''}",
)
def history(
    request: pytest.FixtureRequest, spark: SparkSession, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[tuple[str, Model]]:
    """A table that went through all steps, one a version, and what should have become of it."""
    kind, partitioned = request.param
    path = str(tmp_path_factory.mktemp("net") / "table")
    spark.sql(
        f"CREATE TABLE delta.`{path}` (id INT, v INT, p INT) USING delta"
        f" {'PARTITIONED BY (p)' if partitioned else ''}"
        f" TBLPROPERTIES ('delta.enableRowTracking' = 'true'{KINDS[kind]})"
    )
    model = Model()
    for step in STEPS:
        spark.sql(step[0].format(t=f"delta.`{path}`"))
        model.apply(step)
    assert log.newest(path) == len(STEPS)
    yield path, model


def test_net_changes_are_the_differences_between_two_versions(
    spark: SparkSession, history: tuple[str, Model]
) -> None:
    table, model = history
    for first, last in [(0, 9), (1, 1), (2, 4), (3, 5), (2, 8), (5, 7), (6, 6), (8, 9)]:
        assert rows_of(net_changes(spark, table, first, last)) == model.net(first, last)


@pytest.mark.protocol("reader-row-tracking-3", "reader-row-tracking-7")
def test_both_images_of_a_row_have_its_id_and_updates_are_pairs_unless_computed(
    spark: SparkSession, history: tuple[str, Model]
) -> None:
    table, model = history
    df = net_changes(spark, table, 2, 8)
    images: dict[int, dict[str, Row]] = {}
    for key, kind, metadata in df.select("id", "_change_type", "_metadata").collect():
        images.setdefault(key, {})[kind] = metadata
    assert images.keys() == {row[0] for row in model.net(2, 8)}
    both = [i for i in images.values() if "update_preimage" in i]
    assert len(both) > 2
    for image in both:
        before, after = image["update_preimage"], image["update_postimage"]
        assert before.row_id == after.row_id
        assert before.row_commit_version < 2 <= after.row_commit_version
    assert len({m.row_id for i in images.values() for m in i.values()}) == len(images)
    pairs = {"update_preimage": "delete", "update_postimage": "insert"}
    plain = sorted((key, pairs.get(kind, kind), *rest) for key, kind, *rest in model.net(2, 8))
    assert rows_of(net_changes(spark, table, 2, 8, updates=False)) == plain


def test_columns_are_those_of_delta_spark(spark: SparkSession, history: tuple[str, Model]) -> None:
    assert net_changes(spark, history[0], 1, 2).dtypes == [
        ("id", "int"),
        ("v", "int"),
        ("p", "int"),
        ("_metadata", "struct<row_id:bigint,row_commit_version:bigint>"),
        ("_change_type", "string"),
        ("_commit_version", "bigint"),
        ("_commit_timestamp", "timestamp"),
    ]


def test_filters_choose_rows_of_the_net_changes(
    spark: SparkSession, history: tuple[str, Model]
) -> None:
    """A filter must not drop one half of an update, or the delete of a row that was inserted."""
    table, model = history
    df, expected = net_changes(spark, table, 1, 8), model.net(1, 8)
    for condition, keeps in {
        "v > 50": lambda row: row[2] > 50,
        "p = 1": lambda row: row[3] == 1,
        "_change_type = 'insert'": lambda row: row[1] == "insert",
        "id < 9": lambda row: row[0] < 9,
    }.items():
        assert rows_of(df.where(condition)) == [row for row in expected if keeps(row)]
    with_ids = df.select("_metadata.row_id", "id", "_change_type").collect()
    kept = sorted(row for row in with_ids if row[0] < 9)
    found = df.where("_metadata.row_id < 9").select("_metadata.row_id", "id", "_change_type")
    assert kept and sorted(found.collect()) == kept


def test_row_that_was_deleted_and_inserted_again_is_another_row(
    spark: SparkSession, table: str
) -> None:
    spark.sql(
        f"CREATE TABLE delta.`{table}` USING delta TBLPROPERTIES ('delta.enableRowTracking' ="
        " 'true') AS SELECT 1 AS id, 10 AS v, 0 AS p"
    )
    spark.sql(f"DELETE FROM delta.`{table}`")
    spark.sql(f"INSERT INTO delta.`{table}` VALUES (1, 10, 0)")
    expected = [(1, "delete", 10, 0), (1, "insert", 10, 0)]
    assert rows_of(net_changes(spark, table, 1, 2)) == expected
    assert rows_of(net_changes(spark, table, 0, 1)) == []


@pytest.mark.parametrize("tracked_from", [None, 2])
def test_table_without_row_tracking_in_the_range_is_refused_with_what_to_do(
    spark: SparkSession, table: str, tracked_from: int | None
) -> None:
    spark.range(3).selectExpr("id", "id AS v", "0 AS p").write.format("delta").save(table)
    spark.sql(f"DELETE FROM delta.`{table}` WHERE id = 0")
    if tracked_from is not None:
        spark.sql(
            f"ALTER TABLE delta.`{table}` SET TBLPROPERTIES ('delta.enableRowTracking' = true)"
        )
        tracked_from = log.newest(table)
        spark.sql(f"DELETE FROM delta.`{table}` WHERE id = 1")
        assert rows_of(net_changes(spark, table, tracked_from, tracked_from + 1)) == [
            (1, "delete", 1, 0)
        ]
    with pytest.raises(TableStateError, match="no row tracking at version") as caught:
        net_changes(spark, table, 0, log.newest(table)).collect()
    assert "delta.enableRowTracking" in str(caught.value)


@pytest.mark.protocol("row-tracking-4")
def test_row_tracking_that_was_off_within_the_range_is_refused(
    spark: SparkSession, table: str
) -> None:
    named = f"delta.`{table}`"
    switch = f"ALTER TABLE {named} SET TBLPROPERTIES ('delta.enableRowTracking' = '{{}}')"
    spark.sql(
        f"CREATE TABLE {named} USING delta TBLPROPERTIES ('delta.enableRowTracking' = 'true')"
        " AS SELECT 1 AS id, 10 AS v, 0 AS p"
    )
    spark.sql(switch.format("false"))
    spark.sql(f"INSERT INTO {named} VALUES (2, 20, 0)")
    spark.sql(switch.format("true"))
    enabled = log.newest(table)
    spark.sql(f"DELETE FROM {named} WHERE id = 1")
    assert rows_of(net_changes(spark, table, enabled, enabled + 1)) == [(1, "delete", 10, 0)]
    with pytest.raises(TableStateError, match="no row tracking at version 1"):
        net_changes(spark, table, 0, enabled + 1).collect()


def test_files_that_are_older_than_row_tracking_have_no_net_changes(
    spark: SparkSession, table: str
) -> None:
    named = f"delta.`{table}`"
    spark.sql(f"CREATE TABLE {named} USING delta AS SELECT 1 AS id, 10 AS v, 0 AS p")
    spark.sql(
        f"CREATE OR REPLACE TABLE {named} USING delta TBLPROPERTIES ('delta.enableRowTracking' ="
        " 'true') AS SELECT 2 AS id, 20 AS v, 0 AS p"
    )
    spark.sql(f"DELETE FROM {named}")
    with pytest.raises(TableStateError, match=r"removes files there(.|\n)*start after"):
        net_changes(spark, table, 1, 2).collect()
    assert rows_of(net_changes(spark, table, 2, 2)) == [(2, "delete", 20, 0)]


def test_table_with_a_column_of_that_name_is_refused(spark: SparkSession, table: str) -> None:
    spark.sql(
        f"CREATE TABLE delta.`{table}` USING delta TBLPROPERTIES ('delta.enableRowTracking' ="
        " 'true') AS SELECT 1 AS id, 2 AS _metadata"
    )
    with pytest.raises(DeltaError, match="has a column _metadata"):
        net_changes(spark, table, 0, 0)
