package io.deltaic.spark.sql.planning

import org.apache.spark.sql.catalyst.InternalRow
import org.apache.spark.sql.catalyst.expressions.Attribute
import org.apache.spark.sql.catalyst.plans.logical._
import org.apache.spark.sql.execution.datasources.v2.LeafV2CommandExec
import org.apache.spark.sql.execution.{SparkPlan, SparkStrategy}

import io.deltaic.spark.commit.reads.ReadRecordingWrite
import io.deltaic.spark.write.IdempotentWrite

/**
 * Skips a write if an earlier one has been committed with the same `txnAppId` and `txnVersion`: its
 * query is not run. A concurrent write with the same identifier is detected at the commit.
 */
private[spark] object SkipCommittedWrites extends SparkStrategy {

  override def apply(plan: LogicalPlan): Seq[SparkPlan] = plan match {
    case command: V2WriteCommand =>
      ReadRecordingWrite.of(command).toSeq.collect {
        case write: IdempotentWrite if write.isAlreadyCommitted => SkippedWriteExec(write)
      }
    case _ => Nil
  }
}

private[spark] final case class SkippedWriteExec(write: IdempotentWrite) extends LeafV2CommandExec {
  override def output: Seq[Attribute] = Nil

  override protected def run(): Seq[InternalRow] = {
    write.skip()
    Nil
  }
}
