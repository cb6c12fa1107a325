"""Statistics of data files are those that delta-spark writes of the same rows."""

from __future__ import annotations

import json
from typing import Any

import pytest
from pyspark.sql import SparkSession

from tests.support import log
from tests.support.sample_tables import ALL_TYPES
from tests.support.spark_process import SparkProcess

ROWS = {
    "all types": ALL_TYPES,
    "strings": """
SELECT * FROM VALUES ('short', repeat('a', 33), repeat('ä', 40), repeat('x', 32)),
  (NULL, repeat('a', 31) || 'b', '', '\\U0010ffff' || repeat('\\U0010ffff', 40)),
  ('', repeat('z', 100), repeat('\\U0001d11e', 33), 'x\\u0000y')
AS t(a, b, c, d)
""",
    "numbers": """
SELECT * FROM VALUES (0.0D, CAST('NaN' AS DOUBLE), CAST(1.5 AS FLOAT), CAST(-1 AS DECIMAL(5, 2))),
  (-0.0D, 1.0D, CAST('-Infinity' AS FLOAT), 99.99BD), (0.0D, NULL, CAST('NaN' AS FLOAT), NULL)
AS t(zero, nan, float, dec)
""",
    "times": """
SELECT * FROM VALUES
  (TIMESTAMP'2024-02-29 12:34:56.789999', TIMESTAMP_NTZ'1969-12-31 23:59:59.999999',
   DATE'0001-01-01'),
  (TIMESTAMP'1582-10-15 00:00:00', TIMESTAMP_NTZ'2024-01-01 00:00:00.000001', DATE'9999-12-31'),
  (NULL, NULL, NULL)
AS t(ts, ntz, d)
""",
    "only nulls": "SELECT CAST(NULL AS INT) AS a, CAST(NULL AS STRING) AS b, 1 AS c",
    "no rows": "SELECT * FROM VALUES (1, 'a') AS t(a, b) WHERE a > 1",
    "many columns": "SELECT "
    + ", ".join(f"{n} AS c{n}, struct({n} AS x) AS s{n}" for n in range(20)),
}

#: Bounds that need not be the same. Of floats, ours are none where there is a NaN or an infinity,
#: and -0.0 is below 0.0; a string is truncated by characters here and by UTF-16 units there. What
#: ours must be is in tests/spark/write/test_write_statistics.py.
DIFFERENT = {
    "all types": [("minValues", "float"), ("maxValues", "float"), ("minValues", "double")],
    "strings": [("maxValues", name) for name in "cd"],
    "numbers": [
        *[("maxValues", name) for name in ("nan", "float")],
        *[("minValues", name) for name in ("zero", "float")],
    ],
}

WRITE = """
writer = spark.sql(query).coalesce(1).write.format('delta')
writer.options(**options).partitionBy(*parts).save(path)
result = None
"""

NESTED = """
SELECT id, CAST(id % 2 AS STRING) AS p,
  struct(id AS x, struct('a' AS y, array(id) AS z) AS st) AS s,
  concat('v', id) AS `d.e`, IF(id > 5, NULL, id) AS n, map('k', id) AS m
FROM range(10)
"""

#: Ways to store `NESTED`, by the table's properties and its partition columns.
LAYOUTS: dict[str, tuple[dict[str, str], list[str]]] = {
    "listed": ({"delta.dataSkippingStatsColumns": "n,s.st.y,`d.e`"}, []),
    "listed structs": ({"delta.dataSkippingStatsColumns": "s"}, []),
    "the first": ({"delta.dataSkippingNumIndexedCols": "4"}, []),
    "none": ({"delta.dataSkippingNumIndexedCols": "0"}, []),
    "all": ({"delta.dataSkippingNumIndexedCols": "-1"}, []),
    "partitioned": ({}, ["p"]),
    "partitioned, the first": ({"delta.dataSkippingNumIndexedCols": "2"}, ["p"]),
    "mapped": ({"delta.columnMapping.mode": "name"}, []),
    "mapped, listed and partitioned": (
        {"delta.columnMapping.mode": "id", "delta.dataSkippingStatsColumns": "s.x,`d.e`"},
        ["p"],
    ),
}


@pytest.mark.parametrize("name", ROWS)
def test_statistics_are_those_of_delta_spark(
    spark: SparkSession, delta_spark: SparkProcess, table: str, name: str
) -> None:
    # Without vectors, delta-spark does not say that bounds are tight.
    options = {"delta.enableDeletionVectors": "true"}
    other = f"{table}-of-delta-spark"
    given = {"query": ROWS[name], "options": options, "parts": []}
    exec(WRITE, {"spark": spark, "path": table, **given})
    delta_spark.run(WRITE, path=other, **given)
    ours, theirs = (
        [log.statistics(add) for add in log.active_files(path)] for path in (table, other)
    )
    for bounds, column in DIFFERENT.get(name, []):
        for statistics in (*ours, *theirs):
            statistics[bounds].pop(column, None)
    assert ours == theirs


@pytest.mark.parametrize("layout", LAYOUTS)
def test_statistics_are_of_the_columns_that_delta_spark_takes(
    spark: SparkSession, delta_spark: SparkProcess, table: str, layout: str
) -> None:
    properties, parts = LAYOUTS[layout]
    options = {"delta.enableDeletionVectors": "true", **properties}
    other = f"{table}-of-delta-spark"
    given = {"query": NESTED, "options": options, "parts": parts}
    exec(WRITE, {"spark": spark, "path": table, **given})
    delta_spark.run(WRITE, path=other, **given)
    assert told_by_name(table) == told_by_name(other)


def told_by_name(table: str) -> list[dict[str, Any]]:
    """Return the statistics of each file, columns by the names that users give them."""
    schema = json.loads(log.metadata(table)["schemaString"])
    found = []
    for add in log.active_files(table):
        statistics = log.statistics(add)
        for kind in ("minValues", "maxValues", "nullCount"):
            of_columns = logical(statistics.pop(kind, {}), schema)
            if of_columns:
                statistics[kind] = of_columns
        found.append(statistics)
    return sorted(found, key=str)


def logical(values: dict[str, Any], struct: dict[str, Any]) -> dict[str, Any]:
    by_stored_name = {
        field["metadata"].get("delta.columnMapping.physicalName", field["name"]): field
        for field in struct["fields"]
    }
    return {
        by_stored_name[name]["name"]: (
            logical(value, by_stored_name[name]["type"]) if isinstance(value, dict) else value
        )
        for name, value in values.items()
    }
