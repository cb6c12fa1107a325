"""Random workloads on Deltaic, on delta-spark and as brute force.

Each engine makes a table and runs the first half of the steps, then goes on with the other's table.
Contents, counts, change feed and row IDs must be those of brute force for either reader.
``make test-workloads WORKLOADS=100`` tries as many others of each style, with
``SEED=7`` the same ones each time.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.support.session_settings import session_settings
from tests.support.valid_logs import require_valid_logs
from tests.support.workload import Workload
from tests.support.workload_runs import OURS, SETTINGS, Engine, begin
from tests.support.workload_strategies import STYLES, few_examples, workloads

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from tests.support.spark_process import SparkProcess


def run_on_both(
    spark: SparkSession,
    delta_spark: SparkProcess,
    tmp_path_factory: pytest.TempPathFactory,
    workload: Workload,
    *,
    peer_reads_all: bool,
) -> None:
    engines = [Engine(OURS, spark), Engine("delta-spark", process=delta_spark)]
    folder = tmp_path_factory.mktemp("workload")
    courses = [begin(engine, str(folder / engine.name), workload.layout) for engine in engines]
    half = len(workload.steps) // 2
    for order, steps in (
        (engines, workload.steps[:half]),
        (engines[::-1], workload.steps[half:]),
    ):
        for engine, course in zip(order, courses, strict=True):
            since = course.newest
            with session_settings(spark, SETTINGS):
                course.advance(engine, steps)
            for reader in engines:
                newest_only = reader.process is not None and not peer_reads_all
                course.check(reader, since, newest_only=newest_only)
    require_valid_logs(folder)


@pytest.mark.parametrize("style", STYLES)
@few_examples(1)
@given(data=st.data())
def test_random_workload_has_the_same_outcome_on_both_engines(
    spark: SparkSession,
    delta_spark: SparkProcess,
    tmp_path_factory: pytest.TempPathFactory,
    style: str,
    data: st.DataObject,
) -> None:
    drawn = workloads(max_steps=6, beside_delta_spark=True, style=STYLES[style])
    workload = data.draw(drawn)
    run_on_both(spark, delta_spark, tmp_path_factory, workload, peer_reads_all=False)


@pytest.mark.thorough
@few_examples(25)
@given(workload=workloads(min_steps=6, max_steps=12, beside_delta_spark=True))
def test_long_random_workload_has_the_same_outcome_on_both_engines(
    spark: SparkSession,
    delta_spark: SparkProcess,
    tmp_path_factory: pytest.TempPathFactory,
    workload: Workload,
) -> None:
    run_on_both(spark, delta_spark, tmp_path_factory, workload, peer_reads_all=True)
