package io.deltaic.spark.sql.analysis.target

import org.apache.spark.sql.catalyst.expressions.{Alias, AttributeReference, NamedExpression}
import org.apache.spark.sql.catalyst.plans.logical._
import org.apache.spark.sql.catalyst.util.toPrettySQL

import io.deltaic.spark.sql.analysis.ShownColumns

/** The operation of a view or a query of the WITH clause, beyond projecting columns of a table, as an SQL keyword. */
private[sql] object ViewOperation {

  /** The reason why a statement cannot change a table through it. */
  def refusal(what: String, rows: LogicalPlan, table: String): String =
    in(rows) match {
      case Some(operation) =>
        s"$what with $operation, which does not just show columns of the table $table"
      case None => s"$what that does not just show columns that the table $table has now"
    }

  private def in(rows: LogicalPlan): Option[String] = rows match {
    case _: SubqueryAlias | _: View => in(rows.children.head)
    case Project(columns, below) => in(below).orElse(inColumns(columns))
    case Filter(_, groups: Aggregate) => in(groups)
    case _: Filter => Some("WHERE")
    case _: Distinct | _: Deduplicate => Some("DISTINCT")
    case _: GlobalLimit | _: LocalLimit => Some("LIMIT")
    case _: Offset => Some("OFFSET")
    case groups: Aggregate if groups.groupingExpressions.nonEmpty => Some("GROUP BY")
    case _: Aggregate => Some("an aggregate function")
    case _: Window => Some("a window function")
    case _: Sort => Some("ORDER BY")
    case _: Union => Some("UNION")
    case _: Intersect => Some("INTERSECT")
    case _: Except => Some("EXCEPT")
    case _: Join => Some("JOIN")
    case _: LeafNode => None
    case other => Some(other.nodeName)
  }

  private def inColumns(columns: Seq[NamedExpression]): Option[String] =
    columns.find(!ShownColumns.stored(_).isInstanceOf[AttributeReference]).map {
      case Alias(value, _) => s"the expression ${toPrettySQL(value)}"
      case other => s"the expression ${toPrettySQL(other)}"
    }.orElse {
      val shown = columns.flatMap(_.references.toSeq)
      shown.diff(shown.distinct).headOption.map(column => s"the column ${column.name} twice")
    }
}
