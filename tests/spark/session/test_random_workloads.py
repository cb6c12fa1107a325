"""Random tables and DML against brute force: contents, counts, change feed, row IDs.

The feed of each version, played on the version before, must give it; rows keep their ids when they
are changed or copied; commit versions follow the changes.
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
from tests.support.workload_runs import OURS, SETTINGS, Engine, begin
from tests.support.workload_strategies import STYLES, few_examples, workloads

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


@pytest.mark.protocol("dv-describe-history-1", "writer-row-tracking-20")
@pytest.mark.parametrize("style", STYLES)
@few_examples(2)
@given(data=st.data())
def test_random_workload_does_what_brute_force_does(
    spark: SparkSession, tmp_path_factory: pytest.TempPathFactory, style: str, data: st.DataObject
) -> None:
    workload = data.draw(workloads(style=STYLES[style]))
    engine = Engine(OURS, spark)
    folder = tmp_path_factory.mktemp("workload")
    with session_settings(spark, SETTINGS):
        course = begin(engine, str(folder / "table"), workload.layout)
        course.advance(engine, workload.steps)
        course.check(engine, course.first)
    require_valid_logs(folder)
