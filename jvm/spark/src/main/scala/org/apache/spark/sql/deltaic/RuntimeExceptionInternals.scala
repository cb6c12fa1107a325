package org.apache.spark.sql.deltaic

import org.apache.spark.{QueryContext, SparkRuntimeException}

/**
 * The class that PySpark and Connect recognize as a run-time error; private to Spark. Its
 * constructors require a condition of Spark's own list; subclasses override everything that Spark
 * derives from it.
 */
abstract class RuntimeExceptionInternals(cause: Throwable) extends SparkRuntimeException(
      "INTERNAL_ERROR",
      Map("message" -> ""),
      cause,
      Array.empty[QueryContext],
      ""
    )
