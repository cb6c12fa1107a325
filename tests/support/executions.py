"""The plans that an action executes, those of commands too, which no DataFrame shows."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from pyspark.java_gateway import ensure_callback_server_started

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


class _Listener:
    """What Spark reports about queries that have run (``QueryExecutionListener``)."""

    def __init__(self) -> None:
        self.plans: list[Any] = []

    def onSuccess(self, function: str, execution: Any, duration_ns: int) -> None:
        self.plans.append(execution.executedPlan())

    def onFailure(self, function: str, execution: Any, problem: Any) -> None:
        pass

    class Java:
        implements = ("org.apache.spark.sql.util.QueryExecutionListener",)


def executed_plans(spark: SparkSession, action: Callable[[], object]) -> list[Any]:
    """Run an action and return the physical plans, in the order in which they ended."""
    context = spark.sparkContext
    ensure_callback_server_started(context._gateway)
    bus = context._jsc.sc().listenerBus()
    manager = spark._jsparkSession.listenerManager()
    bus.waitUntilEmpty()
    listener = _Listener()
    manager.register(listener)
    try:
        action()
        bus.waitUntilEmpty()
    finally:
        # `unregister` compares objects of Java, and gets another one for this each time.
        manager.clear()
    return listener.plans
