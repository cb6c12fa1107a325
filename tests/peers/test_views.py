"""Views over tables whose columns change say what they say over tables of delta-spark."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from tests.support.spark_process import SparkProcess

#: Builds a table and views over it, changes it, adds a row, and reads the views; then all is gone.
#: A view that cannot be read gives its condition.
READ_VIEWS = """
import re

spark.sql(f"CREATE TABLE {name} (id BIGINT, s STRING, u INT) USING delta LOCATION '{path}'"
          " TBLPROPERTIES ('delta.columnMapping.mode' = 'name')")
spark.sql(f"INSERT INTO {name} VALUES (1, 'a', 5), (2, 'b', 6)")
queries = {
    "all of the name": f"SELECT * FROM {name}",
    "all of the path": f"SELECT * FROM delta.`{path}`",
    "two columns of the name": f"SELECT id, s FROM {name}",
    "two columns of the path": f"SELECT id, s FROM delta.`{path}`",
}
views = {}
for what, query in queries.items():
    for kind in ("VIEW", "TEMPORARY VIEW"):
        views[f"{kind}, {what}"] = view = f"{name}_view_{len(views)}"
        spark.sql(f"CREATE {kind} {view} AS {query}")
loaded = spark.read.format("delta").load(path)
for what, df in {"loaded": loaded, "by name": spark.table(name)}.items():
    views[f"DataFrame {what}"] = view = f"{name}_view_{len(views)}"
    df.select("id", "s").createOrReplaceTempView(view)
spark.sql(f"ALTER TABLE {name} {change}")
spark.sql(f"INSERT INTO {name} (id) VALUES (3)")
result = {}
for what, view in views.items():
    try:
        df = spark.table(view)
        result[what] = [df.columns, sorted(map(list, df.collect()), key=str)]
    except Exception as e:
        result[what] = re.search(r"\\[([A-Z_.]+)\\]", str(e))[1]
for what, view in views.items():
    if what.startswith("VIEW"):
        spark.sql(f"DROP VIEW {view}")
    else:
        spark.catalog.dropTempView(view)
spark.sql(f"DROP TABLE {name}")
"""

#: The error with which each engine reports that a DataFrame no longer fits the table.
FRAME_NO_LONGER_FITS = {
    "DELTA_SCHEMA_CHANGE_SINCE_ANALYSIS",
    "DELTAIC_SCHEMA_CHANGED",
    # Spark looks itself at tables that a catalog gives it, which those of delta-spark are not.
    "INCOMPATIBLE_COLUMN_CHANGES_AFTER_VIEW_WITH_PLAN_CREATION",
}

#: Changes of the columns, with how many of the ten views still show rows.
CHANGES = {
    "ADD COLUMN e INT": 10,
    "RENAME COLUMN s TO other": 0,
    "DROP COLUMN s": 0,
    "DROP COLUMN u": 4,
}


def read_here(spark: SparkSession, **arguments: str) -> dict[str, Any]:
    names: dict[str, Any] = {"spark": spark, **arguments}
    exec(READ_VIEWS, names)
    return dict(names["result"])


def comparable(answer: Any) -> Any:
    fits = isinstance(answer, list) or answer not in FRAME_NO_LONGER_FITS
    return answer if fits else "no longer fits"


@pytest.mark.parametrize("change", CHANGES)
def test_views_over_changed_columns_show_or_refuse_as_with_delta_spark(
    spark: SparkSession, delta_spark: SparkProcess, tmp_path: Path, change: str
) -> None:
    name = "viewed_" + "_".join(change.lower().split())
    ours = read_here(spark, name=name, path=str(tmp_path / "ours"), change=change)
    theirs = delta_spark.run(READ_VIEWS, name=name, path=str(tmp_path / "theirs"), change=change)
    assert ours.keys() == theirs.keys()
    for view, answer in theirs.items():
        mine = ours[view]
        if isinstance(answer, str):
            assert comparable(mine) == comparable(answer), view
        else:
            assert mine == answer, view
    assert sum(not isinstance(answer, str) for answer in ours.values()) == CHANGES[change]
