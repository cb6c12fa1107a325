package org.apache.spark.sql.deltaic

import org.apache.spark.{QueryContext, SparkRuntimeException}

/**
 * The class that PySpark and Connect know for failures at run time; private to Spark. Its constructors take a
 * condition of Spark's own list, and whoever extends this overrides all that Spark makes of it.
 */
abstract class RuntimeExceptionShim(cause: Throwable) extends SparkRuntimeException(
      "INTERNAL_ERROR",
      Map("message" -> ""),
      cause,
      Array.empty[QueryContext],
      ""
    )
