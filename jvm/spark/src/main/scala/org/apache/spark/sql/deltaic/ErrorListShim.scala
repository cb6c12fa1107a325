package org.apache.spark.sql.deltaic

import scala.util.control.NonFatal

import org.apache.spark.{ErrorClassesJsonReader, ErrorInfo, SparkThrowableHelper}
import org.slf4j.LoggerFactory

/**
 * Spark's list of conditions. `getMessage()` of an exception that PySpark has captured renders the template that the
 * list has for the condition, whatever the exception itself says, and is an internal error for a condition that is not
 * in the list. Spark has no means to add to it.
 */
object ErrorListShim {
  private val logger = LoggerFactory.getLogger(getClass)

  /**
   * Adds conditions. Without them, `str()` in PySpark has the message all the same.
   *
   * @param conditions the message template and the SQLSTATE of each
   */
  def add(conditions: Map[String, (String, String)]): Unit =
    try {
      val list = SparkThrowableHelper.errorReader
      val field = classOf[ErrorClassesJsonReader].getDeclaredField("errorInfoMap")
      field.setAccessible(true)
      field.set(
        list,
        list.errorInfoMap ++ conditions.map { case (name, (message, sqlState)) =>
          name -> ErrorInfo(Seq(message), None, Some(sqlState))
        }
      )
    } catch {
      case e @ (NonFatal(_) | _: LinkageError) =>
        logger.debug("Spark's list of conditions takes no others", e)
    }
}
