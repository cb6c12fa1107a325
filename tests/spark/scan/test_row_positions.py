"""Which row of its file a row is, whatever the reader leaves out: row groups, pages, deleted rows.

In the tables of these tests a row's `id` is its position in the one data file of its `f`.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.support.cases import drawn_cases
from tests.support.plans import scanned_rows
from tests.support.session_settings import session_settings

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

ROWS, FILES = 4_000, 2

#: How the rows of a file are split into row groups and pages.
LAYOUTS = {
    "one row group, one page": {},
    "one row group, small pages": {"parquet.page.row.count.limit": "100"},
    "small row groups, small pages": {
        "parquet.block.size": "8192",
        "parquet.page.size": "1024",
        "parquet.page.row.count.limit": "70",
    },
}


def is_deleted(kind: str, i: int) -> bool:
    return {
        "none": False,
        "scattered": i % 17 == 3,
        "runs": i // 250 % 3 == 1,
        "nearly all": i % 500 != 499,
    }[kind]


DELETES = {
    "none": None,
    "scattered": "id % 17 = 3",
    "runs": "id DIV 250 % 3 = 1",
    "nearly all": "id % 500 <> 499",
}


@dataclass(frozen=True)
class Tables:
    """A table for each layout and kind of deletion."""

    root: str

    def name(self, layout: str, deleted: str) -> str:
        return f"delta.`{self.root}/{layout} {deleted}`"


@pytest.fixture(scope="module")
def tables(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> Tables:
    made = Tables(str(tmp_path_factory.mktemp("positions")))
    rows = spark.range(0, ROWS * FILES, 1, FILES).selectExpr(
        f"id % {ROWS} AS id", f"id DIV {ROWS} AS f", "repeat(hex(id * 7919), 3) AS s"
    )
    for layout, options in LAYOUTS.items():
        for deleted, condition in DELETES.items():
            name = made.name(layout, deleted)
            writer = rows.write.format("delta").options(**options)
            writer.option("delta.enableDeletionVectors", "true").save(name[7:-1])
            if condition is not None:
                # The last file keeps all its rows: it is read without a deletion vector.
                spark.sql(f"DELETE FROM {name} WHERE f = 0 AND {condition}")
    return made


ranges = st.lists(st.tuples(st.integers(0, ROWS - 1), st.integers(1, 300)), min_size=1, max_size=3)

#: As Spark's row-level operations ask for a row's position, and as users do.
POSITIONS = ("__deltaic_row_index", "_metadata.row_index")


@drawn_cases(15, thorough=200)
@given(
    layout=st.sampled_from(list(LAYOUTS)),
    deleted=st.sampled_from(list(DELETES)),
    wanted=st.none() | ranges,
    position=st.sampled_from(POSITIONS),
    other_columns=st.sampled_from(["", ", s"]),
    batch=st.sampled_from([1, 7, 100, 4096]),
    split_bytes=st.sampled_from([3_000, 10_000, 128 << 20]),
    vectorized=st.booleans(),
    codegen=st.booleans(),
)
def test_position_is_where_the_row_is_in_its_file(
    spark: SparkSession,
    tables: Tables,
    layout: str,
    deleted: str,
    wanted: list[tuple[int, int]] | None,
    position: str,
    other_columns: str,
    batch: int,
    split_bytes: int,
    vectorized: bool,
    codegen: bool,
):
    condition = " OR ".join(f"id BETWEEN {a} AND {a + n - 1}" for a, n in wanted or [])
    query = f"SELECT f, id, {position} AS position{other_columns} FROM {{t}}"
    if wanted:
        query += f" WHERE {condition}"
    modes = {
        "spark.sql.parquet.columnarReaderBatchSize": str(batch),
        "spark.sql.files.maxPartitionBytes": str(split_bytes),
        "spark.sql.files.openCostInBytes": "0",
        "spark.sql.parquet.enableVectorizedReader": str(vectorized).lower(),
        "spark.sql.codegen.wholeStage": str(codegen).lower(),
    }
    with session_settings(spark, modes):
        df = spark.sql(query.format(t=tables.name(layout, deleted)))
        found = sorted((row.f, row.id, row.position) for row in df.collect())
    expected = [
        (f, i, i)
        for f in range(FILES)
        for i in range(ROWS)
        if not (f == 0 and is_deleted(deleted, i))
        and (not wanted or any(a <= i < a + n for a, n in wanted))
    ]
    assert found == expected


@pytest.mark.parametrize("deleted", ["none", "scattered"])
def test_pages_are_left_out_of_files_with_deletion_vectors_too(
    spark: SparkSession, tables: Tables, deleted: str
):
    name = tables.name("one row group, small pages", deleted)
    df = spark.sql(f"SELECT id, _metadata.row_index FROM {name} WHERE id BETWEEN 950 AND 960")
    assert scanned_rows(df) == FILES * 100
    assert {row.id == row.row_index for row in df.collect()} == {True}


def test_the_right_rows_are_deleted_in_files_with_row_groups_and_pages(
    spark: SparkSession, tables: Tables
):
    source = tables.name("small row groups, small pages", "runs")
    path = f"{tables.root}/changed"
    spark.sql(
        f"CREATE TABLE delta.`{path}` USING delta TBLPROPERTIES"
        f" ('delta.enableDeletionVectors' = 'true') AS SELECT * FROM {source}"
    )
    with session_settings(spark, {"spark.sql.parquet.columnarReaderBatchSize": "11"}):
        spark.sql(f"DELETE FROM delta.`{path}` WHERE id BETWEEN 1000 AND 1100 AND f = 1")
        spark.sql(f"UPDATE delta.`{path}` SET s = 'changed' WHERE id BETWEEN 3000 AND 3010")
        spark.sql(
            f"MERGE INTO delta.`{path}` t USING (SELECT 3005 AS id) s ON t.id = s.id"
            " WHEN MATCHED AND f = 0 THEN DELETE WHEN MATCHED THEN UPDATE SET s = 'merged'"
        )
    live = {
        (f, i)
        for f in range(FILES)
        for i in range(ROWS)
        if not (f == 0 and is_deleted("runs", i)) and not (f == 1 and 1000 <= i <= 1100)
    } - {(0, 3005)}
    rows = spark.sql(f"SELECT f, id, s FROM delta.`{path}`").collect()
    assert sorted((row.f, row.id) for row in rows) == sorted(live)
    changed = {(row.f, row.id): row.s for row in rows if row.s in ("changed", "merged")}
    expected = {(f, i): "changed" for f, i in live if 3000 <= i <= 3010}
    if (1, 3005) in live:
        expected[(1, 3005)] = "merged"
    assert changed == expected
