package io.deltaic.spark.skipping

import org.apache.spark.sql.catalyst.util.TypeUtils
import org.apache.spark.sql.types.DataType

/** Aggregates of all rows, from those of parts of them that have no row in common. */
private[spark] object MergedAggregates {

  /**
   * @param parts as [[FileRows.aggregate]] has them, first the columns of a group, so many as `keys`; none where a part
   *   leaves the answer open, and so the whole does
   */
  def of(
      parts: Seq[Option[Seq[Array[Any]]]],
      keys: Int,
      aggregates: Seq[RowAggregate]
  ): Option[Seq[Array[Any]]] =
    if (parts.exists(_.isEmpty)) None
    else {
      val merges = aggregates.map(merge)
      val groups = parts.flatten.flatten.groupMapReduce(_.take(keys).toSeq)(_.drop(keys).toSeq) {
        (left, right) => merges.indices.map(i => merges(i)(left(i), right(i)))
      }
      Some(groups.map { case (key, values) => (key ++ values).toArray }.toSeq)
    }

  private def merge(aggregate: RowAggregate): (Any, Any) => Any = aggregate match {
    case RowAggregate.CountRows | RowAggregate.CountValues(_) =>
      (left, right) => left.asInstanceOf[Long] + right.asInstanceOf[Long]
    case RowAggregate.Least(column) => extreme(natural(column.dataType))
    case RowAggregate.Greatest(column) => extreme(natural(column.dataType).reverse)
  }

  /** Null where a part has no value at all. */
  private def extreme(ordering: Ordering[Any]): (Any, Any) => Any = {
    case (null, right) => right
    case (left, null) => left
    case (left, right) => ordering.min(left, right)
  }

  private def natural(dataType: DataType): Ordering[Any] =
    TypeUtils.getInterpretedOrdering(dataType)
}
