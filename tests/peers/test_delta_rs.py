"""delta-rs (the package `deltalake`) and Deltaic read, and go on writing, each other's tables."""

from __future__ import annotations

from collections.abc import Callable

import deltalake
import pyarrow as pa
import pytest
from deltalake import write_deltalake
from deltalake.exceptions import DeltaProtocolError
from pyspark.sql import SparkSession

from tests.support import log
from tests.support.delta_rs import by_arrow, by_query, in_order
from tests.support.sample_tables import SAMPLES, Sample
from tests.support.table_builder import rows_of


@pytest.mark.parametrize("sample", [s for s in SAMPLES if not s.deletion_vectors], ids=str)
def test_delta_rs_reads_what_we_wrote_without_vectors(
    spark: SparkSession, table: str, sample: Sample
) -> None:
    expected = in_order(sample.write(spark, table).collect())
    assert in_order(spark.read.format("delta").load(table).collect()) == expected
    assert by_query(table) == expected
    if sample.delta_rs_fails is not None:
        with pytest.raises(Exception, match=sample.delta_rs_fails):
            by_arrow(table)
        return
    assert by_arrow(table) == expected
    assert deltalake.DeltaTable(table).version() == log.newest(table)


@pytest.mark.parametrize("sample", [s for s in SAMPLES if s.deletion_vectors], ids=str)
def test_delta_rs_reads_our_vectors_in_queries_and_refuses_them_elsewhere(
    spark: SparkSession, table: str, sample: Sample
) -> None:
    expected = in_order(sample.write(spark, table).collect())
    assert by_query(table) == expected
    with pytest.raises(DeltaProtocolError, match=r"deletionVectors.*not yet supported"):
        by_arrow(table)


NUMBERS = pa.table({"id": pa.array(range(20), pa.int64()), "p": ["a", "b c", None, "x=/%"] * 5})


def more(count: int) -> pa.Table:
    return pa.table({"id": pa.array(range(100, 100 + count), pa.int64()), "p": ["z"] * count})


def rs_appends(path: str) -> None:
    write_deltalake(path, NUMBERS)
    write_deltalake(path, more(3), mode="append")


def rs_partitions(path: str) -> None:
    write_deltalake(path, NUMBERS, partition_by=["p"])
    write_deltalake(path, more(3), mode="append")


def rs_overwrites(path: str) -> None:
    write_deltalake(path, NUMBERS)
    write_deltalake(path, more(3), mode="overwrite")


def rs_deletes(path: str) -> None:
    write_deltalake(path, NUMBERS, partition_by=["p"])
    deltalake.DeltaTable(path).delete("id % 3 = 0")
    deltalake.DeltaTable(path).delete("p = 'b c'")


def rs_merges_and_updates(path: str) -> None:
    write_deltalake(path, NUMBERS)
    source = pa.table({"id": pa.array([5, 500], pa.int64()), "p": ["five", "new"]})
    (
        deltalake.DeltaTable(path)
        .merge(source, "t.id = s.id", source_alias="s", target_alias="t")
        .when_matched_update_all()
        .when_not_matched_insert_all()
        .execute()
    )
    deltalake.DeltaTable(path).update(predicate="id > 15", updates={"p": "'upd'"})


def rs_checkpoints(path: str) -> None:
    rs_deletes(path)
    deltalake.DeltaTable(path).create_checkpoint()
    write_deltalake(path, more(3), mode="append")


def rs_optimizes(path: str) -> None:
    rs_appends(path)
    deltalake.DeltaTable(path).optimize.compact()


@pytest.mark.parametrize(
    "write",
    [
        rs_appends,
        rs_partitions,
        rs_overwrites,
        rs_deletes,
        rs_merges_and_updates,
        rs_checkpoints,
        rs_optimizes,
    ],
)
def test_we_read_every_version_that_delta_rs_wrote(
    spark: SparkSession, table: str, write: Callable[[str], None]
) -> None:
    write(table)
    for version in log.versions(table):
        assert in_order(rows_of(spark, table, version=version)) == by_arrow(table, version)
    assert in_order(rows_of(spark, table)) == by_arrow(table)


