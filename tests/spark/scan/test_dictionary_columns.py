"""Columns whose values the scan takes from a file's dictionary where there is one."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from pyspark.sql import functions as F

from tests.support.session_settings import session_settings

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

#: Strings that are few, many, null, long, and some that begin few and become too many for a
#: dictionary, over several row groups and pages.
ROWS = """
SELECT id,
  element_at(array('', 'ä€𝄞', 'three', NULL), CAST(id % 4 AS INT) + 1) AS few,
  CASE WHEN id % 5 = 0 THEN NULL ELSE hex(id * 2654435761) END AS many,
  CASE WHEN id < 4000 THEN concat('k', id % 3) ELSE concat('value ', id) END AS turning,
  CAST(NULL AS STRING) AS none,
  repeat('long ', CAST(id % 300 AS INT)) AS long,
  element_at(array('x', 'y', NULL), CAST(id % 3 AS INT) + 1) AS p
FROM range(0, 20000, 1, 1)
"""

#: Numbers and times of each width: one column of few values and nulls, one that turns.
_OF_NUMBER = {
    "byte": "CAST({n} % 100 AS TINYINT)",
    "short": "CAST({n} AS SMALLINT)",
    "int": "CAST({n} AS INT)",
    "long": "{n} * 4000000000",
    "float": "CAST({n} / 3 AS FLOAT)",
    "double": "{n} / 3.0D",
    "dec7": "CAST({n} / 8 AS DECIMAL(7, 2))",
    "dec15": "CAST({n} * 1000003 AS DECIMAL(15, 2)) / 7",
    "dec18": "CAST({n} * 7 AS DECIMAL(18, 4))",
    "dec30": "CAST({n} * 7 AS DECIMAL(30, 4))",
    "date": "date_add(DATE'1960-01-01', CAST({n} AS INT))",
    "time": "timestamp_micros({n} * 86400000017)",
    "ntz": "CAST(timestamp_micros({n} * 86400000017) AS TIMESTAMP_NTZ)",
}
_TURNING = {
    "few": "IF(id % 4 = 3, NULL, id % 4)",
    "turning": "IF(id % 9 = 0, NULL, IF(id < 4000, id % 3, id))",
}
NUMBERS = [
    f"{number.format(n=turns)} AS {turn}_{name}"
    for name, number in _OF_NUMBER.items()
    for turn, turns in _TURNING.items()
]

QUERIES = [
    "SELECT * FROM {t}",
    "SELECT few, count(*), min(many), max(turning), max(length(long)) FROM {t} GROUP BY few",
    "SELECT turning, few FROM {t} WHERE few = 'three' AND turning LIKE 'k%' AND none IS NULL",
    "SELECT collect_set(few), collect_set(p), max(turning) FROM {t}",
    "SELECT a.few, count(*) FROM {t} a JOIN {t} b ON a.turning = b.turning GROUP BY 1",
    "SELECT id, few FROM {t} ORDER BY turning DESC, id LIMIT 50",
    "SELECT few_int, max(turning_long), min(turning_double), sum(turning_dec15), max(turning_dec7),"
    " max(turning_date), min(turning_time), sum(few_dec30) FROM {t} GROUP BY few_int",
    "SELECT turning_int, turning_dec18 FROM {t} WHERE few_dec7 > 0.1"
    " AND turning_date < '1961-01-01'"
    " AND few_time IS NOT NULL",
    "SELECT sum(hash(turning_byte, turning_short, turning_float, few_ntz, few_double)) FROM {t}",
    "SELECT a.few_long, count(*) FROM {t} a JOIN {t} b ON a.turning_long = b.turning_long"
    " GROUP BY 1",
]

MODES = {
    "default": {},
    "off heap": {
        "spark.sql.columnVector.offheap.enabled": "true",
        "spark.sql.parquet.columnarReaderBatchSize": "1000",
    },
    "no code generation": {"spark.sql.codegen.wholeStage": "false"},
    "few rows in a batch": {"spark.sql.parquet.columnarReaderBatchSize": "37"},
    "pages over several buffers": {"parquet.read.allocation.size": "1000"},
    "ranges asked for at once": {"parquet.hadoop.vectored.io.enabled": "true"},
}


@pytest.fixture(scope="module")
def tables(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> tuple[str, str]:
    """The same rows in a table with rows deleted from it, and in plain Parquet without them."""
    folder = tmp_path_factory.mktemp("strings")
    small = {"parquet.block.size": "65536", "parquet.page.size": "4096"}
    small |= {"parquet.dictionary.page.size": "16384"}
    rows = spark.sql(ROWS).select("*", *(F.expr(number) for number in NUMBERS))
    writer = rows.write.format("delta").partitionBy("p").options(**small)
    writer.option("delta.enableDeletionVectors", "true").save(f"{folder}/table")
    spark.sql(f"DELETE FROM delta.`{folder}/table` WHERE id % 7 = 3")
    rows.where("id % 7 <> 3").write.parquet(f"{folder}/plain")
    return f"delta.`{folder}/table`", f"parquet.`{folder}/plain`"


@pytest.mark.parametrize("mode", MODES)
def test_values_are_those_that_were_written(
    spark: SparkSession, tables: tuple[str, str], mode: str
) -> None:
    ours, plain = tables
    with session_settings(spark, MODES[mode]):
        for query in QUERIES:
            shown = sorted(map(repr, spark.sql(query.format(t=ours)).collect()))
            assert shown == sorted(map(repr, spark.sql(query.format(t=plain)).collect())), query
