"""How many Spark jobs something runs, and when their tasks are over."""

from __future__ import annotations

import itertools
import threading
import time
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from pyspark import SparkContext

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

_groups = itertools.count()
_SOON_S = 120.0


def jobs_of(spark: SparkSession, action: Callable[[], Any]) -> int:
    """Run an action on this thread and return the number of jobs that it started."""
    return len(_started(spark, action))


def most_tasks(spark: SparkSession, action: Callable[[], Any]) -> int:
    """Run an action on this thread and return how many tasks its largest stage has."""
    status = spark.sparkContext.statusTracker()
    jobs = [status.getJobInfo(job) for job in _started(spark, action)]
    stages = [status.getStageInfo(s) for job in jobs if job is not None for s in job.stageIds]
    return max(stage.numTasks for stage in stages if stage is not None)


def _started(spark: SparkSession, action: Callable[[], Any]) -> list[int]:
    context = spark.sparkContext
    group = f"counted-{next(_groups)}"
    context.setJobGroup(group, group)
    try:
        action()
    finally:
        context._jsc.clearJobGroup()
    # Jobs are counted by a listener, which learns of them some time later.
    context._jsc.sc().listenerBus().waitUntilEmpty()
    return context.statusTracker().getJobIdsForGroup(group)


def job_descriptions(spark: SparkSession, group: str) -> list[str]:
    """Return what the jobs of a group are called, in their order; ``nothing`` without a name."""
    scala = spark.sparkContext._jsc.sc()
    scala.listenerBus().waitUntilEmpty()
    jobs = scala.statusStore().jobsList(None)
    names = {}
    for job in (jobs.apply(i) for i in range(jobs.size())):
        if job.jobGroup().isDefined() and job.jobGroup().get() == group:
            described = job.description()
            names[job.jobId()] = described.get() if described.isDefined() else "nothing"
    return [name for _, name in sorted(names.items())]


def descriptions_of(spark: SparkSession, action: Callable[[], Any]) -> list[str]:
    """Run an action on this thread and return what its jobs are called, each once."""
    context = spark.sparkContext
    group = f"described-{next(_groups)}"
    context.setLocalProperty("spark.jobGroup.id", group)
    try:
        action()
    finally:
        context.setLocalProperty("spark.jobGroup.id", None)  # type: ignore[arg-type]
    return list(dict.fromkeys(job_descriptions(spark, group)))


def failures_of_cancelled(
    spark: SparkSession, group: str, action: Callable[[], Any], has_begun: Callable[[], bool]
) -> list[BaseException]:
    """Run an action in a thread, cancel its jobs once it has begun, and return how it failed.

    Parameters
    ----------
    group
        The name of the job group.
    """
    context = spark.sparkContext
    failures: list[BaseException] = []

    def run() -> None:
        context.setJobGroup(group, group)
        try:
            action()
        except Exception as problem:
            failures.append(problem)

    thread = threading.Thread(target=run)
    thread.start()
    deadline = time.monotonic() + 60
    while not has_begun():
        assert time.monotonic() < deadline and thread.is_alive(), "it has not begun"
    context.cancelJobGroup(group)
    thread.join(60)
    await_tasks()
    return failures


def await_tasks() -> None:
    """Wait until no task runs: those of a failed job go on until they notice, then clean up."""
    context = SparkContext._active_spark_context
    if context is None:
        return
    # What runs is known from a listener, which learns some time later that a task was started.
    context._jsc.sc().listenerBus().waitUntilEmpty()
    status = context._jsc.sc().statusTracker()
    deadline = time.monotonic() + _SOON_S
    while any(executor.numRunningTasks() for executor in status.getExecutorInfos()):
        assert time.monotonic() < deadline, f"a task takes more than {_SOON_S:g} s"
        time.sleep(0.02)
