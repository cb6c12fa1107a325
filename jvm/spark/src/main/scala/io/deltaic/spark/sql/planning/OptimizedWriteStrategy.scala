package io.deltaic.spark.sql.planning

import org.apache.spark.sql.catalyst.plans.logical.{LogicalPlan, RebalancePartitions}
import org.apache.spark.sql.deltaic.OptimizedWriteRowsExec
import org.apache.spark.sql.execution.exchange._
import org.apache.spark.sql.execution.{SparkPlan, SparkStrategy}

import io.deltaic.spark.sql.optimizer.OptimizedWriteRows

/** Plans [[OptimizedWriteRows]] as a shuffle whose partitions are coalesced and split when their sizes are known. */
private[spark] object OptimizedWriteStrategy extends SparkStrategy {

  override def apply(plan: LogicalPlan): Seq[SparkPlan] = plan match {
    case OptimizedWriteRows(by, rows, fileSizeBytes) =>
      val partitioning = RebalancePartitions(by, rows).partitioning
      val origin = if (by.isEmpty) REBALANCE_PARTITIONS_BY_NONE else REBALANCE_PARTITIONS_BY_COL
      val shuffle = ShuffleExchangeExec(partitioning, planLater(rows), origin)
      OptimizedWriteRowsExec(shuffle, fileSizeBytes) :: Nil
    case _ => Nil
  }
}
