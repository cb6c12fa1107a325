"""The size of plans of TPC-DS queries over tables with the statistics of scale factor 100."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.support import tpcds
from tests.support.spark_process import SparkProcess

_SCHEMA = """
from pyspark.sql.types import StructType
schema = StructType.fromDDL(ddl)
result = schema.json()
"""

_VIEWS = """
for name, path in paths.items():
    spark.read.format("delta").load(path).createOrReplaceTempView(name)
"""

#: Every scan of a plan is a line of its text, those of subqueries included.
_PLAN = """
spark.conf.set("spark.sql.optimizer.dynamicPartitionPruning.enabled", prunes)
plan = spark.sql(query)._jdf.queryExecution().executedPlan().toString()
result = plan.count("BatchScan ")
"""

#: What q64 takes is less than a tenth of it, on a machine that has other things to do.
_TIMEOUT_S = 90.0


@pytest.fixture(scope="module")
def planner(tmp_path_factory: pytest.TempPathFactory) -> Iterator[SparkProcess]:
    """A session of its own: a plan that explodes takes this process down and no other."""
    with SparkProcess(engine="deltaic", timeout_s=_TIMEOUT_S) as process:
        yield process


@pytest.fixture(scope="module", params=["whole", "by date"])
def tables(
    planner: SparkProcess, tmp_path_factory: pytest.TempPathFactory, request: pytest.FixtureRequest
) -> SparkProcess:
    folder = tmp_path_factory.mktemp("tpcds")
    for name, ddl in tpcds.columns().items():
        schema = planner.run(_SCHEMA, ddl=ddl)
        tpcds.write_log(folder / name, name, schema, partitioned=request.param == "by date")
    planner.run(_VIEWS, paths={name: str(folder / name) for name in tpcds.columns()})
    return planner


@pytest.mark.parametrize("name", ["q14a", "q14b", "q64"])
def test_plan_of_a_query_of_many_joins_stays_bounded(tables: SparkProcess, name: str) -> None:
    """Subqueries that prune scans add scans of small tables, and not one for each path of joins."""
    query = tpcds.query(name)
    without = tables.run(_PLAN, query=query, prunes=False)
    scans = tables.run(_PLAN, query=query, prunes=True)
    assert 0 < without <= scans <= 2 * without
