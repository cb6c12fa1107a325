package io.deltaic.spark.write

import org.apache.spark.sql.catalyst.expressions.Expression
import org.apache.spark.sql.catalyst.parser.ParseException
import org.apache.spark.sql.classic.SparkSession

import io.deltaic.protocol.DeltaicException
import io.deltaic.spark.SessionSettings

/** The option by which a DataFrame's writer says which rows it replaces. */
private[spark] object ReplaceWhere {
  val Key = "replaceWhere"

  /** @throws DeltaicException if it is no expression */
  def parse(spark: SparkSession, table: String, condition: String): Expression =
    try spark.sessionState.sqlParser.parseExpression(condition)
    catch {
      case e: ParseException => throw refused(table, condition, e.getMessage)
    }

  /** Whether rows that would not be replaced themselves are kept out. */
  def isChecked(spark: SparkSession): Boolean =
    !SessionSettings.get(spark, "replaceWhere.constraintCheck.enabled")
      .exists(_.trim.equalsIgnoreCase("false"))

  def refused(table: String, condition: String, reason: String): DeltaicException =
    new DeltaicException(
      "DELTAIC_REPLACE_WHERE_REFUSED",
      Map("table" -> table, "predicate" -> condition, "reason" -> reason)
    )
}
