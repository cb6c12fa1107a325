package io.deltaic.spark.sql.optimizer

import org.apache.spark.sql.catalyst.expressions.{Attribute, Expression}
import org.apache.spark.sql.catalyst.plans.logical.{LogicalPlan, UnaryNode}

/**
 * The rows of an optimized write in a query without adaptive execution, where Spark would write each partition of a
 * rebalancing shuffle to a file of its own.
 *
 * @param partitionBy the partition columns of the table
 * @param fileSizeBytes the bytes of the shuffle for one file
 */
private[spark] final case class OptimizedWriteRows(
    partitionBy: Seq[Expression],
    child: LogicalPlan,
    fileSizeBytes: Long
) extends UnaryNode {

  override def output: Seq[Attribute] = child.output

  override def maxRows: Option[Long] = child.maxRows

  override protected def withNewChildInternal(newChild: LogicalPlan): OptimizedWriteRows =
    copy(child = newChild)
}
