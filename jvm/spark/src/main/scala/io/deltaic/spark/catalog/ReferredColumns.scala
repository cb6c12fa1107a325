package io.deltaic.spark.catalog

import org.apache.spark.sql.catalyst.analysis.{Star, UnresolvedAttribute}
import org.apache.spark.sql.catalyst.parser.ParseException
import org.apache.spark.sql.classic.SparkSession

/** The columns that an expression in SQL names. */
private[spark] object ReferredColumns {

  /** Each by the parts of its name; none if the expression cannot be read, or may mean any column. */
  def in(spark: SparkSession, expression: String): Option[Seq[Seq[String]]] =
    try {
      val parsed = spark.sessionState.sqlParser.parseExpression(expression)
      Option.when(!parsed.exists(_.isInstanceOf[Star])) {
        parsed.collect { case column: UnresolvedAttribute => column.nameParts }
      }
    } catch { case _: ParseException => None }
}
