package io.deltaic.spark.write

import org.apache.spark.sql.catalyst.expressions.Expression
import org.apache.spark.sql.catalyst.parser.ParseException
import org.apache.spark.sql.classic.SparkSession
import org.apache.spark.sql.util.CaseInsensitiveStringMap

import io.deltaic.protocol.DeltaicException
import io.deltaic.spark.SessionSettings

/** The options by which a DataFrame's writer says which rows it replaces. */
private[spark] object ReplaceWhere {
  val Key = "replaceWhere"

  /** Those that go with a new row: a condition over both, or the columns in which they are the same. */
  val OnKey = "replaceOn"
  val UsingKey = "replaceUsing"

  /** Refuses a write that would replace other rows than its options say. */
  def requireHeeded(
      table: String,
      options: CaseInsensitiveStringMap,
      replaced: Replaced
  ): Unit = {
    val heeded = replaced match {
      case Replaced.Rows(_) => Seq(Key)
      case Replaced.Matching(_, _, _) => Seq(OnKey, UsingKey)
      case _ => Nil
    }
    Seq(Key, OnKey, UsingKey).filter(options.containsKey).filterNot(heeded.contains)
      .foreach { key =>
        val reason = s"this way of writing does not take the option $key, which goes with mode " +
          "overwrite of a DataFrame's writer, and with no other of its kind"
        throw refused(table, options.get(key), reason)
      }
  }

  /** @throws DeltaicException if it is no expression */
  def parse(spark: SparkSession, table: String, condition: String): Expression =
    try spark.sessionState.sqlParser.parseExpression(condition)
    catch {
      case e: ParseException => throw refused(table, condition, e.getMessage)
    }

  /** Whether rows that would not be replaced themselves are kept out. */
  def isChecked(spark: SparkSession): Boolean =
    SessionSettings.isOn(spark, "replaceWhere.constraintCheck.enabled", default = true)

  def refused(table: String, condition: String, reason: String): DeltaicException =
    new DeltaicException(
      "DELTAIC_REPLACE_WHERE_REFUSED",
      Map("table" -> table, "predicate" -> condition, "reason" -> reason)
    )
}
