package org.apache.spark.sql.deltaic

import org.apache.spark.rdd.RDD
import org.apache.spark.sql.catalyst.InternalRow
import org.apache.spark.sql.catalyst.expressions.Attribute
import org.apache.spark.sql.catalyst.plans.logical.{LeafNode, LogicalPlan, Statistics}
import org.apache.spark.sql.classic.{Dataset, SparkSession}
import org.apache.spark.sql.execution.LogicalRDD
import org.apache.spark.storage.RDDBlockId

/** Rows of a query that has run, kept by the executors: they are the same whenever they are read. */
final class StoredRows private (val plan: LogicalRDD) {

  /** Not by the RDD itself, which would warn that its rows are gone. */
  def release(): Unit = plan.rdd.sparkContext.unpersistRDD(plan.rdd.id, blocking = false)
}

object StoredRows {

  /** Runs the query. */
  def of(spark: SparkSession, query: LogicalPlan): StoredRows =
    Dataset.ofRows(spark, query).localCheckpoint(eager = true).queryExecution.analyzed match {
      case rows: LogicalRDD => new StoredRows(rows)
      case other => throw new IllegalStateException(s"stored rows are ${other.nodeName}")
    }

  /** Rows of a checkpoint: reading them fails where they are lost, and never runs a query again. */
  def unapply(plan: LogicalPlan): Option[LogicalRDD] = plan match {
    case rows: LogicalRDD if rows.rdd.isCheckpointed => Some(rows)
    case _ => None
  }

  /** The plan to be asked how large its rows are, which checkpoints that executors keep do not tell. */
  def sized(spark: SparkSession, plan: LogicalPlan): LogicalPlan = plan.transform {
    case StoredRows(rows) =>
      keptBytes(spark, rows.rdd).fold[LogicalPlan](rows)(RowsOfSize(rows.output, _))
  }

  private def keptBytes(spark: SparkSession, rows: RDD[InternalRow]): Option[BigInt] = {
    val kept = spark.sparkContext.env.blockManager.master.getStorageStatus
      .flatMap(_.rddBlocks).collect { case (RDDBlockId(rows.id, _), block) => block }
    Option.when(kept.nonEmpty)(kept.map(block => BigInt(block.memSize + block.diskSize)).sum)
  }
}

private final case class RowsOfSize(override val output: Seq[Attribute], bytes: BigInt)
    extends LeafNode {
  override def computeStats(): Statistics = Statistics(sizeInBytes = bytes)
}
