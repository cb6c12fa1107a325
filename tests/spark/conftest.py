"""Tables that several tests read and none changes."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from tests.support.paths import JAR
from tests.support.peer import start_delta_spark
from tests.support.peer_reads import PeerReads
from tests.support.spark_process import SparkProcess
from tests.support.table_builder import BuildWithOracle, TableWithOracle, build_with_oracle

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

#: Rows of `readings`, and the files they are stored in: 3000 rows in each.
READINGS, READING_FILES = 12_000, 4

#: Writes row groups of a few hundred rows, so that a file of 3000 has several.
SMALL_ROW_GROUPS = {"parquet.block.size": "8192", "parquet.page.size": "1024"}


def readings_rows(spark: SparkSession) -> DataFrame:
    """Rows with nulls, nesting and every kind of bound; `id` ascends through the files."""
    return spark.range(0, READINGS, 1, READING_FILES).selectExpr(
        "id",
        "CAST(id % 7 AS INT) AS k",
        "CASE WHEN id % 11 <> 0 THEN concat('name ', id % 500) END AS s",
        "CAST(id AS DECIMAL(12, 2)) / 4 AS amount",
        "date_add(DATE'2024-01-01', CAST(id DIV 100 AS INT)) AS d",
        "named_struct('a', CAST(id % 13 AS INT), 'b', named_struct('c', CAST(id AS STRING),"
        " 'e', id / 8.0D)) AS st",
        "array(id, id + 1) AS arr",
        "map('k', id % 3) AS m",
    )


@pytest.fixture(scope="session")
def readings(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> TableWithOracle:
    """A table with rows deleted by vector in three of its four files.

    From the first file a run of rows and scattered ones, by two deletes, are gone, from the second
    all but a few, from the third a single row; the last has no deletion vector.
    """
    path = str(tmp_path_factory.mktemp("readings") / "table")
    table = build_with_oracle(
        spark,
        path,
        readings_rows(spark),
        deletion_vectors=True,
        options=SMALL_ROW_GROUPS,
    )
    table.delete("id BETWEEN 500 AND 1700")
    table.delete("id < 3000 AND k = 3")
    table.delete("id >= 3000 AND id < 6000 AND id % 100 <> 7")
    table.delete("id = 8000")
    return table


@pytest.fixture
def build(spark: SparkSession, table: str) -> BuildWithOracle:
    """`build_with_oracle` for a table of the test's own."""
    return partial(build_with_oracle, spark, table)


@pytest.fixture(scope="session")
def without_extension() -> Iterator[SparkProcess]:
    """A session that has the jar and the catalog, but not the extension.

    It would be refused at its first statement, were it not for the property: this is to show that
    the parts below fail closed as well. `test_session_requirements` has it without.
    """
    settings = {
        "spark.jars": str(JAR),
        "spark.sql.catalog.spark_catalog": "io.deltaic.spark.DeltaicCatalog",
        "spark.driver.extraJavaOptions": "-Ddeltaic.session.unchecked=true",
    }
    with SparkProcess(settings) as process:
        yield process


@pytest.fixture(scope="session")
def _peer_reads(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[PeerReads | None]:
    """Return what has the peers read the tables of all tests, where that is asked for."""
    if not request.config.getoption("--peers-read"):
        yield None
        return
    with start_delta_spark(spark__driver__memory="3g") as delta_spark:
        reads = PeerReads(request.getfixturevalue("spark"), delta_spark)
        yield reads
        # What several tests shared.
        reads.require(tmp_path_factory.getbasetemp())
        print("\nRead by both peers:", dict(reads.counts))


@pytest.fixture(autouse=True)
def _peers_read_tables(
    request: pytest.FixtureRequest, _peer_reads: PeerReads | None
) -> Iterator[None]:
    """Have the peers read the tables that a test leaves in its folder, where that is asked for."""
    uses_folder = "tmp_path" in request.fixturenames
    folder: Path | None = request.getfixturevalue("tmp_path") if uses_folder else None
    yield
    if folder is not None and _peer_reads is not None:
        _peer_reads.require(folder)
