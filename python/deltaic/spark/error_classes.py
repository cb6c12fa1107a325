"""The PySpark classes of Deltaic's errors."""

from __future__ import annotations

from deltaic.exceptions import adopt_spark_classes


def spark_class(name: str) -> type[Exception] | None:
    """Return PySpark's class for a class of Spark, by its simple name.

    PySpark is imported by the first error, not before.
    """
    from pyspark.errors.exceptions import base

    found = getattr(base, name, None)
    is_error_class = isinstance(found, type) and issubclass(found, base.PySparkException)
    return found if is_error_class else base.PySparkException


adopt_spark_classes(spark_class)
