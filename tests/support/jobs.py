"""How many Spark jobs something runs."""

from __future__ import annotations

import itertools
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

_groups = itertools.count()


def jobs_of(spark: SparkSession, action: Callable[[], Any]) -> int:
    """Run an action on this thread and return the number of jobs that it started."""
    context = spark.sparkContext
    group = f"counted-{next(_groups)}"
    context.setJobGroup(group, group)
    try:
        action()
    finally:
        context._jsc.clearJobGroup()
    # Jobs are counted by a listener, which learns of them some time later.
    context._jsc.sc().listenerBus().waitUntilEmpty()
    return len(context.statusTracker().getJobIdsForGroup(group))
