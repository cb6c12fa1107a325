package io.deltaic.spark.sql.analysis.columns

import org.apache.spark.sql.catalyst.expressions._
import org.apache.spark.sql.catalyst.util.CharVarcharUtils
import org.apache.spark.sql.classic.SparkSession
import org.apache.spark.sql.deltaic.ExpressionInternals
import org.apache.spark.sql.types.StructType

import io.deltaic.protocol.ColumnNames

/**
 * Generation expressions with values in place of the columns that they reference.
 *
 * @param generated the expression of each generated column
 */
private[sql] final class ColumnValues(
    spark: SparkSession,
    columns: StructType,
    generated: Map[String, String]
) {
  private val attributes = ExpressionInternals.attributes(columns)

  private val expressions: Map[String, Expression] = generated.map { case (name, sql) =>
    key(name) -> ExpressionInternals.resolved(spark, sql, attributes)
  }

  def isGenerated(column: String): Boolean = expressions.contains(key(column))

  /** The columns that the expression of a generated column references. */
  def basesOf(column: String): Seq[String] =
    expressions(key(column)).references.toSeq.map(_.name)

  /** @param valueOf the value of a row in another column */
  def of(column: String, valueOf: String => Expression): Expression = {
    val zone = Some(spark.sessionState.conf.sessionLocalTimeZone)
    // The stored value: CHAR is padded.
    def as(value: Expression, name: String): Expression = {
      val wanted = attributes.find(a => key(a.name) == key(name)).get
      val typed =
        if (value.dataType == wanted.dataType) value else Cast(value, wanted.dataType, zone)
      CharVarcharUtils.stringLengthCheck(typed, wanted)
    }
    // Upwards: a value may reference the same column that it replaces.
    val computed = expressions(key(column)).transformUp {
      case base: AttributeReference => as(valueOf(base.name), base.name)
    }
    as(computed, column)
  }

  private def key(name: String): String = ColumnNames.folded(name)
}
