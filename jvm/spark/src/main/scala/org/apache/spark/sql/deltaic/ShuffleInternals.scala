package org.apache.spark.sql.deltaic

import org.apache.spark.rdd.RDD
import org.apache.spark.sql.catalyst.InternalRow
import org.apache.spark.sql.catalyst.expressions.{
  Attribute,
  DirectShufflePartitionID,
  SortOrder,
  UnsafeRow
}
import org.apache.spark.sql.catalyst.plans.physical.ShufflePartitionIdPassThrough
import org.apache.spark.sql.execution.exchange.ShuffleExchangeExec
import org.apache.spark.sql.execution.{LeafExecNode, SortExec}

/** Shuffles of rows outside of a query plan. */
object ShuffleInternals {

  /**
   * The rows in partitions that are known already, sorted in each of them. Adaptive execution does not change the
   * partitions.
   *
   * @param output the columns of the rows
   * @param partition the column with the number of a row's partition
   */
  def sorted(
      rows: RDD[UnsafeRow],
      output: Seq[Attribute],
      partition: Attribute,
      numPartitions: Int,
      order: Seq[SortOrder]
  ): RDD[InternalRow] = {
    val partitioning =
      ShufflePartitionIdPassThrough(DirectShufflePartitionID(partition), numPartitions)
    SortExec(order, global = false, ShuffleExchangeExec(partitioning, Rows(rows, output))).execute()
  }

  private case class Rows(rows: RDD[UnsafeRow], override val output: Seq[Attribute])
      extends LeafExecNode {
    override protected def doExecute(): RDD[InternalRow] = rows.asInstanceOf[RDD[InternalRow]]
  }
}
