package org.apache.spark.sql.deltaic

import scala.util.control.NonFatal

import org.apache.spark.{ErrorClassesJsonReader, ErrorInfo, SparkThrowableHelper}
import org.slf4j.LoggerFactory

/**
 * Spark's list of conditions. In PySpark, `getMessage()` of a captured exception renders the list's
 * template for the condition, ignoring the exception's own message. For a condition that is not in
 * the list it raises an internal error. Spark has no API to add conditions.
 */
object ErrorListInternals {
  private val logger = LoggerFactory.getLogger(getClass)

  /**
   * Adds conditions. If this fails, `str()` in PySpark still returns the message.
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
        logger.debug("Cannot add to Spark's list of conditions", e)
    }
}
