"""ZORDER BY: the order of rows, the files that queries skip by it, and what it refuses."""

from __future__ import annotations

import datetime as dt
import json
from decimal import Decimal
from itertools import chain, pairwise
from typing import TYPE_CHECKING, Any

import pyarrow.parquet as pq
import pytest
from hypothesis import given
from hypothesis import strategies as st

from deltaic import DeltaTable
from deltaic.exceptions import ConcurrentModificationError, InvalidArgumentError
from tests.support import log
from tests.support.cases import drawn_cases
from tests.support.delta_rs import by_arrow, in_order
from tests.support.interleave import committed_meanwhile
from tests.support.quick import quick_and_thorough
from tests.support.session_settings import session_settings
from tests.support.table_builder import build_table, rows_of

if TYPE_CHECKING:
    from pyspark.sql import Row, SparkSession

SCHEMA = "id BIGINT, p INT, s STRING"
FILES = [[(n * 10 + i, i % 2, f"text {n * 10 + i}") for i in range(10)] for n in range(6)]

#: Files and tasks so small that a few thousand rows are many of both.
SMALL_FILES = {
    "spark.deltaic.optimize.maxFileSize": "12k",
    "spark.deltaic.optimize.minTaskSize": "1k",
}


def z_order(spark: SparkSession, table: str, rest: str) -> Row:
    (result,) = spark.sql(f"OPTIMIZE delta.`{table}` {rest}").collect()
    metrics: Row = result.metrics
    return metrics


def in_files(table: str, column: str) -> list[list[Any]]:
    """Return the values of each file in its order, the files by their first values."""
    found = [
        pq.read_table(log.data_path(table, add)).column(column).to_pylist()
        for add in log.active_files(table)
    ]
    return sorted(found, key=lambda values: (values[0] is not None, values[0]))


def grid(spark: SparkSession, table: str, side: int = 50) -> None:
    """Write a table with a row for each point of a square, in no order."""
    spark.sql(
        f"CREATE TABLE delta.`{table}` USING delta AS SELECT id % {side} AS x, id DIV {side} AS y,"
        f" uuid() AS other FROM range({side * side}) DISTRIBUTE BY hash(id) % 8 SORT BY other"
    )


def boxes(table: str) -> list[tuple[int, int, int, int]]:
    stats = [json.loads(add["stats"]) for add in log.active_files(table)]
    return [
        (s["minValues"]["x"], s["maxValues"]["x"], s["minValues"]["y"], s["maxValues"]["y"])
        for s in stats
    ]


def test_box_queries_read_few_files(spark: SparkSession, table: str) -> None:
    grid(spark, table)
    before = rows_of(spark, table)
    with session_settings(spark, SMALL_FILES):
        metrics = z_order(spark, table, "ZORDER BY (x, y)")
    assert rows_of(spark, table) == before
    assert by_arrow(table) == in_order(before)
    assert metrics.numFilesAdded >= 8
    # Squares of 5 by 5 touch at most a few of the files, wherever they are.
    shares = [
        sum(x0 <= x + 4 and x <= x1 and y0 <= y + 4 and y <= y1 for x0, x1, y0, y1 in boxes(table))
        / metrics.numFilesAdded
        for x in range(0, 50, 5)
        for y in range(0, 50, 5)
    ]
    assert sum(shares) / len(shares) < 0.35
    assert all(len({box[lower] for box in boxes(table)}) >= 3 for lower in (0, 2))


def test_one_column_is_sorted_over_all_files(spark: SparkSession, table: str) -> None:
    grid(spark, table)
    with session_settings(spark, SMALL_FILES):
        assert z_order(spark, table, "ZORDER BY other").numFilesAdded >= 8
    values = list(chain.from_iterable(in_files(table, "other")))
    assert values == sorted(values)


@pytest.mark.parametrize("validates", [False, True])
def test_nulls_begin_within_a_file(spark: SparkSession, table: str, validates: bool) -> None:
    # A batch of the reader has 4,096 rows. Columns get nulls one after the other, and one is added.
    spark.sql(
        f"CREATE TABLE delta.`{table}` USING delta"
        " TBLPROPERTIES ('delta.enableDeletionVectors' = 'true') AS"
        " SELECT /*+ COALESCE(1) */ id, IF(id > 5000, NULL, id % 70) AS a,"
        " IF(id > 10000 AND id % 3 = 0, NULL, concat('text ', id)) AS b,"
        " IF(id BETWEEN 5000 AND 9000, NULL, named_struct('c', id, 'd', array(NULL, id))) AS e,"
        " IF(id > 13000, NULL, DATE_ADD(DATE'2020-01-01', CAST(id AS INT))) AS g"
        " FROM range(0, 15000, 1, 1)"
    )
    spark.sql(f"ALTER TABLE delta.`{table}` ADD COLUMN f STRING")
    spark.sql(f"INSERT INTO delta.`{table}` SELECT id, id, 'x', NULL, NULL, 'y' FROM range(99)")
    spark.sql(f"DELETE FROM delta.`{table}` WHERE id % 10 = 3")
    before = in_order(map(repr, rows_of(spark, table)))
    with session_settings(spark, {"parquet.validation": str(validates).lower()}):
        z_order(spark, table, "ZORDER BY (a, b)")
    assert in_order(map(repr, rows_of(spark, table))) == before


