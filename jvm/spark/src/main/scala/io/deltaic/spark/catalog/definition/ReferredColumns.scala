package io.deltaic.spark.catalog.definition

import org.apache.spark.sql.AnalysisException
import org.apache.spark.sql.catalyst.analysis.{Star, UnresolvedAttribute}
import org.apache.spark.sql.catalyst.expressions._
import org.apache.spark.sql.catalyst.parser.ParseException
import org.apache.spark.sql.classic.SparkSession
import org.apache.spark.sql.deltaic.ExpressionInternals
import org.apache.spark.sql.types.{MapType, StructType}

/** The columns that an SQL expression references. */
private[spark] object ReferredColumns {

  /**
   * Each as its path of names, with `element`, `key` and `value` in arrays and maps. If the expression cannot be
   * resolved, the top-level columns that it names; none if it may reference any column.
   */
  def in(spark: SparkSession, columns: StructType, expression: String): Option[Seq[Seq[String]]] =
    try {
      val attributes = ExpressionInternals.attributes(columns)
      Some(pathsIn(ExpressionInternals.resolved(spark, expression, attributes)).distinct)
    } catch {
      // The latter for an expression over more than one row, such as a subquery.
      case _: AnalysisException | _: IllegalArgumentException => named(spark, expression)
    }

  private def named(spark: SparkSession, expression: String): Option[Seq[Seq[String]]] =
    try {
      val parsed = spark.sessionState.sqlParser.parseExpression(expression)
      Option.when(!parsed.exists(_.isInstanceOf[Star])) {
        parsed.collect { case column: UnresolvedAttribute => column.nameParts.take(1) }
      }
    } catch { case _: ParseException => None }

  private def pathsIn(expression: Expression): Seq[Seq[String]] =
    pathOf(expression).fold(expression.children.flatMap(pathsIn)) { case (path, keys) =>
      path +: keys.flatMap(pathsIn)
    }

  /** The path of the column or nested field that an expression extracts, with the indexes and keys that it uses. */
  private def pathOf(expression: Expression): Option[(Seq[String], Seq[Expression])] =
    expression match {
      case column: AttributeReference => Some((Seq(column.name), Nil))
      case Part(whole, names, keys) =>
        pathOf(whole).map { case (path, before) => (path ++ names, before ++ keys) }
      case _ => None
    }

  /** Extracts a part of a value: the value, the names from it to the part, and the indexes and keys. */
  private object Part {
    def unapply(extraction: Expression): Option[(Expression, Seq[String], Seq[Expression])] =
      extraction match {
        case field: GetStructField => Some((field.child, Seq(field.extractFieldName), Nil))
        case field: GetArrayStructFields =>
          Some((field.child, Seq("element", field.field.name), Nil))
        case GetArrayItem(array, index, _) => Some((array, Seq("element"), Seq(index)))
        case GetMapValue(map, key) => Some((map, Seq("value"), Seq(key)))
        case ElementAt(container, key, _, _) =>
          val name = if (container.dataType.isInstanceOf[MapType]) "value" else "element"
          Some((container, Seq(name), Seq(key)))
        case _ => None
      }
  }
}
