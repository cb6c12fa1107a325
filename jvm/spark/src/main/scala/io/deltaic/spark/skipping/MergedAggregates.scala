package io.deltaic.spark.skipping

import org.apache.spark.sql.catalyst.util.TypeUtils
import org.apache.spark.sql.types.DataType

/** Merges the aggregates of disjoint parts of the rows. */
private[spark] object MergedAggregates {

  /**
   * @param parts as [[FileStatsAggregator.aggregate]] returns them, first the `keys` columns of a
   *   group; if one is none, so is the result
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
    case RowAggregate.Min(column) => extreme(natural(column.dataType))
    case RowAggregate.Max(column) => extreme(natural(column.dataType).reverse)
  }

  /** Ignores null, the result of a part with only nulls. */
  private def extreme(ordering: Ordering[Any]): (Any, Any) => Any = {
    case (null, right) => right
    case (left, null) => left
    case (left, right) => ordering.min(left, right)
  }

  private def natural(dataType: DataType): Ordering[Any] =
    TypeUtils.getInterpretedOrdering(dataType)
}
