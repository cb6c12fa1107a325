package org.apache.spark.sql.deltaic

import scala.annotation.nowarn

import org.apache.spark.sql.catalyst.plans.logical.LogicalPlan
import org.apache.spark.sql.connector.write.streaming.StreamingWrite
import org.apache.spark.sql.execution.datasources.v2.WriteToDataSourceV2
import org.apache.spark.sql.execution.streaming.sources.MicroBatchWrite

/** The write and the query of a batch of a stream, as Spark's optimizer leaves it. */
object BatchOfStream {

  /** Spark has deprecated the node for others, and plans all streams by it. */
  @nowarn("cat=deprecation")
  def unapply(plan: LogicalPlan): Option[(StreamingWrite, LogicalPlan)] = plan match {
    case WriteToDataSourceV2(_, batch: MicroBatchWrite, query, _) =>
      Some((batch.writeSupport, query))
    case _ => None
  }
}
