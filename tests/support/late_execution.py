"""A statement that is analyzed, and executed only after something else has happened."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


def run_after_analysis(spark: SparkSession, statement: str, between: Callable[[], object]) -> None:
    """Run a command as Spark runs it, with `between` where another session may get in between."""
    session = spark._jsparkSession
    jvm = spark._jvm
    assert jvm is not None
    plan = session.sessionState().sqlParser().parsePlan(statement)
    package = jvm.org.apache.spark.sql.execution
    modes = package.CommandExecutionMode
    analyzed = session.sessionState().executePlan(plan, modes.SKIP()).analyzed()
    between()
    none = jvm.scala.Option.empty()
    execution = package.QueryExecution
    # Spark 4.2.1 has one parameter more.
    more = [] if spark.version == "4.2.0" else [getattr(execution, "runCommand$default$8")()]
    execution.runCommand(session, analyzed, "command", True, modes.NON_ROOT(), none, none, *more)
