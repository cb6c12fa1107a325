package io.deltaic.spark.catalog

import org.apache.spark.sql.AnalysisException
import org.apache.spark.sql.catalyst.analysis.{Star, UnresolvedAttribute}
import org.apache.spark.sql.catalyst.expressions._
import org.apache.spark.sql.catalyst.parser.ParseException
import org.apache.spark.sql.classic.SparkSession
import org.apache.spark.sql.deltaic.ExpressionShims
import org.apache.spark.sql.types.{MapType, StructType}

/** The columns that an expression in SQL speaks of. */
private[spark] object ReferredColumns {

  /**
   * Each by the names that lead to it, `element`, `key` and `value` for what is in arrays and maps. If the
   * expression does not fit the columns, whole columns that it names; none if it may mean any.
   */
  def in(spark: SparkSession, columns: StructType, expression: String): Option[Seq[Seq[String]]] =
    try {
      val attributes = ExpressionShims.attributes(columns)
      Some(pathsIn(ExpressionShims.resolved(spark, expression, attributes)).distinct)
    } catch {
      // The latter of what is computed from more than a row, such as a subquery.
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

  /** The path of what an expression takes out of a column, maybe all of it, and the indexes and keys on its way. */
  private def pathOf(expression: Expression): Option[(Seq[String], Seq[Expression])] =
    expression match {
      case column: AttributeReference => Some((Seq(column.name), Nil))
      case Part(whole, names, keys) =>
        pathOf(whole).map { case (path, before) => (path ++ names, before ++ keys) }
      case _ => None
    }

  /** What takes a part out of a value: the value, the names from there to the part, indexes and keys. */
  private object Part {
    def unapply(taken: Expression): Option[(Expression, Seq[String], Seq[Expression])] =
      taken match {
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
