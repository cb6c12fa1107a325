package io.deltaic.spark.sql.planning

import org.apache.spark.sql.catalyst.InternalRow
import org.apache.spark.sql.catalyst.expressions.Attribute
import org.apache.spark.sql.catalyst.plans.logical._
import org.apache.spark.sql.deltaic.BatchOfStream
import org.apache.spark.sql.execution.datasources.v2.{LeafV2CommandExec, V2CommandExec}
import org.apache.spark.sql.execution.streaming.operators.stateful.{
  EventTimeWatermarkExec,
  StateStoreWriter
}
import org.apache.spark.sql.execution.{SparkPlan, SparkStrategy, UnaryExecNode}

import io.deltaic.spark.commit.reads.ReadRecordingWrite
import io.deltaic.spark.write.IdempotentWrite

/**
 * Skips a write, or a batch of a stream, if an earlier one has been committed with the same `txnAppId` and
 * `txnVersion`: its query is not run. A concurrent write with the same identifier is detected at the commit.
 */
private[spark] object SkipCommittedWrites extends SparkStrategy {

  override def apply(plan: LogicalPlan): Seq[SparkPlan] = plan match {
    case BatchOfStream(_, query) => committed(plan).map(SkippedBatchExec(_, planLater(query)))
    case _ => committed(plan).map(SkippedWriteExec)
  }

  private def committed(plan: LogicalPlan): Seq[IdempotentWrite] =
    ReadRecordingWrite.of(plan).toSeq.collect {
      case write: IdempotentWrite if write.isAlreadyCommitted => write
    }
}

private[spark] final case class SkippedWriteExec(write: IdempotentWrite) extends LeafV2CommandExec {
  override def output: Seq[Attribute] = Nil

  override protected def run(): Seq[InternalRow] = {
    write.skip()
    Nil
  }
}

/**
 * A batch of a stream whose rows are not written again. Its query stays in the plan, since Spark compares the operators
 * with state with those of the checkpoint. With state or a watermark, it runs, as in any batch that Spark repeats: Spark
 * collects the checkpoints of the state and the times of events from its tasks.
 */
private[spark] final case class SkippedBatchExec(write: IdempotentWrite, child: SparkPlan)
    extends V2CommandExec
    with UnaryExecNode {
  override def output: Seq[Attribute] = Nil

  override protected def run(): Seq[InternalRow] = {
    write.skip()
    if (hasState) child.execute().foreach(_ => ())
    Nil
  }

  private def hasState: Boolean = child.exists {
    case _: StateStoreWriter | _: EventTimeWatermarkExec => true
    case _ => false
  }

  override protected def withNewChildInternal(newChild: SparkPlan): SkippedBatchExec =
    copy(child = newChild)
}
