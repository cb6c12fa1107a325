"""Columns with a collation: their bounds are in byte order, not in the order of the collation."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pytest

from deltaic.exceptions import DeltaError
from tests.support import log
from tests.support.foreign_table import ForeignTable, field
from tests.support.plans import scanned_files, scans
from tests.support.table_builder import assert_same_rows

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

SCHEMA = (
    "id BIGINT, s STRING COLLATE UTF8_LCASE, u STRING COLLATE UNICODE_CI, b STRING,"
    " p STRING COLLATE UTF8_LCASE"
)
PROTOCOL = {
    "minReaderVersion": 1,
    "minWriterVersion": 7,
    "writerFeatures": ["collations", "domainMetadata"],
}
FILES: list[list[tuple[Any, ...]]] = [
    [(1, "Apple", "Éclair", "Apple", "x"), (2, "apple", "éclair", "apple", "x")],
    [(3, "ZEBRA", "zebra", "ZEBRA", "X"), (4, None, None, "m", "X")],
    [(5, None, None, None, None), (6, None, None, None, None)],
]


@pytest.fixture(scope="module")
def names(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> tuple[str, str]:
    """A table with statistics as bytes, and a view of the same rows."""
    columns = [
        field("id", "long"),
        field("s", "string"),
        field("u", "string"),
        field("b", "string"),
        field("p", "string"),
    ]
    for column, collation in (
        (1, "spark.UTF8_LCASE"),
        (2, "icu.UNICODE_CI"),
        (4, "spark.UTF8_LCASE"),
    ):
        columns[column]["metadata"] = {"__COLLATIONS": {columns[column]["name"]: collation}}
    path = str(tmp_path_factory.mktemp("collations") / "table")
    table = ForeignTable(path, *columns, partition_by=["p"], protocol=PROTOCOL)
    for rows in FILES:
        stored = {name: [row[i] for row in rows] for i, name in enumerate(("id", "s", "u", "b"))}
        kinds = {"id": pa.int64(), "s": pa.string(), "u": pa.string(), "b": pa.string()}
        known = {k: [v for v in values if v is not None] for k, values in stored.items()}
        stats = {
            "numRecords": len(rows),
            "minValues": {k: min(values) for k, values in known.items() if values},
            "maxValues": {k: max(values) for k, values in known.items() if values},
            "nullCount": {k: len(rows) - len(values) for k, values in known.items()},
        }
        arrays = {k: pa.array(values, kinds[k]) for k, values in stored.items()}
        table.add(pa.table(arrays), {"p": rows[0][4]}, stats=stats)
    rows = [row for file in FILES for row in file]
    spark.createDataFrame(rows, SCHEMA).createOrReplaceTempView("collated_rows")
    return f"delta.`{path}`", "collated_rows"


QUERIES = [
    "SELECT * FROM {t}",
    "SELECT * FROM {t} WHERE s = 'APPLE'",
    "SELECT * FROM {t} WHERE s <> 'APPLE'",
    "SELECT * FROM {t} WHERE s < 'b'",
    "SELECT * FROM {t} WHERE s >= 'zebra'",
    "SELECT * FROM {t} WHERE s IN ('zebra', 'none')",
    "SELECT * FROM {t} WHERE s NOT IN ('zebra', 'none')",
    "SELECT * FROM {t} WHERE startswith(s, 'AP')",
    "SELECT * FROM {t} WHERE s LIKE 'AP%'",
    "SELECT * FROM {t} WHERE s BETWEEN 'y' AND 'zz'",
    "SELECT * FROM {t} WHERE u = 'ÉCLAIR'",
    "SELECT * FROM {t} WHERE u > 'f'",
    "SELECT * FROM {t} WHERE b COLLATE UTF8_LCASE = 'zebra'",
    "SELECT * FROM {t} WHERE s COLLATE UTF8_BINARY = 'apple'",
    "SELECT * FROM {t} WHERE coalesce(s, 'q') = 'Q'",
    "SELECT * FROM {t} WHERE left(s, 1) = 'a'",
    "SELECT * FROM {t} WHERE p = 'X'",
    "SELECT * FROM {t} WHERE p IN ('X', 'y')",
    "SELECT * FROM {t} WHERE p <> 'x'",
    "SELECT count(DISTINCT p), count(p), count(s), count(*) FROM {t}",
    "SELECT lower(p), count(*) FROM {t} GROUP BY p",
    "SELECT lower(max(s)), lower(min(u)), lower(max(p)) FROM {t}",
    "SELECT a.id, b.id FROM {t} a JOIN {t} b ON a.s = b.s WHERE b.id = 1",
    "SELECT a.id, b.id FROM {t} a JOIN {t} b ON a.p = b.p WHERE b.id = 3",
    "SELECT id FROM {t} WHERE p = (SELECT 'X' COLLATE UTF8_LCASE FROM range(1))",
]


@pytest.mark.parametrize("query", QUERIES)
def test_collated_columns_compare_by_their_collation(
    spark: SparkSession, names: tuple[str, str], query: str
):
    ours, theirs = (spark.sql(query.format(t=name)) for name in names)
    assert ours.schema.simpleString() == theirs.schema.simpleString()
    assert_same_rows(ours.collect(), theirs.collect())


@pytest.mark.parametrize(
    ("condition", "files"),
    [
        ("s = 'nothing like it'", 2),
        ("s IS NULL", 2),
        ("s IS NOT NULL", 2),
        ("b = 'nothing like it'", 0),
        ("p = 'X'", 2),
        ("id = 3", 1),
    ],
)
def test_their_null_counts_and_all_other_columns_still_choose_files(
    spark: SparkSession, names: tuple[str, str], condition: str, files: int
):
    df = spark.sql(f"SELECT * FROM {names[0]} WHERE {condition}")
    assert len(scanned_files(df)) == files


def test_their_bounds_answer_no_aggregate(spark: SparkSession, names: tuple[str, str]):
    assert scans(spark.sql(f"SELECT max(s) FROM {names[0]}"))
    assert not scans(spark.sql(f"SELECT max(id) FROM {names[0]}"))


def test_column_is_not_given_one(spark: SparkSession, table: str):
    name = f"delta.`{table}`"
    spark.sql(f"CREATE TABLE {name} (id INT, s STRING) USING delta")
    for statement in (
        f"ALTER TABLE {name} ALTER COLUMN s TYPE STRING COLLATE UTF8_LCASE",
        f"ALTER TABLE {name} ADD COLUMNS (t STRING COLLATE UTF8_LCASE)",
        f"CREATE OR REPLACE TABLE {name} (s STRING COLLATE UTF8_LCASE) USING delta",
    ):
        with pytest.raises(
            DeltaError, match=r"DELTAIC_UNSUPPORTED_FEATURE_REQUESTED.*collations"
        ) as caught:
            spark.sql(statement)
        assert table in str(caught.value)
    assert log.newest(table) == 0
    spark.sql(f"ALTER TABLE {name} ALTER COLUMN s TYPE STRING COLLATE UTF8_BINARY")
    assert log.newest(table) == 0, "which it has"
    assert spark.table(name).schema["s"].dataType.simpleString() == "string"


def test_writing_to_them_is_refused_by_name(spark: SparkSession, names: tuple[str, str]):
    for statement in ("DELETE FROM {t} WHERE id = 1", "INSERT INTO {t} SELECT * FROM {t}"):
        with pytest.raises(DeltaError, match=r"DELTAIC_UNSUPPORTED_WRITER_FEATURE.*collations"):
            spark.sql(statement.format(t=names[0]))
