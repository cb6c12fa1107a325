"""What Spark and Deltaic log in the JVM of a session."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


@contextmanager
def jvm_log(spark: SparkSession) -> Iterator[list[str]]:
    """Collect what Spark and Deltaic log meanwhile, from INFO on, stack traces included."""
    jvm = spark._jvm
    assert jvm is not None
    log4j = jvm.org.apache.logging.log4j
    context = log4j.LogManager.getContext(False)
    root = context.getConfiguration().getRootLogger()
    before = root.getLevel()
    writer = jvm.java.io.StringWriter()
    pattern = log4j.core.layout.PatternLayout.newBuilder().withPattern("%p %c %m%n%throwable")
    appender = log4j.core.appender.WriterAppender.createAppender(
        pattern.build(), None, writer, "of-test", False, False
    )
    appender.start()
    root.addAppender(appender, log4j.Level.INFO, None)
    log4j.core.config.Configurator.setRootLevel(log4j.Level.INFO)
    lines: list[str] = []
    try:
        yield lines
    finally:
        log4j.core.config.Configurator.setRootLevel(before)
        root.removeAppender("of-test")
        appender.stop()
        lines += writer.toString().split("\n")