#: Values of each type, by the type.
VALUES: dict[str, list[Any]] = {
    "INT": [5, None, -7, 2**31 - 1, -(2**31), 0, None, 3],
    "DOUBLE": [1.5, None, float("-inf"), float("nan"), -0.0, 1e300, 2.5, -1.5],
    "DECIMAL(30,3)": [Decimal("1.5"), None, Decimal("-9999999999999999.999"), Decimal(0)],
    "STRING": ["b", None, "", "ä", "a" * 300, "a" * 299 + "b", "\U0001f600", "Z"],
    "DATE": [dt.date(2020, 1, 1), None, dt.date(1, 1, 1), dt.date(9999, 12, 31)],
    "TIMESTAMP_NTZ": [dt.datetime(2020, 1, 1), None, dt.datetime(1969, 12, 31, 23, 59, 59)],
    "STRUCT<a: STRUCT<`b.c`: INT>>": [((3,),), ((None,),), (None,), None, ((1,),), ((2,),)],
}


@pytest.mark.parametrize("column", quick_and_thorough(VALUES, "STRING", "DECIMAL(30,3)"))
def test_values_of_each_type(spark: SparkSession, table: str, column: str) -> None:
    rows = list(enumerate(VALUES[column]))
    build_table(spark, table, f"id INT, v {column}", [rows[::2], rows[1::2]])
    before = list(map(repr, rows_of(spark, table)))
    name = "v.a.`b.c`" if column.startswith("STRUCT") else "V"
    assert z_order(spark, table, f"ZORDER BY ({name})").numFilesAdded == 1
    assert list(map(repr, rows_of(spark, table))) == before
    by_spark = spark.sql(f"SELECT id FROM delta.`{table}` ORDER BY {name}, id").collect()
    (ids,) = in_files(table, "id")
    key = {i: row.id for i, row in enumerate(by_spark)}
    nulls = sum(
        1 for row in spark.sql(f"SELECT {name} IS NULL FROM delta.`{table}`").collect() if row[0]
    )
    assert set(ids[:nulls]) == {key[i] for i in range(nulls)}
    assert ids[nulls:] == [key[i] for i in range(nulls, len(ids))]


@drawn_cases(5, thorough=60)
@given(
    rows=st.lists(
        st.tuples(
            st.one_of(st.none(), st.integers(-5, 5)),
            st.one_of(st.none(), st.text(max_size=3)),
            st.one_of(st.none(), st.floats(width=32)),
        ),
        min_size=1,
        max_size=40,
    ),
    deleted=st.integers(0, 3),
    columns=st.permutations(["a", "b", "c"]).flatmap(
        lambda names: st.integers(1, 3).map(lambda n: names[:n])
    ),
)
def test_rows_stay(
    spark: SparkSession,
    tmp_path_factory: pytest.TempPathFactory,
    rows: list[tuple[Any, ...]],
    deleted: int,
    columns: list[str],
) -> None:
    table = str(tmp_path_factory.mktemp("drawn") / "table")
    numbered = [(i, *row) for i, row in enumerate(rows)]
    build_table(spark, table, "id INT, a INT, b STRING, c FLOAT", [numbered[::2], numbered[1::2]])
    spark.sql(f"DELETE FROM delta.`{table}` WHERE id % 4 < {deleted}")
    before = [repr(row) for row in rows_of(spark, table)]
    z_order(spark, table, f"ZORDER BY ({', '.join(columns)})")
    assert [repr(row) for row in rows_of(spark, table)] == before
    assert all("deletionVector" not in add for add in log.active_files(table))


