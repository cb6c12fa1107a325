"""A process loads each bitmap once: the tests delete the file afterwards."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from deltaic.exceptions import DeltaError
from tests.support import log
from tests.support.session_settings import session_settings
from tests.support.table_builder import BuildWithOracle, TableWithOracle

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

SMALL_SPLITS = {
    "spark.sql.files.maxPartitionBytes": "2000",
    "spark.sql.files.openCostInBytes": "0",
}


@pytest.fixture
def packed(spark: SparkSession, build: BuildWithOracle) -> TableWithOracle:
    """Twelve files, whose vectors one DELETE packed into one file."""
    table = build(
        spark.range(0, 12_000, 1, 12).selectExpr("id", "hash(id) h"), deletion_vectors=True
    )
    table.delete("h % 3 = 0")
    table.oracle()
    return table


def vector_files(table: TableWithOracle) -> list[Path]:
    return sorted(Path(table.path).glob("*.bin"))


def test_splits_and_later_queries_share_what_was_loaded(
    spark: SparkSession, packed: TableWithOracle
):
    vectors = [add["deletionVector"] for add in log.active_files(packed.path)]
    assert len(vectors) == 12
    assert len({v["pathOrInlineDv"] for v in vectors}) == 1 == len(vector_files(packed))
    packed.assert_same_content()
    for file in vector_files(packed):
        file.unlink()
    for settings in ({}, SMALL_SPLITS):
        with session_settings(spark, settings):
            packed.assert_same_content()
            packed.assert_same_answer("SELECT count(*), sum(h) FROM {t} WHERE id > 3000")


@pytest.mark.protocol("dv-step-2-reading-the-current-state-1")
def test_a_vector_that_is_gone_fails_the_files_it_belongs_to_and_no_others(
    spark: SparkSession, packed: TableWithOracle
):
    packed.append(spark.range(20_000, 20_010).selectExpr("id", "hash(id) h"))
    for file in vector_files(packed):
        file.unlink()
    packed.assert_same_answer("SELECT * FROM {t} WHERE id >= 20000")
    with pytest.raises(DeltaError, match="DELTAIC_DELETION_VECTOR_FILE_MISSING"):
        packed.df().collect()
