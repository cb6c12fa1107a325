package org.apache.spark.sql.deltaic.merge

import org.apache.spark.rdd.RDD
import org.apache.spark.sql.catalyst.InternalRow
import org.apache.spark.sql.catalyst.expressions.Attribute
import org.apache.spark.sql.catalyst.plans.logical.{LeafNode, LogicalPlan, Statistics}
import org.apache.spark.sql.classic.{Dataset, SparkSession}
import org.apache.spark.sql.execution.LogicalRDD
import org.apache.spark.storage.RDDBlockId

/** The rows of a query, stored by the executors: every read returns the same rows. */
final class MaterializedMergeSource private (val plan: LogicalRDD) {

  /** Not with the RDD's own method, which would warn that its rows are lost. */
  def release(): Unit = plan.rdd.sparkContext.unpersistRDD(plan.rdd.id, blocking = false)
}

object MaterializedMergeSource {

  /** Runs the query. */
  def of(spark: SparkSession, query: LogicalPlan): MaterializedMergeSource =
    Dataset.ofRows(spark, query).localCheckpoint(eager = true).queryExecution.analyzed match {
      case rows: LogicalRDD => new MaterializedMergeSource(rows)
      case other => throw new IllegalStateException(s"materialized rows are ${other.nodeName}")
    }

  /** The rows of a checkpoint: if they are lost, reading them fails, and never runs the query again. */
  def unapply(plan: LogicalPlan): Option[LogicalRDD] = plan match {
    case rows: LogicalRDD if rows.rdd.isCheckpointed => Some(rows)
    case _ => None
  }

  /** The plan with the size of its rows, which local checkpoints do not report. */
  def sized(spark: SparkSession, plan: LogicalPlan): LogicalPlan = plan.transform {
    case MaterializedMergeSource(rows) =>
      storedBytes(spark, rows.rdd).fold[LogicalPlan](rows)(RowsOfSize(rows.output, _))
  }

  private def storedBytes(spark: SparkSession, rows: RDD[InternalRow]): Option[BigInt] = {
    val stored = spark.sparkContext.env.blockManager.master.getStorageStatus
      .flatMap(_.rddBlocks).collect { case (RDDBlockId(rows.id, _), block) => block }
    Option.when(stored.nonEmpty)(stored.map(block => BigInt(block.memSize + block.diskSize)).sum)
  }
}

private final case class RowsOfSize(override val output: Seq[Attribute], bytes: BigInt)
    extends LeafNode {
  override def computeStats(): Statistics = Statistics(sizeInBytes = bytes)
}