@pytest.mark.protocol("add-file-and-remove-file-3", "add-file-and-remove-file-4")
def test_partitions_are_ordered_one_by_one(spark: SparkSession, table: str) -> None:
    build_table(spark, table, SCHEMA, FILES, partition_by=["p"])
    before = rows_of(spark, table)
    metrics = z_order(spark, table, "WHERE p = 1 ZORDER BY s")
    assert (metrics.numFilesRemoved, metrics.numFilesAdded) == (6, 1)
    assert metrics.zOrderStats.inputOtherFiles.num == 6
    assert z_order(spark, table, "ZORDER BY (s, id)").partitionsOptimized == 2
    assert rows_of(spark, table) == before
    assert [len(ids) for ids in in_files(table, "id")] == [30, 30]
    info = log.commit_info(table, 1)
    assert info["operationParameters"]["zOrderBy"] == '["s"]'
    assert {add["dataChange"] for add in log.actions(table, 1, "add")} == {False}


@pytest.mark.protocol("writer-row-tracking-24", "writer-row-tracking-29")
def test_row_ids_stay(spark: SparkSession, table: str) -> None:
    properties = {"delta.enableRowTracking": "true"}
    build_table(spark, table, SCHEMA, FILES, partition_by=["p"], properties=properties)
    spark.sql(f"UPDATE delta.`{table}` SET s = 'new' WHERE id % 10 = 4")
    spark.sql(f"DELETE FROM delta.`{table}` WHERE id % 10 = 5")
    query = f"SELECT *, _metadata.row_id, _metadata.row_commit_version FROM delta.`{table}`"
    before = in_order(spark.sql(query).collect())
    z_order(spark, table, "ZORDER BY (s, id)")
    assert in_order(spark.sql(query).collect()) == before


def test_mapped_and_void_columns(spark: SparkSession, table: str) -> None:
    properties = {"delta.columnMapping.mode": "name"}
    build_table(spark, table, SCHEMA, FILES, properties=properties)
    name = f"delta.`{table}`"
    spark.sql(f"ALTER TABLE {name} RENAME COLUMN s TO `odd name`")
    spark.sql(f"ALTER TABLE {name} ADD COLUMNS (n STRUCT<a: INT, b: VOID>, nothing VOID)")
    spark.sql(f"INSERT INTO {name} VALUES (-1, 1, 'a', named_struct('a', 1, 'b', NULL), NULL)")
    before = rows_of(spark, table)
    assert z_order(spark, table, "ZORDER BY (`odd name`, n.a)").numFilesAdded == 1
    assert rows_of(spark, table) == before


@pytest.mark.parametrize(
    ("columns", "reason"),
    {
        "p": "it is partitioned by p",
        "P": "it is partitioned by P",
        "missing": "there is no column missing among id, p, s",
        "id, ID": "a column is named twice",
        "id.x": "there is no column id.x",
    }.items(),
)
def test_columns_are_refused_by_name(
    spark: SparkSession, table: str, columns: str, reason: str
) -> None:
    build_table(spark, table, SCHEMA, FILES, partition_by=["p"])
    with pytest.raises(InvalidArgumentError, match=reason):
        z_order(spark, table, f"ZORDER BY ({columns})")
    with pytest.raises(InvalidArgumentError, match=reason):
        DeltaTable.forPath(spark, table).optimize().executeZOrderBy(*columns.split(", "))
    assert log.versions(table) == [0]


def test_columns_without_statistics(spark: SparkSession, table: str) -> None:
    properties = {"delta.dataSkippingStatsColumns": "id"}
    build_table(spark, table, SCHEMA, FILES, properties=properties)
    with pytest.raises(InvalidArgumentError, match="no statistics are collected for s"):
        z_order(spark, table, "ZORDER BY s")
    setting = "spark.databricks.delta.optimize.zorder.checkStatsCollection.enabled"
    with session_settings(spark, {setting: "false"}):
        assert z_order(spark, table, "ZORDER BY s").numFilesAdded == 1


def test_an_empty_table_stays_empty(spark: SparkSession, table: str) -> None:
    spark.sql(f"CREATE TABLE delta.`{table}` ({SCHEMA}) USING delta")
    assert z_order(spark, table, "ZORDER BY id").numFilesAdded == 0
    assert log.versions(table) == [0]


def test_files_of_which_all_rows_are_deleted(spark: SparkSession, table: str) -> None:
    build_table(spark, table, SCHEMA, FILES)
    with session_settings(spark, {"spark.deltaic.deletionVectors.maxDeletedRowsRatio": "1"}):
        spark.sql(f"DELETE FROM delta.`{table}` WHERE id % 10 > 0 OR id > 9")
    z_order(spark, table, "ZORDER BY (id, s)")
    assert rows_of(spark, table) == [(0, 0, "text 0")]


