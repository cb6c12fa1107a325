"""The classes of PySpark that errors of Deltaic are instances of, too."""

from __future__ import annotations

from deltaic.exceptions import adopt_spark_classes


def spark_class(name: str) -> type[Exception] | None:
    """Return the class of PySpark that stands for a class of Spark, by its simple name.

    PySpark is imported by the first error, not before.
    """
    from pyspark.errors.exceptions import base

    found = getattr(base, name, None)
    known = isinstance(found, type) and issubclass(found, base.PySparkException)
    return found if known else base.PySparkException


adopt_spark_classes(spark_class)
