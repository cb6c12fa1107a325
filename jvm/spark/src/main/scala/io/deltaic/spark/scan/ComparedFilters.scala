package io.deltaic.spark.scan

import org.apache.spark.sql.catalyst.expressions.{
  AttributeReference,
  Expression,
  LeafExpression,
  Unevaluable
}
import org.apache.spark.sql.types.DataType

/**
 * The filters of a scan in the form used to compare scans: in any order, with columns identified by
 * name, because expression ids differ between queries. Spark compares scans very often, so
 * canonical forms and their hash are computed once.
 */
private[spark] final class ComparedFilters(filters: Seq[Expression]) {

  private lazy val canonical: Set[Expression] = filters.map(byName(_).canonicalized).toSet

  private lazy val hash: Int = canonical.hashCode()

  private def byName(filter: Expression): Expression = filter.transform {
    case column: AttributeReference =>
      ColumnByName(column.name, column.dataType, column.nullable)
  }

  override def equals(other: Any): Boolean = other match {
    case that: ComparedFilters =>
      (this eq that) || (hash == that.hash && canonical == that.canonical)
    case _ => false
  }

  override def hashCode(): Int = hash
}

private final case class ColumnByName(name: String, dataType: DataType, nullable: Boolean)
    extends LeafExpression with Unevaluable