def test_damaged_files_are_not_lost(spark: SparkSession, table: str) -> None:
    build_table(spark, table, SCHEMA, FILES)
    (add, *_) = log.active_files(table)
    log.data_path(table, add).write_bytes(b"no Parquet file")
    with (
        session_settings(spark, {"spark.sql.files.ignoreCorruptFiles": "true"}),
        pytest.raises(Exception, match="60 rows by the log, and 50 were read"),
    ):
        z_order(spark, table, "ZORDER BY id")
    assert log.versions(table) == [0]


def test_deletion_is_not_lost_if_the_file_that_it_read_is_damaged_meanwhile(
    spark: SparkSession, table: str
) -> None:
    """Row IDs of deleted rows are read from that file, which Spark may skip."""
    build_table(spark, table, SCHEMA, FILES, properties={"delta.enableRowTracking": "true"})
    before = log.active_files(table)

    def others() -> None:
        z_order(spark, table, "ZORDER BY id")
        for add in before:
            log.data_path(table, add).write_bytes(b"no Parquet file")

    with (
        session_settings(spark, {"spark.sql.files.ignoreCorruptFiles": "true"}),
        committed_meanwhile(others),
        pytest.raises(ConcurrentModificationError, match="conflicts with version 1"),
    ):
        spark.sql(f"DELETE FROM delta.`{table}` WHERE id = 4").collect()
    assert log.versions(table) == [0, 1]
    assert 4 in {row[0] for row in rows_of(spark, table)}


def test_order_of_pages(spark: SparkSession, table: str) -> None:
    """Within a file, too, rows follow the curve, so that pages have narrow ranges."""
    grid(spark, table)
    z_order(spark, table, "ZORDER BY (x, y)")
    xs, ys = in_files(table, "x"), in_files(table, "y")
    (x,), (y,) = xs, ys
    steps = [abs(a - c) + abs(b - d) for (a, b), (c, d) in pairwise(zip(x, y, strict=True))]
    assert sum(steps) / len(steps) < 8


@pytest.mark.parametrize("kind", ["z-order", "clustering"])
def test_a_delete_meanwhile_is_a_conflict_that_says_what_to_do(
    spark: SparkSession, table: str, kind: str
) -> None:
    """Without row tracking it is not known where the rows are; with it, neither fails."""
    build_table(spark, table, SCHEMA, FILES)
    name = f"delta.`{table}`"
    if kind == "clustering":
        spark.sql(f"ALTER TABLE {name} CLUSTER BY (id)")
    order = "ZORDER BY id" if kind == "z-order" else ""
    advice = "delta.enableDeletionVectors and delta.enableRowTracking to true"
    with (
        committed_meanwhile(lambda: spark.sql(f"DELETE FROM {name} WHERE id = 3").collect()),
        pytest.raises(ConcurrentModificationError, match=r"OPTIMIZE .* with version") as lost,
    ):
        z_order(spark, table, order)
    assert lost.value.condition == "DELTAIC_CONCURRENT_CHANGE_OF_MOVED_ROWS"
    assert advice in str(lost.value)
    assert len(log.files_in(table, ".parquet")) == 6, "the loser's file is deleted"
    with (
        committed_meanwhile(lambda: z_order(spark, table, order)),
        pytest.raises(ConcurrentModificationError, match="The log does not say where they") as lost,
    ):
        spark.sql(f"DELETE FROM {name} WHERE id = 4").collect()
    assert advice in str(lost.value)
    assert {3, 4} & {row[0] for row in rows_of(spark, table)} == {4}


@pytest.mark.parametrize("kind", ["z-order", "clustering"])
def test_files_have_the_size_that_was_asked_for(spark: SparkSession, table: str, kind: str) -> None:
    """All files but the last on the curve, which has the rest; the rows cannot be compressed."""
    clause = "CLUSTER BY (a, b)" if kind == "clustering" else ""
    spark.sql(f"CREATE TABLE delta.`{table}` (a DOUBLE, b DOUBLE, c BINARY) USING delta {clause}")
    spark.sql(
        f"INSERT INTO delta.`{table}` SELECT rand(1), rand(2), unhex(sha2(STRING(id), 256))"
        " FROM range(0, 36000, 1, 6)"
    )
    target = 256 << 10
    settings = {
        "spark.deltaic.optimize.maxFileSize": str(target),
        "spark.deltaic.optimize.minTaskSize": "16k",
    }
    with session_settings(spark, settings):
        z_order(spark, table, "ZORDER BY (a, b)" if kind == "z-order" else "")
    sizes = sorted(add["size"] for add in log.active_files(table))
    assert len(sizes) >= 6
    assert all(0.8 * target <= size <= 1.2 * target for size in sizes[1:]), sizes
    assert sizes[0] <= 1.2 * target
