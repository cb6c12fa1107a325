package io.deltaic.spark.catalog

import org.apache.spark.sql.AnalysisException
import org.apache.spark.sql.catalyst.analysis.{Star, UnresolvedAttribute}
import org.apache.spark.sql.catalyst.expressions._
import org.apache.spark.sql.catalyst.parser.ParseException
import org.apache.spark.sql.classic.SparkSession
import org.apache.spark.sql.deltaic.ExpressionShims
import org.apache.spark.sql.types.{ArrayType, MapType, StructType}

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
    } catch { case _: AnalysisException | _: IllegalArgumentException => named(spark, expression) }

  private def named(spark: SparkSession, expression: String): Option[Seq[Seq[String]]] =
    try {
      val parsed = spark.sessionState.sqlParser.parseExpression(expression)
      Option.when(!parsed.exists(_.isInstanceOf[Star])) {
        parsed.collect { case column: UnresolvedAttribute => column.nameParts.take(1) }
      }
    } catch { case _: ParseException => None }

  private def pathsIn(expression: Expression): Seq[Seq[String]] =
    pathOf(expression).fold(expression.children.flatMap(pathsIn)) { path =>
      path +: keysIn(expression).flatMap(pathsIn)
    }

  /** The path of what an expression takes out of a column, which may be all of it. */
  private def pathOf(expression: Expression): Option[Seq[String]] = expression match {
    case column: AttributeReference => Some(Seq(column.name))
    case taken: GetStructField => pathOf(taken.child).map(_ :+ taken.extractFieldName)
    case taken: GetArrayStructFields =>
      pathOf(taken.child).map(_ ++ Seq("element", taken.field.name))
    case taken: GetArrayItem => pathOf(taken.child).map(_ :+ "element")
    case taken: GetMapValue => pathOf(taken.child).map(_ :+ "value")
    case ElementAt(container, _, _, _) =>
      container.dataType match {
        case _: ArrayType => pathOf(container).map(_ :+ "element")
        case _: MapType => pathOf(container).map(_ :+ "value")
        case _ => None
      }
    case _ => None
  }

  /** The indexes and keys by which [[pathOf]] gets to where it does. */
  private def keysIn(expression: Expression): Seq[Expression] = expression match {
    case taken: GetStructField => keysIn(taken.child)
    case taken: GetArrayStructFields => keysIn(taken.child)
    case taken: GetArrayItem => taken.ordinal +: keysIn(taken.child)
    case taken: GetMapValue => taken.key +: keysIn(taken.child)
    case ElementAt(container, key, _, _) => key +: keysIn(container)
    case _ => Nil
  }
}
