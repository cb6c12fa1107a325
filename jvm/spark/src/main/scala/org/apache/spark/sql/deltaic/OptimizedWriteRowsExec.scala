package org.apache.spark.sql.deltaic

import scala.concurrent.duration.Duration

import org.apache.spark.MapOutputStatistics
import org.apache.spark.rdd.RDD
import org.apache.spark.sql.catalyst.InternalRow
import org.apache.spark.sql.catalyst.expressions.Attribute
import org.apache.spark.sql.execution.adaptive.ShufflePartitionsUtil
import org.apache.spark.sql.execution.exchange.{ReusedExchangeExec, ShuffleExchangeLike}
import org.apache.spark.sql.execution.{ShufflePartitionSpec, SparkPlan, UnaryExecNode}
import org.apache.spark.sql.internal.SQLConf
import org.apache.spark.util.ThreadUtils

/**
 * Reads a shuffle in partitions of about `fileSizeBytes`, by the rules and settings of adaptive execution.
 *
 * @param child the shuffle
 */
final case class OptimizedWriteRowsExec(child: SparkPlan, fileSizeBytes: Long)
    extends UnaryExecNode {

  override def nodeName: String = "OptimizedWriteRows"

  override def output: Seq[Attribute] = child.output

  /** Runs the job of the shuffle. The write fails if it does. */
  override protected def doExecute(): RDD[InternalRow] = {
    val shuffle = child match {
      case shuffle: ShuffleExchangeLike => shuffle
      case ReusedExchangeExec(_, shuffle: ShuffleExchangeLike) => shuffle
      case other => throw new IllegalStateException(s"a shuffle is expected: ${other.nodeName}")
    }
    // A query without partitions has no sizes.
    Option(ThreadUtils.awaitResult(shuffle.submitShuffleJob(), Duration.Inf)) match {
      case Some(sizes) =>
        shuffle.getShuffleRDD(partitions(sizes).toArray).asInstanceOf[RDD[InternalRow]]
      case None => child.execute()
    }
  }

  private def partitions(sizes: MapOutputStatistics): Seq[ShufflePartitionSpec] = {
    val smallestBytes = conf.getConf(SQLConf.COALESCE_PARTITIONS_MIN_PARTITION_SIZE)
    val fewest = conf.getConf(SQLConf.COALESCE_PARTITIONS_MIN_PARTITION_NUM).getOrElse(
      if (conf.getConf(SQLConf.COALESCE_PARTITIONS_PARALLELISM_FIRST))
        session.sparkContext.defaultParallelism
      else 1
    )
    val split = ShufflePartitionsUtil.optimizeSkewedPartitions(
      sizes.shuffleId,
      sizes.bytesByPartitionId,
      fileSizeBytes,
      smallestBytes,
      conf.getConf(SQLConf.ADAPTIVE_REBALANCE_PARTITIONS_SMALL_PARTITION_FACTOR)
    )
    val coalesced = ShufflePartitionsUtil.coalescePartitions(
      Seq(Some(sizes)),
      Seq(Some(split)),
      fileSizeBytes,
      fewest,
      smallestBytes
    )
    // None if there is nothing to coalesce.
    coalesced.headOption.getOrElse(split)
  }

  override protected def withNewChildInternal(newChild: SparkPlan): OptimizedWriteRowsExec =
    copy(child = newChild)
}