@pytest.mark.parametrize("partition_by", [[], ["p"]], ids=["flat", "partitioned"])
def test_both_engines_change_one_table_in_turn(
    spark: SparkSession, table: str, partition_by: list[str]
) -> None:
    write_deltalake(table, NUMBERS, partition_by=partition_by)
    rows = [(row["id"], row["p"]) for row in NUMBERS.to_pylist()]

    spark.sql(f"INSERT INTO delta.`{table}` VALUES (200, 'ours'), (201, NULL)")
    rows += [(200, "ours"), (201, None)]
    write_deltalake(table, more(2), mode="append")
    rows += [(100, "z"), (101, "z")]
    spark.sql(f"DELETE FROM delta.`{table}` WHERE id % 4 = 1")
    rows = [r for r in rows if r[0] % 4 != 1]
    deltalake.DeltaTable(table).delete("id < 5")
    rows = [r for r in rows if r[0] >= 5]
    spark.sql(f"UPDATE delta.`{table}` SET id = id + 1000 WHERE p IS NULL")
    rows = [(i + 1000 if p is None else i, p) for i, p in rows]
    deltalake.DeltaTable(table).update(predicate="id > 1000", updates={"p": "'rs'"})
    rows = [(i, "rs" if i > 1000 else p) for i, p in rows]

    assert log.versions(table) == list(range(7))
    assert in_order(rows_of(spark, table)) == by_arrow(table) == in_order(rows)


def test_delta_rs_appends_to_a_table_of_ours_that_has_vectors(
    spark: SparkSession, table: str
) -> None:
    [sample] = [s for s in SAMPLES if s.name == "inline vectors"]
    rows = [tuple(row) for row in sample.write(spark, table).collect()]
    added = [(900, "by delta-rs"), (901, "by delta-rs")]
    columns = {"id": pa.array([900, 901], pa.int64()), "x.y": ["by delta-rs"] * 2}
    write_deltalake(table, pa.table(columns), mode="append")
    assert in_order(rows_of(spark, table)) == by_query(table) == in_order([*rows, *added])

    spark.sql(f"DELETE FROM delta.`{table}` WHERE id IN (4, 16, 901)")
    left = [row for row in [*rows, *added] if row[0] not in (4, 16, 901)]
    assert in_order(rows_of(spark, table)) == by_query(table) == in_order(left)


def test_delta_rs_history_shows_our_operations(spark: SparkSession, table: str) -> None:
    [sample] = [s for s in SAMPLES if s.name == "rewritten"]
    sample.write(spark, table)
    history = deltalake.DeltaTable(table).history()
    assert [entry["operation"] for entry in history] == ["DELETE", "WRITE"]
    assert "deltaic" in str(history[0]["engineInfo"]).lower()


@pytest.mark.parametrize("number", [pa.float32(), pa.float64()], ids=str)
def test_nan_that_delta_rs_leaves_out_of_bounds_is_greater_than_all_numbers(
    spark: SparkSession, table: str, number: pa.DataType
) -> None:
    values = pa.array([float("nan"), -1.5, 0.5], number)
    write_deltalake(table, pa.table({"id": pa.array([1, 2, 3]), "f": values}))
    rows = spark.read.format("delta").load(table)
    for condition in ("f >= 1", "f > 1", "f IN (5, CAST('NaN' AS FLOAT))", "NOT (f < 1)"):
        assert [row.id for row in rows.where(condition).collect()] == [1], condition
    spark.sql(f"DELETE FROM delta.`{table}` WHERE f >= 1")
    assert sorted(row.id for row in rows.collect()) == [2, 3]


def test_delta_rs_reads_void_columns_as_nulls(spark: SparkSession, table: str) -> None:
    named = f"delta.`{table}`"
    spark.sql(f"CREATE TABLE {named} (id INT, v VOID, s STRUCT<a: INT, n: VOID>) USING delta")
    spark.sql(f"INSERT INTO {named} VALUES (1, null, named_struct('a', 2, 'n', null))")
    spark.sql(f"INSERT INTO {named} VALUES (2, null, null)")
    read = deltalake.DeltaTable(table).to_pyarrow_table().sort_by("id")
    assert read.schema.field("v").type == pa.null()
    assert read.to_pylist() == [
        {"id": 1, "v": None, "s": {"a": 2, "n": None}},
        {"id": 2, "v": None, "s": None},
    ]
    assert read.to_pylist() == [
        row.asDict(recursive=True)
        for row in spark.sql(f"SELECT * FROM {named}").sort("id").collect()
    ]
