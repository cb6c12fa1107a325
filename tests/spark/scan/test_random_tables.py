"""Random rows in random files, random deletes, random queries: plain Python says what is left."""

from __future__ import annotations

import itertools
from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.support.cases import drawn_cases
from tests.support.predicates import COLUMN_VALUES, SCHEMA, Predicate, predicates, rows
from tests.support.table_builder import append_file, assert_same_rows, build_table, rows_of

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

Row = tuple[Any, ...]

_numbers = itertools.count()


def kept(live: list[Row], condition: Predicate) -> list[Row]:
    return [row for row in live if condition.evaluate(named(row)) is not True]


def matching(live: list[Row], condition: Predicate) -> list[Row]:
    return [row for row in live if condition.evaluate(named(row)) is True]


def named(row: Row) -> dict[str, Any]:
    return dict(zip(COLUMN_VALUES, row, strict=True))


@pytest.mark.protocol("dv-column-statistics-1", "dv-functional-1", "reader-deletion-vectors-1")
@drawn_cases(5, thorough=60)
@given(
    files=st.lists(st.lists(rows(), min_size=1, max_size=6), min_size=1, max_size=4),
    appended=st.lists(rows(), min_size=1, max_size=4),
    deletes=st.lists(predicates(), min_size=1, max_size=3),
    query=predicates(),
    deletion_vectors=st.booleans(),
    partitioned=st.booleans(),
)
def test_table_holds_what_brute_force_leaves_after_random_deletes(
    spark: SparkSession,
    tmp_path_factory: pytest.TempPathFactory,
    files: list[list[Row]],
    appended: list[Row],
    deletes: list[Predicate],
    query: Predicate,
    deletion_vectors: bool,
    partitioned: bool,
):
    path = str(tmp_path_factory.getbasetemp() / f"random-{next(_numbers)}")
    partition_by = ("p",) if partitioned else ()
    build_table(
        spark, path, SCHEMA, files, deletion_vectors=deletion_vectors, partition_by=partition_by
    )
    live = list(itertools.chain(*files))
    for condition in deletes:
        spark.sql(f"DELETE FROM delta.`{path}` WHERE {condition.sql}")
        live = kept(live, condition)
    append_file(spark, path, SCHEMA, appended)
    live += appended
    assert_same_rows(rows_of(spark, path), live)
    df = spark.read.format("delta").load(path).where(query.sql)
    assert_same_rows([tuple(row) for row in df.collect()], matching(live, query))
    assert df.count() == len(matching(live, query))
